"""The length of the completion against the completion that is written: never less, and nearly always equal."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from structgen.core.engines.json.compiled import JsonGrammar, compile_json_schema
from structgen.core.engines.json.completion import memo
from structgen.core.engines.json.matcher import JsonMatcher
from structgen.core.engines.protocols import TOO_LONG
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import (
    CompletionTooLongError,
    SchemaTooComplexError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from structgen.options import JsonOptions
from tests.concurrency import together
from tests.schemas_strategy import NAMES, NONE, arrays, objects, options, scalars, schemas

BYTES = Vocabulary([*[bytes([byte]) for byte in range(256)], None], eos_token_ids=256)
LIKELY = b'{}[]",:0123456789.eE+-ab\\u0 \ntrlf'
RUN = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def written(matcher: JsonMatcher) -> int:
    """The oracle: bytes of the text; `TOO_LONG` if none is written."""
    try:
        return len(matcher.shortest_completion())
    except CompletionTooLongError:
        return TOO_LONG


def known(matcher: JsonMatcher) -> bool:
    """Whether the bound comes of lengths that are kept, and no text is written for it."""
    return matcher.grammar.lengths.least(matcher._threads(), matcher._arena, {}) < TOO_LONG


def step(matcher: JsonMatcher, dice: random.Random) -> bytes:
    """Accept a byte: of the completion, one that is likely to change something, or any. None is left: b""."""
    allowed = np.flatnonzero(matcher.next_bytes()).tolist()
    if not allowed:
        return b""
    rest = matcher.shortest_completion() if dice.random() < 0.3 else b""
    byte = rest[:1] or bytes([dice.choice([one for one in allowed if one in LIKELY] or allowed)])
    assert matcher.accept_bytes(byte)
    return byte


def check_walk(grammar: JsonGrammar, dice: random.Random, steps: int, exact: bool) -> int:
    """The bound along a walk with forks and steps undone. How many states it was asked in."""
    matcher, text, states = grammar.matcher(), b"", 0
    while states < steps:
        states += 1
        bound, length = matcher.completion_bound(), written(matcher)
        assert bound >= length, (text, bound, length)
        assert not exact or (bound == length and known(matcher)), (text, bound, length)
        if dice.random() < 0.2:
            assert matcher.completion_bound() == bound, text  # frames are asked for again after the text was tried
        byte = step(matcher, dice)
        if not byte:
            break
        text += byte
        if dice.random() < 0.1:
            back = dice.randint(1, min(4, len(text)))
            if len(text) >= back:
                matcher.rollback(back)
                text = text[:-back]
        elif dice.random() < 0.05:
            matcher = matcher.fork()
    return states


@pytest.mark.full
@RUN
@given(schemas(leaves=10), options(), st.integers(0, 2**32))
def test_never_less_than_the_completion(schema: Any, chosen: JsonOptions, seed: int) -> None:
    try:
        grammar = compile_json_schema(schema, BYTES, chosen)
    except (UnsatisfiableSchemaError, UnsupportedSchemaError, SchemaTooComplexError):
        return
    dice = random.Random(seed)
    for _ in range(3):
        check_walk(grammar, dice, 40, False)


@pytest.mark.full
@settings(RUN, max_examples=25)
@given(st.one_of(arrays(objects(scalars())), objects(arrays(scalars())), scalars()), options(), st.integers(0, 2**32))
def test_never_less_among_distinct_items(schema: Any, chosen: JsonOptions, seed: int) -> None:
    dice = random.Random(seed)
    distinct = {"type": "array", "uniqueItems": True, "items": schema, "minItems": dice.randint(0, 3)}
    distinct["$defs"] = {"none": NONE}
    try:
        grammar = compile_json_schema(distinct, BYTES, chosen)
    except (UnsatisfiableSchemaError, UnsupportedSchemaError, SchemaTooComplexError):
        return
    check_walk(grammar, dice, 15, False)


CLOSED = {"type": "object", "additionalProperties": False}
ABC: dict[str, Any] = {"a": {"enum": ["x", "yy"]}, 'b"\n': {"type": "integer", "minimum": 10}, "é": {"type": "array"}}
TREE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {}}, "required": ["n"]}
WIDE = {f"key{number}": {"type": "boolean"} for number in range(130)}
PLAIN: dict[str, dict[str, Any]] = {
    "anything": {},
    "any object": {"type": "object"},
    "scalars": {"type": ["string", "number", "null"]},
    "enum": {"enum": ["red", "blue", 'a"', "b\\\\", 12, [1, {"a": None}], True]},
    "lengths": {"type": "string", "minLength": 3, "maxLength": 9},
    "pattern": {"type": "string", "pattern": '^(ab|"cd"|)f\\.[0-9]{2}$'},
    "pattern and lengths": {"type": "string", "pattern": "^(a|bcd)*$", "minLength": 4, "maxLength": 11},
    "format": {"type": "string", "format": "date-time"},
    "integers": {"type": "integer", "minimum": 32, "maximum": 70_000},
    "decimals": {"type": "number", "multipleOf": 0.25, "exclusiveMinimum": 1, "maximum": 20},
    "required": {**CLOSED, "properties": ABC, "required": ["é", "a"]},
    "required of any": {"type": "object", "properties": ABC, "required": ['b"\n', "z"]},
    "optional": {**CLOSED, "properties": ABC},
    "patterned keys": {**CLOSED, "properties": ABC, "patternProperties": {"^x": {"enum": ["long"]}, "[0-9]$": {}}},
    "dependents": {**CLOSED, "properties": ABC, "dependentRequired": {"a": ["é"], "é": ['b"\n']}},
    "at least": {"type": "object", "properties": ABC, "minProperties": 3},
    "at most": {"type": "object", "properties": ABC, "required": ["a"], "minProperties": 2, "maxProperties": 3},
    "equal prices": {
        "type": "object",
        "properties": {"b": {}, "a": {}, "0": {}},
        "additionalProperties": {"const": 123456},
        "minProperties": 3,
    },
    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": ABC, "required": ["a"]}},
    "names": {"type": "object", "propertyNames": {"enum": ["a", "b", "c"]}, "minProperties": 2},
    "narrow names": {"type": "object", "propertyNames": {"pattern": "^[ab]{0,2}$"}},
    "over a hundred keys": {**CLOSED, "properties": WIDE, "required": [*WIDE][60:70]},
    "tuple": {"type": "array", "prefixItems": [{"const": "abc"}, {"type": "null"}], "items": {}, "minItems": 4},
    "few items": {"type": "array", "items": {"enum": [[0, 1], 123456]}, "minItems": 2, "maxItems": 3},
    "some item": {"type": "array", "items": {"type": ["integer", "string"]}, "contains": {"type": "integer"}},
    "two of": {"type": "array", "contains": {"const": "aa"}, "minContains": 2, "maxContains": 3, "items": {}},
    "tree": TREE,
    "alternatives": {"anyOf": [{**CLOSED, "properties": ABC, "required": ["é"]}, TREE, {"const": {"a": "abcdef"}}]},
}


@pytest.mark.first_case
@pytest.mark.parametrize("whitespace", ["compact", "single", "any", 0, 2])
@pytest.mark.parametrize("key_order", ["declared", "any"])
@pytest.mark.parametrize("name", PLAIN)
def test_plain_schemas_are_exact(name: str, whitespace: Any, key_order: Any) -> None:
    """No text is written, and the number is its length. (Escapes, which are begun, are not plain.)"""
    chosen = JsonOptions(whitespace=whitespace, key_order=key_order)
    dice = random.Random(f"{name} {whitespace} {key_order}")
    grammar = compile_json_schema(PLAIN[name], BYTES, chosen)
    for _ in range(4):
        text, matcher = b"", grammar.matcher()
        for _ in range(45):
            bound, length = matcher.completion_bound(), written(matcher)
            escaped = text.rpartition(b'"')[2].rfind(b"\\") >= 0
            assert bound == length and (known(matcher) or escaped), (text, bound, length)
            byte = step(matcher, dice)
            if not byte:
                break
            text += byte


EXISTENTIALS: list[dict[str, Any]] = [
    {"type": "object", "not": {"additionalProperties": {"type": "integer"}}},
    {"type": "object", "maxProperties": 2, "not": {"patternProperties": {"^a": False, "b$": {"type": "null"}}}},
    {"type": "array", "not": {"uniqueItems": True}, "items": {"type": "integer"}},
    {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, 3, "a"]}, "minItems": 3},
    {"type": "array", "uniqueItems": True, "contains": {"minimum": 3}, "items": {"type": "number"}},
    {"type": "array", "items": {"type": "array", "uniqueItems": True, "items": {"type": "null"}}, "uniqueItems": True},
    {"type": "object", "additionalProperties": {"type": "array", "uniqueItems": True, "minItems": 4}},
]


@pytest.mark.parametrize("number", range(len(EXISTENTIALS)))
@pytest.mark.parametrize("whitespace", ["compact", 1])
def test_what_takes_thought_is_never_less(number: int, whitespace: Any) -> None:
    grammar = compile_json_schema(EXISTENTIALS[number], BYTES, JsonOptions(whitespace=whitespace, key_order="any"))
    dice = random.Random(number)
    assert sum(check_walk(grammar, dice, 40, False) for _ in range(12)) > 40


@pytest.mark.parametrize("whitespace", ["compact", 1])
def test_deep_nesting(whitespace: Any) -> None:
    """A stack of hundreds, with and without what was known of it."""
    matcher = compile_json_schema(TREE, BYTES, JsonOptions(whitespace=whitespace)).matcher()
    line = b"" if whitespace == "compact" else b"\n"
    for depth in range(1, 600, 2):
        space = b" " * depth if line else b""
        colon = b": " if line else b":"
        level = b"{" + line + space + b'"kids"' + colon + b"[" + line + space + space[:1]
        assert matcher.accept_bytes(level) and matcher.completion_bound() < TOO_LONG
        if depth % 50 == 1:
            assert matcher.completion_bound() == len(matcher.shortest_completion())
    twin = matcher.fork()
    assert matcher.completion_bound() == twin.completion_bound() == len(matcher.shortest_completion())
    matcher.rollback(200)
    assert matcher.completion_bound() == len(matcher.shortest_completion())


def test_frames_that_were_undone_are_forgotten() -> None:
    """Others lie in their place then."""
    values = {"short": {"const": {}}, "long": {"type": "object", "required": ["a" * 20, "b" * 20]}}
    matcher = compile_json_schema({**CLOSED, "properties": values}, BYTES, JsonOptions(whitespace="compact")).matcher()
    for _ in range(3):
        for text in (b'{"long":{', b'{"short":{'):
            assert matcher.accept_bytes(text)
            assert matcher.completion_bound() == len(matcher.shortest_completion())
            matcher.rollback()


def test_members_that_fill_an_object_depend_on_the_names_that_it_has() -> None:
    """What is kept of one object is not said of another, which has the cheapest name already."""
    schema = {"type": "object", "properties": {"abc": {}}, "additionalProperties": {"const": 1234}, "minProperties": 3}
    grammar = compile_json_schema(schema, BYTES, JsonOptions(key_order="any", whitespace="compact"))
    for text in (b'{"zz":1234,', b'{"zz":1234,"ab', b'{"zz":1234,"z', b'{"zz":1234'):
        for name in (b'"zz"', b'""', b'"0"', b'"zz"'):
            matcher = grammar.matcher()
            assert matcher.accept_bytes(text.replace(b'"zz"', name))
            assert matcher.completion_bound() == len(matcher.shortest_completion()), (text, name)


def test_begun_escapes_are_written_out() -> None:
    grammar = compile_json_schema({"type": "string", "minLength": 2}, BYTES, JsonOptions(string_escapes="any"))
    for text in (b'"\\', b'"\\u', b'"\\ud83d', b'"\\ud83d\\ude'):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text)
        assert matcher.completion_bound() == len(matcher.shortest_completion()) and not known(matcher)


def test_long_arrays_in_long_arrays_are_not_multiplied_out() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(3):
        schema = {"type": "array", "minItems": 1_000, "items": schema}
    matcher = compile_json_schema(schema, BYTES).matcher()
    for text in (b"", b"["):  # behind two brackets, a thousand arrays of a thousand numbers are left
        assert matcher.accept_bytes(text)
        assert matcher.completion_bound() >= TOO_LONG
        with pytest.raises(CompletionTooLongError):
            matcher.shortest_completion()
    inner = compile_json_schema(schema["items"], BYTES).matcher()
    assert inner.completion_bound() == len(inner.shortest_completion()) == 2_002_001


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("text", [b"", b"[", b'[{"a', b'[{"b', b'[{"a":[', b'[{"z":['])
def test_each_container_that_is_open_adds_to_what_is_too_long(text: bytes, distinct: bool) -> None:
    """Each piece can be written, and all of them together cannot: that is said before they are."""
    long = {"type": "array", "minItems": 3, "items": {"type": "string", "minLength": 700_000}, "uniqueItems": distinct}
    entry = {"type": "object", "properties": {"a": long, "b": long}, "additionalProperties": long, "minProperties": 4}
    schema = {"type": "array", "items": {"anyOf": [entry, {"type": "string", "minLength": 1_000_000}]}, "minItems": 9}
    matcher = compile_json_schema(schema, BYTES, JsonOptions(key_order="any", whitespace="compact")).matcher()
    assert matcher.accept_bytes(text) and matcher.completion_bound() >= TOO_LONG
    with pytest.raises(CompletionTooLongError):
        matcher.shortest_completion()


def test_what_is_too_long_to_be_written() -> None:
    grammar = compile_json_schema({"type": "object", "required": ["a"], "minProperties": 1 << 20}, BYTES)
    matcher = grammar.matcher()
    assert matcher.completion_bound() >= TOO_LONG
    with pytest.raises(CompletionTooLongError):
        matcher.shortest_completion()


def test_the_end() -> None:
    matcher = compile_json_schema({"type": "integer"}, BYTES).matcher()
    assert matcher.completion_bound() == 1
    assert matcher.accept_bytes(b"12") and matcher.completion_bound() == 0
    assert matcher.accept_token(256) and matcher.completion_bound() == 0


def test_what_is_kept_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "MAX_KEPT", 8)
    grammar = compile_json_schema(PLAIN["map"], BYTES, JsonOptions(key_order="any"))
    for seed in range(6):
        assert check_walk(grammar, random.Random(seed), 60, False)
    sizes = [len(value) for value in vars(grammar.lengths).values() if isinstance(value, dict)]
    assert max(sizes) <= 8 and sum(sizes) > 0


def test_threads_agree() -> None:
    """Matchers of one grammar at once: what one enters, others read."""
    grammar = compile_json_schema(PLAIN["alternatives"], BYTES, JsonOptions(key_order="any"))
    faults: list[BaseException] = []

    def walk(seed: int) -> None:
        try:
            for number in range(4):
                check_walk(grammar, random.Random(f"{seed} {number}"), 30, False)
        except BaseException as error:
            faults.append(error)

    together(walk)
    assert not faults, faults[0]


@pytest.mark.full
@RUN
@given(objects(st.sampled_from([{"const": 0}, {"type": "string"}, False])), options(), st.integers(0, 2**32))
def test_objects_are_exact(schema: dict[str, Any], chosen: JsonOptions, seed: int) -> None:
    """Whatever asks for members, with names that must be escaped."""
    schema["$defs"] = {"none": NONE}
    schema["properties"] = {name: schema["properties"].get(name, {"type": "null"}) for name in NAMES[: seed % 6]}
    if seed // 6 % 2:
        schema["minProperties"] = seed // 12 % 6
    try:
        grammar = compile_json_schema(schema, BYTES, chosen)
    except (UnsatisfiableSchemaError, UnsupportedSchemaError, SchemaTooComplexError):
        return
    dice = random.Random(seed)
    for _ in range(6):
        matcher = grammar.matcher()
        for _ in range(25):
            bound, length = matcher.completion_bound(), written(matcher)
            assert bound == length
            if not step(matcher, dice):
                break
