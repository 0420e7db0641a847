"""The known faults of python-jsonschema are still there, and the judge does not share them."""

from __future__ import annotations

import pytest

from tests.fuzz.judge import Judge
from tests.fuzz.oracle import KNOWN_FAULTS, SecondOpinion, unrepaired

REPAIRED = {
    "steps are divided as floats": ("draft2020-12", {"multipleOf": 0.1}, 0.3, True),
    "a $ stands before a last newline": ("draft2020-12", {"pattern": "^a$"}, "a\n", False),
    r"\d takes the digits of all scripts": ("draft2020-12", {"pattern": r"^\d$"}, "٣", False),
    "items are sorted, which tells [1] from [true] too late": (
        "draft2020-12",
        {"uniqueItems": True},
        [[1], [True], [1]],
        False,
    ),
    "bounds compare binary values": ("draft2020-12", {"maximum": 1e300}, int(1e300), False),
}


@pytest.mark.parametrize("name", KNOWN_FAULTS)
def test_known_faults(name: str) -> None:
    applies, draft, schema, value, valid = KNOWN_FAULTS[name]
    assert applies(schema, draft) and SecondOpinion(schema, draft).valid(value) is None
    assert Judge(schema, draft).valid(value) is valid
    assert unrepaired(schema, draft, value) is not valid


@pytest.mark.parametrize("name", REPAIRED)
def test_repaired_faults(name: str) -> None:
    draft, schema, value, valid = REPAIRED[name]
    assert Judge(schema, draft).valid(value) is valid
    assert SecondOpinion(schema, draft).valid(value) is valid
    assert unrepaired(schema, draft, value) is not valid
