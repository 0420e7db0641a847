"""The documentation site: it builds without a warning, asks no other site for anything, and names what is public."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

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
