"""Phrases in strings of JSON, against ``json`` and ``str.find``: chosen strings and all, however they are spelled."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pydantic
import pytest

from structgen import (
    ConstraintError,
    JsonOptions,
    OptionsError,
    RefusedValueError,
    SchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    Vocabulary,
    avoiding,
    including,
    intersect,
    json_schema,
    regex,
)
from structgen.core.constraints.phrases import PhraseConstraint
from structgen.core.engines.laws import check_laws

WORDS = [b"ab", b'a"', b'"a', b"\\n", b'b"}', b'": "', b'{"p', b'\\"', b"\\u0061", b'",', b'b"]', "é".encode(), b'["a']
TOKENS: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), *WORDS, None]
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)
ANY = JsonOptions(string_escapes="any", whitespace="any")
TREE = {
    "type": "object",
    "properties": {"p": {"type": "string"}, "q": {"type": "array", "items": {"$ref": "#"}}},
    "additionalProperties": {"type": ["string", "integer"]},
}
SCHEMAS: list[Any] = [
    {"type": "string"},
    {"type": "string", "maxLength": 4},
    {"type": "string", "pattern": "^[ab]*$"},
    {"type": "object", "properties": {"p": {"type": "string"}, "q": {"enum": ["ab", "b", 'a"', 7]}}},
    {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    {"properties": {"p": {"x-structgen": {"oneOf": ["aab", "bé", "ba"]}}}, "required": ["p"], "type": "object"},
    TREE,
    True,
]
Holds = Callable[[str], bool]


def times(phrase: str, text: str) -> int:
    """How often a phrase occurs, by ``str.find``; occurrences may overlap."""
    start, count = text.find(phrase), 0
    while start >= 0:
        start, count = text.find(phrase, start + 1), count + 1
    return count


def random_search(rng: random.Random) -> tuple[PhraseConstraint, Holds]:
    words = list(dict.fromkeys("".join(rng.choices('ab"é\n', [5, 5, 1, 1, 1], k=rng.randint(1, 2))) for _ in range(2)))
    if rng.random() < 0.5:
        return avoiding(words), lambda text: not any(times(word, text) for word in words)
    if rng.random() < 0.3:
        return including(words, "any", 2), lambda text: 1 <= sum(times(word, text) for word in words) <= 2
    if rng.random() < 0.5:
        return including(words, "any"), lambda text: any(times(word, text) for word in words)
    return including(words), lambda text: all(times(word, text) for word in words)


def inside(value: Any, parts: list[str]) -> Iterator[Any]:
    """The values at a pointer."""
    if not parts:
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from inside(item, parts[1:]) if parts[0] in ("*", key) else ()
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from inside(item, parts[1:]) if parts[0] in ("*", str(index)) else ()


def all_values(value: Any) -> Iterator[Any]:
    yield value
    for item in inside(value, ["*"]):
        yield from all_values(item)


def judge(holds: Holds, places: list[str] | None, some: bool) -> Callable[[bytes], bool]:
    def valid(text: bytes) -> bool:
        whole = json.loads(text)
        chosen = (value for each in places or () for value in inside(whole, each.split("/")[1:]))
        values = all_values(whole) if places is None else chosen
        found = [holds(value) for value in values if isinstance(value, str)]
        return any(found) if some else all(found)

    return valid


VALUES = ["ab", "a", "b", "", "aab", 'a"b', "é", "ba\n", "bé", 7, None, ["ab"], ["b", "a"], ["b", ["a", {"p": "ab"}]]]
VALUES += [{"p": value} for value in VALUES] + [{"q": [{"p": "b"}, {"p": "ab", "z": "a"}]}, {"p": "b", "z": "ab"}]


def spelled(value: Any, rng: random.Random) -> bytes:
    """JSON in which some letters are spelled by escapes."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    return "".join(f"\\u{ord(c):04x}" if c in "ab" and rng.random() < 0.4 else c for c in text).encode()


def taken(grammar: Any, text: bytes) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 16))])
def test_what_is_written_and_all_that_may_be(seed: int) -> None:
    rng = random.Random(seed)
    for schema in SCHEMAS:
        search, holds = random_search(rng)
        places = rng.choice([None, ["/p"], ["/*"], ["/p", "/q"], ["/1", "/q/*/p"], ["", "/p"]])
        some = places is not None and rng.random() < 0.4
        plain = json_schema(schema, ANY)
        constraint = plain.with_strings(search, places, some=some)
        valid = judge(holds, places, some)
        try:
            grammar = constraint.compile(VOCABULARY)
        except UnsatisfiableSchemaError:
            grammar = None
        before = plain.compile(VOCABULARY)
        for value in VALUES:
            text = spelled(value, rng)
            expected = taken(before, text) and valid(text)
            assert (grammar is not None and taken(grammar, text)) == expected, (schema, search, places, some, text)
        if grammar is not None:
            check_laws(grammar, valid=valid, walks=2, steps=10, likely=b'pqab"\\u', seed=seed)


