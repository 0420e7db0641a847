"""The page of examples/grounded_extraction.py in a browser: what is highlighted is what the quotes say."""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "examples" / "grounded_extraction.py"
QUOTES = ["the ceiling fell onto the bed", 'April in full, "under', "fell onto the bed"]


def test_quotes_are_highlighted(browse: Any, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specification = importlib.util.spec_from_file_location("examples.grounded_extraction", FILE)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    specification.loader.exec_module(module)
    claims = [module.Claim(claim=f"<b>{number}</b>", quote=quote) for number, quote in enumerate(QUOTES)]
    (tmp_path / "claims.html").write_text(module.page(module.LETTER, claims), encoding="utf-8")
    seen = browse("marks.mjs", str(pictures), (tmp_path / "claims.html").as_uri())
    assert seen["errors"] == [] and len(seen["requests"]) == 2 and seen["letter"] == module.LETTER
    assert seen["grounds"] == ["rgb(255, 224, 138)", "rgb(92, 74, 0)"] and seen["overflows"] == [False, False]
    marked = defaultdict[str, str](str)
    for numbers, text in seen["marks"]:
        for number in numbers.split():
            marked[number] += text
    assert marked == {str(number): claim.quote for number, claim in enumerate(claims, 1)} and "“under" in marked["2"]
    assert seen["target"] == "quote-3"
