"""An output that keeps, of each of its tokens, how many might have stood there, and the likeliest of them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from structgen.core.engines.protocols import Matcher
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.output import Output
from structgen.generation.sampling import FirstDraw, SamplingParams

TopTokens: TypeAlias = "tuple[tuple[int, float], ...]"
"""Tokens and their log-probabilities (nats), likeliest first; of equals, the lowest ids first."""


class RecordedOutput(Output):
    """See ``Output``; besides, ``top`` says what was likely, and ``allowed`` how many tokens were.

    Args:
        top: how many of the likeliest tokens to keep for each.
        **options: see ``Output``.
    """

    def __init__(
        self, vocabulary: Vocabulary, matcher: Matcher | None, params: SamplingParams, *, top: int = 0, **options: Any
    ) -> None:
        super().__init__(vocabulary, matcher, params, **options)
        self._kept = top
        self._drawn: dict[int, tuple[int, TopTokens]] = {}  # by place; what is missing was forced

    def top(self, index: int) -> TopTokens:
        """The likeliest tokens at a place that is written, under the distribution that ``log_prob`` speaks of."""
        return self._drawn[index][1] if index in self._drawn else ((self.token_ids[index], 0.0),)

    def allowed(self, index: int) -> int:
        """How many tokens were allowed at a place that is written; 1: it was forced."""
        return self._drawn[index][0] if index in self._drawn else 1

    def take(self, token: int, log_prob: float, logits: Any, row: int, log_mass: float | None = None) -> None:
        """See ``Output.take``."""
        self._record(logits[row])
        super().take(token, log_prob, logits, row, log_mass)

    def take_by_rule(self, rule: FirstDraw, logits_row: Any) -> None:
        """See ``Output.take_by_rule``."""
        self._record(logits_row)
        super().take_by_rule(rule, logits_row)

    def _record(self, logits_row: Any) -> None:
        allowed, log_probs = self._drawing.log_probs(logits_row)
        top: TopTokens = ()
        if self._kept:
            order = np.argsort(-log_probs, kind="stable")[: self._kept]
            top = tuple(zip(allowed[order].tolist(), log_probs[order].tolist(), strict=True))
        self._drawn[len(self.token_ids)] = len(allowed), top
