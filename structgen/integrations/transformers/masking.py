"""The scores of a batch of rows, masked."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace, fill_next_token_bitmasks
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError
from structgen.integrations.transformers.row import ConstrainedRow

if TYPE_CHECKING:
    from torch import Tensor

# With a budget each token that is left allowed is tried: of many, the likeliest up to this share of the probability.
SHARE, LEAST, MOST = 0.999, 16, 256


class Masker:
    """Masks scores by what rows may write next. Holds the bitmask between calls."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._bitmask = allocate_token_bitmask(1, vocabulary.size)
        self._size = vocabulary.size
        self._said = set[str]()

    def masked(self, scores: Tensor, rows: Sequence[ConstrainedRow | None]) -> Tensor:
        """New scores [rows, width], on the same device; the given ones stay as they are.

        Rows that are None come out as they went in. Those whose text the constraint does not allow may only end. In no
        row all is -inf, if it was not before.
        """
        places = [place for place, row in enumerate(rows) if row is not None]
        if not places:
            return scores
        bitmask = self._filled(rows)
        masked = scores.clone()
        apply_token_bitmask_inplace(masked, bitmask, None if len(places) == len(rows) else places)
        for place in _suspects(masked, bitmask, places):
            if bool((masked[place] == -float("inf")).all()):
                masked[place] = self._unblocked(masked[place], bitmask[place])
        return _closable(masked, rows) if any(rows[place].has_budget for place in places) else masked  # type: ignore[union-attr]

    def say(self, message: str) -> None:
        """Warn of each thing once."""
        if message not in self._said:
            self._said.add(message)
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _filled(self, rows: Sequence[ConstrainedRow | None]) -> npt.NDArray[np.int32]:
        """The masks of all rows; those of rows that are not masked are arbitrary."""
        if len(self._bitmask) != len(rows):
            self._bitmask = allocate_token_bitmask(len(rows), self._size)
        masks = self._bitmask
        writing = [None if row is None or row.may_only_end else row for row in rows]
        fill_next_token_bitmasks([None if row is None else row.matcher for row in writing], masks)
        for place, row in enumerate(rows):
            if row is not None and row.may_only_end:
                masks[place] = 0
                for token in row.matcher.grammar.vocabulary.eos_token_ids:
                    masks[place, token // 32] |= np.uint32(1 << token % 32).view(np.int32)
            elif writing[place] is not None and not masks[place].any():
                raise GenerationError(
                    "The constraint allows no token. The vocabulary may lack bytes that the constraint needs."
                )
        return masks

    def _unblocked(self, scores: Tensor, masks: npt.NDArray[np.int32]) -> Tensor:
        """Scores of a row in which other processors have forbidden all that the constraint allows: it wins."""
        self.say(
            "Other logits processors (min_new_tokens, bad_words_ids, no_repeat_ngram_size, ...) forbid every token "
            "that the constraint allows; the constraint is kept, and its tokens are equally likely there."
        )
        allowed = scores.new_zeros(scores.shape)
        apply_token_bitmask_inplace(allowed, masks)
        return allowed


def _suspects(scores: Tensor, masks: npt.NDArray[np.int32], places: list[int]) -> list[int]:
    """Rows whose first allowed token has no score: only in these nothing may be left. Looks at one score a row."""
    own = masks[places]
    words = (own != 0).argmax(axis=1)
    found = own[np.arange(len(places)), words].astype(np.int64)
    tokens = 32 * words + np.log2((found & -found).astype(np.float64)).astype(np.int64)
    tokens = np.minimum(tokens, scores.shape[1] - 1)
    first = scores[places, tokens.tolist()].tolist()
    return [place for place, score in zip(places, first, strict=True) if score == -float("inf")]


def _closable(scores: Tensor, rows: Sequence[ConstrainedRow | None]) -> Tensor:
    """Masked scores with only tokens left after which the texts can be closed within their budgets."""
    import torch

    best, ids = scores.topk(min(MOST, scores.shape[1]), dim=1)
    probs = (best - scores.logsumexp(dim=1, keepdim=True)).exp()
    wanted = (probs.cumsum(dim=1) - probs < SHARE).sum(dim=1).clamp(min=LEAST).tolist()
    kept = torch.full_like(scores, -float("inf"))
    for place, row in enumerate(rows):
        if row is None or not row.has_budget or row.may_only_end:
            kept[place] = scores[place]
            continue
        allowed = ids[place][best[place] > -float("inf")].tolist()
        tokens = row.closable(allowed if len(allowed) < len(ids[place]) else allowed[: wanted[place]])
        kept[place, tokens] = scores[place, tokens].clamp(min=torch.finfo(scores.dtype).min)
    return kept
