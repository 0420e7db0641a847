"""Contexts: the addresses that kernels work on, and the arrays behind them kept alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.kernels import json_machine as k

if TYPE_CHECKING:
    from structgen.machine.tables import Tables
    from structgen.masks.lexicon import MaskRows

MAX_THREADS = 256
SCRATCH_WORDS = 2048
STACK_WORDS = 4096


class Context:
    """Memory for one thread and grammar, as `structgen.kernels.json_machine` reads it. It holds no state of a matcher.

    ``refresh`` follows the pool and the rows, whose arrays are replaced as they grow.
    """

    __slots__ = ("_arena", "_arrays", "_rows", "_versions", "address", "fields", "registers", "result")

    def __init__(self, rows: MaskRows, tables: Tables | None, grammar: npt.NDArray[np.int32]) -> None:
        self._rows = rows
        self._arrays: dict[int, npt.NDArray[Any]] = {}
        self.fields = np.zeros(k.CONTEXT_SIZE, np.int64)
        self.address = self.fields.ctypes.data
        depth = rows.lexicon.max_depth + 2
        self.registers = np.zeros(k.REGISTERS, np.int64)
        self.result = np.zeros(4 * MAX_THREADS, np.int64)
        self._set(k.C_REGS, self.registers)
        self._set(k.C_START, np.zeros(5, np.int64))
        self._set(k.C_CROSS, np.zeros(5, np.int64))
        self._set(k.C_RESULT, self.result)
        self._set(k.C_STACK, np.empty(max(20 * depth, STACK_WORDS), np.int64))
        self._set(k.C_OWN, np.empty(5 * depth + 5, np.int64))
        self._set(k.C_SEARCH, np.empty(512, np.int64))
        self._set(k.C_SCRATCH, np.empty(SCRATCH_WORDS, np.int64))
        self.set_arena(np.empty(1, np.int64))
        self._set(k.C_SPARE, np.empty(rows.lexicon.width, np.int32))
        self._set(k.C_GRAMMAR, grammar)
        if tables is not None:
            self._set(k.C_WORDS, tables.words)
            self._set(k.C_TEXTS, tables.texts)
        lexicon = rows.lexicon
        self._set(k.C_NODES, lexicon.nodes)
        self._set(k.C_TRIES, lexicon.tries)
        self._set(k.C_NEXT_SAME, lexicon.next_same)
        self._set(k.C_GROUPS, lexicon.remainders.groups)
        self._set(k.C_MEMBERS, lexicon.remainders.members)
        self._set(k.C_TOKEN_BYTES, lexicon.remainders.decoded)
        self._set(k.C_CLASSES, lexicon.classes)
        self._set(k.C_DATA, lexicon.vocabulary.token_bytes)
        self._set(k.C_LIMITS, rows.limits)
        self._versions = (-1, -1)
        self.refresh()

    @classmethod
    def for_rows(cls, rows: MaskRows, grammar: npt.NDArray[np.int32]) -> Context:
        """A context without a grammar (a header only), to compute rows with."""
        return cls(rows, None, grammar)

    @property
    def missing(self) -> int:
        """The pool state that the last kernel asked for."""
        return int(self.registers[k.MISSING])

    @property
    def place(self) -> int:
        """The place of the row that the last kernel asked for; or how many alternatives its last step had."""
        return int(self.registers[k.ALTERNATIVES])

    def refresh(self) -> None:
        """Take up arrays that have been replaced since."""
        rows, pool = self._rows, self._rows.pool
        versions = (pool.version, rows.version)
        if versions != self._versions:
            with rows.lock:
                self._set(k.C_POOL, pool.transitions)
                self._set(k.C_FLAGS, pool.flags)
                self._set(k.C_PAYLOAD, pool.payload)
                self._set(k.C_WORDS_LEFT, pool.words_left)
                self._set(k.C_LOOPS, pool.loops)
                self._set(k.C_SLOTS, pool.slots)
                self._set(k.C_ROWS, rows.rows)
                self._versions = (pool.version, rows.version)

    @property
    def used_scratch(self) -> int:
        """int64 words of scratch that the last kernel used for frames."""
        return int(self.registers[k.TOP])

    def enter(self, threads: int, words: int, arena: npt.NDArray[np.int64]) -> None:
        """Work on a matcher: the address and length of its configurations, and its arena."""
        fields = self.fields
        fields[k.C_THREADS] = threads
        fields[k.C_THREADS + 1] = words
        if arena is not self._arena:
            self.set_arena(arena)
        rows = self._rows
        if (rows.pool.version, rows.version) != self._versions:
            self.refresh()

    def set_arena(self, arena: npt.NDArray[np.int64]) -> None:
        """Use another array of frames."""
        self._arena = arena
        self._set(k.C_ARENA, arena)

    def set_data(self, data: npt.NDArray[np.uint8]) -> None:
        """The bytes that `advance` reads (the vocabulary's tokens, or a text)."""
        if data is not self._arrays.get(k.C_DATA):
            self._set(k.C_DATA, data)

    def grow(self) -> None:
        """Double the scratch memory, after a kernel has said FULL."""
        for table in (k.C_SCRATCH, k.C_STACK, k.C_OWN):
            self._set(table, np.empty(2 * len(self._arrays[table]), np.int64))

    def _set(self, table: int, array: npt.NDArray[Any]) -> None:
        self._arrays[table] = array
        self.fields[table] = array.ctypes.data
        self.fields[table + 1] = array.size
