"""Contexts: the addresses that kernels work on, and the arrays behind them kept alive."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.json import layout

if TYPE_CHECKING:
    from structgen.core.engines.json.masks.token_index import JsonLexicon
    from structgen.core.engines.json.tables.arrays import JsonTables

FIRST_THREADS = 256  # room for configurations; there are at most `layout.MAX_THREADS`
SCRATCH_WORDS = 2048
PROBE_WORDS = 8 * 200  # a level of a search for a new item each 8
NESTING_WORDS = 4 * 64
STACK_WORDS = 4096
_GROWING = (layout.C_SCRATCH, layout.C_STACK, layout.C_OWN, layout.C_PROBE, layout.C_NESTING, layout.C_SEARCH)


class KernelContext:
    """Memory for one thread, as `structgen.core.kernels.json` reads it; rows (`bitmask_rows`) enter theirs.

    It holds no state of a matcher: each call enters its own. ``registers`` are the kernel's results (`layout.TOP` and
    following).
    """

    __slots__ = ("_arrays", "address", "fields", "registers", "result")

    def __init__(self, lexicon: JsonLexicon) -> None:
        self._arrays: dict[int, Any] = {}
        self.fields = array("q", bytes(8 * layout.CONTEXT_SIZE))
        self.address = self.fields.buffer_info()[0]
        self.registers = array("q", bytes(8 * layout.REGISTERS))
        self.result = array("q", bytes(32 * FIRST_THREADS))
        self.set_words(layout.C_REGS, self.registers)
        self.set_words(layout.C_RESULT, self.result)
        self.set_words(layout.C_START, array("q", bytes(40)))
        self.set_words(layout.C_CROSS, array("q", bytes(40)))
        depth = lexicon.max_depth + 2
        self.set(layout.C_STACK, np.empty(max(20 * depth, STACK_WORDS), np.int64))
        self.set(layout.C_OWN, np.empty(5 * depth + 5, np.int64))
        self.set(layout.C_FOLLOWING, np.empty(10 * depth, np.int64))
        self.set(layout.C_JOINED, np.empty(layout.JOINED_ROWS, np.int64))
        self.set(layout.C_SEARCH, np.empty(layout.SEARCH_STATES + layout.SEARCH_SLOTS, np.int64))
        self.set(layout.C_PROBE, np.empty(PROBE_WORDS, np.int64))
        self.set(layout.C_NESTING, np.empty(NESTING_WORDS, np.int64))
        self.set(layout.C_SCRATCH, np.empty(SCRATCH_WORDS, np.int64))
        self.set(layout.C_SPARE, np.empty(lexicon.width, np.int32))
        self.set(layout.C_NODES, lexicon.nodes)
        self.set(layout.C_TRIES, lexicon.tries)
        self.set(layout.C_NEXT_SAME, lexicon.next_same)
        self.set(layout.C_GROUPS, lexicon.groups)
        self.set(layout.C_MEMBERS, lexicon.members)
        self.set(layout.C_TOKEN_BYTES, lexicon.decoded)
        self.set(layout.C_CLASSES, lexicon.classes)
        self.set(layout.C_RISES, lexicon.rises)
        self.set(layout.C_NODE_KINDS, lexicon.own_kinds)
        self.set(layout.C_PLAIN_NODES, lexicon.plain_nodes)
        self.set(layout.C_ORDER, lexicon.order[0])
        self.set(layout.C_ORDER_STARTS, lexicon.order[1])
        self.set(layout.C_OFFSETS, lexicon.vocabulary.token_offsets)
        self.set(layout.C_ENDS, np.array(lexicon.vocabulary.eos_token_ids, np.int32))
        self.set(layout.C_DATA, lexicon.vocabulary.token_bytes)
        self.set(layout.C_KEY, np.empty(layout.KEY_WORDS, np.int64))
        self.set(layout.C_LOG, np.empty(layout.LOG_ROWS + layout.LOG_TOKENS, np.int64))

    def enter(self, tables: JsonTables) -> int:
        """Work on a grammar without a matcher; the context's address."""
        self.fields[: layout.TABLES_SIZE] = tables.addresses
        return self.address

    def set_data(self, data: npt.NDArray[np.uint8]) -> None:
        """The bytes that `advance` reads: the vocabulary's tokens (as `accept` needs) or a text."""
        self.set(layout.C_DATA, data)

    def grow(self, status: int) -> bool:
        """Give a kernel memory of the context's own, if it asked for such: scratch, or room for configurations."""
        if status == layout.CROWDED:
            self.result = array("q", bytes(16 * len(self.result)))
            self.set_words(layout.C_RESULT, self.result)
        elif status == layout.FULL:
            self.registers[layout.TOO_DEEP] = 0
            for table in _GROWING:
                self.set(table, np.empty(2 * len(self._arrays[table]), np.int64))
        return status in (layout.CROWDED, layout.FULL)

    def set(self, table: int, data: npt.NDArray[Any]) -> None:
        """Let the kernels read an array, which is kept alive."""
        self._arrays[table] = data
        self.fields[table] = data.ctypes.data
        self.fields[table + 1] = data.size

    def set_words(self, table: int, data: array[int]) -> None:
        """The same of words."""
        self._arrays[table] = data
        self.fields[table], self.fields[table + 1] = data.buffer_info()
