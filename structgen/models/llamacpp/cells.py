"""Which of a context's cells are taken: a token takes one, however many sequences it is of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class Cells:
    """Counts of the holders of each cell. The numbers are ours: llama.cpp has its own for the same tokens."""

    def __init__(self, count: int) -> None:
        self._holders: npt.NDArray[np.int32] = np.zeros(count, np.int32)

    @property
    def free(self) -> int:
        """How many nobody holds."""
        return len(self._holders) - self.taken

    @property
    def taken(self) -> int:
        """How many somebody holds."""
        return int(np.count_nonzero(self._holders))

    def take(self, count: int) -> list[int]:
        """Cells that were free, for one holder.

        Raises:
            MemoryError: there are not so many.
        """
        found = np.flatnonzero(self._holders == 0)[:count]
        if len(found) < count:
            raise MemoryError(f"{count} tokens need room, there is room for {len(found)}")
        self._holders[found] = 1
        taken: list[int] = found.tolist()
        return taken

    def share(self, cells: Sequence[int]) -> None:
        """One holder more."""
        self._holders[list(cells)] += 1

    def release(self, cells: Sequence[int]) -> None:
        """One holder less."""
        self._holders[list(cells)] -= 1
