"""Grammars that go from one process to another are those that were compiled: by masks, completions and reports."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.vocabulary.special_tokens import SpecialToken
from structgen.server.sending import received, sent
from tests.process_caches import forget
from tests.server.tiny import VOCABULARY

NAMED = structgen.Vocabulary(
    [bytes([byte]) for byte in range(256)] + [b'"a', b'": ', b"ab", None, None],
    eos_token_ids=259,
    special_token_ids=[260],
    special_tokens={"<|call|>": 260},
)
RECURSIVE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]{2,5}$", "maxLength": 4},
        "number": {"type": "number", "minimum": 1.5, "multipleOf": 0.25},
        "of": {"enum": ["x", 1, None, {"a": [1, 2]}]},
        "more": {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True, "contains": {"required": ["name"]}},
    },
    "patternProperties": {"^x_": {"type": "boolean"}},
    "required": ["name"],
    "minProperties": 2,
    "additionalProperties": {"oneOf": [{"type": "string"}, {"minLength": 2}]},
}
CONSTRAINTS: dict[str, Callable[[], Any]] = {
    "recursive schema": lambda: structgen.json_schema(RECURSIVE),
    "schema with a slip": lambda: structgen.json_schema({"type": "string", "maxLenght": 3, "minLength": 1}),
    "any JSON": lambda: structgen.json_schema(True),
    "choice": lambda: structgen.choice(["yes", "no", "näher"]),
    "expression": lambda: structgen.regex("(a|b){2,9}c[^x]?"),
    "gbnf": lambda: structgen.gbnf('root ::= "(" root ")" | [0-9]{1,3} root?'),
    "lark": lambda: structgen.lark('start: (A | B)+\nA: "a"\nB: /b+/\n%ignore " "', captures=("A",)),
    "lark with a schema": lambda: structgen.lark('start: "<" part ">"\npart: %json {"type": "array", "maxItems": 3}'),
    "contextual": lambda: structgen.lark('start: A ("," A)*\nA: /[a-z]+/', lexer="contextual"),
    "tags": lambda: structgen.tag_dispatch({("<n>", "</n>"): {"type": "integer"}, "<s>": structgen.regex("[a-c]{2}")}),
    "lines": lambda: structgen.json_lines({"type": "integer"}),
}
OF_TOKENS: dict[str, Callable[[], Any]] = {
    "tags by tokens": lambda: structgen.tag_dispatch({SpecialToken("<|call|>"): {"type": "integer"}}),
    "gbnf with a token": lambda: structgen.gbnf('root ::= "a" <|call|> "b"*'),
}


def walked(one: Any, other: Any, seed: int) -> None:
    """Both grammars allow the same on some way to the end, and end the same way."""
    rng, size = random.Random(seed), one.vocabulary.size
    pair = [grammar.matcher() for grammar in (one, other)]
    for _ in range(25):
        masks = [allocate_token_bitmask(1, size) for _ in pair]
        for matcher, mask in zip(pair, masks, strict=True):
            matcher.fill_next_token_bitmask(mask)
        assert (masks[0] == masks[1]).all()
        assert pair[0].is_accepting() == pair[1].is_accepting()
        assert pair[0].shortest_completion() == pair[1].shortest_completion()
        assert pair[0].completion_bound() == pair[1].completion_bound()
        allowed = np.flatnonzero(np.unpackbits(masks[0].view(np.uint8), bitorder="little")[:size]).tolist()
        token = rng.choice([token for token in allowed if token not in one.vocabulary.eos_token_ids] or allowed)
        assert all(matcher.accept_token(token) for matcher in pair)
        if pair[0].is_terminated():
            return
    assert pair[0].captures() == pair[1].captures()


@pytest.mark.filterwarnings("ignore::structgen.GrammarWarning")
@pytest.mark.parametrize("name", [*CONSTRAINTS, *OF_TOKENS])
def test_what_is_received_is_what_was_sent(name: str) -> None:
    vocabulary = NAMED if name in OF_TOKENS else VOCABULARY
    constraint = (CONSTRAINTS | OF_TOKENS)[name]()
    forget()  # grammars and automata that other tests have used hold more
    grammar = constraint.compile(vocabulary)
    grammar.matcher().shortest_completion()  # what it has worked out since does not harm
    data = sent(grammar, vocabulary)
    found = received(data, vocabulary)
    assert len(data) < 300_000 and found.vocabulary is grammar.vocabulary
    for seed in range(4):
        walked(grammar, found, seed)
    for attribute in ("misspelt", "narrowed", "completions_are_shortest"):
        assert getattr(found, attribute, None) == getattr(grammar, attribute, None)
    report, other = getattr(grammar, "report", None), getattr(found, "report", None)
    if report is not None and other is not None:
        assert report.entries == other.entries and report.bounds_numbers == other.bounds_numbers
    assert found.memory_bytes > 0.5 * grammar.memory_bytes
    walked(received(sent(found, vocabulary), vocabulary), grammar, 5)  # and again


def test_what_is_over_another_vocabulary_is_not_sent() -> None:
    grammar = structgen.regex("a+").compile(VOCABULARY)
    assert sent(grammar, VOCABULARY) and not sent(grammar, NAMED)


@pytest.mark.parametrize("wrong", [print, pickle.loads, random.Random], ids=["print", "loads", "Random"])
def test_only_parts_of_grammars_are_read(wrong: Any) -> None:
    """The process that sends has read a stranger's text."""
    with pytest.raises(pickle.UnpicklingError, match="does not hold"):
        received(pickle.dumps(wrong), VOCABULARY)
