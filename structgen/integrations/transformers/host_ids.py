"""Sequences of token ids on the host: of those that lie on a device, what is new is fetched, in one transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structgen.integrations.transformers.calls import Ids

if TYPE_CHECKING:
    from torch import Tensor


class HostIds:
    """What the calls of a processor show, one after the other. On a device the last ids stay there too, so that it is
    the device that compares them with the next ones."""

    def __init__(self) -> None:
        self._there: Tensor | None = None
        self._here: Ids = np.zeros((0, 0), np.int64)

    def of(self, input_ids: Tensor) -> Ids:
        """int64 [rows, length]; of ids on the host a view."""
        if input_ids.device.type == "cpu":
            return np.asarray(input_ids.detach().numpy(), np.int64)
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
