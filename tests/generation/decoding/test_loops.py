"""Repetitions: when a text counts as one, and outputs that leave theirs."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

import structgen
from structgen.errors import OptionsError
from structgen.generation.decoding.loops import LoopGuard, loop_of
from structgen.generation.models.tiny import TinyModel
from tests.generation.decoding.test_regions import TOKENS, Bytes, schema
from tests.many import cases


def naive(data: bytes, guard: LoopGuard) -> int:
    """The least period by trying all."""
    for period in range(1, guard.period_bytes + 1):
        size = max(guard.least_bytes, guard.repeats * period)
        if size <= len(data) and all(data[-i] == data[-i - period] for i in range(1, size - period + 1)):
            return period
    return 0


@pytest.mark.parametrize("seed", cases(2000, 60))
def test_a_period_is_what_trying_all_finds(seed: int) -> None:
    rng = random.Random(seed)
    guard = LoopGuard(rng.choice([2, 3]), rng.choice([8, 10, 24]), rng.choice([3, 12, 60]))
    text = b""
    for _ in range(rng.randint(1, 4)):
        text += bytes(rng.choices(b"ab,", k=rng.randrange(1, 12))) * rng.randint(1, 9)
    assert guard.period(text) == naive(text, guard)


def test_a_loop_is_seen_before_what_closed_it() -> None:
    found = loop_of(b'["first", ' + b'"pear", ' * 9 + b'"pe"]}')
    assert found is not None and len(found.text) == 8 and 9 <= found.repeats < 10
    assert loop_of(b'["pear", "fig", "plum", "lime"]') is None
    cut = loop_of("äö".encode() * 30 + "äö".encode()[:3])
    assert cut is not None and cut.repeats == 30.75


def generator(seed: int, **model: Any) -> structgen.Generator:
    vocabulary = structgen.Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)
    model = {"seed": seed, "order": 2, "scale": 1.5} | model
    return structgen.Generator(TinyModel(len(TOKENS), **model), Bytes(), vocabulary=vocabulary)


@pytest.mark.parametrize("seed", cases(1000, 4))
def test_guarded_outputs_are_valid_and_the_same_with_drafts(seed: int) -> None:
    """Models of order 1 at low temperature loop all the time."""
    rng = random.Random(seed)
    source = {"type": "object", "properties": {"x": schema(rng), "y": schema(rng), "z": {"type": "string"}},
              "required": ["x", "z"], "additionalProperties": False}  # fmt: skip
    one = generator(seed, order=rng.choice([1, 2]))
    options: dict[str, Any] = {
        "temperature": rng.choice([0.0, 0.3]), "seed": seed, "schema_in_prompt": False, "max_new_tokens": 150,
    }  # fmt: skip
    guard = LoopGuard(rng.choice([2, 3]), rng.choice([6, 24]))
    guarded = one.generate("x", source, loop_guard=guard, **options)
    jsonschema.validate(guarded.value, source)
    assert one.generate("x", source, loop_guard=guard, draft="ngram", **options).text == guarded.text
    plain = one.generate("x", source, **options)
    if not guarded.stats.closed_loops:
        assert guarded.text == plain.text
    else:
        assert guarded.finish_reason == "length" and plain.text != guarded.text


class Looping(TinyModel):
    """Likes to go on with a list of three names for ever."""

    def _logits(self, history: Any) -> Any:
        text = b"".join(TOKENS[token] or b"" for token in history)
        logits = np.zeros(len(TOKENS), np.float32)
        cycle = b'["pear", "fig", "plum", ' + b'"pear", "fig", "plum", ' * 40
        start = text.rfind(b"[")
        if start >= 0 and cycle.startswith(text[start:]):
            logits[cycle[len(text) - start]] = 9.0
        return logits


def test_a_list_is_left_between_its_items() -> None:
    vocabulary = structgen.Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)
    one = structgen.Generator(Looping(len(TOKENS), order=10_000), Bytes(), vocabulary=vocabulary)
    source = {"type": "array", "items": {"enum": ["pear", "fig", "plum", "lime"]}}
    options: dict[str, Any] = {"schema_in_prompt": False, "max_new_tokens": 300}
    plain = one.generate("x", source, **options)
    assert plain.finish_reason == "length" and plain.loop is not None and "fig" in plain.loop.text
    guarded = one.generate("x", source, loop_guard=LoopGuard(), **options)
    assert guarded.stats.closed_loops == 1 and guarded.stats.output_tokens < 90
    assert guarded.value == (["pear", "fig", "plum"] * 4)[: len(guarded.value)] and guarded.text.endswith('"]')
    json.loads(guarded.text)


def test_free_text_is_ended() -> None:
    vocabulary = structgen.Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)
    model = TinyModel(len(TOKENS), order=1, seed=1)
    one = structgen.Generator(model, Bytes(), vocabulary=vocabulary)
    plain = one.generate("x", max_new_tokens=400)
    guarded = one.generate("x", max_new_tokens=400, loop_guard=LoopGuard())
    assert plain.loop is not None and guarded.stats.output_tokens < plain.stats.output_tokens
    assert plain.text.startswith(guarded.text) and guarded.finish_reason == "length"


@pytest.mark.parametrize("options", [{"repeats": 1}, {"least_bytes": 0}, {"period_bytes": -1}])
def test_guards_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError, match=next(iter(options))):
        LoopGuard(**options)
    with pytest.raises(OptionsError, match="loop_guard"):
        generator(1).generate("x", loop_guard=True)  # type: ignore[call-overload]
