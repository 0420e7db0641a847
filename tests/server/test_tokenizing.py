"""Long texts: refused after a part where they cannot fit, and read beside short ones."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from structgen.server.engine import AsyncEngine
from structgen.server.errors import RequestError
from structgen.server.prompts import PART, token_ids
from structgen.server.settings import ServingSettings
from structgen.server.tokenizing import InTurn
from tests.server.tiny import ByteTokenizer, generator


class Counting(ByteTokenizer):
    """Counts what it is given; is told where two threads use it at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds, self.characters, self.inside, self.most_inside = seconds, 0, 0, 0

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        time.sleep(self.seconds)
        self.characters += len(text)
        self.inside -= 1
        return super().encode(text)


@pytest.mark.parametrize("text", ["\N{PILE OF POO}" * 300_000, "a" * 300_000, " " * 300_000])
def test_what_cannot_fit_is_refused_after_a_part(text: str) -> None:
    tokenizer, settings = Counting(), ServingSettings(max_prompt_tokens=1000)
    with pytest.raises(RequestError, match="more than 1,000 tokens") as caught:
        token_ids(tokenizer, text, settings)
    assert caught.value.code == "context_length_exceeded" and tokenizer.characters <= 4 * PART


class Words(ByteTokenizer):
    """A token a word, wherever it is cut."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [1] * len(text.split())


def test_what_could_fit_is_read_whole() -> None:
    """Of long tokens, as many as the model reads; and twice as many, which are told exactly by who counts them."""
    text = "abcdefghi " * 2000
    for most, fits in ((2000, True), (2001, True), (1999, True), (10, True)):
        assert len(token_ids(Words(), text, ServingSettings(max_prompt_tokens=most))) == 2000 or not fits
    assert len(token_ids(Words(), text, ServingSettings())) == 2000


def test_turns_are_taken_in_order() -> None:
    tokenizer = Counting(0.02)
    shared, ends = InTurn(tokenizer), list[str]()

    def encode(name: str, times: int) -> None:
        for _ in range(times):
            shared.encode("x")
        ends.append(name)

    long = threading.Thread(target=encode, args=("long", 20))
    long.start()
    time.sleep(0.05)
    short = threading.Thread(target=encode, args=("short", 1))
    short.start()
    long.join()
    short.join()
    assert ends == ["short", "long"] and tokenizer.most_inside == 1
    assert shared.chat_template == tokenizer.chat_template
    assert inspect.signature(shared.apply_chat_template) == inspect.signature(tokenizer.apply_chat_template)


@pytest.mark.full
def test_short_texts_do_not_wait_for_long_ones() -> None:
    """A long one of many parts, each of which takes its time: a short one waits for one of them."""

    async def both() -> tuple[float, int]:
        engine = AsyncEngine(generator(), ServingSettings(max_prompt_tokens=1 << 20))
        engine._in_turn = InTurn(Counting(0.05))

        def parts(tokenizer: Any) -> int:
            return sum(len(tokenizer.encode("x")) for _ in range(20))

        long = asyncio.ensure_future(engine.read(parts, is_long=True))
        await asyncio.sleep(0.1)
        started = time.monotonic()
        await engine.read(lambda tokenizer: tokenizer.encode("x"))
        waited = time.monotonic() - started
        assert not long.done()
        count = await long
        await asyncio.to_thread(engine.close)
        return waited, count

    waited, count = asyncio.run(both())
    assert waited < 0.6 and count == 20


def test_the_model_says_how_many_tokens_are_read() -> None:
    engine = AsyncEngine(generator(context_length=50), ServingSettings())
    assert engine.settings.max_prompt_tokens == 50
    assert AsyncEngine(generator(context_length=50), replace(engine.settings, max_prompt_tokens=7)).settings == replace(
        engine.settings, max_prompt_tokens=7
    )
