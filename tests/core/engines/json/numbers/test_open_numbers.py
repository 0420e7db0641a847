"""By default a number that nothing bounds ends; no value that the schema speaks of is lost, and no judge uses it."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import structgen as sg
from structgen.cli.validate import first_refused_offset
from structgen.core.engines.json.numbers.automaton import NumberSpec, automaton
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.integrations.remote.checking import loosened
from structgen.options import OPEN_DIGITS
from tests.fakes import CharTokenizer, vocabulary

BYTES = sg.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
LONG = "7" * 512


def accepts(schema: Any, text: str, **options: Any) -> bool:
    matcher = sg.compile_json_schema(schema, BYTES, sg.JsonOptions(**options)).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


decimals = st.builds(
    lambda digits, places: Fraction(digits, 10**places), st.integers(-(10**50), 10**50), st.integers(0, 60)
)
steps = st.frozensets(
    st.builds(lambda n, places: Fraction(n, 10**places), st.integers(1, 999), st.integers(0, 50)), max_size=2
)
specs = st.builds(
    NumberSpec,
    minimum=st.none() | decimals,
    exclusive_minimum=st.booleans(),
    maximum=st.none() | decimals,
    exclusive_maximum=st.booleans(),
    multiples=steps,
    non_multiples=steps,
    excluded=st.frozensets(decimals, max_size=2),
    spelling=st.sampled_from(["plain", "any"]),
)


@pytest.mark.full
@settings(deadline=None, max_examples=200)
@given(spec=specs)
def test_what_has_members_keeps_some_and_its_limits_among_them(spec: NumberSpec) -> None:
    ended, whole = automaton(spec.with_ends()), automaton(spec)
    assert ended.is_empty == whole.is_empty
    assert not ended.spec.is_endless or spec.spelling == "any"
    for value in (spec.minimum, spec.maximum, *spec.excluded, *map(Fraction, ("0", "1", "9" * 39, "-0." + "1" * 39))):
        if value is not None:
            assert read(ended, plain(value)) == read(whole, plain(value)) == spec.contains(value)


def plain(value: Fraction) -> str:
    """In digits, by ``decimal``."""
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    digits = int(value * 10**places)
    return format(Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -places)), "f")


def read(numbers: Any, text: str) -> bool:
    state = numbers.start
    for byte in text.encode():
        following = dict(numbers.row(state))
        if byte not in following:
            return False
        state = following[byte]
    return bool(numbers.accepting(state))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"}, {"type": "number"}, {"minimum": 0}, {"type": "integer", "exclusiveMaximum": 5}, {},
        {"minimum": 0, "maximum": 1}, {"multipleOf": 7}, {"not": {"type": "string"}}, {"type": ["number", "null"]},
        {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "string"}]},
    ],
)  # fmt: skip
def test_no_number_goes_on_for_ever(schema: Any) -> None:
    """A model that would rather write a digit than end, or anything else, ends all the same."""
    matcher = sg.compile_json_schema(schema, BYTES).matcher()
    text, digits = b"", b"7310269845."
    while following := [byte for byte in digits if matcher.next_bytes()[byte]]:
        text += bytes(following[:1])
        assert matcher.accept_bytes(text[-1:]) and len(text) <= 2 * OPEN_DIGITS + 2
    assert matcher.is_accepting() and Draft202012Validator(schema).is_valid(json.loads(text, parse_float=Decimal))


def test_generation_of_numbers_ends() -> None:
    words = vocabulary(eos=1)
    generator = Generator(TinyModel(words.size), CharTokenizer(eos=1), vocabulary=words)
    for seed in range(20):
        text = generator.generate("p", {"type": "integer"}, temperature=3.0, seed=seed, max_new_tokens=600).text
        assert len(text) <= OPEN_DIGITS


def test_what_the_schema_says_is_not_cut() -> None:
    huge = 10**300 + 7
    for schema in (
        {"const": huge}, {"enum": [huge, 1]}, {"minimum": huge}, {"type": "integer", "minimum": 0, "maximum": huge},
        {"multipleOf": huge}, {"type": "object", "properties": {"a": {"const": huge}}, "default": 1},
    ):  # fmt: skip
        text = json.dumps({"a": huge}) if "properties" in schema else str(huge)
        assert Draft202012Validator(schema).is_valid(json.loads(text)) and accepts(schema, text), schema
    many = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 200_000}
    sg.compile_json_schema(many, BYTES)  # there are more than enough


def test_it_can_be_asked_for_otherwise() -> None:
    assert not accepts({}, LONG) and accepts({}, LONG, max_number_length=None)
    assert accepts({}, "1" * 50, max_number_length=50) and not accepts({}, "1" * 51, max_number_length=50)
    exact = sg.compile_json_schema({}, BYTES, sg.JsonOptions.exact()).matcher()
    assert exact.accept_bytes((LONG + "e" + LONG).encode()) and exact.is_accepting()
    assert accepts({}, LONG, number_spellings="any")


def test_judges_take_long_numbers() -> None:
    constraint = sg.json_schema({"type": "array", "items": {"type": "integer"}})
    assert first_refused_offset(loosened(constraint), f"[{LONG}]".encode()) is None
    own = sg.json_schema({"type": "integer"}, sg.JsonOptions(max_number_length=3))
    assert first_refused_offset(loosened(own), b"1234") == 3  # a condition of the user's
