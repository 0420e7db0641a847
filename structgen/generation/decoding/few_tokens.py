"""What a mask allows where that is little: forced tokens and the end, without a list of all allowed tokens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.kernels.sampling import calls
from structgen.core.vocabulary.vocabulary import Vocabulary


def allow_all(vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    """A bitmask int32 [1, ceil(V / 32)] that allows every token, and nothing after them."""
    bitmask = allocate_token_bitmask(1, vocabulary.size)
    if vocabulary.size % 32:
        bitmask.view(np.uint32)[0, -1] = (1 << vocabulary.size % 32) - 1
    return bitmask


class FewTokens:
    """The tokens that the first row of a bitmask allows, where they are few. Holds on to the bitmask.

    Args:
        bitmask: int32 [n, words], C-contiguous; read at each call.
        most: how many are few; at least 1.
    """

    __slots__ = ("_address", "_bitmask", "_found", "_most", "_out", "_words")

    def __init__(self, bitmask: npt.NDArray[np.int32], most: int) -> None:
        self._bitmask, self._most = bitmask, max(1, most)
        self._address, self._words = bitmask.ctypes.data, bitmask.shape[1]
        self._found = np.empty(self._most, np.int64)
        self._out = self._found.ctypes.data

    def __call__(self) -> list[int] | None:
        """Their ids, ascending; None if there are more. Under 1 µs where much is allowed: the first words tell."""
        count = calls.run(self._address, calls.FEW, self._words, self._most, self._out)
        return None if count > self._most else self._found[:count].tolist()
