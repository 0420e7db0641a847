"""Contexts: the addresses that kernels work on, and the arrays behind them kept alive."""

from __future__ import annotations

import weakref
from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.json import layout

if TYPE_CHECKING:
    from structgen.core.engines.json.masks.bitmask_rows import MaskRows
    from structgen.core.engines.json.tables.arrays import JsonTables

FIRST_THREADS = 256  # room for configurations; there are at most `layout.MAX_THREADS`
SCRATCH_WORDS = 2048
PROBE_WORDS = 8 * 200  # a level of a search for a new item each 8
NESTING_WORDS = 4 * 64
STACK_WORDS = 4096
_GROWING = (layout.C_SCRATCH, layout.C_STACK, layout.C_OWN, layout.C_PROBE, layout.C_NESTING, layout.C_SEARCH)


class KernelContext:
    """Memory for one thread and one set of rows, as `structgen.core.kernels.json` reads it.

    It holds no state of a matcher: each call enters its own. ``registers`` are the kernel's results (`layout.TOP` and
    following).
    """

    __slots__ = ("_arrays", "_rows", "address", "fields", "registers", "result")

    def __init__(self, rows: MaskRows) -> None:
        self._rows = weakref.ref(rows)  # which keep the context: outgrown rows should go without a search for cycles
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
        self._set(layout.C_FOLLOWING, np.empty(10 * depth, np.int64))
        self._set(layout.C_JOINED, np.empty(layout.JOINED_ROWS, np.int64))
        self._set(layout.C_SEARCH, np.empty(layout.SEARCH_STATES + layout.SEARCH_SLOTS, np.int64))
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
        self._set(layout.C_PLAIN_NODES, lexicon.plain_nodes)
        self._set(layout.C_ORDER, lexicon.order[0])
        self._set(layout.C_ORDER_STARTS, lexicon.order[1])
        self._set(layout.C_OFFSETS, lexicon.vocabulary.token_offsets)
        self._set(layout.C_ENDS, np.array(lexicon.vocabulary.eos_token_ids, np.int32))
        self._set(layout.C_DATA, lexicon.vocabulary.token_bytes)
        self._set(layout.C_KINDS, rows.kinds)
        self._set(layout.C_SLICES, rows.slices)
        self._set(layout.C_SLICE_SIZES, rows.slice_sizes)
        self._set(layout.C_LIMITS, rows.limits)
        self._set(layout.C_MEMORY, rows.memory)
        self._set(layout.C_KEY, np.empty(layout.KEY_WORDS, np.int64))
        self._set(layout.C_LOG, np.empty(layout.LOG_ROWS + layout.LOG_TOKENS, np.int64))
        self._set_words(layout.C_VERSION, rows.pool.version)
        self.refresh()

    def refresh(self) -> None:
        """Take up arrays of the pool and the rows that have been replaced since."""
        rows = self._its_rows()
        pool = rows.pool
        with rows.lock:
            self.fields[layout.C_VERSION + 1] = pool.version[0]
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
            self._set(layout.C_ROWS, rows.blocks)

    def enter(self, tables: JsonTables) -> int:
        """Work on a grammar without a matcher; the context's address."""
        self.fields[: layout.TABLES_SIZE] = tables.addresses
        return self.address

    def set_data(self, data: npt.NDArray[np.uint8]) -> None:
        """The bytes that `advance` reads: the vocabulary's tokens (as `accept` needs) or a text."""
        self._set(layout.C_DATA, data)

    def resolve(self, status: int) -> None:
        """Give a kernel what it asked for: a pool row, a mask row, scratch memory, or room for configurations."""
        if status == layout.CROWDED:
            self.result = array("q", bytes(16 * len(self.result)))
            self._set_words(layout.C_RESULT, self.result)
        elif status == layout.MISS:
            self._its_rows().pool.fill_number(self.registers[layout.MISSING])
        elif status == layout.MISS_ROW:
            self._its_rows().compute(self.registers[layout.MISSING], self.registers[layout.ALTERNATIVES])
        elif status == layout.MISS_COUNT:
            self._its_rows().pool.count_values(self.registers[layout.MISSING])
        elif status == layout.FULL:
            self.registers[layout.TOO_DEEP] = 0
            for table in _GROWING:
                self._set(table, np.empty(2 * len(self._arrays[table]), np.int64))
        elif status != layout.STALE:
            raise AssertionError(f"unknown kernel result {status}")
        self.refresh()

    def _its_rows(self) -> MaskRows:
        rows = self._rows()
        assert rows is not None, "a grammar keeps its rows"
        return rows

    def _set(self, table: int, data: npt.NDArray[Any]) -> None:
        self._arrays[table] = data
        self.fields[table] = data.ctypes.data
        self.fields[table + 1] = data.size

    def _set_words(self, table: int, data: array[int]) -> None:
        self._arrays[table] = data
        self.fields[table], self.fields[table + 1] = data.buffer_info()
