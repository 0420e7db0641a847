"""The scores of a batch of rows, masked."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.core.engines.apply import apply_bitmask, free_blocked, unpacked
from structgen.core.engines.batches import batch_advance_and_fill
from structgen.core.engines.bitmask import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    fill_next_token_bitmasks,
    write_masked,
)
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError
from structgen.integrations.transformers.row import ConstrainedRow

if TYPE_CHECKING:
    from torch import Tensor

# With a budget each token that is left allowed is tried: of many, the likeliest up to this share of the probability.
SHARE, LEAST, MOST = 0.999, 16, 256
BLOCKED = (
    "Other logits processors (min_new_tokens, bad_words_ids, no_repeat_ngram_size, ...) forbid every token that the "
    "constraint allows; the constraint is kept, and its tokens are equally likely there."
)
Bitmask = npt.NDArray[np.int32]
# `generate` still has the scores of the last step when it asks for the next ones, so two alternate; the third is for
# a list of processors that keeps one more.
KEPT = 3
FEW = 8  # rows, up to which a call each takes less than one call of all, with its checks


class Masker:
    """Masks scores by what rows may write next. Holds the bitmask between calls."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._bitmask = allocate_token_bitmask(1, vocabulary.size)
        self._size = vocabulary.size
        self._filled = list[bool]()  # by row, whether `step` has made its mask; empty: of none
        self._eos, self._may_end = frozenset(vocabulary.eos_token_ids), False  # whether one of these may have ended
        self._buffers = Buffers()
        self._live: Tensor | None = None  # of the last scores on a device: see `free_blocked`
        self._said = set[str]()

    def step(self, rows: Sequence[ConstrainedRow | None], tokens: Sequence[int]) -> None:
        """Let each row go on by its token, and make the masks after it, in one call where that can be."""
        masks = self._masks(len(rows))
        self._may_end = not self._eos.isdisjoint(tokens)
        # Whoever has ended takes nothing, and is not asked about it first.
        in_range = min(tokens) >= 0 and max(tokens) < self._size
        stepping = [row if in_range and row is not None and row.is_open else None for row in rows]
        matchers = [None if row is None else row.matcher for row in stepping]
        if len(rows) <= FEW:
            steps = enumerate(zip(matchers, tokens, strict=True))
            taken = [one is not None and one.advance_and_fill(token, masks, index) for index, (one, token) in steps]
        else:
            taken = batch_advance_and_fill(matchers, tokens if in_range else [0] * len(rows), masks)
        for row, stepped, token, is_taken in zip(rows, stepping, tokens, taken, strict=True):
            if stepped is not None:
                stepped.stepped(token, is_taken)
            elif row is not None:
                row.follow_one(token)
        self._filled = [one is not None and is_taken for one, is_taken in zip(stepping, taken, strict=True)]

    def masked(self, scores: Tensor, rows: Sequence[ConstrainedRow | None], *, in_place: bool = False) -> Tensor:
        """Masked scores [rows, width], on the same device: the given ones, or others, which leaves these as they are.

        Rows that are None come out as they went in. Those whose text the constraint does not allow may only end. In no
        row all is -inf, if it was not before.
        """
        places: Sequence[int] = range(len(rows))
        if None in rows:
            places = [index for index, row in enumerate(rows) if row is not None]
        if not places:
            return scores
        bitmask = self._fill(rows)
        if scores.requires_grad:
            masked = scores.masked_fill(~_allowed(bitmask, scores, places), -float("inf"))
        elif scores.is_cpu:
            masked = self._on_host(scores, bitmask, places, in_place)
        else:
            masked = self._on_device(scores, bitmask, places, in_place)
        return _closable(masked, rows) if any([row is not None and row.has_budget for row in rows]) else masked

    def _on_host(self, scores: Tensor, bitmask: Bitmask, places: Sequence[int], in_place: bool) -> Tensor:
        in_place &= scores.stride(1) == 1
        masked = scores if in_place else self._copy(scores, places, is_masked=True)
        for index in write_masked(scores, bitmask, masked, places):
            _check(bitmask[index])
            self.say(BLOCKED)
            masked[index] = 0.0
            apply_token_bitmask_inplace(masked[index], bitmask[index])
        return masked

    def _on_device(self, scores: Tensor, bitmask: Bitmask, places: Sequence[int], in_place: bool) -> Tensor:
        """The same without waiting for the device; what it says of blocked rows is read at the next call."""
        if self._live is not None and not bool(self._live.all()):
            self.say(BLOCKED)
        for index in places:
            _check(bitmask[index])
        masked = scores if in_place else self._copy(scores, places, is_masked=False)
        if len(places) < len(bitmask):
            bitmask[np.setdiff1d(np.arange(len(bitmask)), places)] = 0
        apply_bitmask(masked, bitmask, None if len(places) == len(bitmask) else places)
        self._live = free_blocked(masked, bitmask)[places]
        return masked

    def _copy(self, scores: Tensor, places: Sequence[int], *, is_masked: bool) -> Tensor:
        """Memory like that of the scores, with what will not be masked in it; with all if ``is_masked`` is false."""
        copy = self._buffers.like(scores)
        if not is_masked:
            return copy.copy_(scores)
        if not isinstance(places, range):
            for index in sorted(set(range(len(scores))) - set(places)):
                copy[index] = scores[index]
        return copy

    def say(self, message: str) -> None:
        """Warn of each thing once."""
        if message not in self._said:
            self._said.add(message)
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _masks(self, rows: int) -> Bitmask:
        if len(self._bitmask) != rows:
            self._bitmask = allocate_token_bitmask(rows, self._size)
        return self._bitmask

    def _fill(self, rows: Sequence[ConstrainedRow | None]) -> Bitmask:
        """The masks of all rows; those of rows that are not masked are arbitrary."""
        masks, filled = self._masks(len(rows)), self._filled or [False] * len(rows)
        self._filled = []
        are_filled = all(filled)
        if are_filled and not self._may_end:
            return masks
        if not are_filled:
            writing = [
                None if row is None or is_filled or row.may_only_end else row.matcher
                for row, is_filled in zip(rows, filled, strict=True)
            ]
            fill_next_token_bitmasks(writing, masks)
        for index, row in enumerate(rows):
            if row is not None and row.may_only_end:
                masks[index] = 0
                for token in row.matcher.grammar.vocabulary.eos_token_ids:
                    masks[index, token // 32] |= np.uint32(1 << token % 32).view(np.int32)
        return masks


def _check(mask: npt.NDArray[np.int32]) -> None:
    if not mask.any():
        raise GenerationError(
            "The constraint allows no token. The vocabulary may lack bytes that the constraint needs."
        )


def _allowed(bitmask: Bitmask, scores: Tensor, places: Sequence[int]) -> Tensor:
    """Booleans [rows, width]; True in rows that are not masked."""
    import torch

    allowed = torch.ones(scores.shape, dtype=torch.bool)
    covered = min(scores.shape[1], 32 * bitmask.shape[1])
    allowed[places] = False
    allowed[places, :covered] = unpacked(torch.from_numpy(bitmask[places]), covered)
    return allowed.to(scores.device)


def _closable(scores: Tensor, rows: Sequence[ConstrainedRow | None]) -> Tensor:
    """Masked scores with only tokens left after which the texts can be closed within their budgets."""
    import torch

    best, ids = scores.topk(min(MOST, scores.shape[1]), dim=1)
    probs = (best - scores.logsumexp(dim=1, keepdim=True)).exp()
    wanted = (probs.cumsum(dim=1) - probs < SHARE).sum(dim=1).clamp(min=LEAST).tolist()
    kept = torch.full_like(scores, -float("inf"))
    for index, row in enumerate(rows):
        if row is None or not row.has_budget or row.may_only_end:
            kept[index] = scores[index]
            continue
        allowed = ids[index][best[index] > -float("inf")].tolist()
        tokens = row.closable(allowed if len(allowed) < len(ids[index]) else allowed[: wanted[index]])
        kept[index, tokens] = scores[index, tokens].clamp(min=torch.finfo(scores.dtype).min)
    return kept


class Buffers:
    """Tensors that nobody else sees, of the shape that was last asked for. Their memory is taken again once nobody else
    holds it: fresh memory costs more than the masking."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Tensor, int | None]] = deque(
            maxlen=KEPT
        )  # with the holders of memory that only we hold

    def like(self, scores: Tensor) -> Tensor:
        """A tensor of the same shape, dtype and device, contiguous; its contents are arbitrary.

        It belongs to the caller: as long as it, or a view of it, is alive, it is not given away again.
        """
        kept = self._kept
        if kept and not _fits(kept[0][0], scores):
            kept.clear()
        for tensor, unheld in kept:
            if unheld is not None and _holders(tensor) == unheld:
                return tensor.detach()
        tensor = scores.detach().new_empty(scores.shape)
        kept.append((tensor, _holders(tensor)))
        return tensor.detach()


def _fits(tensor: Tensor, scores: Tensor) -> bool:
    return (
        tensor.shape == scores.shape
        and tensor.dtype == scores.dtype
        and tensor.device == scores.device
        and tensor.is_inference() == scores.is_inference()
    )


def _holders(tensor: Tensor) -> int | None:
    """How many tensors, views and arrays hold the memory of a tensor; None where torch does not say."""
    import torch

    count = getattr(torch._C, "_storage_Use_Count", None)
    return None if count is None else int(count(tensor.untyped_storage()._cdata))
