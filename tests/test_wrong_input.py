"""What a newcomer gets wrong: one line says what was given, what was expected and the nearest right spelling.

The command line's part of this table is in ``tests/cli`` (`test_sources`, `test_cli`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from structgen.generator import Generator
from structgen.models.tiny import TinyModel
from tests.fakes import CharTokenizer, vocabulary

WORDS = vocabulary(eos=1)
MODEL = TinyModel(WORDS.size)
NULL = {"type": "null"}


def generator(**options: Any) -> Generator:
    return Generator(MODEL, CharTokenizer(eos=1), vocabulary=WORDS, **options)


def prompt(given: Any) -> Callable[[], Any]:
    return lambda: generator().generate(given, NULL)


def constraint(given: Any) -> Callable[[], Any]:
    return lambda: generator().generate("p", given, max_new_tokens=40)


def option(**options: Any) -> Callable[[], Any]:
    return lambda: generator().generate("p", NULL, **options)


def matcher() -> Any:
    return sg.compile_regex("ab", WORDS).matcher()


CASES: dict[str, tuple[Callable[[], Any], type[sg.StructgenError], list[str]]] = {
    # prompts
    "a number as prompt": (prompt(42), sg.GenerationError, ["not 42", "role"]),
    "None as prompt": (prompt(None), sg.GenerationError, ["not None"]),
    "bytes as prompt": (prompt(b"x"), sg.GenerationError, ["not b'x'"]),
    "no messages": (prompt([]), sg.GenerationError, ["at least one"]),
    "a message without content": (prompt([{"role": "user"}]), sg.GenerationError, ["content"]),
    "strings as messages": (prompt(["hello"]), sg.GenerationError, ["not ['hello']"]),
    "one message without a list": (prompt({"role": "user", "content": "x"}), sg.GenerationError, ["[{"]),
    "half a character": (prompt("a\ud800"), sg.GenerationError, ["U+D800", "offset 1"]),
    "half a character in a message": (
        prompt([{"role": "user", "content": "\udfff"}]),
        sg.GenerationError,
        ["U+DFFF", "offset 0"],
    ),
    # constraints
    "a number as constraint": (constraint(5), sg.ConstraintError, ["Cannot read 5", "Expected"]),
    "an object as constraint": (constraint(object()), sg.ConstraintError, ["Expected a JSON Schema"]),
    "a word as constraint": (constraint("person"), sg.SchemaError, ["'person'", "as a path"]),
    "a grammar as schema": (constraint('start: "a"'), sg.SchemaError, ["as a path"]),
    "an expression as schema": (constraint("[a-z]+"), sg.SchemaError, ["not JSON", "^"]),
    "a type's name": (constraint("int"), sg.SchemaError, ["'int'"]),
    "NaN in a schema": (constraint({"const": float("nan")}), sg.SchemaError, ["NaN", "/const"]),
    "an object in a schema": (constraint({"const": object()}), sg.SchemaError, ["/const"]),
    "keys that are no strings": (constraint({1: 2}), sg.SchemaError, ["keys"]),
    "options as a dict": (lambda: sg.json_schema({}, {"unsupported": "ignore"}), sg.OptionsError, ["JsonOptions"]),  # type: ignore[call-overload]
    "an unknown JsonOptions value": (lambda: sg.JsonOptions(key_order="some"), sg.OptionsError, ["declared"]),  # type: ignore[arg-type]
    "no schema at that path": (lambda: sg.json_schema(Path("no.json")), sg.SchemaError, ["no.json"]),
    "a number as schema file": (lambda: sg.load_schema(5), sg.SchemaError, ["int"]),  # type: ignore[arg-type]
    "lines of a number": (lambda: sg.json_lines(5), sg.ConstraintError, ["5"]),
    "an empty tag": (lambda: sg.tag_dispatch({"": NULL}), sg.ConstraintError, ["empty"]),
    "tags as a number": (lambda: sg.tag_dispatch(5), sg.ConstraintError, ["not 5"]),  # type: ignore[arg-type]
    "a union of nothing": (sg.union, sg.ConstraintError, ["at least one"]),
    "a number in a concatenation": (lambda: sg.concat(5), sg.ConstraintError, ["json_schema"]),  # type: ignore[arg-type]
    "a misspelt tool format": (lambda: sg.tool_call("herms", []), sg.OptionsError, ["did you mean 'hermes'"]),
    "a number as tool": (lambda: sg.tool_call("hermes", [5]), sg.ConstraintError, ["tool 0"]),
    "a choice of numbers": (lambda: sg.choice([1, 2]), sg.ConstraintError, ["texts"]),  # type: ignore[list-item]
    "a choice of nothing": (lambda: sg.choice([]), sg.ConstraintError, ["at least one"]),
    "an open group": (constraint(sg.regex("(a")), sg.PatternError, ["^"]),
    "an undefined rule": (constraint(sg.gbnf("root ::= x")), sg.GrammarError, ["line 1", "column 10", "^"]),
    # options
    "OpenAI's max_tokens": (option(max_tokens=5), sg.OptionsError, ["'max_tokens'", "did you mean 'max_new_tokens'"]),
    "a misspelt option": (option(temprature=1), sg.OptionsError, ["did you mean 'temperature'"]),
    "an unknown option": (option(foo=1), sg.OptionsError, ["there are temperature"]),
    "a temperature in quotes": (option(temperature="0"), sg.OptionsError, ["temperature", "'0'"]),
    "bytes to stop at": (option(stop=b"x"), sg.OptionsError, ["stop", "b'x'"]),
    "bias for a word": (option(logit_bias={"a": 1}), sg.OptionsError, ["'a'"]),
    "bias for no token": (option(logit_bias={10**9: 1}), sg.OptionsError, ["1000000000"]),
    "a misspelt draft": (option(draft="ngrm"), sg.OptionsError, ["did you mean 'ngram'"]),
    "a misspelt draft of the generator": (
        lambda: generator(draft="recyling").generate("p", NULL),
        sg.OptionsError,
        ["did you mean 'recycling'"],
    ),
    "no constraint for samples": (lambda: generator().sample("p", None, 1), sg.GenerationError, ["generate("]),
    "so many samples": (lambda: generator().sample("p", NULL, "3"), sg.OptionsError, ["'3'"]),  # type: ignore[call-overload]
    "a misspelt method": (lambda: generator().sample("p", NULL, 1, "exat"), sg.OptionsError, ["exact"]),  # type: ignore[call-overload]
    "an unknown option of samples": (
        lambda: generator().sample("p", NULL, 1, max_tokens=3),  # type: ignore[call-overload]
        sg.OptionsError,
        ["max_new_tokens"],
    ),
    "a choice between letters": (lambda: generator().choice("p", "yes"), sg.GenerationError, ["list of strings"]),
    "a choice between numbers": (lambda: generator().choice("p", [1]), sg.GenerationError, ["list of strings"]),
    "a choice twice the same": (lambda: generator().choice("p", ["a", "a"]), sg.GenerationError, ["different"]),
    # models
    "a model without a tokenizer": (lambda: Generator(TinyModel(9)), sg.ModelError, ["Generator(model, tokenizer)"]),
    "a name as tokenizer": (lambda: Generator(TinyModel(9), "gpt2"), sg.TokenizerError, ["str"]),
    "prompt and schema swapped": (
        lambda: sg.generate_json(NULL, "p", generator()),  # type: ignore[call-overload]
        sg.GenerationError,
        ["prompt", "null"],
    ),
    "a number as model": (lambda: sg.generate_json("p", NULL, 5), sg.ModelError, ["int", "Generator"]),
    # machines
    "a name as vocabulary": (lambda: sg.compile_regex("a", "gpt2"), sg.TokenizerError, ["from_transformers"]),  # type: ignore[arg-type]
    "a bitmask of one dimension": (
        lambda: matcher().fill_next_token_bitmask(np.zeros(3, dtype=np.int32)),
        sg.BitmaskError,
        ["allocate_token_bitmask"],
    ),
    "no bitmask": (lambda: matcher().fill_next_token_bitmask(None), sg.BitmaskError, ["NoneType"]),
    "a row that is not there": (
        lambda: matcher().fill_next_token_bitmask(sg.allocate_token_bitmask(1, WORDS.size), 5),
        sg.BitmaskError,
        ["row 5"],
    ),
    "a negative token": (lambda: matcher().accept_token(-1), sg.TokenError, ["-1", "0 to"]),
    "a token too high": (lambda: matcher().accept_token(WORDS.size), sg.TokenError, ["out of range"]),
    "too far back": (lambda: matcher().rollback(9), sg.MatcherStateError, ["9"]),
    "a bitmask for no rows": (lambda: sg.allocate_token_bitmask(-1, 5), sg.BitmaskError, ["-1"]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_said(name: str) -> None:
    call, error, phrases = CASES[name]
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert [phrase for phrase in phrases if phrase not in message] == [], message
    assert "Traceback" not in message and len(message) < 900
