"""JSON lines against Python's own reading of them."""

from __future__ import annotations

import json
import random

import pytest

from structgen.core.compilers import compile_json_lines
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import OptionsError, SchemaError
from structgen.options import JsonOptions
from tests.core.engines.composed.oracle import check_walks, remembered, vocabulary

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
VALUES = ["1", "12", "[1]", '"2"']


def judge_of(least: int, most: int) -> object:
    """By all texts of up to four lines (and more, where there is no limit, none of which is reached)."""
    texts = {""}
    layer = {""}
    for _ in range(min(most, 4)):
        layer = {f"{text}{value}\n" for text in layer for value in VALUES}
        texts |= layer | {text[:-1] for text in layer}
    valid = {text.encode() for text in texts if least <= len(text.splitlines()) <= most}
    prefixes = {text[:n] for text in valid for n in range(len(text) + 1)}
    return lambda text: (text in prefixes, text in valid)


@pytest.mark.parametrize(("least", "most"), [(0, None), (1, 1), (0, 2), (2, 3), (2, None), (0, 0)])
def test_against_all_short_texts(least: int, most: int | None) -> None:
    rng = random.Random(least)
    words = vocabulary('12[]\n"', rng, longer=30)
    schema = {"enum": [json.loads(value) for value in VALUES]}
    options = JsonOptions(whitespace="compact")
    grammar = compile_json_lines(schema, words, min_lines=least, max_lines=most, options=options)
    judge = judge_of(least, 4 if most is None else most)
    short = remembered(lambda text: judge(text))  # type: ignore[operator]
    check_walks(grammar, short, rng, walks=4, steps=2 if most is None else 6)


def test_values_parse() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}, "required": ["n"]}
    grammar = compile_json_lines(schema, BYTES, min_lines=2)
    matcher = grammar.matcher()
    text = '{"n": 1, "s": "a\\nb}"}\n{"n": 2}\n{"n": 3}'
    assert matcher.accept_bytes(text.encode()) and matcher.is_accepting()
    assert [json.loads(line)["n"] for line in text.splitlines()] == [1, 2, 3]
    assert matcher.accept_bytes(b"\n") and matcher.is_accepting() and not matcher.accept_bytes(b"\n")
    matcher.reset()
    assert len(matcher.shortest_completion().splitlines()) == 2
    assert not matcher.accept_bytes(b'{\n"n": 1}')


def test_bad_options() -> None:
    for options in (JsonOptions(whitespace="any"), JsonOptions(whitespace=2)):
        with pytest.raises(OptionsError, match="line feed"):
            compile_json_lines(True, BYTES, options=options)
    for least, most in ((-1, None), (2, 1), (0, 10**6), (None, 1)):
        with pytest.raises(OptionsError):
            compile_json_lines(True, BYTES, min_lines=least, max_lines=most)  # type: ignore[arg-type]
    with pytest.raises(SchemaError):
        compile_json_lines({"type": "no"}, BYTES)
