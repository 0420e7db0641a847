"""An output that keeps the log-probability of each of its tokens, and of the likeliest others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structgen.decoding.output import Output
from structgen.decoding.sampling import FirstDraw, SamplingParams
from structgen.engines.protocols import Matcher
from structgen.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """A token of an output.

    Attributes:
        token_id: the token.
        logprob: nats, under the model at temperature 1 masked by the constraint and renormalised; 0 if it was forced.
        top: the likeliest tokens there with theirs, likeliest first (of equals, the lowest ids first).
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


class RecordedOutput(Output):
    """See ``Output``; besides, ``choices`` says how likely each token was.

    Args:
        top: how many of the likeliest tokens to keep for each.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        matcher: Matcher | None,
        params: SamplingParams,
        *,
        max_new_tokens: int,
        stop: Sequence[str] = (),
        prompt_ids: Sequence[int] = (),
        top: int = 0,
    ) -> None:
        super().__init__(vocabulary, matcher, params, max_new_tokens=max_new_tokens, stop=stop, prompt_ids=prompt_ids)
        self._kept = top
        self._drawn: dict[int, TokenChoice] = {}  # by place; what is missing was forced

    def choices(self, start: int = 0) -> list[TokenChoice]:
        """The tokens from the ``start``-th on."""
        return [
            self._drawn.get(place) or TokenChoice(token, 0.0, ((token, 0.0),) if self._kept else ())
            for place, token in enumerate(self.token_ids[start:], start)
        ]

    def take(self, token: int, log_prob: float, logits: Any, row: int) -> None:
        """See ``Output.take``."""
        top, place, before = self._likeliest(logits[row]), len(self.token_ids), self.log_prob
        super().take(token, log_prob, logits, row)
        self._record(place, before, top)

    def take_by_rule(self, rule: FirstDraw, logits_row: Any) -> None:
        """See ``Output.take_by_rule``."""
        top, place, before = self._likeliest(logits_row), len(self.token_ids), self.log_prob
        super().take_by_rule(rule, logits_row)
        self._record(place, before, top)

    def _likeliest(self, logits_row: Any) -> tuple[tuple[int, float], ...]:
        if not self._kept:
            return ()
        allowed, log_probs, _ = self._distribution(logits_row)
        order = np.argsort(-log_probs, kind="stable")[: self._kept]
        return tuple(zip(allowed[order].tolist(), log_probs[order].tolist(), strict=True))

    def _record(self, place: int, before: float, top: tuple[tuple[int, float], ...]) -> None:
        if len(self.token_ids) > place:
            self._drawn[place] = TokenChoice(self.token_ids[place], self.log_prob - before, top)

    def hurry(self) -> None:
        """Lower the budget to what the known completion needs: the text is closed validly within a few steps."""
        need = 0
        if self._matcher is not None:
            need = len(self._closing.fewest(self._completion()) or ())
        self._budget = min(self._budget, len(self.token_ids) + need)
