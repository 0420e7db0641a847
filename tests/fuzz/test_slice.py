"""A slice of `make fuzz` with seeds that never change: some units of every area find nothing wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import areas

UNITS = {  # a minute in all
    "json": 600,
    "lark": 50,
    "lalr": 60,
    "gbnf": 60,
    "expressions": 120,
    "python_types": 30,
    "answers": 240,
    "vocabularies": 15,
    "generations": 50,
    "threads": 3,
    "hostile": 8,
}
PARTS = 6
SLICES = [
    pytest.param(area, range(part * count // PARTS, (part + 1) * count // PARTS), id=f"{area}-{part}")
    for area, count in UNITS.items()
    for part in range(PARTS)
    if part * count // PARTS < (part + 1) * count // PARTS
]


@pytest.mark.first_case
@pytest.mark.parametrize(("area", "seeds"), SLICES)
def test_slice(area: str, seeds: range) -> None:
    tally: Counter[str] = Counter()
    assert [case for seed in seeds for case in areas.run(area, seed, tally)] == []
    assert tally[f"units {area}"] == len(seeds)
