"""What is said where a schema lets a model invent members."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.cli.open_objects import advice, undeclared_share
from structgen.core.constraints.json import json_schema
from structgen.options import JsonOptions
from tests.cli.running import run

PERSON = {"properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"properties": {"a": {}}}}}}
CLOSED = {"properties": {"name": {"type": "string"}}, "additionalProperties": False}

values = st.recursive(
    st.integers(0, 99) | st.text("ab", max_size=4) | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("xyz", max_size=2), inner, max_size=2),
    max_leaves=4,
)


def compact(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":")).encode())


@settings(deadline=None, max_examples=60)
@given(
    declared=st.fixed_dictionaries(
        {}, optional={"name": st.text("ab"), "tags": st.lists(st.just({"a": 1}), max_size=2)}
    ),
    others=st.dictionaries(st.text("xyz", min_size=1), values, max_size=4),
    inner=st.dictionaries(st.text("xyz", min_size=1), values, max_size=2),
)
def test_the_share_is_what_taking_them_out_by_hand_leaves(declared: Any, others: Any, inner: Any) -> None:
    """Members of other names, in the object and in one of its tags, are all that is not declared."""
    whole = json.loads(json.dumps({**declared, **others}))
    if whole.get("tags"):
        whole["tags"][0].update(inner)
    share = undeclared_share(json_schema(PERSON), json.dumps(whole, indent=1))
    assert share == pytest.approx(1 - compact(declared) / compact(whole))


def test_advice() -> None:
    invented = json.dumps({"name": "A", "story": "x" * 50})
    assert "--closed" in str(advice(json_schema(PERSON), invented, False))
    assert "84% of the text" in str(advice(json_schema(PERSON), invented, True))
    assert advice(json_schema(PERSON), '{"name": "A", "x": 1}', False) is None
    assert "budget" in str(advice(json_schema(PERSON), '{"name": "A', True))
    for constraint in (json_schema(CLOSED), json_schema(PERSON, JsonOptions(additional_members="closed")), None):
        assert advice(constraint, invented, True) is None
    free_map = json_schema({"properties": {"m": {"additionalProperties": {"type": "string"}}}, "required": ["m"]})
    assert advice(free_map, json.dumps({"m": {"anything": "x" * 50}}), False) is None


@pytest.mark.full
def test_the_command_line_says_it() -> None:
    schema = json.dumps({"properties": {"a": {"type": "boolean"}}, "minProperties": 9, "type": "object"})
    code, stdout, stderr = run("generate", "p", "--schema", schema, "--temperature", "1", "--seed", "1")
    assert code == 0 and len(json.loads(stdout)) >= 9
    assert "--closed allows none" in stderr
    assert "--closed" not in run("generate", "p", "--schema", json.dumps(CLOSED))[2]
    code, stdout, _ = run("check", schema)
    assert "open: undeclared members are allowed at the root; --closed allows none" in stdout
    assert json.loads(run("check", schema, "--json")[1])["open"] == [""]
    assert json.loads(run("check", '{"type": "integer"}', "--json")[1])["bounds_numbers"] is True
    assert "at most 40 digits" in run("check", '{"type": "integer"}')[1]
    assert "digits" not in run("check", '{"type": "integer"}', "--exact")[1]
    assert "open" in run("demo", "--help")[1] or "--closed" in run("demo", "--help")[1]
