"""Which of a context's cells are taken: a token takes one, however many sequences it is of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class Cells:
    """Counts of the holders of each cell. The numbers are ours: llama.cpp has its own for the same tokens."""

    def __init__(self, count: int) -> None:
        self._holders: npt.NDArray[np.int32] = np.zeros(count, np.int32)
        self._free = list(range(count))[::-1]

    @property
    def free(self) -> int:
        """How many nobody holds."""
        return len(self._free)

    @property
    def taken(self) -> int:
        """How many somebody holds."""
        return len(self._holders) - len(self._free)

    def take(self, count: int) -> list[int]:
        """Cells that were free, for one holder. O(count).

        Raises:
            MemoryError: there are not so many.
        """
        left = len(self._free) - count
        if left < 0:
            raise MemoryError(f"{count} tokens need room, there is room for {len(self._free)}")
        taken = self._free[left:]
        del self._free[left:]
        self._holders[taken] = 1
        return taken

    def share(self, cells: Sequence[int]) -> None:
        """One holder more. O(cells)."""
        self._holders[list(cells)] += 1

    def release(self, cells: Sequence[int]) -> None:
        """One holder less. O(cells)."""
        held = np.asarray(cells, np.intp)
        self._holders[held] -= 1
        self._free += held[self._holders[held] == 0].tolist()
