"""Quotes of what a request's own prompt says, through vLLM's manager."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="vLLM is not here; `make test-engines` fetches it")

from vllm.exceptions import VLLMValidationError

from structgen.errors import StructgenError
from tests.integrations.engine_world import LETTER, prompt_of, quote_of_prompt, special_id, tokenizer, unpacked
from tests.integrations.vllm.world import END, Engine

pytestmark = pytest.mark.usefixtures("registered")


@pytest.mark.parametrize("structural", [False, True])
def test_quotes_are_in_the_prompt(structural: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the request itself, whatever others with the same schema have; no quote lies across two turns."""
    kind, value = quote_of_prompt(structural)
    for seed in range(12):
        rng, letter = random.Random(seed), LETTER[seed:]
        engine = Engine(monkeypatch)
        grammar = engine.grammar(engine.ask(kind, value, max_tokens=40, prompt=prompt_of(letter)))
        written: list[int] = []
        while not grammar.is_terminated():
            allowed = np.flatnonzero(unpacked(engine.masks({})[0])).tolist()
            token = rng.choice([token for token in allowed if token != special_id(END)] or allowed)
            written.append(token)
            assert grammar.accept_tokens("", [token])
        quote = json.loads(tokenizer().decode(written, skip_special_tokens=True))["quote"]
        assert quote and max(letter.find(quote), "be brief".find(quote)) >= 0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"pattern": "a+"}, "quote"),
    ({"minLength": 3, "maxLength": 2}, "no|No"),
    ({"x-structgen": {"quoteOf": "other"}}, "no source is called 'other'"),
    ({"x-structgen": {"quoteOf": "prompt", "boundary": "page"}}, "boundary"),
]


@pytest.mark.parametrize("terms, message", WRONG, ids=str)
def test_what_the_front_end_refuses(terms: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but what the prompt decides, which fails the request alone."""
    with pytest.raises((VLLMValidationError, StructgenError), match=message):
        Engine(monkeypatch).ask(*quote_of_prompt(False, **terms), prompt=prompt_of("no"))


def test_what_the_prompt_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(monkeypatch)
    asked = quote_of_prompt(False, minLength=20)
    engine.ask(*asked, prompt=prompt_of(LETTER))
    with pytest.raises(StructgenError, match="satisf"):
        engine.ask(*asked, prompt=prompt_of("short"))
