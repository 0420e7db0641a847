"""Unions of hundreds of branches: what is valid is taken, masks say what is taken, and no reading is given up."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from structgen import JsonOptions, Vocabulary, compile_json_schema
from structgen.core.engines.json.compiled import JsonGrammar
from tests.core.engines.json.value_graph.test_discriminators import UNIONS, union

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256])
EXACT = JsonOptions.exact()
COUNT = 400


def instances() -> list[Any]:
    """Values of some branches, whole, in another order, and each way wrong."""
    found: list[Any] = [{}, [], {"kind": "kind 1"}, {"kind": "kind x", "a1": "text"}, {"a1": "text"}]
    for i in (0, 7, COUNT - 1):
        value = {"kind": f"kind {i}", f"a{i}": "text", f"b{i}": 3, "size": 1.5}
        found += [value, dict(reversed(value.items()))]
        found += [{name: item for name, item in value.items() if name != left_out} for left_out in value]
        found += [{**value, name: None} for name in value]
        found += [{**value, "more": 1}, {**value, f"a{i + 1}": "text"}, {**value, f"a{i + 1}": 1}]
    return found


def follow(grammar: JsonGrammar, value: Any) -> bool:
    """Whether a value is accepted, by masks and by steps, which agree on every byte."""
    matcher = grammar.matcher()
    bitmask = np.zeros(9, np.int32)
    for place, byte in enumerate(json.dumps(value).encode()):
        matcher.fill_next_token_bitmask(bitmask)
        allowed = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:257]
        if place % 8 == 0:
            assert [bool(bit) for bit in allowed[:256]] == list(matcher.next_bytes())
        if not matcher.accept_token(byte):
            assert not allowed[byte]
            return False
        assert allowed[byte]
    assert matcher.stats["dropped_alternatives"] == 0
    return matcher.is_accepting()


@pytest.mark.full
@pytest.mark.parametrize("kind", UNIONS)
def test_agrees_with_jsonschema(kind: str) -> None:
    schema = union(COUNT, **UNIONS[kind])
    grammar, oracle = compile_json_schema(schema, BYTES, EXACT), Draft202012Validator(schema)
    verdicts = set()
    for value in instances():
        expected = oracle.is_valid(value)
        assert follow(grammar, value) == expected, value
        verdicts.add(expected)
    assert verdicts == {True, False}


def test_inside_arrays() -> None:
    grammar = compile_json_schema({"type": "array", "items": union(COUNT)}, BYTES, EXACT)
    item = {"kind": "kind 5", "a5": "text"}
    assert follow(grammar, [item, {**item, "kind": "kind 6", "a6": ""}, item])
    assert not follow(grammar, [item, {**item, "kind": "kind 6"}])


@pytest.mark.full
def test_branches_that_nothing_tells_apart_early_are_all_followed() -> None:
    """Each begins like all others, and only the last member decides."""
    branches = [{"required": ["z"], "properties": {"a": {"maximum": i}, "z": {"enum": [i, i + 1]}}} for i in range(700)]
    schema = {"type": "object", "anyOf": branches}
    grammar, oracle = compile_json_schema(schema, BYTES, EXACT), Draft202012Validator(schema)
    for a, z in ((0, 5), (699, 700), (699, 699), (700, 700), (300, 301), (302, 301)):
        value = {"a": a, "b": [a], "z": z}
        assert follow(grammar, value) == oracle.is_valid(value), value


def test_completions_of_large_unions_are_valid() -> None:
    schema = union(COUNT, tag_last=True)
    grammar, oracle = compile_json_schema(schema, BYTES, JsonOptions()), Draft202012Validator(schema)
    for start in (b"", b'{"a17', b'{"a17": "x", "b17'):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(start)
        assert oracle.is_valid(json.loads(start + matcher.shortest_completion()))


@pytest.mark.full
def test_deep_text_with_many_alternatives_takes_no_time_in_the_square_of_its_depth() -> None:
    """Stacks that differ at their bottom only are told apart at their tops (20,000 levels took a quarter hour)."""
    schema = {"anyOf": [{"properties": {f"k{i}": {"const": i}}} for i in range(50)]}
    matcher = compile_json_schema(schema, BYTES, EXACT).matcher()
    assert matcher.accept_bytes(b'{"k0":0,"a":' * 20_000) and matcher.accept_bytes(b"1" + b"}" * 19_999)
    assert not matcher.is_accepting() and matcher.accept_bytes(b"}") and matcher.is_accepting()
