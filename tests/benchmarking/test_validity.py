"""Judgements of outputs."""

from __future__ import annotations

import json

import pytest

from structgen.benchmarking.validity import judge_text

SCHEMA = json.dumps({"type": "object", "properties": {"d": {"type": "string", "format": "date"}}, "required": ["d"]})


@pytest.mark.parametrize(
    ("text", "finished", "judgement", "reason"),
    [
        ('{"d": "2024-02-29"}', True, "valid", ""),
        ('```json\n{"d": "2024-02-29"}\n```', True, "valid", ""),
        ('{"d": "2023-02-29"}', True, "invalid", "format: "),
        ("{}", True, "invalid", "required: "),
        ('Sure! {"d": "2024-02-29"}', True, "not_json", "Expecting value"),
        ("[" * 100_000, True, "not_json", ""),
        ('{"d": "2024-02-29"}', False, "unfinished", "budget"),
    ],
)
def test_judgements(text: str, finished: bool, judgement: str, reason: str) -> None:
    found = judge_text(SCHEMA, text, finished)
    assert found[0] == judgement
    assert reason in found[1]


def test_the_validator_itself_may_fail() -> None:
    assert judge_text('{"$ref": "#/nowhere"}', "{}", True)[0] == "undecided"
