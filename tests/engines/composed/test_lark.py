"""``%json`` in Lark grammars, as users of llguidance write them."""

from __future__ import annotations

import json
import random

import pytest

from structgen.compilers import compile_lark
from structgen.constraints.text import lark
from structgen.engines.composed.grammar import ComposedGrammar
from structgen.errors import SchemaError
from structgen.options import JsonOptions
from structgen.vocabulary.vocabulary import Vocabulary
from tests.engines.composed.oracle import allowed, vocabulary

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
    from structgen.engines.json.compiled import compile_json_schema

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
