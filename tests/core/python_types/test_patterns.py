"""Expressions of Rust and Python in ``pattern`` are what pydantic takes; ranges are what comparing takes."""

from __future__ import annotations

import datetime
import itertools
import random
import re
from collections.abc import Mapping
from typing import Annotated, Any

import pydantic
import pytest
from pydantic import Field

import structgen
from structgen import Vocabulary
from structgen.core.python_types.ranges import at_least, at_most, integers
from structgen.core.regex.dfa import accepts
from structgen.core.regex.ecma_ast import Chars
from structgen.core.regex.ecma_parser import parse
from structgen.core.regex.pattern import pattern_dfa
from tests.core.python_types.judge import is_read

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
LETTERS = ["a", "B", "1", " ", "_", "\n", "\r", "é", "٣", "\u2028", "-"]
RUST = [
    *("a", "^a", "a$", "^a$", "^$", "^a|B$", "(?:^|B)a(?:$|1)", r"^\d$", r"^\D+$", r"\w\W", r"^[^\d\s]+$", r"^\s"),
    *(
        "(?i)b",
        "(?i:A)1",
        "^.$",
        "(?s)^.$",
        "(?m)^a$",
        "(?m)a$",
        "(?m)^$",
        "(?mR)^a",
        "(?mR)a$",
        r"\ba",
        r"a\b",
        r"\B1",
    ),
    *(
        r"^\p{Ll}",
        r"\P{L}$",
        "a{2}",
        "a{1,2}B?",
        "^(?:a|B){2,}$",
        "[a-z&&[^b]]",
        r"\Aa",
        r"a\z",
        "(?x) a  B # words",
        "^-",
    ),
    *(r"^\x61", "a|", "()", r"[\s\S]1", "a$|^B", "(?-u:a)B", "(?U)a*", r"^(?<name>a)B?$"),
]
PYTHON = [
    *(
        r"^a$",
        r"a\Z",
        r"^a+?$",
        "(?=a)",
        "^(?!a)",
        "(?<=a)B",
        r"\ba",
        r"(?<!a)1",
        "^.$",
        r"^\w\s*$",
        "(a|B)+1",
        r"[^\W\d]",
    ),
]


def takes_the_same(kind: Any) -> None:
    """All short strings, as pydantic and the mask judge them."""
    constraint = structgen.json_schema(kind)
    assert not constraint.report.checked
    grammar, reader = constraint.compile(BYTES), pydantic.TypeAdapter(kind)
    strings = ["".join(letters) for length in range(3) for letters in itertools.product(LETTERS, repeat=length)]
    strings += ["".join(random.Random(seed).choices(LETTERS, k=4)) for seed in range(100)]
    for string in strings:
        matcher = grammar.matcher()
        text = pydantic.TypeAdapter(str).dump_json(string)
        assert (matcher.accept_bytes(text) and matcher.is_accepting()) is is_read(reader, text), (string, kind)


@pytest.mark.parametrize("pattern", RUST)
def test_expressions_of_rust(pattern: str) -> None:
    takes_the_same(Annotated[str, Field(pattern=pattern)])


