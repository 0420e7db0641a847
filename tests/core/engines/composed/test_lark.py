"""``%json`` in Lark grammars, as users of llguidance write them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from structgen.core.compilers import compile_lark
from structgen.core.constraints.composed import tag_dispatch
from structgen.core.constraints.json import json_schema
from structgen.core.constraints.text import lark
from structgen.core.engines.composed.grammar import ComposedGrammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GrammarError, OptionsError, SchemaError
from structgen.options import JsonOptions
from tests.core.engines.composed.oracle import allowed, vocabulary

pytest.importorskip("lark")
BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)

CALL = """
start: TEXT? "<call>" call ("," call)* "</call>"
call: NAME "(" %json {
    "type": "object",
    "properties": {"x": {"type": "number"}, "s": {"type": "string"}},
    "required": ["x"]
} ")"
NAME: /[a-z]+/
TEXT: /[^<]+/
%ignore " "
"""


def test_json_in_a_grammar() -> None:
    grammar = lark(CALL).compile(BYTES)
    assert isinstance(grammar, ComposedGrammar)

    def accepted(text: str) -> bool:
        matcher = grammar.matcher()
        return matcher.accept_bytes(text.encode()) and matcher.is_accepting()

    assert accepted('Hello! <call>f({"x": 1}), g ( {"x":-1.5, "s":")<"} )</call>')
    assert accepted('<call>f({"x": 1})</call>')
    assert not accepted('<call>f({"x": "1"})</call>') and not accepted('<call>f({"s": "1"})</call>')
    assert not accepted('<call>f({"x": 1}</call>')


def test_a_schema_alone_is_as_the_schema() -> None:
    """``start: %json {...}`` allows what the schema's own matcher does, token by token."""
    from structgen.core.engines.json.compiled import compile_json_schema

    words = vocabulary('{}[]":, abx01', random.Random(5), longer=80)
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": [1, 10, "x"]}}, "required": ["a"]}
    composed = compile_lark(f"start: %json {json.dumps(schema)}", words)
    plain = compile_json_schema(schema, words, JsonOptions())
    rng = random.Random(6)
    for _ in range(8):
        matcher, other = composed.matcher(), plain.matcher()
        for _ in range(20):
            expected = allowed(other)
            assert allowed(matcher) == expected
            assert matcher.is_accepting() == other.is_accepting()
            assert matcher.forced_bytes() == other.forced_bytes()
            token = rng.choice(sorted(expected))
            if not words.tokens[token]:
                break
            assert matcher.accept_token(token) and other.accept_token(token)


def test_a_bad_schema_is_named() -> None:
    with pytest.raises(SchemaError) as caught:
        compile_lark('start: "a"\n  | %json {"type": "nonsense"}', BYTES)
    assert '%json {"type": "nonsense"}' in caught.value.__notes__[0]


PAIR = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TEXTS = [
    '{"a": 1, "b": 2}',
    '{"a":1,"b":2}',
    '{"b":2,"a":1}',
    '{\n  "a": 1\n}',
    '{ "a":1 }',
    '{"a":1e0}',
    '{"\\u0061":1}',
    '{"c":0}',
]
SPELLINGS: list[dict[str, Any]] = [
    {},
    {"whitespace": "compact"},
    {"whitespace": 2},
    {"whitespace": "any", "key_order": "any"},
    {"number_spellings": "any", "string_escapes": "any"},
    {"additional_members": "closed"},
]


def languages(grammar: Any, before: str = "", after: str = "") -> list[bool]:
    def accepted(text: str) -> bool:
        matcher = grammar.matcher()
        return matcher.accept_bytes((before + text + after).encode()) and matcher.is_accepting()

    return [accepted(text) for text in TEXTS]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
def test_options_in_code_in_the_text_and_of_tags(spelling: dict[str, Any]) -> None:
    """All three spell JSON as the schema's own grammar does."""
    options = JsonOptions(**spelling)
    expected = languages(json_schema(PAIR, options).compile(BYTES))
    text = f'start: "<" %json {json.dumps(PAIR)} ">"'
    assert languages(compile_lark(text, BYTES, json_options=options), "<", ">") == expected
    assert languages(lark(text, json_options=options).compile(BYTES), "<", ">") == expected
    inside = f'start: "<" %json {json.dumps({"x-structgen": spelling, **PAIR})} ">"'
    assert languages(compile_lark(inside, BYTES), "<", ">") == expected
    tagged = tag_dispatch({("<", ">"): PAIR}, min_uses=1, free_text="none", json_options=options)
    assert languages(tagged.compile(BYTES), "<", ">") == expected


def test_options_in_the_text_change_those_in_code() -> None:
    text = """
    start: free ":" item
    free: %json {"x-structgen": {"key_order": "any"}, "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
    item: %json {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
    """
    grammar = compile_lark(text, BYTES, json_options=JsonOptions(whitespace="compact"))
    any_order, declared = '{"b":2,"a":1}', '{"a":1,"b":2}'

    def accepted(text: str) -> bool:
        matcher = grammar.matcher()
        return matcher.accept_bytes(text.encode()) and matcher.is_accepting()

    assert accepted(f"{any_order}:{declared}") and not accepted(f"{declared}:{any_order}")
    assert not accepted(f'{{"a": 1,"b":2}}:{declared}')


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"white_space": "any"}', "did you mean 'whitespace'"),
        ('{"whitespace": "some"}', "JsonOptions.whitespace is 'some'"),
        ("3", "names and values"),
    ],
)
def test_wrong_options_in_the_text(value: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        compile_lark(f'start: "a"\n  | %json {{"x-structgen": {value}}}', BYTES)
    assert (caught.value.line, caught.value.column) == (2, 12)


def test_wrong_options_in_code() -> None:
    with pytest.raises(OptionsError, match="JsonOptions"):
        compile_lark("start: %json {}", BYTES, json_options={"whitespace": "any"})  # type: ignore[arg-type]
    with pytest.raises(OptionsError, match="contextual"):
        compile_lark('start: "a"', BYTES, lexer="contextual", json_options=JsonOptions())


def test_the_key_does_not_reach_the_schema() -> None:
    """What the key says is no keyword: the same text without it has the same language, byte for byte."""
    schemas: list[Any] = [{"const": {"x-structgen": {}}}, {"x-structgen": {}, "const": {"x-structgen": {}}}]
    for schema in schemas:
        matcher = compile_lark(f"start: %json {json.dumps(schema)}", BYTES).matcher()
        assert matcher.accept_bytes(b'{"x-structgen": {}}') and matcher.is_accepting()
