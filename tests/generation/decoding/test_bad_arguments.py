"""Bad arguments of what writes and samples: each an OptionsError that names the argument, at the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import structgen
from structgen import ConstraintError, GenerationError, Generator, OptionsError, TokenizerError
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.speculative.lookahead import LookaheadDrafter
from structgen.generation.speculative.model_drafter import ModelDrafter
from structgen.generation.speculative.ngram import MemoryDrafter
from structgen.generation.target import Budget, PrefixStore, Sampler, Target
from tests.fakes import CharTokenizer, vocabulary

WORDS = vocabulary()
MODEL = TinyModel(WORDS.size)
FIVE: Any = 5
X: Any = "x"


def generator() -> Generator:
    return Generator(MODEL, CharTokenizer(), vocabulary=WORDS)


def target(**options: Any) -> Target:
    return Target(MODEL, options.pop("prompt_ids", [5]), structgen.choice(["a"]), WORDS, **options)


OPTIONS: list[tuple[str, Any]] = [
    ("temperature", "hot"),
    ("temperature", True),
    ("temperature", float("inf")),
    ("top_p", "x"),
    ("top_p", 0),
    ("top_k", 1.5),
    ("top_k", 0),
    ("seed", "x"),
    ("seed", -1),
    ("max_new_tokens", 0),
    ("max_new_tokens", "x"),
    ("max_new_tokens", 2.5),
    ("stop", 5),
    ("stop", [1]),
    ("stop", ""),
    ("draft", 5),
    ("draft", []),
]


@pytest.mark.parametrize(("name", "value"), OPTIONS)
def test_options_of_generate(name: str, value: Any) -> None:
    options: Any = {name: value}
    calls: list[Any] = [generator().generate, lambda *given, **named: list(generator().stream(*given, **named))]
    for call in calls:
        with pytest.raises(OptionsError, match=name):
            call("Hi", structgen.choice(["a"]), **options)
    if name in ("temperature", "top_p", "top_k", "max_new_tokens", "seed"):
        with pytest.raises(OptionsError, match=name):
            generator().sample("Hi", structgen.choice(["a"]), 1, **options)


CALLS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "samples": (lambda: generator().sample("Hi", structgen.choice(["a"]), X), OptionsError, "samples"),
    "budget": (lambda: generator().sample("Hi", structgen.choice(["a"]), 1, budget=FIVE), OptionsError, "budget"),
    "model_tokens": (lambda: Budget(model_tokens=-1), OptionsError, "model_tokens"),
    "seconds": (lambda: Budget(seconds=X), OptionsError, "seconds"),
    "params": (lambda: target(params=0.5), OptionsError, "params"),
    "prompt_ids": (lambda: target(prompt_ids=["x"]), OptionsError, "prompt_ids"),
    "max_tokens": (lambda: target(max_tokens="x"), OptionsError, "max_tokens"),
    "memory": (lambda: PrefixStore(target(), memory=-1), OptionsError, "memory"),
    "width": (lambda: Sampler(PrefixStore(target()), width=X), OptionsError, "width"),
    "drawing": (lambda: ModelDrafter(MODEL, drawing=X), OptionsError, "drawing"),
    "branches": (lambda: ModelDrafter(MODEL, branches=0), OptionsError, "branches"),
    "length": (lambda: ModelDrafter(MODEL, length=0), OptionsError, "length"),
    "lookahead": (lambda: LookaheadDrafter(0), OptionsError, "width"),
    "outputs": (lambda: MemoryDrafter(0), OptionsError, "outputs"),
    "prompt": (lambda: generator().generate(FIVE), GenerationError, "string or messages"),
    "message": (lambda: generator().generate([FIVE]), GenerationError, "string or messages"),
    "regex": (lambda: structgen.compile_regex("a", FIVE), TokenizerError, "vocabulary is 5"),
    "contextual": (
        lambda: structgen.compile_lark('start: "a"', FIVE, lexer="contextual"), TokenizerError, "vocabulary is 5",
    ),
    "lark": (lambda: structgen.compile_lark(FIVE, WORDS), ConstraintError, "text or a Path"),
    "gbnf": (lambda: structgen.compile_gbnf(FIVE, WORDS), ConstraintError, "text or a Path"),
    "choice": (lambda: structgen.compile_choice(FIVE, WORDS), ConstraintError, "texts"),
    "choices": (lambda: structgen.choice(FIVE), ConstraintError, "texts"),
    "sizes": (lambda: structgen.allocate_token_bitmask(X, 5), structgen.BitmaskError, "batch_size='x'"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_arguments(name: str) -> None:
    call, error, message = CALLS[name]
    with pytest.raises(error, match=message):
        call()


def test_numpy_numbers_are_numbers() -> None:
    import numpy as np

    numbers: list[Any] = [np.float64(0.5), np.int64(3), np.float32(0.5), np.int32(1)]
    assert SamplingParams(*numbers).top_k == 3
