"""The matcher of a context-free grammar: where an output stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.core.engines.protocols import TOO_LONG
from structgen.core.engines.state_matcher import StateMatcher
from structgen.core.kernels.cfg import machine as k
from structgen.core.kernels.heap_layout import ENDS
from structgen.errors import CompletionTooLongError, MatcherStateError

if TYPE_CHECKING:
    from structgen.core.engines.cfg.compiled import CfgGrammar
    from structgen.core.engines.cfg.completion import CfgCompletions

MAX_BYTES = 1 << 24
"""Of a completion that is written."""


class CfgMatcher(StateMatcher["CfgGrammar"]):
    """One output in progress. Make one with `CfgGrammar.matcher`. Its state is a set of configurations."""

    __slots__ = ()

    _grammar: CfgGrammar
    _run = staticmethod(k.run)

    @property
    def stats(self) -> dict[str, int]:
        """``dropped_alternatives``: always 0, no parse is ever given up."""
        return {"dropped_alternatives": 0}

    def accept_bytes(self, data: bytes) -> bool:
        """See `Matcher.accept_bytes`."""
        mark = self._grammar.mark
        return (mark < 0 or mark not in data) and super().accept_bytes(data)

    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        super()._mark_next_bytes(out)
        mark = self._grammar.mark
        if mark >= 0:
            out.view(np.uint8)[mark >> 3] &= ~np.uint8(1 << (mark & 7))

    def shortest_completion(self) -> bytes:
        """A shortest text that completes the output from here (b"" if it may stop).

        Embedded terminals count as the empty text; the matcher that embeds them adds theirs.

        Raises:
            CompletionTooLongError: a shortest one has more than `MAX_BYTES`.
        """
        if self._terminated or self.is_accepting():
            return b""
        if self.completion_bound() > MAX_BYTES:
            raise CompletionTooLongError(f"every text that completes the output has more than {MAX_BYTES:,} bytes")
        with self._machine.lock:
            return self._grammar.completions.complete(self._machine, self._state)

    def completion_bound(self) -> int:
        """See `Matcher.completion_bound`: exact. Found in the kernel, once for each state; O(1) for one seen before."""
        if self._terminated:
            return 0
        machine = self._machine
        with self._lock:
            while (bound := self._run(self._root, k.BOUND, self._state, 0, 0)) < 0:
                if bound == k.UNMEASURED:
                    words = self._grammar.completions
                    machine.measure(words.position_lengths, words.suffix_lengths)
                else:
                    machine.provide(bound)
        return bound if bound <= MAX_BYTES else TOO_LONG

    # --- embedded terminals ---
    def embedded_here(self) -> frozenset[int]:
        """The embedded terminals (ids of the normal form) that may begin exactly here."""
        tables = self._grammar.tables
        if self._terminated or not tables.embedded or not self._machine.call(ENDS, self._state) & 2:
            return frozenset()
        with self._machine.lock:
            classes = {
                kind for _, d in self._machine.configurations(self._state) for kind in self._machine.pseudo_classes(d)
            }
        return frozenset(t for t, c in tables.embedded.items() if c in classes)

    def completes_with(self, completions: CfgCompletions) -> bool:
        """Whether some text completes the output where terminals have these shortest texts."""
        with self._machine.lock:
            return completions.length(self._machine, self._state) < k.FAR

    def after_embedded(self, terminal: int) -> CfgMatcher:
        """A matcher after the text of an embedded terminal that began here. It has no history.

        Raises:
            MatcherStateError: the terminal may not begin here.
        """
        if terminal not in self.embedded_here():
            raise MatcherStateError(f"terminal {terminal} cannot be embedded here; {sorted(self.embedded_here())} can")
        twin = self.copy()
        twin._state = self._machine.call(k.AFTER, self._state, self._grammar.tables.embedded[terminal])
        return twin
