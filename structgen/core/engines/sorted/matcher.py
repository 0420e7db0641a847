"""The matcher of sorted texts: where an output stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.core.engines.sorted.machine import KEPT_FROM
from structgen.core.engines.state_matcher import StateMatcher
from structgen.core.kernels.sorted import calls as k

if TYPE_CHECKING:
    from structgen.core.engines.sorted.grammar import SortedGrammar


class SortedMatcher(StateMatcher["SortedGrammar"]):
    """One output in progress. Make one with `SortedGrammar.matcher`. Its state is an interval of entries."""

    __slots__ = ()

    _grammar: SortedGrammar
    _run = staticmethod(k.run)

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, out: int) -> None:
        mask = bitmask[index] if bitmask.ndim == 2 else bitmask
        kept = self._machine.kept(self._state)
        if kept is not None:
            mask[: len(kept)] = kept
            mask[len(kept) :] = 0
            return
        width = -(-self._size // 32)
        seen = self._machine.call(k.FILL, self._state, out)
        mask[width:] = 0
        if seen >= KEPT_FROM:
            self._machine.keep(self._state, mask[:width].copy())

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`: of names a shortest one, of quotes the nearest end of some places."""
        if self._terminated or self.is_accepting():
            return b""
        completion: bytes = self._machine.completion(self._state)
        return completion