CLASSES = [
    *(r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\p{L}", r"\P{L}", r"\p{Lu}", r"\PN", r"\p{sc=Cyrl}", r"\p{scx=Hira}"),
    *(r"\p{Emoji}", r"[\w--\d]", r"[^\p{Greek}\s]", r"(?i)\x{264}", r"(?i)\p{Lu}", r"(?i)[^é]", "(?i)ß", r"(?-u)\w"),
    *(r"(?x) [ \w ] # a class", r"(\pM)", r"(?:(?i)[a-zɤ])", r"\p{Cn}", r"\p{Uppercase}", r"[[:^alpha:]]"),
]
"""Expressions of one character, whose meaning depends on the version of Unicode."""


def pattern_of(kind: Any) -> str:
    """The expression of a string in JSON Schema."""
    constraint = structgen.json_schema(kind)
    assert not constraint.report.checked and isinstance(constraint.schema, Mapping)
    return str(constraint.schema["pattern"])


@pytest.mark.first_case
@pytest.mark.parametrize("pattern", CLASSES)
def test_classes_are_those_of_the_installed_version(pattern: str) -> None:
    kind = Annotated[str, Field(pattern=f"{pattern}\n" if "(?x)" in pattern else pattern)]
    node = parse(pattern_of(kind))
    assert isinstance(node, Chars)
    ours = {chr(point) for low, high in node.charset for point in range(low, high + 1)}
    takes = pydantic.TypeAdapter[str](kind).validator.isinstance_python
    assert ours == {chr(point) for point in range(0x110000) if not 0xD800 <= point <= 0xDFFF and takes(chr(point))}


@pytest.mark.parametrize("pattern", [r"^.\b", r"^.\B"])
def test_word_boundaries_are_those_of_the_installed_version(pattern: str) -> None:
    kind = Annotated[str, Field(pattern=pattern)]
    dfa, takes = pattern_dfa(pattern_of(kind)), pydantic.TypeAdapter[str](kind).validator.isinstance_python
    points = [*range(0x3000), *range(0xA000, 0xB000), *range(0xE000, 0x20000, 3), *range(0x20000, 0x40000, 97)]
    assert [point for point in points if takes(chr(point)) != accepts(dfa, chr(point))] == []


@pytest.mark.parametrize("flags", [re.NOFLAG, re.IGNORECASE, re.MULTILINE | re.ASCII, re.DOTALL], ids=int)
@pytest.mark.parametrize("pattern", PYTHON)
def test_expressions_of_python(pattern: str, flags: re.RegexFlag) -> None:
    takes_the_same(Annotated[str, Field(pattern=re.compile(pattern, flags))])


def test_python_syntax_by_settings() -> None:
    config = pydantic.ConfigDict(regex_engine="python-re")
    for pattern in PYTHON:
        model = pydantic.create_model("M", __config__=config, x=(str, Field(pattern=pattern)))
        assert not structgen.json_schema(model).report.checked
        matcher = structgen.json_schema(model).compile(BYTES).matcher()
        shortest = matcher.shortest_completion().decode()
        model.model_validate_json(shortest)


def test_integers_in_ranges() -> None:
    rng = random.Random(0)
    bounds = [None, -1000, -101, -100, -99, -10, -9, -1, 0, 1, 5, 9, 10, 19, 99, 100, 101, 250, 999, 1000]
    numbers = [*range(-1300, 1300), *(rng.randint(-(10**6), 10**6) for _ in range(200))]
    for low, high in itertools.product(bounds, bounds):
        expression = re.compile(integers(low, high))
        for number in rng.sample(numbers, 150) + [n + d for n in (low, high) if n is not None for d in (-1, 0, 1)]:
            wanted = (low is None or low <= number) and (high is None or number <= high)
            assert bool(expression.fullmatch(str(number))) is wanted, (low, high, number)
        assert not expression.fullmatch("-0") and not expression.fullmatch("007")


def test_texts_of_one_shape_are_compared() -> None:
    rng = random.Random(0)
    days = [datetime.date.fromordinal(rng.randint(1, datetime.date.max.toordinal())) for _ in range(200)]
    for limit in days[:25]:
        least, most = re.compile(at_least(limit.isoformat())), re.compile(at_most(limit.isoformat()))
        for day in [*days, limit]:
            assert bool(least.fullmatch(day.isoformat())) is (day >= limit)
            assert bool(most.fullmatch(day.isoformat())) is (day <= limit)


def test_a_field_of_expressions_takes_those_of_python() -> None:
    grammar = structgen.json_schema(re.Pattern[str]).compile(BYTES)
    for text, legal in (("^a+[bc]$", True), ("(?<n>a)", False), ("(?<=a+)b", False), ("[^]", False), (r"\\cA", False)):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(f'"{text}"'.encode()) and matcher.is_accepting()) is legal
