"""What may follow in canonical spelling alone: a text has one, so no search looks at its others."""

from __future__ import annotations

from typing import Any

import numpy as np

from structgen.core.tokenization.canonical import AT_START, CanonicalSpelling, SpelledSoFar
from structgen.generation.decoding.hypothesis import END, Hypothesis
from structgen.generation.search.space import Distribution, distribution, distribution_of


class CanonicalFollowing:
    """What the model says of the tokens that go on in canonical spelling, as ``Space`` asks it (``weigh``).

    Args:
        spelling: of the tokenizer.
    """

    def __init__(self, spelling: CanonicalSpelling) -> None:
        self._spelling = spelling

    def __call__(self, hypothesis: Hypothesis, logits: Any) -> Distribution:
        """Of what may follow a hypothesis, the logits [V'] after it."""
        whole = distribution_of(hypothesis, logits)
        position = self._position(hypothesis)
        if position is None:  # a forced token that was read ahead, and is not canonical
            return distribution(whole.tokens[:0], whole.log_probs[:0])
        row, tokens = self._spelling.row(position).view(np.uint32), whole.tokens
        canonical = row[np.maximum(tokens, 0) >> 5] >> (np.maximum(tokens, 0) & 31).astype(np.uint32) & 1 > 0
        canonical[tokens == END] = self._spelling.may_end(position)
        return distribution(tokens[canonical], whole.log_probs[canonical])

    def _position(self, hypothesis: Hypothesis) -> SpelledSoFar | None:
        position: SpelledSoFar | None = AT_START
        for token in hypothesis.tokens:
            position = None if position is None else self._spelling.after(position, token)
        return position
