"""Contexts: the addresses that kernels work on, and the arrays behind them kept alive."""

from __future__ import annotations

import weakref
from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.json import layout
from structgen.core.kernels.json import tables as c
from structgen.core.kernels.tables import Table

if TYPE_CHECKING:
    from structgen.core.engines.json.masks.bitmask_rows import MaskRows
    from structgen.core.engines.json.tables.arrays import JsonTables

FIRST_CONFIGURATIONS = 256  # room for configurations; there are at most `layout.MAX_CONFIGURATIONS`
SCRATCH_WORDS = 2048
PROBE_WORDS = 8 * 200  # a level of a search for a new item each 8
NESTING_WORDS = 4 * 64
STACK_WORDS = 4096
_GROWING = (c.scratch, c.stack, c.own, c.probe, c.nesting, c.search)


class KernelContext:
    """Memory for one thread and one set of rows, as `structgen.core.kernels.json` reads it.

    It holds no state of a matcher: each call enters its own. ``registers`` are the kernel's results (`layout.TOP` and
    following).
    """

    __slots__ = ("_arrays", "_rows", "address", "fields", "registers", "result")

    def __init__(self, rows: MaskRows) -> None:
        self._rows = weakref.ref(rows)  # which keep the context: outgrown rows should go without a search for cycles
        self._arrays: dict[int, Any] = {}
        self.fields = array("q", bytes(8 * c.CONTEXT.size))
        self.address = self.fields.buffer_info()[0]
        self.registers = array("q", bytes(8 * layout.REGISTERS))
        self.result = array("q", bytes(32 * FIRST_CONFIGURATIONS))
        self._set_words(c.reg, self.registers)
        self._set_words(c.result, self.result)
        self._set_words(c.start, array("q", bytes(40)))
        self._set_words(c.cross, array("q", bytes(40)))
        depth = rows.lexicon.max_depth + 2
        self._set(c.stack, np.empty(max(20 * depth, STACK_WORDS), np.int64))
        self._set(c.own, np.empty(5 * depth + 5, np.int64))
        self._set(c.following, np.empty(10 * depth, np.int64))
        self._set(c.joined_row, np.empty(layout.JOINED_ROWS, np.int64))
        self._set(c.search, np.empty(layout.SEARCH_STATES + layout.SEARCH_SLOTS, np.int64))
        self._set(c.probe, np.empty(PROBE_WORDS, np.int64))
        self._set(c.nesting, np.empty(NESTING_WORDS, np.int64))
        self._set(c.scratch, np.empty(SCRATCH_WORDS, np.int64))
        self._set(c.spare, np.empty(rows.lexicon.width, np.int32))
        lexicon = rows.lexicon
        self._set(c.node_field, lexicon.nodes)
        self._set(c.trie_field, lexicon.tries)
        self._set(c.next_same, lexicon.next_same)
        self._set(c.group_of, lexicon.groups)
        self._set(c.member_field, lexicon.members)
        self._set(c.token_byte, lexicon.decoded)
        self._set(c.class_of, lexicon.classes)
        self._set(c.rise, lexicon.rises)
        self._set(c.own_kind, lexicon.own_kinds)
        self._set(c.plain_node, lexicon.plain_nodes)
        self._set(c.order, lexicon.order[0])
        self._set(c.order_start, lexicon.order[1])
        self._set(c.offset, lexicon.vocabulary.token_offsets)
        self._set(c.end_token, np.array(lexicon.vocabulary.eos_token_ids, np.int32))
        self._set(c.data, lexicon.vocabulary.token_bytes)
        self._set(c.kind, rows.kinds)
        self._set(c.slice_kinds, rows.slices)
        self._set(c.slice_size, rows.slice_sizes)
        self._set(c.limit, rows.limits)
        self._set(c.memory, rows.memory)
        self._set(c.key, np.empty(layout.KEY_WORDS, np.int64))
        self._set(c.logged, np.empty(layout.LOG_ROWS + layout.LOG_TOKENS, np.int64))
        self.fields[c.VERSION] = rows.pool.version.buffer_info()[0]
        self.refresh()

    def refresh(self) -> None:
        """Take up arrays of the pool and the rows that have been replaced since."""
        rows = self._its_rows()
        pool = rows.pool
        with rows.lock:
            self.fields[c.VERSION_TAKEN] = pool.version[0]
            self._set(c.pool, pool.transitions)
            self._set(c.flags, pool.flags)
            self._set(c.payload, pool.payload)
            self._set(c.words_left, pool.words_left)
            self._set(c.loop, pool.loops)
            self._set(c.wide, pool.wides)
            self._set(c.safe, pool.safe)
            self._set(c.slot_of, pool.slots)
            self._set(c.count_of, pool.counts)
            self._set(c.symbols, pool.symbols)
            self._set(c.block, rows.blocks)

    def enter(self, tables: JsonTables) -> int:
        """Work on a grammar without a matcher; the context's address."""
        self.fields[: c.TABLES_SIZE] = tables.addresses
        return self.address

    def set_data(self, data: npt.NDArray[np.uint8]) -> None:
        """The bytes that `advance` reads: the vocabulary's tokens (as `accept` needs) or a text."""
        self._set(c.data, data)

    def resolve(self, status: int) -> None:
        """Give a kernel what it asked for: a pool row, a mask row, scratch memory, or room for configurations."""
        if status == layout.CROWDED:
            self.result = array("q", bytes(16 * len(self.result)))
            self._set_words(c.result, self.result)
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

    def _set(self, table: Table, data: npt.NDArray[Any]) -> None:
        assert data.dtype == table.dtype, f"table {table:d} of a context is of {table.dtype}, got {data.dtype}"
        self._arrays[table] = data
        self.fields[table] = data.ctypes.data
        self.fields[table + 1] = data.size

    def _set_words(self, table: Table, data: array[int]) -> None:
        self._arrays[table] = data
        self.fields[table], self.fields[table + 1] = data.buffer_info()
