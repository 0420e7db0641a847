"""Quotes of what a request's own prompt says, through SGLang's grammar manager."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

pytest.importorskip("sglang", reason="SGLang is not here; `make test-engines` fetches it")

from tests.integrations.engine_world import LETTER, LOGITS, prompt_of, quote_of_prompt, special_id, tokenizer, unpacked
from tests.integrations.sglang.world import Engine

pytestmark = pytest.mark.usefixtures("sglang_with_plugins")


@pytest.mark.parametrize("parser", [None, "qwen3"])
@pytest.mark.parametrize("structural", [False, True])
def test_quotes_are_in_the_prompt(structural: bool, parser: str | None) -> None:
    """Of the request itself, whatever others with the same schema have: its cache of grammars knows prompts."""
    kind, value = quote_of_prompt(structural)
    engine = Engine(reasoning_parser=parser) if parser else Engine()
    for seed in [*range(8), 3]:
        rng, letter = random.Random(seed), LETTER[seed:]
        request = engine.ask(kind, value, max_new_tokens=40, prompt=list(prompt_of(letter)))
        mask = request.grammar.allocate_vocab_mask(LOGITS, 1, "cpu")
        while not request.grammar.is_terminated():
            request.grammar.fill_vocab_mask(mask, 0)
            allowed = np.flatnonzero(unpacked(mask[0])).tolist()
            token = rng.choice([token for token in allowed if token != special_id("<|end|>")] or allowed)
            request.output_ids.append(token)
            request.grammar.accept_token(token)
        quote = json.loads(tokenizer().decode(request.output_ids, skip_special_tokens=True))["quote"]
        assert quote and max(letter.find(quote), "be brief".find(quote)) >= 0
    assert getattr(request.grammar, "grammar", request.grammar).grammar_stats.is_cache_hit


def test_what_the_prompt_decides() -> None:
    engine = Engine()
    kind, value = quote_of_prompt(False, minLength=20)
    assert engine.ask(kind, value, prompt=list(prompt_of(LETTER))).error is None
    assert "satisf" in str(engine.ask(kind, value, prompt=list(prompt_of("short"))).error)
    kind, value = quote_of_prompt(False, **{"x-structgen": {"quoteOf": "other"}})
    assert "no source is called 'other'" in str(engine.ask(kind, value).error)
