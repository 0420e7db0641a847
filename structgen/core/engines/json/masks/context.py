"""Contexts: the addresses that kernels work on, and the arrays after them kept alive."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.json import layout
from structgen.core.kernels.json import tables as c
from structgen.core.kernels.tables import KernelTable

if TYPE_CHECKING:
    from structgen.core.engines.json.masks.token_index import JsonLexicon
    from structgen.core.engines.json.tables.arrays import JsonTables

FIRST_CONFIGURATIONS = 256  # room for configurations; there are at most `layout.MAX_CONFIGURATIONS`
SCRATCH_WORDS = 2048
PROBE_WORDS = 8 * 200  # a level of a search for a new item each 8
NESTING_WORDS = 4 * 64
STACK_WORDS = 4096
_GROWING = (c.scratch, c.stack, c.level_state, c.probe, c.nesting, c.search)


class KernelContext:
    """Memory for one thread, as `structgen.core.kernels.json` reads it; rows (`bitmask_rows`) enter theirs.

    It holds no state of a matcher: each call enters its own. ``registers`` are the kernel's results (`layout.TOP` and
    following).
    """

    __slots__ = ("_arrays", "address", "fields", "registers", "result")

    def __init__(self, lexicon: JsonLexicon) -> None:
        self._arrays: dict[int, Any] = {}
        self.fields = array("q", bytes(8 * c.CONTEXT.size))
        self.address = self.fields.buffer_info()[0]
        self.registers = array("q", bytes(8 * layout.REGISTERS))
        self.result = array("q", bytes(32 * FIRST_CONFIGURATIONS))
        self.set_words(c.reg, self.registers)
        self.set_words(c.result, self.result)
        self.set_words(c.start, array("q", bytes(40)))
        self.set_words(c.cross, array("q", bytes(40)))
        depth = lexicon.max_depth + 2
        self.set(c.stack, np.empty(max(20 * depth, STACK_WORDS), np.int64))
        self.set(c.level_state, np.empty(5 * depth + 5, np.int64))
        self.set(c.following, np.empty(10 * depth, np.int64))
        self.set(c.joined_row, np.empty(layout.JOINED_ROWS, np.int64))
        self.set(c.search, np.empty(layout.SEARCH_STATES + layout.SEARCH_SLOTS, np.int64))
        self.set(c.probe, np.empty(PROBE_WORDS, np.int64))
        self.set(c.nesting, np.empty(NESTING_WORDS, np.int64))
        self.set(c.scratch, np.empty(SCRATCH_WORDS, np.int64))
        self.set(c.spare, np.empty(lexicon.width, np.int32))
        self.set(c.node_field, lexicon.nodes)
        self.set(c.trie_field, lexicon.tries)
        self.set(c.next_same, lexicon.next_same)
        self.set(c.group_of, lexicon.groups)
        self.set(c.member_field, lexicon.members)
        self.set(c.token_byte, lexicon.decoded)
        self.set(c.class_of, lexicon.classes)
        self.set(c.rise, lexicon.rises)
        self.set(c.own_kind, lexicon.own_kinds)
        self.set(c.plain_node, lexicon.plain_nodes)
        self.set(c.order, lexicon.order[0])
        self.set(c.order_start, lexicon.order[1])
        self.set(c.offset, lexicon.vocabulary.token_offsets)
        self.set(c.end_token, np.array(lexicon.vocabulary.eos_token_ids, np.int32))
        self.set(c.data, lexicon.vocabulary.token_bytes)
        self.set(c.key, np.empty(layout.KEY_WORDS, np.int64))
        self.set(c.logged, np.empty(layout.LOG_ROWS + layout.LOG_TOKENS, np.int64))

    def enter(self, tables: JsonTables) -> int:
        """Work on a grammar without a matcher; the context's address."""
        self.fields[: c.TABLES_SIZE] = tables.addresses
        return self.address

    def set_data(self, data: npt.NDArray[np.uint8]) -> None:
        """The bytes that `advance` reads: the vocabulary's tokens (as `accept` needs) or a text."""
        self.set(c.data, data)

    def grow(self, status: int) -> bool:
        """Give a kernel memory of the context's own, if it asked for such: scratch, or room for configurations."""
        if status == layout.CROWDED:
            self.result = array("q", bytes(16 * len(self.result)))
            self.set_words(c.result, self.result)
        elif status == layout.FULL:
            self.registers[layout.TOO_DEEP] = 0
            for table in _GROWING:
                self.set(table, np.empty(2 * len(self._arrays[table]), np.int64))
        return status in (layout.CROWDED, layout.FULL)

    def set(self, table: KernelTable, data: npt.NDArray[Any]) -> None:
        """Let the kernels read an array, which is kept alive."""
        assert data.dtype == table.dtype, f"table {table:d} of a context is of {table.dtype}, got {data.dtype}"
        self._arrays[table] = data
        self.fields[table] = data.ctypes.data
        self.fields[table + 1] = data.size

    def set_words(self, table: KernelTable, data: array[int]) -> None:
        """The same of words."""
        self._arrays[table] = data
        self.fields[table], self.fields[table + 1] = data.buffer_info()
