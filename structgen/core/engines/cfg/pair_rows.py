"""The grammar machine with rows for pairs: what a walk over the vocabulary finds of configurations and an automaton."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.core.engines.cfg.machine import CfgMachine
from structgen.core.engines.cfg.token_index import lexicon
from structgen.core.kernels.cfg import machine as k
from structgen.core.kernels.cfg import tables as kt
from structgen.core.regex.dfa import Dfa

if TYPE_CHECKING:
    from structgen.core.engines.cfg.compiled import CfgGrammar

FIRST_ROWS = MOST_ROWS = 1 << 14
"""Rows, a kilobyte each, that there is room for at first: memory that was never written to costs nothing, and copying
rows to more room was most of what the slowest masks took. If there are more, all are made anew before the next walk."""


class RowMachine(CfgMachine):
    """One grammar's machine beside one automaton; see `structgen.core.kernels.cfg.paired`.

    Args:
        grammar: the grammar.
        dfa: the automaton.
        mask_bytes, state_bytes: see `CfgMachine`.
    """

    def __init__(self, grammar: CfgGrammar, dfa: Dfa, mask_bytes: int, state_bytes: int) -> None:
        super().__init__(grammar.tables, grammar.automata, lexicon(grammar.vocabulary), mask_bytes, state_bytes)
        self._words = -(-len(dfa) // 64)
        self._set(kt.pair_step, np.ascontiguousarray(dfa.transitions).reshape(-1))
        self._set(kt.pair_ends, dfa.accepting.astype(np.int32))
        self.heap[k.H_PAIR_WORDS] = self._words
        self._set_rows(FIRST_ROWS)

    @property
    def memory_bytes(self) -> int:
        """Bytes in use, as of `CfgMachine`, with the rows."""
        return super().memory_bytes + int(self.heap[k.H_PAIRS]) * (1024 + 16 + 8 * self._words)

    def provide(self, result: int) -> None:
        """See `CfgMachine.provide`; rows too."""
        if int(self.heap[k.H_FLAG]) & k.PAIRS_FULL:
            self._set_rows(2 * len(self._configs))
        super().provide(result)

    def fill_pairs(self, configs: int, q: int, live: Callable[[int], npt.NDArray[np.int64]]) -> npt.NDArray[np.int32]:
        """int32[width], the mask of a pair.

        Args:
            configs: the configurations.
            q: the state of the automaton.
            live: the states, as words, that are live with some configurations.
        """
        if int(self.heap[k.H_PAIRS]) > MOST_ROWS:
            self._forget_rows()
        mask = np.zeros(self.width, np.int32)
        while (result := self._run(self.root, k.FILL_PAIRS, configs, q, mask.ctypes.data)) < 0:
            if result == k.UNMEASURED:
                for row in np.flatnonzero(self._known == 1).tolist():
                    self._live[row] = live(int(self._configs[row]))
                    self._known[row] = 2
            else:
                self.provide(result)
        return mask

    def bound(self, configs: int, grammar: CfgGrammar) -> int:
        """Bytes of a shortest text that completes configurations of the grammar, whatever the automaton says."""
        with self.lock:
            while (needed := self._run(self.root, k.BOUND, configs, 0, 0)) < 0:
                if needed == k.UNMEASURED:
                    self.measure(grammar.completions.position_lengths, grammar.completions.suffix_lengths)
                else:
                    self.provide(needed)
        return needed

    def _set_rows(self, count: int) -> None:
        """Room for so many rows; those that are there stay."""
        old = getattr(self, "_configs", np.zeros(0, np.int64))
        for name, slot, width in (
            ("_after", kt.pair_row, 256), ("_configs", kt.pair_configs, 0), ("_known", kt.pair_known, 0),
            ("_live", kt.pair_live, self._words),
        ):  # fmt: skip
            grown = np.zeros((count, width) if width else count, slot.dtype)
            if len(old):
                grown[: len(old)] = getattr(self, name)
            setattr(self, name, grown)
            self._set(slot, grown.reshape(-1))
        self.heap[k.H_PAIRS] = max(int(self.heap[k.H_PAIRS]), 1)

    def _forget_rows(self) -> None:
        used = self._configs[1 : int(self.heap[k.H_PAIRS])]
        self.heap[used + k.CONFIGS_ROW] = 0
        self._configs = np.zeros(0, np.int64)
        self.heap[k.H_PAIRS] = 1
        self._set_rows(FIRST_ROWS)

    _after: npt.NDArray[np.int32]
    _configs: npt.NDArray[np.int64]
    _known: npt.NDArray[np.int32]
    _live: npt.NDArray[np.int64]
