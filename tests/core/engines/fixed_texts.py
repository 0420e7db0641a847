"""The smallest engine: the language is a list of texts. It shows what an engine has to do, and tests what uses one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from structgen.core.engines.byte_sets import byte_set
from structgen.core.engines.matcher import BaseMatcher
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import MatcherStateError


@dataclass(frozen=True)
class FixedTexts:
    """A grammar of these texts."""

    texts: tuple[bytes, ...]
    vocabulary: Vocabulary
    completions_are_shortest = True
    is_outdated = False

    @property
    def memory_bytes(self) -> int:
        return sum(map(len, self.texts))

    def matcher(self) -> FixedTextsMatcher:
        return FixedTextsMatcher(self)

    def last_bytes(self) -> int:
        return byte_set(text[-1] for text in self.texts if text)

    def normal_form(self) -> None:
        return None


class FixedTextsMatcher(BaseMatcher[FixedTexts]):
    """The state is the text so far."""

    def __init__(self, grammar: FixedTexts) -> None:
        super().__init__(grammar)
        self._text = b""
        self._history: list[tuple[bytes, bool]] = []  # text before each step, and whether it had ended

    def _rests(self, data: bytes = b"") -> list[bytes]:
        """What completes the text with ``data``."""
        text = self._text + data
        return [] if self._terminated else [t[len(text) :] for t in self._grammar.texts if t.startswith(text)]

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, address: int) -> None:
        tokens, ends = self._grammar.vocabulary.tokens, self._grammar.vocabulary.eos_token_ids
        allowed = [self.is_accepting() if t in ends else bool(w and self._rests(w)) for t, w in enumerate(tokens)]
        row = bitmask[index] if bitmask.ndim == 2 else bitmask
        row[:] = np.packbits(np.pad(allowed, (0, -len(allowed) % 32)), bitorder="little").view(np.int32)

    def _accept_token(self, token_id: int) -> bool:
        vocabulary = self._grammar.vocabulary
        is_end = token_id in vocabulary.eos_token_ids
        return self._step(b"", ends=True) if is_end else self._step(vocabulary.tokens[token_id])

    def _accept(self, data: bytes) -> bool:
        data = bytes(memoryview(data))
        return self._step(data) if data else self._keep()

    def _step(self, data: bytes, ends: bool = False) -> bool:
        if not (self.is_accepting() if ends else data and self._rests(data)):
            return False
        self._keep()
        self._text, self._terminated = self._text + data, ends
        return True

    def _keep(self) -> bool:
        self._history.append((self._text, self._terminated))
        return True

    def _rollback(self, steps: int) -> None:
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError.past_the_start(steps, len(self._history))
        for _ in range(steps):
            self._text, self._terminated = self._history.pop()

    def _fork(self) -> Self:
        twin = self._copy()
        twin._history = self._history.copy()
        return twin

    def _copy(self) -> Self:
        twin = type(self)(self._grammar)
        twin._text, twin._terminated = self._text, self._terminated
        return twin

    def is_accepting(self) -> bool:
        return b"" in self._rests()

    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        for byte in {rest[0] for rest in self._rests() if rest}:
            out.view(np.uint8)[byte >> 3] |= 1 << (byte & 7)

    def shortest_completion(self) -> bytes:
        return min(self._rests(), key=len, default=b"")

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        return self._text, self._terminated
