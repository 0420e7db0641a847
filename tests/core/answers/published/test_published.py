"""Cases that other tools publish, as data: what they say of two schemas, and ``here``, ``why`` where it is otherwise.

- ``jsonsubschema.jsonl``: github.com/IBM/jsonsubschema, folder test. It reads draft 4, formats as annotations.
- ``oasdiff.jsonl``: github.com/oasdiff/oasdiff, folder checker: its rules for bodies of requests, which must still be
  taken, and of responses, which must still be understood.
- ``json_schema_diff.jsonl``: github.com/getsentry/json-schema-diff, tests/fixtures, draft 7; breaking by its rules for
  single changes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import structgen
from structgen import JsonOptions

FOLDER = Path(__file__).parent


def cases(name: str) -> list[Any]:
    lines = (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [pytest.param(case := json.loads(line), id=case["name"]) for line in lines]


def check_documents(answer: structgen.SchemaComparison, judges: list[Any]) -> None:
    for difference, (within, without) in ((answer.old_only, judges), (answer.new_only, judges[::-1])):
        if difference is not None:
            assert within.is_valid(difference.value) and not without.is_valid(difference.value)


@pytest.mark.parametrize("case", cases("jsonsubschema"))
def test_jsonsubschema(case: Any) -> None:
    answer = structgen.compare(*case["schemas"], options=JsonOptions(dialect="draft4", assert_formats=False))
    assert [answer.old_in_new, answer.new_in_old] == case.get("here", case["within"])
    check_documents(answer, [jsonschema.Draft4Validator(schema) for schema in case["schemas"]])


@pytest.mark.parametrize("case", cases("oasdiff"))
def test_oasdiff(case: Any) -> None:
    answer = structgen.compare(*case["schemas"])
    kept = answer.is_backward if case["side"] == "request" else answer.is_forward
    assert kept is not None and kept is not case.get("here", case["is_breaking"])
    check_documents(answer, [jsonschema.Draft202012Validator(schema) for schema in case["schemas"]])


@pytest.mark.parametrize("case", cases("json_schema_diff"))
def test_json_schema_diff(case: Any) -> None:
    answer = structgen.compare(*case["schemas"], options=JsonOptions(dialect="draft7"))
    assert answer.is_backward is not None and answer.is_backward is not case.get("here", case["is_breaking"])
    formats = jsonschema.Draft7Validator.FORMAT_CHECKER
    check_documents(answer, [jsonschema.Draft7Validator(one, format_checker=formats) for one in case["schemas"]])


def test_each_disagreement_has_a_reason() -> None:
    for name in ("jsonsubschema", "oasdiff", "json_schema_diff"):
        listed = [case.values[0] for case in cases(name)]
        assert all(("here" in case) == bool(case.get("why")) for case in listed)
        assert len({case["name"] for case in listed}) == len(listed)
