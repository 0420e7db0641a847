"""The documentation as `make docs` leaves it, opened from its folder: the search, three widths, light and dark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).parents[2] / ".cache/docs/site"
if not (SITE / "index.html").exists():
    pytest.skip("the site is not built (make docs)", allow_module_level=True)


def test_the_search_works_without_a_server(browse: Any, pictures: Path) -> None:
    words = {"llguidance": "moving.html", "temperature": "serving.html", "JsonOptions": "reference/constraints.html"}
    seen = browse("search.mjs", (SITE / "index.html").as_uri(), str(pictures), *words)
    assert seen["errors"] == [] and all(request.startswith(("file:", "data:", "blob:")) for request in seen["requests"])
    for word, page in words.items():
        assert (SITE / page).as_uri() in seen["found"][word], word
    assert seen["followed"].partition("?")[0].partition("#")[0] in seen["found"]["JsonOptions"]


def test_pages_fit_their_window(browse: Any, pictures: Path) -> None:
    names = ["index", "serving", "reference/generating"]
    pages = [[f"site-{name.replace('/', '-')}", (SITE / f"{name}.html").as_uri(), False] for name in names]
    looks = browse("looks.mjs", str(pictures), json.dumps(pages), timeout=400)
    assert len(looks) == 6 * len(pages)
    for look in looks:
        where = (look["name"], look["width"], look["scheme"])
        assert look["errors"] == [] and not look["overflows"], where
        assert look["broken"] == [], where
