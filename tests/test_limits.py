"""Counts and numbers of any size: what cannot be observed is no limit, what cannot be written has no value."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import pytest

import structgen
from structgen import (
    CompletionTooLongError,
    GrammarTooComplexError,
    JsonOptions,
    PatternTooComplexError,
    SchemaError,
    SchemaTooComplexError,
    UnsatisfiableSchemaError,
    Vocabulary,
)
from structgen.core.engines.json.value_graph.context import schema_too_complex
from structgen.core.json_schema.formula.language import MAX_COUNT
from structgen.core.regex.dfa import AUTOMATON_STATES
from structgen.errors import TooComplexError

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
HUGE: dict[str, Any] = {
    "31 bits": 1 << 31,
    "32 bits": 1 << 32,
    "40 bits": 1 << 40,
    "5,000 digits": 10**5000,
    "float": 1e300,
    "decimal": Decimal("1e400"),
    "decimal with digits": Decimal("4294967296.000"),
    "huge exponent": Decimal("1e99999999"),
}
AT_LEAST = {"minLength": "string", "minItems": "array", "minProperties": "object", "minContains": "array"}
AT_MOST = {"maxLength": b'"abc"', "maxItems": b"[1, 2]", "maxProperties": b'{"a": 1}', "maxContains": b"[1, 2]"}


def accepts(schema: Any, text: bytes, **options: Any) -> bool:
    matcher = structgen.compile_json_schema(schema, BYTES, JsonOptions(**options)).matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting()


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("word", AT_MOST)
def test_a_huge_upper_limit_is_none(word: str, size: str) -> None:
    schema = {word: HUGE[size], "contains": True} if word == "maxContains" else {word: HUGE[size]}
    assert accepts(schema, AT_MOST[word]) and accepts(schema, b"null")


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("word", AT_LEAST)
def test_a_huge_lower_limit_leaves_the_other_types(word: str, size: str) -> None:
    schema = {word: HUGE[size], "contains": True} if word == "minContains" else {word: HUGE[size]}
    others = {"string": b'"a"', "array": b"[1]", "object": b'{"a":1}', "null": b"null"}
    refused = [kind for kind, text in others.items() if not accepts(schema, text)]
    assert refused == [AT_LEAST[word]]
    with pytest.raises(UnsatisfiableSchemaError):
        accepts({**schema, "type": AT_LEAST[word]}, b"")


@pytest.mark.parametrize("word", ["minLength", "minItems", "minProperties"])
def test_the_largest_lower_limit_that_is_counted(word: str) -> None:
    for count in (MAX_COUNT - 1, MAX_COUNT):
        texts = [b'"a', b"[1,1", b'{"a":1']
        for text in texts:
            matcher = structgen.compile_json_schema({word: count}, BYTES).matcher()
            assert matcher.accept_bytes(text)
            closes = matcher.accept_bytes({b'"': b'"', b"[": b"]", b"{": b"}"}[text[:1]])
            assert closes == (word != {b'"': "minLength", b"[": "minItems", b"{": "minProperties"}[text[:1]])


@pytest.mark.parametrize("value", [-1, Decimal("1.5"), 1.5, "1", float("inf"), float("nan"), Decimal("1e-99999999")])
def test_what_is_no_count(value: Any) -> None:
    for word in ("minLength", "maxItems", "minProperties"):
        with pytest.raises(SchemaError, match=f"non-negative integer.*/{word}"):
            accepts({word: value}, b"")


def test_huge_limits_within_keys_and_options() -> None:
    assert accepts({"propertyNames": {"maxLength": 1 << 40}}, b'{"a": 1}')
    assert not accepts({"propertyNames": {"minLength": 1 << 40}}, b'{"a": 1}')
    assert accepts({"propertyNames": {"minLength": 1 << 40}}, b"{}")
    options = {"max_string_length": 1 << 40, "max_whitespace_run": 1 << 40, "max_number_length": 1 << 40}
    assert accepts({"type": ["string", "number"]}, b'"abc"', **options)
    assert accepts({"type": ["string", "number"]}, b"1.5", **options)


# --- numbers ----------------------------------------------------------------------------------------------------------
NUMBERS: dict[str, int | Decimal | float] = {
    "5,001 digits": 10**5000,
    "no power of ten": 10**5000 + 1,
    "negative": -(10**5000),
    "1e100000": Decimal("1e100000"),
    "1e-100000": Decimal("1e-100000"),
    "many places": Decimal("1." + "123" * 1500),
    "double": 1.7976931348623157e308,
    "subnormal": 5e-324,
}
TOO_BIG = [10**100_001, Decimal("1e100001"), Decimal("1e-100001"), Decimal("1e999999999"), Decimal("1" * 100_001)]
WORDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const", "multipleOf"]


@pytest.mark.first_case
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("name", NUMBERS)
def test_huge_numbers(name: str, word: str) -> None:
    """They compile in seconds, or are refused by name; from text and as Python numbers alike."""
    began = time.monotonic()
    for schema in ({word: NUMBERS[name], "type": "number"}, {"enum": [NUMBERS[name]]}):
        try:
            matcher = structgen.compile_json_schema(schema, BYTES).matcher()
        except (SchemaTooComplexError, SchemaError) as error:
            assert word == "multipleOf" and word in str(error)
        else:
            matcher.fill_next_token_bitmask(structgen.allocate_token_bitmask(1, BYTES.size))
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("word", WORDS)
def test_numbers_that_are_too_large_to_be_held(word: str) -> None:
    for number in TOO_BIG:
        with pytest.raises(SchemaError, match=word):
            accepts({word: number}, b"")


@pytest.mark.full
def test_huge_numbers_are_exact() -> None:
    assert accepts({"const": 10**5000}, b"1" + b"0" * 5000)
    assert not accepts({"const": 10**5000 + 1}, b"1" + b"0" * 5000)
    assert accepts({"minimum": 10**5000}, b"1" + b"0" * 4999 + b"10")
    assert not accepts({"type": "number", "minimum": 10**5000}, b"9" * 5000)
    assert accepts({"multipleOf": Decimal("1e-5000"), "type": "number"}, b"0." + b"0" * 4999 + b"3")


def test_long_integers_in_the_text_of_a_schema() -> None:
    text = f'{{"const": 1{"0" * 5000}, "maxLength": 1{"0" * 5000}}}'
    assert accepts(structgen.load_schema(text), b"1" + b"0" * 5000)
    constraint = structgen.json_schema(text)
    assert constraint.compile(BYTES) is constraint.compile(BYTES)
    json.loads(constraint.instruction().partition("\n")[2])


# --- strings ----------------------------------------------------------------------------------------------------------
OVER_LIMIT: list[tuple[Any, int, str]] = [
    ({"const": " "}, 0, '" "'),
    ({"enum": ["A", 1]}, 0, '"A"'),
    ({"enum": ["foo", 1]}, 2, '"foo"'),
    ({"anyOf": [{"enum": ["z" * 20, 1000], "minimum": 2.25}, {"type": "number"}]}, 5, f'"{"z" * 20}"'),
    ({"prefixItems": [True], "items": {"const": ["x1", "a"]}}, 1, '["",["x1","a"]]'),
    ({"enum": [["ba", 2], 3]}, 1, '["ba",2]'),
    ({"properties": {"a": {"const": "zzz"}}}, 2, '{"a":"zzz"}'),
    ({"patternProperties": {"^x": {"enum": ["null", 5]}}}, 3, '{"x1":"null"}'),
    ({"enum": [{"a": "zzz"}, 5]}, 2, '{"a":"zzz"}'),
    ({"pattern": "^z*$", "type": "string"}, 2, '"zzz"'),
]


@pytest.mark.parametrize(("schema", "limit", "text"), OVER_LIMIT)
def test_enumerated_strings_keep_the_limit_of_the_options(schema: Any, limit: int, text: str) -> None:
    assert accepts(schema, text.encode())
    try:
        assert not accepts(schema, text.encode(), max_string_length=limit)
    except UnsatisfiableSchemaError:
        assert schema == {"const": " "}


def test_keys_have_no_limit_of_the_options() -> None:
    assert accepts({"enum": [{"long key": 1}]}, b'{"long key":1}', max_string_length=1)
    assert accepts({"properties": {"declared": True}}, b'{"declared":1, "another":2}', max_string_length=1)


# --- budgets ----------------------------------------------------------------------------------------------------------
def test_a_limit_that_no_option_raises_asks_to_simplify() -> None:
    schema = {"patternProperties": {f"^{i}x*$": {"const": i} for i in range(61)}}
    with pytest.raises(SchemaTooComplexError, match=r"61 patterns .* fixed") as caught:
        accepts(schema, b"")
    assert caught.value.budget is None and caught.value.limit == 60 and "Raise" not in str(caught.value)


@pytest.mark.parametrize("word", ["minLength", "minItems", "minProperties"])
@pytest.mark.parametrize("count", [200_000_000, MAX_COUNT])
def test_what_is_too_long_to_be_written(word: str, count: int) -> None:
    kinds = {"minLength": ("string", b'"a'), "minItems": ("array", b"[1"), "minProperties": ("object", b'{"a":1')}
    kind, begun = kinds[word]
    matcher = structgen.compile_json_schema({word: count}, BYTES).matcher()
    assert len(matcher.shortest_completion()) < 5  # a value of another type
    assert matcher.accept_bytes(begun)
    with pytest.raises(CompletionTooLongError):
        matcher.shortest_completion()
    matcher = structgen.compile_json_schema({"type": kind, word: count}, BYTES).matcher()
    with pytest.raises(CompletionTooLongError):
        matcher.shortest_completion()


@pytest.mark.parametrize(
    ("error", "budget", "limit"),
    [
        (TooComplexError("x", budget="automaton steps", limit=1), None, 1),
        (TooComplexError("x", limit=50_000), None, 50_000),
        (TooComplexError("x", budget=AUTOMATON_STATES, limit=20_000), "max_automaton_states", 20_000),
        (TooComplexError("x", budget=AUTOMATON_STATES, limit=80_000), "max_automaton_states", 20_000),
        (TooComplexError("x", budget=AUTOMATON_STATES, limit=4_000), None, 4_000),  # raising the option would not help
    ],
)
def test_budgets_of_automata_that_an_option_raises(error: TooComplexError, budget: str | None, limit: int) -> None:
    found = schema_too_complex(error, JsonOptions(), "/a", "pattern")
    assert (found.budget, found.limit, found.pointer, found.keyword) == (budget, limit, "/a", "pattern")


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        ({"pattern": "^(a|b)*a(a|b){30}$"}, "/pattern", "pattern"),
        ({"properties": {"x": {"items": {"pattern": "^(a|b)*a(a|b){30}$"}}}}, "/properties/x/items/pattern", "pattern"),
        ({"patternProperties": {"^(a|b)*a(a|b){30}$": {"type": "null"}}}, "/patternProperties", "patternProperties"),
        ({"$defs": {"d": {"pattern": "^a{30000}$"}}, "$ref": "#/$defs/d"}, "/$defs/d/pattern", "pattern"),
    ],
)
def test_automata_that_are_too_large_are_placed(schema: Any, pointer: str, keyword: str) -> None:
    with pytest.raises(SchemaTooComplexError, match="Raise the budget max_automaton_states") as caught:
        accepts(schema, b"")
    assert caught.value.pointer.startswith(pointer) and caught.value.keyword == keyword


@pytest.mark.parametrize(
    "compile_",
    [
        lambda: structgen.compile_regex("(a|b)*a(a|b){30}", BYTES),
        lambda: structgen.compile_regex("(a|b)*a(a|b){30}", BYTES, syntax="ecma"),
        lambda: structgen.compile_lark("start: A\nA: /(a|b)*a(a|b){30}/", BYTES),
        lambda: structgen.compile_lark("start: A\nA: /(a|b)*a(a|b){30}/", BYTES, lexer="contextual"),
    ],
)
def test_texts_have_neither_a_pointer_nor_an_option(compile_: Any) -> None:
    with pytest.raises((PatternTooComplexError, GrammarTooComplexError), match="automaton states") as caught:
        compile_()
    assert "max_" not in str(caught.value) and getattr(caught.value, "pointer", None) is None
