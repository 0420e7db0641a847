"""The machine of an LALR grammar over one vocabulary: its memory, and what it asks of Python about liveness."""

from __future__ import annotations

import numpy as np

from structgen.core.engines.lalr.heap import LalrHeap
from structgen.core.engines.lalr.liveness import Liveness
from structgen.core.engines.lalr.liveness_tables import LivenessTables
from structgen.core.engines.lalr.tables import LalrTables
from structgen.core.kernels.lalr import machine as k
from structgen.core.kernels.lalr import tables as kt
from structgen.core.vocabulary.vocabulary import Vocabulary


class LalrMachine(LalrHeap):
    """The states that a grammar has shown so far over one vocabulary.

    Attributes:
        liveness: decides what the kernel does not know, and completes.
        start: the state before all text.
        bounds: of states, bytes of a completion, as far as they have been asked for.
        settled: words in use when a matcher last moved in.
    """

    def __init__(
        self,
        tables: LalrTables,
        liveness_tables: LivenessTables | None,
        vocabulary: Vocabulary,
        mask_bytes: int,
        row_bytes: int,
    ) -> None:
        super().__init__(tables, liveness_tables, vocabulary, mask_bytes)
        self.row_bytes = row_bytes
        self.liveness = Liveness(self)
        self.bounds: dict[int, int] = {}
        self.start = self.call(k.START, tables.start, 0, 0)
        self.settled = int(self.heap[k.H_TOP])

    def provide(self, result: int) -> None:
        """What a negative result asks for: room, or whether configurations are live. The caller holds the lock."""
        if result == k.RETRY:
            self._grow()
        else:
            self._decide(np.unique(self._arrays[kt.unknown_at][: int(self.heap[k.H_UNKNOWNS])]).tolist())

    def _decide(self, configs: list[int]) -> None:
        """Say which configurations are live; up to one that is given up, as what lies after it need not be known.

        Of those whose stacks are cut, which come as negative numbers, only what their lexer states can be.
        """
        given_up = self.liveness.undecided
        for config in configs:
            if config < 0:
                self.liveness.prepare(-config)
            elif self.heap[config + k.CONFIG_LIVE] == 0:
                live = self.liveness.is_live(config)
                self.heap[config + k.CONFIG_LIVE] = k.YES if live else k.NO
            if self.liveness.undecided > given_up:
                break

    @property
    def is_full(self) -> bool:
        """Whether new matchers should have a new machine."""
        return 8 * int(self.heap[k.H_TOP]) > self.row_bytes

    @property
    def is_outgrown(self) -> bool:
        """Whether a matcher had better leave, though its own states must be taken along."""
        return self.is_full and int(self.heap[k.H_TOP]) > 2 * self.settled

    def is_live(self, config: int) -> bool:
        """Whether a configuration can be completed, as masks have it. The caller holds the lock."""
        live = self.live(config)
        if live == k.UNKNOWN:
            self._decide([config])
            live = int(self.heap[config + k.CONFIG_LIVE])
        return live == k.YES
