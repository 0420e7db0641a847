"""Faults put into good tables: what the verifier lets pass is read by the machine without harm or a dead end.

The oracle is the machine itself. With ``NUMBA_BOUNDSCHECK=1`` (`make test-full` runs this file so, too) every access of
its kernels is checked.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from structgen import JsonOptions, Vocabulary, allocate_token_bitmask, compile_json_schema
from structgen.core.engines.json.tables import verify
from structgen.core.engines.json.tables.arrays import JsonTables
from structgen.core.kernels.checks.calls import check_automaton
from structgen.core.kernels.json.layout import NODE_SIZE, NULL_FLAG
from structgen.core.regex.pattern import pattern_dfa
from structgen.errors import InternalError

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256])
LIKELY = set(b'"{}[],:123abxy')
WALKS, STEPS = 3, 40
TREE = {"properties": {"a": {"$ref": "#"}}, "required": ["a"], "type": ["object", "null"]}
SCHEMAS: dict[str, Any] = {
    "plain": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b"]},
    "limits": {
        "type": "object",
        "properties": {name: {"const": name} for name in ("a", "ab", "b", "c")},
        "required": ["a"],
        "additionalProperties": False,
        "minProperties": 2,
        "maxProperties": 3,
    },
    "dependents": {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in ("a", "b", "c")},
        "dependentRequired": {"a": ["b"], "b": ["c"]},
        "maxProperties": 4,
        "additionalProperties": False,
    },
    "strings": {
        "anyOf": [{"type": "string", "pattern": "^a*b?$", "minLength": 2, "maxLength": 5}, {"enum": ["x", "xy"]}]
    },
    "lengths": {"type": "string", "pattern": "^(ab)*$", "minLength": 3},
    "classes": {
        "type": "object",
        "patternProperties": {"^a": {"type": "null"}, "b$": {"const": 1}},
        "additionalProperties": False,
    },
    "few keys": {"type": "object", "properties": {"ab": True}, "propertyNames": {"pattern": "^[a-c]{1,4}$"}},
    "existentials": {
        "type": "object",
        "properties": {"a": {"const": 1}},
        "not": {"additionalProperties": {"type": "null"}},
        "maxProperties": 3,
    },
    "existential classes": {
        "type": "object",
        "patternProperties": {"^a": {"enum": [1, "x"]}},
        "allOf": [{"not": {"patternProperties": {"^a": {"const": 1}}}}, {"not": {"propertyNames": {"pattern": "b"}}}],
    },
    "tuples": {
        "type": "array",
        "prefixItems": [{"const": 1}, {"type": "null"}],
        "items": {"const": "x"},
        "maxItems": 4,
    },
    "counted": {"type": "array", "contains": {"const": 1}, "minContains": 1, "maxContains": 2, "maxItems": 4},
    "pairs": {"type": "array", "items": {"enum": [1, 2]}, "not": {"uniqueItems": True}},
    "recursion": TREE,
    "quotes": {
        "type": "object",
        "properties": {name: {"type": "string", "x-structgen": {"quoteOf": {"text": f"{name} b ab"}}} for name in "ab"},
        "required": ["a"],
    },
}
OPTIONS = [JsonOptions(whitespace="compact"), JsonOptions.exact(), JsonOptions(whitespace=1)]


def faults(tables: JsonTables, random: Random, number: int) -> Any:
    """Tables with one wrong number each, and where it is: anywhere, or behind what is copied from other tables."""
    for _ in range(number):
        name = random.choices(["grammar", "words", "texts"], [8, 1, 1])[0]
        numbers = getattr(tables, name)[:]
        place, most = (
            random.randrange(random.choice([0, tables.root]) if name == "grammar" else 0, len(numbers)),
            {"grammar": (1 << 31) - 1, "words": (1 << 62) - 1, "texts": 255}[name],
        )
        known = numbers[place]
        new = random.choice([known + 1, known - 1, 0, 1, 2, -1, len(numbers), random.randrange(len(numbers)), most])
        numbers[place] = min(max(new, 0 if name == "texts" else -most), most)
        if numbers[place] != known:
            yield replace(tables, **{name: numbers}), (name, place, known, numbers[place])


def walk(grammar: Any, random: Random) -> bytes:
    """A text that masks allow, byte by byte; AssertionError at a dead end."""
    bitmask = allocate_token_bitmask(1, BYTES.size)
    matcher, text = grammar.matcher(), bytearray()
    for _ in range(STEPS):
        matcher.fill_next_token_bitmask(bitmask)
        allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:257]).tolist()
        assert allowed, bytes(text)
        token = random.choice([t for t in allowed if t in LIKELY] or allowed)
        if token == 256:
            break
        assert matcher.accept_token(token), bytes(text)
        text.append(token)
    return bytes(text)


@pytest.mark.first_case
@pytest.mark.parametrize("name", SCHEMAS)
def test_what_passes_does_no_harm(name: str) -> None:
    random = Random(name)
    found: Counter[bool] = Counter()
    for options in OPTIONS:
        grammar = compile_json_schema(SCHEMAS[name], BYTES, options)
        for tables, fault in faults(grammar.tables, random, 300):
            try:
                verify.verify_tables(tables, grammar.rows.pool)
            except InternalError:
                found[True] += 1
                continue
            found[False] += 1
            broken = compile_json_schema(SCHEMAS[name], BYTES, options)
            broken.tables = tables
            for _ in range(WALKS):
                try:
                    walk(broken, random)
                except (AssertionError, IndexError) as error:
                    raise AssertionError(f"{fault} passed, then: {error!r}") from None
    assert found[True] > found[False] / 4


@pytest.mark.parametrize("name", SCHEMAS)
def test_places_are_followed(name: str) -> None:
    """What can be replaced by a number far outside is no place: it is a field that its kind of record does not have."""
    grammar = compile_json_schema(SCHEMAS[name], BYTES)
    missed = []
    for place in range(grammar.tables.root, len(grammar.tables.grammar)):
        numbers = grammar.tables.grammar[:]
        if numbers[place] in (-1, 0, 1):
            continue
        numbers[place] = -(1 << 30)
        try:
            verify.verify_tables(replace(grammar.tables, grammar=numbers), grammar.rows.pool)
            missed.append(place)
        except InternalError:
            continue
    # A counted array begins in copies of its first state, one for each choice: the state itself is not reached.
    assert len(missed) <= (3 if name == "counted" else 0)


def test_a_node_without_a_value() -> None:
    """Liveness is found anew from the tables: a required member that only leads back to itself is seen."""
    grammar = compile_json_schema(TREE, BYTES)
    root, numbers = grammar.tables.root, grammar.tables.grammar[:]
    for node in (root, root + NODE_SIZE):  # the root and its member: null is their only way out
        assert numbers[node] == NULL_FLAG
        numbers[node] = 0
    with pytest.raises(InternalError, match="has no value"):
        verify.verify_tables(replace(grammar.tables, grammar=numbers), grammar.rows.pool)


def test_texts_are_utf8() -> None:
    grammar = compile_json_schema({"enum": ["é"]}, BYTES)
    with pytest.raises(InternalError, match="UTF-8"):
        verify.verify_tables(replace(grammar.tables, texts=array("B", b"\xc3(")), grammar.rows.pool)


def test_automata() -> None:
    dfa = pattern_dfa("^a+b?$")
    good, accepting = np.array(dfa.transitions), dfa.accepting.astype(np.uint8)
    assert check_automaton(good, accepting) == -1
    for target in (-2, len(dfa)):
        wrong = good.copy()
        wrong[1, 7] = target
        assert check_automaton(wrong, accepting) == 1
    assert check_automaton(good, np.zeros(len(dfa), np.uint8)) == 0


def test_tables_of_equal_rows_but_of_two_kinds_are_two() -> None:
    """A key that no value fits, in an object with existentials and in one without."""
    forbidden = {"properties": {"a": False}}
    existential = {**forbidden, "not": {"additionalProperties": {"type": "boolean"}}}
    compile_json_schema({"anyOf": [{"items": forbidden}, {"items": existential}]}, BYTES)
