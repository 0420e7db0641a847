"""Beginnings of a text in canonical tokens, each read by the model once, and the tokens that go on beyond its end.

A *cover* of a text is canonical tokens that spell all of it but for the last one, which goes beyond its end or up to
it. A text's probability, as the beginning of what a model writes, is the sum over its covers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import allows
from structgen.core.tokenization.canonical import AT_START, CanonicalSpelling, SpelledSoFar
from structgen.generation.models.prefix_reader import Prefix

Read = Callable[[Sequence[Prefix]], Iterable[npt.NDArray[np.floating[Any]]]]
"""The logits after each of some tokens."""


@dataclass(frozen=True, slots=True)
class SpelledBeginning:
    """A beginning of the text in canonical tokens; ``log_probs``: of what comes next."""

    tokens: Prefix
    position: SpelledSoFar
    log_prob: float
    log_probs: npt.NDArray[np.float64]


class Covers:
    """The covers of one text after the other; what a text has in common with the last one is kept.

    Attributes:
        data: the text.
        spelled: of each number of its bytes, the beginnings that end there.

    Args:
        spelling: of the tokenizer.
        read: what asks the model.
        start: where the text begins.
    """

    def __init__(self, spelling: CanonicalSpelling, read: Read, start: SpelledSoFar = AT_START) -> None:
        self.data = b""
        self.spelled: list[dict[Prefix, SpelledBeginning]] = []
        self._spelling, self._read, self._start = spelling, read, start

    def follow(self, data: bytes) -> None:
        """Spell a text's beginnings; the new ones are read in one call."""
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(data, self.data, strict=False)))
        del self.spelled[shared + 1 :]
        first = len(self.spelled)
        reached: list[dict[Prefix, SpelledSoFar]] = [
            {tokens: each.position for tokens, each in those.items()} for those in self.spelled
        ]
        for end in range(first, len(data) + 1):
            reached.append(dict(self._endings(reached, data, end)) if end else {(): self._start})
        new = [(end, *pair) for end in range(first, len(data) + 1) for pair in reached[end].items()]
        logits = self._read([tokens for _, tokens, _ in new]) if new else ()
        self.spelled += [{} for _ in range(first, len(data) + 1)]
        self.data = data
        for (end, tokens, position), each in zip(new, logits, strict=True):
            log_prob = 0.0
            if tokens:
                before = self.spelled[end - len(self._spelling.texts[tokens[-1]])].get(tokens[:-1])
                log_prob = -math.inf if before is None else before.log_prob + float(before.log_probs[tokens[-1]])
            if log_prob > -math.inf:
                self.spelled[end][tokens] = SpelledBeginning(tokens, position, log_prob, _log_probs(each))

    def following(
        self, spelled: SpelledBeginning, left: bytes
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The canonical tokens after a beginning that begin with ``left``, and the log-probability of each with it."""
        ids = self._spelling.by_text.beginning_with(left)
        ids = ids[allows(self._spelling.row(spelled.position), ids)]
        return ids, spelled.log_prob + spelled.log_probs[ids]

    def _endings(self, reached: Sequence[dict[Prefix, SpelledSoFar]], data: bytes, end: int) -> Any:
        """The beginnings of the text that are spelled up to ``end``, and where each stands."""
        for start in range(max(0, end - self._spelling.longest), end):
            those = self._spelling.by_text.spelling(data[start:end]).tolist() if reached[start] else ()
            for tokens, position in reached[start].items():
                row = self._spelling.row(position)
                for token in those:
                    after = self._spelling.after(position, token) if row[token >> 5] >> (token & 31) & 1 else None
                    if after is not None:
                        yield (*tokens, token), after


def _log_probs(logits: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    shifted = np.asarray(logits, np.float64) - float(np.max(logits))
    return shifted - math.log(float(np.exp(shifted).sum()))
