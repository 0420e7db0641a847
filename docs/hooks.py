"""What the site makes of pages that are written for the repository: fences, links that leave docs/, pictures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
# Python-Markdown's fences take no second word; tests/test_docs.py does.
FENCE = re.compile(r"^```python model$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)]+)\)")
ROW = re.compile(r"^\|.*`.*$", re.MULTILINE)
CODE = re.compile(r"`[^`]*`")
PICTURE = re.compile(r"^!\[[^\]]*\]\((images/\w+\.svg)\)$", re.MULTILINE)


OPTION = re.compile(r"<code>(--[\w-]+)</code>")
NAMED = re.compile(r"\bdocs/([a-z_/]+)\.md\b(?![^<]*</(?:a|code)>)")


def on_page_content(html: str, *, page: Any, files: Any, **_: Any) -> str:
    """Make links of the pages that docstrings name as files of the repository; keep names of options in one piece."""

    def link(match: re.Match[str]) -> str:
        file = files.get_file_from_path(f"{match[1]}.md")
        if file is None:
            raise ValueError(f"{page.file.src_uri} names {match[0]}, which is no page")
        return f'<a href="{file.url_relative_to(page.file)}">{file.page.title or match[1]}</a>'

    return OPTION.sub(r'<code class="option">\1</code>', NAMED.sub(link, html))


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Rewrite a page before it is rendered."""
    folder = (DOCS / page.file.src_uri).parent

    def link(match: re.Match[str]) -> str:
        text, target = match.groups()
        path = (folder / target.partition("#")[0]).resolve()
        if path.is_relative_to(DOCS):
            return match[0]
        place = path.relative_to(DOCS.parent).as_posix()
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{place})"
        return text if path.name in text else f"{text} (`{place}`)"  # in the repository, which has no address yet

    def inline(match: re.Match[str]) -> str:
        source = (folder / match[1]).read_text(encoding="utf-8")
        return f"<div>{source.strip()}</div>" if 'class="sg"' in source else match[0]  # with the page's colours

    def plain_bars(row: re.Match[str]) -> str:
        return CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0])

    markdown = ROW.sub(plain_bars, PICTURE.sub(inline, markdown))  # bars in code separate no cells here
    return LINK.sub(link, FENCE.sub("```python", markdown))
