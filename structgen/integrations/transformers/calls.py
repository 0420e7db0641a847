"""Which text a call of a logits processor continues: `generate` does not say, its sequences of token ids do.

A processor is called with whole sequences, prompt included. Plain loops add a token a call, beams change places,
assisted decoding goes ahead along a draft, then back to read the same draft again with the model, then on from what was
kept. And a processor may be used again, for another prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

Ids = npt.NDArray[np.int64]
FEW, ROOM = 1 << 14, 64


@dataclass(eq=False)
class Generation:
    """One call of `generate`, as its calls of a processor show it.

    Attributes:
        prompt: int64 [rows, n], the sequences of its first call.
        group: rows that have a constraint in common, side by side: the beams and returned sequences of a prompt where
            each prompt has its own. A row goes on from one of its group only.
        last: int64 [rows, n + m], the sequences of its last call.
        is_part: whether the last call had the beginning of a longer sequence: a view, as only verification has.
        verified: tokens that were kept when the verification began that the last call was part of (its last call has
            the whole sequence); None: it was part of none.
        jumped: whether the last call went on from a verified draft, with the model's token after what was kept.
        went_on: whether every row of the last call was that of the call before with a token more.
    """

    prompt: Ids
    group: int
    last: Ids
    is_part: bool = False
    verified: int | None = None
    jumped: bool = False
    went_on: bool = False
    _memory: Ids = field(default_factory=lambda: np.empty((0, 0), np.int64))  # of the last, with room

    @property
    def written(self) -> Ids:
        """int64 [rows, m], what the sequences of the last call had after the prompt."""
        return self.last[:, self.prompt.shape[1] :]

    def parents(self, ids: Ids, is_part: bool) -> list[int] | None:
        """For each row, the row of the last call that it goes on from; None: this is no call of this `generate`.

        Notes the call if it is one.
        """
        (rows, length), (rows_before, length_before) = ids.shape, self.last.shape
        is_longer = length == length_before + 1 and rows == rows_before
        self.went_on = is_longer and _equal(ids[:, :-1], self.last)
        if not self.went_on and not self._has_prompt(ids):
            return None
        length = ids.shape[1] - self.prompt.shape[1]
        parents = list(range(len(ids))) if self.went_on else self._parents(ids[:, self.prompt.shape[1] :], is_part)
        if parents is not None:
            goes_on = self.is_part and ids.shape[1] == self.last.shape[1] + 1
            if not goes_on:
                self.verified = length if is_part else None
            self.jumped &= not self.went_on
            self._keep(ids)
            self.is_part = is_part
        return parents

    def _keep(self, ids: Ids) -> None:
        """Keep a copy of the sequences as the last; where they have only got longer by a token, only of these."""
        rows, length = ids.shape
        if self.went_on and self._memory.shape[0] == rows and length <= self._memory.shape[1]:
            self._memory[:, length - 1] = ids[:, -1]
        else:
            self._memory = np.empty((rows, length + length // 4 + ROOM), np.int64)
            self._memory[:, :length] = ids
        self.last = self._memory[:, :length]

    def _has_prompt(self, ids: Ids) -> bool:
        width = self.prompt.shape[1]
        return len(ids) == len(self.prompt) and ids.shape[1] >= width and np.array_equal(ids[:, :width], self.prompt)

    def _parents(self, new: Ids, is_part: bool) -> list[int] | None:
        (rows, length), last = new.shape, self.written
        self.jumped = False
        if length == last.shape[1] + 1 and (parents := _found(new[:, :-1], last, self.group)) is not None:
            return parents
        if length == 0:
            return list(range(rows))
        if rows > 1:  # only single rows are assisted; what may come is the same call once more
            return _found(new, last, self.group) if length == last.shape[1] else None
        if length > last.shape[1]:
            return None
        shared = new[0] == last[0, :length]
        begins = (is_part or length == last.shape[1]) and shared.all()  # a draft is verified, or another one tried
        self.jumped = not begins and self.verified is not None and length > self.verified and bool(shared[:-1].all())
        return [0] if begins or self.jumped else None


def _equal(one: Ids, two: Ids) -> bool:
    """Whether arrays of the same shape are equal. Of few ids the bytes are compared, in a fifth of the time."""
    return one.tobytes() == two.tobytes() if one.size <= FEW else bool((one == two).all())


def _found(beginnings: Ids, last: Ids, group: int) -> list[int] | None:
    """For each beginning the row of ``last`` in its group that it is, its own if possible; None if one is nowhere."""
    same = (beginnings == last).all(axis=1)
    if same.all():
        return list(range(len(last)))
    places = {(index // group, row.tobytes()): index for index, row in reversed(list(enumerate(last)))}
    indices = [
        index if same[index] else places.get((index // group, np.ascontiguousarray(row).tobytes()), -1)
        for index, row in enumerate(beginnings)
    ]
    return None if -1 in indices else indices


class HostIds:
    """What the calls of a processor show, one after the other. On a device the last ids stay there too, so that it is
    the device that compares them with the next ones."""

    def __init__(self) -> None:
        self._there: Tensor | None = None
        self._here: Ids = np.zeros((0, 0), np.int64)

    def of(self, input_ids: Tensor) -> Ids:
        """int64 [rows, length]; of ids on the host a view."""
        if input_ids.is_cpu:
            return np.asarray(input_ids.numpy(), np.int64)
        return self.fetched(input_ids)

    def fetched(self, input_ids: Tensor) -> Ids:
        """The same of ids on a device. Where each sequence has got one token more, only those tokens come over."""
        new = self._new_column(input_ids)
        ids = input_ids.detach().cpu().numpy() if new is None else np.concatenate([self._here, new[:, None]], axis=1)
        self._there, self._here = input_ids.detach().clone(), np.asarray(ids, np.int64)
        return self._here

    def _new_column(self, input_ids: Tensor) -> Ids | None:
        """The last tokens, if all others are those of the last call."""
        import torch

        there, (rows, length) = self._there, input_ids.shape
        if there is None or there.device != input_ids.device or there.shape != (rows, length - 1):
            return None
        same = (input_ids[:, :-1] == there).all()
        fetched = torch.cat([input_ids[:, -1], same.to(input_ids.dtype)[None]]).cpu().numpy()
        return np.asarray(fetched[:-1], np.int64) if fetched[-1] else None
