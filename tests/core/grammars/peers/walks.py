"""Texts to ask two readers of a grammar about: random walks of both, their beginnings, and mutations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np


class Reader(Protocol):
    """A reader of one text, byte by byte."""

    def allowed(self) -> list[int]:
        """The bytes that may come next."""
        ...

    def accept(self, byte: int) -> bool:
        """Read a byte; False where it may not come."""
        ...

    def ends(self) -> bool:
        """Whether the text may end here."""
        ...

    def rest(self) -> bytes:
        """A text that ends it, where the reader knows one."""
        ...


class Ours:
    """A matcher of this library as a reader."""

    def __init__(self, grammar: Any) -> None:
        self.matcher = grammar.matcher()

    def allowed(self) -> list[int]:
        """See Reader."""
        found: list[int] = np.flatnonzero(self.matcher.next_bytes()).tolist()
        return found

    def accept(self, byte: int) -> bool:
        """See Reader."""
        return bool(self.matcher.accept_bytes(bytes([byte])))

    def ends(self) -> bool:
        """See Reader."""
        return bool(self.matcher.is_accepting())

    def rest(self) -> bytes:
        """See Reader."""
        return bytes(self.matcher.shortest_completion())


def accepts(start: Callable[[], Reader], text: str) -> bool:
    """Whether a reader takes the whole text."""
    reader = start()
    return all(map(reader.accept, text.encode())) and reader.ends()


def texts(
    starts: Iterable[Callable[[], Reader]], words: Sequence[str], rng: random.Random, walks: int = 25
) -> list[str]:
    """Texts of random walks of all readers, and mutations of them.

    Args:
        starts: make readers of the empty text.
        words: what walks prefer and mutations put in: characters, or longer.
        rng: the randomness.
        walks: of each reader.
    """
    found = {"", *words}
    for start in starts:
        for _ in range(walks):
            found |= set(_walk(start(), words, rng))
    grown = sorted(found)
    for text in grown:
        found.add(_mutated(text, words, rng))
    for _ in range(walks):
        found.add(rng.choice(grown) + rng.choice(grown))
    return sorted(found)


def _walk(reader: Reader, words: Sequence[str], rng: random.Random) -> list[str]:
    """What one walk read where it could have ended, at its end, and made whole."""
    data, found = b"", []
    for _ in range(rng.randint(1, 30)):
        if reader.ends():
            found.append(data)
            if rng.random() < 0.15:
                break
        allowed = reader.allowed()
        if not allowed:
            break
        fitting = [word.encode() for word in words if word.encode()[0] in allowed]
        chosen = rng.choice(fitting) if fitting and rng.random() < 0.9 else bytes([rng.choice(allowed)])
        for i, byte in enumerate(chosen):
            if i and byte not in reader.allowed():
                break
            assert reader.accept(byte), (data, byte)
            data += bytes([byte])
    return [text.decode(errors="ignore") for text in [*found[-6:], data, data + reader.rest()]]


def _mutated(text: str, words: Sequence[str], rng: random.Random) -> str:
    """The text with one or two characters left out, put in, changed or doubled."""
    for _ in range(rng.randint(1, 2)):
        at = rng.randint(0, len(text))
        kind = rng.randrange(4)
        put = "" if kind == 0 else text[at : at + 3] * 2 if kind == 1 else rng.choice(words)
        text = text[:at] + put + text[at + (0 if kind == 3 else 3 if kind == 1 else 1) :]
    return text
