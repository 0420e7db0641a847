"""Mask rows of lexical states: computed once for a vocabulary, shared by all grammars."""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from functools import lru_cache
from mmap import PAGESIZE
from weakref import WeakValueDictionary

import numpy as np

from structgen.core.engines.json.masks.context import KernelContext
from structgen.core.engines.json.masks.fixed_rows import (
    KINDS,
    FixedRows,
    load_fixed_rows,
    save_fixed_rows,
    slice_rows,
    with_lengths,
)
from structgen.core.engines.json.masks.token_index import Int32, JsonLexicon, load_lexicon
from structgen.core.engines.json.tables.arrays import JsonTables
from structgen.core.engines.json.tables.pool import AutomatonPool
from structgen.core.engines.pages import zero_pages
from structgen.core.kernels.json import layout, machine
from structgen.core.kernels.json import tables as c
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.progress import waiting

# Rows and pool that have grown beyond this are left to the grammars that use them, and new ones start afresh.
MAX_POOL_BYTES = 48 << 20
MAX_BYTES = 128 << 20  # of those of all vocabularies; what was not used for longest gives way
MEMORY_BYTES = 8 << 20  # of masks that are kept
FIRST_BLOCKS = 1 << 10


class MaskRows:
    """The rows of one lexicon and pool: computed when first asked for, shared by all grammars. Thread-safe.

    The first rows are fixed (``ROW_BLANK``, ``ROW_SLICES`` + n, ``ROW_LENGTHS`` + n). ``blocks`` int64: addresses of
    the blocks that rows lie in. ``memory`` keeps finished masks of all grammars (`kernels.json.mask_cache`).
    """

    is_outdated = False  # whether those that followed were left behind, too: nothing should be kept for later with it

    def __init__(self, lexicon: JsonLexicon, before: MaskRows | None = None) -> None:
        """``before``: rows of the same lexicon, whose fixed ones are taken over; None: they are read or made."""
        self.lexicon = lexicon
        self.pool = AutomatonPool()
        self.lock = self.pool.lock
        fixed = layout.ROW_LENGTHS + lexicon.longest_text + 1
        self._blocks: list[Int32] = []
        self.blocks = np.zeros(FIRST_BLOCKS, np.int64)
        self.count = 0
        for _ in range(fixed):
            self._add_row()
        self.limits = np.zeros(layout.LIMITS, np.int64)
        self.limits[layout.L_TEXT] = lexicon.longest_text
        self.limits[layout.L_UNIVERSAL] = self.pool.universal
        self.limits[layout.L_WIDTH] = lexicon.width
        self.limits[layout.L_WRITTEN] = lexicon.longest_written
        self.limits[layout.L_ALIKE] = bool((lexicon.next_same >= 0).any())
        self.memory = zero_pages(MEMORY_BYTES // 8, np.int64)
        if before is None:  # touched here, and not in the middle of a mask; later ones as they fill: a compile waits
            self.memory[:: PAGESIZE // 8] = 0
        self.memory[[layout.M_HEAD, layout.M_LAST]] = layout.M_RING
        self.memory[layout.M_TAIL] = len(self.memory)
        self.slices = np.zeros(layout.SLICES, np.int32)
        self.slice_sizes = np.zeros((layout.SLICES, lexicon.longest_text + 1), np.int32)  # by code points at most
        self.kinds = KINDS
        self._digits = lexicon.common_digits
        self._local = threading.local()
        header = array("i", [0] * layout.H_SIZE)
        header[layout.H_ESCAPES] = int(lexicon.escapes)
        self._header = JsonTables(header, array("q", [0]), array("B", [0]), 0, False, {})
        self._fill_fixed(before)

    @property
    def memory_bytes(self) -> int:
        """About what rows, pool and memory take."""
        return 4 * self.lexicon.width * self.count + self.pool.memory_bytes + self.memory.nbytes

    def context(self) -> KernelContext:
        """The calling thread's kernel memory."""
        try:
            context: KernelContext = self._local.context
        except AttributeError:
            context = self._local.context = KernelContext(self.lexicon)
            context.set(c.kind, self.kinds)
            context.set(c.slice_kinds, self.slices)
            context.set(c.slice_size, self.slice_sizes)
            context.set(c.limit, self.limits)
            context.set(c.memory, self.memory)
            context.fields[c.VERSION] = self.pool.version.buffer_info()[0]
            self._refresh(context)
        return context

    def resolve(self, context: KernelContext, status: int) -> None:
        """Give a kernel what it asked for: a pool row, a mask row, the count of a state's values, or memory."""
        registers = context.registers
        if status == layout.MISS:
            self.pool.fill_number(registers[layout.MISSING])
        elif status == layout.MISS_ROW:
            self.compute(registers[layout.MISSING], registers[layout.ALTERNATIVES])
        elif status == layout.MISS_COUNT:
            self.pool.count_values(registers[layout.MISSING])
        elif status != layout.STALE and not context.grow(status):
            raise AssertionError(f"unknown kernel result {status}")
        self._refresh(context)

    def _refresh(self, context: KernelContext) -> None:
        """Let a context take up arrays of the pool and the rows that have been replaced since."""
        pool = self.pool
        with self.lock:
            context.fields[c.VERSION_TAKEN] = pool.version[0]
            context.set(c.pool, pool.transitions)
            context.set(c.flags, pool.flags)
            context.set(c.payload, pool.payload)
            context.set(c.words_left, pool.words_left)
            context.set(c.loop, pool.loops)
            context.set(c.wide, pool.wides)
            context.set(c.safe, pool.safe)
            context.set(c.slot_of, pool.slots)
            context.set(c.count_of, pool.counts)
            context.set(c.symbols, pool.symbols)
            context.set(c.block, self.blocks)

    def compute(self, state: int, half: int) -> None:
        """Compute the row of a pool state (place BODY or ESCAPE) and enter it into the pool's slots."""
        with self.lock:
            if self.pool.slots[2 * state + half] >= 0:
                return
            place_of_row = self._add_row()
            out = self.row(place_of_row)
            context = self.context()
            number = self.pool.is_number(state)
            if number:  # at once what its walk asks for: else the walk begins anew at each
                self.pool.fill_number(state, self._digits)
            while True:
                status = machine.fill_row(context.enter(self._header), state, half, number, out.ctypes.data)
                if status < layout.MISS:
                    break
                self.resolve(context, status)
            self.pool.slots[2 * state + half] = place_of_row

    def row(self, number: int) -> Int32:
        """int32[width], a row, where it lies."""
        return self._blocks[number // layout.BLOCK_ROWS][number % layout.BLOCK_ROWS]

    def _add_row(self) -> int:
        """The number of a new row, all zero."""
        number, block_number = self.count, self.count // layout.BLOCK_ROWS
        if block_number == len(self._blocks):
            block = zero_pages((layout.BLOCK_ROWS, self.lexicon.width), np.int32)
            if block_number == len(self.blocks):
                self.blocks = np.concatenate([self.blocks, np.zeros(block_number, np.int64)])
                self.pool.version[0] += 1
            self.blocks[block_number] = block.ctypes.data
            self._blocks.append(block)
        self.count += 1
        return number

    def _fill_fixed(self, before: MaskRows | None) -> None:
        """Fill the rows that every vocabulary has; the last is that of text."""
        universal = 2 * self.pool.universal + layout.BODY
        if before is not None:
            self.pool.slots[universal] = self._add_row()
            self.slices[:], self.slice_sizes[:] = before.slices, before.slice_sizes
            shared = self.count // layout.BLOCK_ROWS  # blocks that hold nothing else
            self._blocks[:shared], self.blocks[:shared] = before._blocks[:shared], before.blocks[:shared]
            for number in range(shared * layout.BLOCK_ROWS, self.count):
                self.row(number)[:] = before.row(number)
            return
        made = load_fixed_rows(self.lexicon)
        if made is None:
            made = slice_rows(self.lexicon)
            self._take(made)
            self.compute(self.pool.universal, layout.BODY)
            made = with_lengths(self.lexicon, made, self.row(self.pool.slots[universal]))
            save_fixed_rows(self.lexicon, made)
        else:
            self.pool.slots[universal] = self._add_row()
        self._take(made)

    def _take(self, made: FixedRows) -> None:
        self.slices[:], self.slice_sizes[:] = made.slices, made.sizes
        for number, row in enumerate(made.rows):
            self.row(number)[:] = row


_LOCK = threading.Lock()
_CURRENT: OrderedDict[tuple[str, bool], MaskRows] = OrderedDict()  # the one used last is last
_LEFT: WeakValueDictionary[tuple[str, bool], MaskRows] = WeakValueDictionary()  # the last that were left to grammars
MAX_VOCABULARIES = 8  # whose rows are kept for further grammars; grammars keep their own alive in any case


@lru_cache(8)
def _lexicon(vocabulary: Vocabulary, escapes: bool) -> JsonLexicon:
    return load_lexicon(vocabulary, escapes)


def mask_rows(vocabulary: Vocabulary, escapes: bool) -> MaskRows:
    """The rows that new grammars of a vocabulary share; a fresh set once the last has outgrown ``MAX_POOL_BYTES``."""
    key = (vocabulary.digest, escapes)
    current = _CURRENT.get(key)
    if current is not None and len(_CURRENT) == 1 and current.memory_bytes <= MAX_POOL_BYTES:
        return current
    with _LOCK:
        current = _CURRENT.get(key)
        if current is None or current.memory_bytes > MAX_POOL_BYTES:
            if current is not None:
                _leave(key)
            with waiting("making the first tables of a vocabulary"):
                current = _CURRENT[key] = MaskRows(_lexicon(vocabulary, escapes), current)
        _CURRENT.move_to_end(key)
        while len(_CURRENT) > 1 and (
            len(_CURRENT) > MAX_VOCABULARIES or sum(rows.memory_bytes for rows in _CURRENT.values()) > MAX_BYTES
        ):
            _leave(next(iter(_CURRENT)))
        return current


def _leave(key: tuple[str, bool]) -> None:
    """Leave rows to the grammars that use them. With the lock held."""
    before = _LEFT.get(key)
    if before is not None:
        before.is_outdated = True
    _LEFT[key] = _CURRENT.pop(key)
