"""The benchmark of growth runs, and asks for what it says."""

from __future__ import annotations

import json
from pathlib import Path

import growth
import pytest
from jsonschema import Draft202012Validator


@pytest.mark.parametrize("name", growth.QUESTIONS)
def test_values_are_of_their_schemas_and_grow(name: str) -> None:
    make, _, sizes = growth.QUESTIONS[name]
    lengths = []
    for size in sizes:
        schema, value = make(size)
        Draft202012Validator(schema).validate(value)
        lengths.append(len(json.dumps([schema, value])))
    assert lengths == sorted(set(lengths))


def test_numbered_schemas_differ_and_have_values() -> None:
    assert len({json.dumps(growth.different_schema(number)) for number in range(300)}) == 300
    for number in range(300):
        Draft202012Validator(growth.different_schema(number)).validate(growth.different_value(number))


@pytest.mark.full
def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(tmp_path), "--small", "--engines", "structgen", "--vocabulary", "bytes"]
    growth.main([*arguments, "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    for name in growth.PARTS:
        assert f"## {name}" in printed
    records = [json.loads(line) for line in (tmp_path / "out" / "records.jsonl").read_text().splitlines()]
    assert all(record.get("outcome", "compiled") == "compiled" and "reason" not in record for record in records)
    assert (tmp_path / "out" / "growth.svg").read_text().startswith("<svg")
