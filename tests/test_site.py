"""The documentation site: it builds without a warning, asks no other site for anything, and names what is public."""

from __future__ import annotations

import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import structgen

ROOT = Path(__file__).parents[1]
# STRUCTGEN_DOCS: the Python of another environment with docs/requirements.txt.
PYTHON = Path(os.environ.get("STRUCTGEN_DOCS", ROOT / ".cache/docs/env/bin/python"))
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["']?(?:https?:)?//|<link\b[^>]*?\bhref=["']?https?://"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not PYTHON.exists():
        pytest.skip("mkdocs is not installed: `make docs`, or STRUCTGEN_DOCS=PYTHON")
    folder = tmp_path_factory.mktemp("site")
    command = [str(PYTHON), "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=280, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        assert LOADED.findall(page.read_text()) == [], page


class Links(HTMLParser):
    """What a page links to, and what it can be linked to at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {values.get("id") or "", values.get("name") or ""}
        self.targets |= {target for name in ("href", "src") if (target := values.get(name))}


def test_every_link_leads_to_a_page_and_its_place(site: Path) -> None:
    """Told from the pages as they were built, not by what built them."""
    pages = {path: Links(path) for path in site.rglob("*.html")}
    lost = []
    for path, links in pages.items():
        for target in links.targets:
            if path.name == "404.html" or re.match(r"[a-z]+:|//|\.$", target):
                continue
            place, _, anchor = target.partition("#")
            found = (path.parent / unquote(place)).resolve() if place else path
            if not found.exists() or (found in pages and unquote(anchor) not in pages[found].anchors):
                lost.append(f"{path.relative_to(site)}: {target}")
    assert lost == []


def test_the_search_needs_no_server(site: Path) -> None:
    """`make test-browser` searches; here, what that takes is there and is not loaded from elsewhere."""
    index = (site / "search/search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = {") and "llguidance" in index
    for page in site.rglob("*.html"):
        if page.name != "404.html":
            assert re.search(r'<script src="(?:\.\./)*assets/iframe-worker\.js">', page.read_text()), page


def test_docstrings_link_to_the_pages_that_they_name(site: Path) -> None:
    text = (site / "reference/generating.html").read_text()
    assert 'href="../speculative.html"' in text and "docs/speculative.md" not in text


def test_reference_has_every_signature(site: Path) -> None:
    text = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    names = set(re.findall(r'id="structgen\.(?:\w+\.)*(\w+)"', text))
    assert sorted(set(structgen.__all__) - names - {"__version__"}) == []


def test_reference_names_what_is_public() -> None:
    """Without a build, too: a new export needs a line in docs/reference."""
    text = "".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    listed = set(re.findall(r"^::: structgen\.(\w+)$", text, re.MULTILINE))
    errors = {
        name
        for name in structgen.__all__
        if getattr(structgen, name).__class__ is type and issubclass(getattr(structgen, name), (Exception, Warning))
    }
    assert "::: structgen.errors" in text
    assert sorted(set(structgen.__all__) - listed - errors - {"__version__"}) == []


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    docs = ROOT / "docs"
    assert [page for page in sorted(docs.rglob("*.md")) if f": {page.relative_to(docs).as_posix()}\n" not in text] == []
