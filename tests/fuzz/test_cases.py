"""Every case that fuzzing has found is right now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import areas
from tests.fuzz.runner import isolated

LOST = ("crash", "hang")
CASES = [
    pytest.param(json.loads(line), id=f"{path.stem}:{number}")
    for path in sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    """Those that took their process down are replayed in one of their own."""
    assert (isolated(case) if case["kind"] in LOST else areas.replay(case)) is None
