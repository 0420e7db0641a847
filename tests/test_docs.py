"""The code blocks of README.md and docs/ run; those fenced as ``python model`` need a language model and only compile.

Blocks of one page share a namespace and run in order, as a reader would type them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[int, str, str]]:
    """(first line, words after ``python``, code) of each Python block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        (text[: match.start(3)].count("\n") + 1, match[2].strip(), match[3])
        for match in FENCE.finditer(text)
        if match[1] == "python"
    ]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("documentation")  # whose classes and functions are looked up in it, as in any module
    monkeypatch.setitem(sys.modules, module.__name__, module)
    namespace: dict[str, Any] = vars(module)
    for line, words, code in blocks(page):
        assert words in ("", "model"), f"{page}:{line}: unknown kind of block: {words}"
        program = compile("\n" * (line - 1) + code, str(ROOT / page), "exec", dont_inherit=True)
        if not words:
            exec(program, namespace)


LINK = re.compile(r"\]\(([^)\s]+)\)")
LINKING = [*PAGES, *(path.name for path in sorted(ROOT.glob("*.md"))), "benchmarks/RESULTS.md", "grammars/README.md"]


def prose(path: Path) -> str:
    """A page without its fences, whose code may look like links and headings."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """What links can lead to in a page: its headings, as GitHub and the site name them, and what has an id."""
    text = prose(path)
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r'id="([^"]+)"', text))


@pytest.mark.parametrize("page", sorted(set(LINKING)))
def test_links_lead_somewhere(page: str) -> None:
    lost = []
    for target in LINK.findall(prose(ROOT / page)):
        place, _, anchor = target.partition("#")
        path = (ROOT / page).parent / place if place else ROOT / page
        is_there = path.exists() and (not anchor or path.suffix != ".md" or anchor in anchors(path))
        if "://" not in target and not target.startswith("mailto:") and not is_there:
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_that_are_named_are_there(page: str) -> None:
    """Those that are no links, too."""
    own = {"report.md"}  # what a command writes
    folders = (ROOT, ROOT / "docs", (ROOT / page).parent)
    named = set(re.findall(r"(?<![\w/.*-])((?:\.\./|\w[\w.-]*/)*[\w-]+\.md)\b", prose(ROOT / page))) - own
    titles = {Path(target.partition("#")[0]).name for target in LINK.findall(prose(ROOT / page))}
    assert [name for name in named - titles if not any((folder / name).exists() for folder in folders)] == []


def test_pages_that_the_code_names_are_there() -> None:
    """In docstrings, errors and the help of commands; of other projects' pages these are all."""
    others = {"docs/parametric.md", "docs/syntax.md", "docs/defining_structures/ebnf_grammar.md"}
    lost = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "structgen").rglob("*.py")
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8"))
        if name not in others and not (ROOT / name).exists()
    }
    assert lost == set()


def test_there_are_examples() -> None:
    """The fence pattern finds them."""
    assert sum(len(blocks(page)) for page in PAGES) >= 15
