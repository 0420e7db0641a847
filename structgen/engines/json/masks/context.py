"""Contexts: the addresses that kernels work on, and the arrays behind them kept alive."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.kernels.json import layout

if TYPE_CHECKING:
    from structgen.engines.json.masks.rows import MaskRows
    from structgen.engines.json.tables.arrays import JsonTables

# Room for configurations: at first, and at most. One more costs a look at each of the others at every step.
FIRST_THREADS = 256
MAX_THREADS = 1 << 14
SCRATCH_WORDS = 2048
PROBE_WORDS = 8 * 200  # a level of a search for a new item each 8
NESTING_WORDS = 4 * 64
STACK_WORDS = 4096
EMPTY = np.zeros(1, np.int64)


class KernelContext:
    """Memory for one thread and one set of rows, as `structgen.kernels.json` reads it.

    It holds no state of a matcher: each call enters its own. ``registers`` are the kernel's results (`layout.TOP` and
    following). Fields are an ``array`` because its items are three times as fast to set as numpy's.
    """

    __slots__ = (
        "_arena", "_arrays", "_rows", "_tables", "_versions", "_written", "address", "fields", "registers", "result",
    )  # fmt: skip

    def __init__(self, rows: MaskRows) -> None:
        self._rows = rows
        self._arrays: dict[int, Any] = {}
        self.fields = array("q", bytes(8 * layout.CONTEXT_SIZE))
        self.address = self.fields.buffer_info()[0]
        self.registers = array("q", bytes(8 * layout.REGISTERS))
        self.result = array("q", bytes(32 * FIRST_THREADS))
        self._set_words(layout.C_REGS, self.registers)
        self._set_words(layout.C_RESULT, self.result)
        self._set_words(layout.C_START, array("q", bytes(40)))
        self._set_words(layout.C_CROSS, array("q", bytes(40)))
        depth = rows.lexicon.max_depth + 2
        self._set(layout.C_STACK, np.empty(max(20 * depth, STACK_WORDS), np.int64))
        self._set(layout.C_OWN, np.empty(5 * depth + 5, np.int64))
        self._set(layout.C_SEARCH, np.empty(512, np.int64))
        self._set(layout.C_PROBE, np.empty(PROBE_WORDS, np.int64))
        self._set(layout.C_NESTING, np.empty(NESTING_WORDS, np.int64))
        self._set(layout.C_SCRATCH, np.empty(SCRATCH_WORDS, np.int64))
        self._set(layout.C_SPARE, np.empty(rows.lexicon.width, np.int32))
        lexicon = rows.lexicon
        self._set(layout.C_NODES, lexicon.nodes)
        self._set(layout.C_TRIES, lexicon.tries)
        self._set(layout.C_NEXT_SAME, lexicon.next_same)
        self._set(layout.C_GROUPS, lexicon.groups)
        self._set(layout.C_MEMBERS, lexicon.members)
        self._set(layout.C_TOKEN_BYTES, lexicon.decoded)
        self._set(layout.C_CLASSES, lexicon.classes)
        self._set(layout.C_RISES, lexicon.rises)
        self._set(layout.C_NODE_KINDS, lexicon.own_kinds)
        self._set(layout.C_OFFSETS, lexicon.vocabulary.token_offsets)
        self._set(layout.C_ENDS, np.array(lexicon.vocabulary.eos_token_ids, np.int32))
        self._set(layout.C_DATA, lexicon.vocabulary.token_bytes)
        self._set(layout.C_KINDS, rows.kinds)
        self._set(layout.C_SLICES, rows.slices)
        self._set(layout.C_SLICE_SIZES, rows.slice_sizes)
        self._set(layout.C_LIMITS, rows.limits)
        self._arena: Any = None
        self._tables: Any = None
        self._written: array[int] = array("B")
        self._versions = -1
        self.refresh()

    def refresh(self) -> None:
        """Take up arrays of the pool and the rows that have been replaced since."""
        rows, pool = self._rows, self._rows.pool
        with rows.lock:
            self._versions = rows.version + pool.version
            self._set(layout.C_POOL, pool.transitions)
            self._set(layout.C_FLAGS, pool.flags)
            self._set(layout.C_PAYLOAD, pool.payload)
            self._set(layout.C_WORDS_LEFT, pool.words_left)
            self._set(layout.C_LOOPS, pool.loops)
            self._set(layout.C_WIDES, pool.wides)
            self._set(layout.C_SAFE, pool.safe)
            self._set(layout.C_SLOTS, pool.slots)
            self._set(layout.C_COUNTS, pool.counts)
            self._set(layout.C_SYMBOLS, pool.symbols)
            self._set(layout.C_ROWS, rows.rows)

    def enter(self, tables: JsonTables, threads: array[int], arena: array[int], text: array[int], length: int) -> int:
        """Work on a matcher's configurations, arena and (of distinct items) text so far; the context's address."""
        fields = self.fields
        fields[layout.C_THREADS], fields[layout.C_THREADS + 1] = threads.buffer_info()
        if arena is not self._arena:
            self._arena = arena
            fields[layout.C_ARENA], fields[layout.C_ARENA + 1] = arena.buffer_info()
        if tables is not self._tables:
            self._tables = tables
            fields[layout.C_GRAMMAR], fields[layout.C_GRAMMAR + 1] = tables.grammar.buffer_info()
            fields[layout.C_WORDS], fields[layout.C_WORDS + 1] = tables.words.buffer_info()
            fields[layout.C_TEXTS], fields[layout.C_TEXTS + 1] = tables.texts.buffer_info()
        if tables.distinct:
            self._written = text
            fields[layout.C_WRITTEN], fields[layout.C_WRITTEN + 1] = text.buffer_info()
            self.registers[layout.WRITTEN] = length
            self.registers[layout.GIVEN_UP] = 0
        if self._rows.version + self._rows.pool.version != self._versions:
            self.refresh()
        return self.address

    def set_data(self, data: npt.NDArray[np.uint8]) -> None:
        """The bytes that `advance` reads: the vocabulary's tokens (as `accept` needs) or a text."""
        self._set(layout.C_DATA, data)

    def is_short(self, status: int) -> bool:
        """Whether a step ended with a status that `resolve` can better: configurations left out count as one."""
        if status != layout.ALIVE:
            return status >= layout.MISS
        return self.registers[layout.MISSING] > 0 and len(self.result) < 4 * MAX_THREADS

    def resolve(self, status: int) -> None:
        """Give a kernel what it asked for: a pool row, a mask row, scratch memory, or room for configurations."""
        if status == layout.ALIVE:
            self.result = array("q", bytes(16 * len(self.result)))
            self._set_words(layout.C_RESULT, self.result)
        elif status == layout.MISS:
            self._rows.pool.fill_number(self.registers[layout.MISSING])
        elif status == layout.MISS_ROW:
            self._rows.compute(self.registers[layout.MISSING], self.registers[layout.ALTERNATIVES])
        elif status == layout.MISS_COUNT:
            self._rows.pool.count_values(self.registers[layout.MISSING])
        elif status == layout.FULL:
            self.registers[layout.TOO_DEEP] = 0
            if self._tables.distinct and self.registers[layout.POSITION] + 2 > len(self._written):
                self._written.extend(bytes(len(self._written)))
            else:
                for table in (
                    layout.C_SCRATCH,
                    layout.C_STACK,
                    layout.C_OWN,
                    layout.C_PROBE,
                    layout.C_NESTING,
                    layout.C_SEARCH,
                ):
                    self._set(table, np.empty(2 * len(self._arrays[table]), np.int64))
        else:
            raise AssertionError(f"unknown kernel result {status}")
        self.refresh()

    def _set(self, table: int, data: npt.NDArray[Any]) -> None:
        self._arrays[table] = data
        self.fields[table] = data.ctypes.data
        self.fields[table + 1] = data.size

    def _set_words(self, table: int, data: array[int]) -> None:
        self._arrays[table] = data
        self.fields[table], self.fields[table + 1] = data.buffer_info()