@pytest.mark.parametrize("more", [{}, {"maxLength": 3}, {"pattern": "b$"}, {"format": "date"}, {"minLength": 2}])
def test_one_string_with_what_else_is_said_of_it(more: dict[str, Any]) -> None:
    options = JsonOptions(string_escapes="any", assert_formats=True)
    words = {"including": {"phrases": ["A", "2"], "mode": "any", "ignore_case": True}, "avoiding": ["ab", "3"]}
    one = json_schema({"type": "string", "x-structgen": words, **more}, options).compile(VOCABULARY)
    other = json_schema({"type": "string", **more}, options).compile(VOCABULARY)
    for text in [
        "a",
        "A",
        "b",
        "ab",
        "abb",
        "aab",
        "baab",
        "Ab",
        "aBb",
        "bbA",
        "2024-01-01",
        "2023-01-01",
        "1999-01-01",
    ]:
        holds = any(word in text for word in "aA2") and "ab" not in text and "3" not in text
        data = json.dumps(text).encode()
        assert taken(one, data) == (holds and taken(other, data)), text
    check_laws(one, walks=2, steps=8, likely=b'abB2"', exact=True)


def test_negations_and_names_of_members() -> None:
    lacks = {"type": "string", "not": {"x-structgen": {"avoiding": ["ab"]}}}
    keys = {"type": "object", "propertyNames": {"x-structgen": {"avoiding": {"phrases": ["id"], "words": True}}}}
    assert taken(json_schema(lacks).compile(VOCABULARY), b'"aab"')
    assert not taken(json_schema(lacks).compile(VOCABULARY), b'"aa"')
    named = json_schema(keys).compile(VOCABULARY)
    assert taken(named, b'{"idea": 1}') and not taken(named, b'{"an id": 1}')
    strings = json_schema({"type": "object"}).with_strings(avoiding("id")).compile(VOCABULARY)
    assert taken(strings, b'{"id": "x"}') and not taken(strings, b'{"x": "id"}')


def test_conditions_add_up_and_equal_constraints_are_equal() -> None:
    plain = json_schema(TREE)
    both = plain.with_strings(avoiding("ab")).with_strings(including("b"), ["/p"])
    assert both == plain.with_strings(avoiding("ab")).with_strings(including("b"), "/p") != plain
    grammar = both.compile(VOCABULARY)
    assert taken(grammar, b'{"p": "b", "z": "a"}') and not taken(grammar, b'{"p": "a"}')
    assert not taken(grammar, b'{"p": "b", "q": [{"z": "ab"}]}')
    assert "avoiding" in both.instruction() and both.parse('{"p": "b"}') == {"p": "b"}
    assert json_schema(False).with_strings(avoiding("a")).schema is False


def test_types_say_it_of_their_strings() -> None:
    class Note(pydantic.BaseModel):
        text: Annotated[str, avoiding("ab"), including("b"), avoiding("é")]

    constraint = json_schema(Note)
    grammar = constraint.compile(VOCABULARY)
    for text, expected in (("b", True), ("ab", False), ("a", False), ("bé", False)):
        data = json.dumps({"text": text}, ensure_ascii=False)
        assert taken(grammar, data.encode()) == expected
        if not expected:
            with pytest.raises(RefusedValueError, match="expected a text that"):
                constraint.parse(data)


@pytest.mark.parametrize(
    ("words", "pointer", "message"),
    [
        ({"including": []}, "/x-structgen/including", "at least one phrase"),
        ({"avoiding": ["a", ""]}, "/x-structgen/avoiding", "one character at least"),
        ({"avoiding": {"phrases": ["a"], "mode": "any"}}, "/x-structgen/avoiding", "mode"),
        ({"including": {"phrases": ["a"], "at_most": 0}}, "/x-structgen/including", "at_most"),
        ({"including": {"phrases": ["a"], "words": 1}}, "/x-structgen/including", "words"),
        ({"strings": [{}]}, "/x-structgen/strings/0", "including"),
        ({"strings": [{"avoiding": ["a"], "some": True}]}, "/x-structgen/strings/0", "pointers"),
        ({"strings": [{"avoiding": ["a"], "pointers": ["p"]}]}, "/x-structgen/strings/0/pointers", "JSON Pointers"),
        ({"strings": [{"avoiding": ["a"], "pointers": []}]}, "/x-structgen/strings/0/pointers", "JSON Pointer"),
        ({"strings": {"avoiding": ["a"]}}, "/x-structgen/strings", "array"),
    ],
)
def test_what_is_malformed_is_refused_by_pointer(words: dict[str, Any], pointer: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as error:
        json_schema({"x-structgen": words}).compile(VOCABULARY)
    assert error.value.pointer == pointer


def test_what_cannot_be_is_refused_and_says_what_can() -> None:
    with pytest.raises(ConstraintError, match="with_strings"):
        intersect(json_schema(TREE), avoiding("a")).compile(VOCABULARY)
    with pytest.raises(OptionsError, match="pointers"):
        json_schema(TREE).with_strings(including("a"), some=True)
    with pytest.raises(ConstraintError, match="including"):
        json_schema(TREE).with_strings(regex("a"))  # type: ignore[arg-type]
    quote = {"type": "string", "x-structgen": {"quoteOf": {"text": "a letter"}, "avoiding": ["a"]}}
    with pytest.raises(UnsupportedSchemaError) as error:
        json_schema(quote).compile(VOCABULARY)
    assert error.value.pointer == "/x-structgen"
