"""Mask rows of lexical states: computed once for a vocabulary, shared by all grammars."""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from structgen.engines.json.masks.context import KernelContext
from structgen.engines.json.masks.lexicon import Int32, JsonLexicon, load_lexicon
from structgen.engines.json.tables.arrays import JsonTables
from structgen.engines.json.tables.pool import AutomatonPool
from structgen.kernels.json import layout, machine
from structgen.kernels.tokens import calls as t
from structgen.kernels.tokens.calls import kind_of
from structgen.kernels.tokens.layout import NEVER, NON_ASCII, WIDE_SPACE
from structgen.progress import waiting
from structgen.vocabulary.vocabulary import Vocabulary

# A pool that has grown beyond this is left to the grammars that use it, and new ones start a fresh one.
MAX_POOL_BYTES = 256 << 20
MEMORY_BYTES = 8 << 20  # of masks that are kept
FIRST_BLOCKS = 64
KINDS = np.array([kind_of(byte) for byte in range(256)], np.int32)


def _kinds(characters: str) -> int:
    """The kinds that the characters have, as a bit set; "é" stands for all beyond ASCII."""
    found = 0
    for character in characters:
        found |= 1 << (int(KINDS[ord(character)]) if character.isascii() else NON_ASCII)
    return found


_LOWER, _UPPER, _DIGIT = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_ALL, _ASCII = (1 << NEVER) - 1, (1 << NON_ASCII) - 1
_SOLID = _ALL & ~(1 << WIDE_SPACE)
_WORD = _LOWER + _UPPER + _DIGIT + "_"
# Sets of characters that patterns repeat. For a lexical state that keeps to one of them, the tokens within it are one
# row to copy, and the walk visits only what goes beyond.
SLICES = (
    _ALL, _SOLID, _SOLID & ~_kinds(" "), _ALL & ~_kinds("/"), _ALL & ~_kinds(":"), _ALL & ~_kinds("."),
    _ALL & ~_kinds(","), _SOLID & ~_kinds(" /"), _SOLID & ~_kinds(" @"), _ASCII, _ASCII & ~_kinds(" "),
    *map(_kinds, (
        _WORD + "-./:", _WORD + "-.", _WORD + "-", _WORD, _LOWER + _UPPER + _DIGIT, _LOWER + _UPPER, _LOWER + _DIGIT,
        _LOWER, _LOWER + _DIGIT + "-", _DIGIT,
    )),
)  # fmt: skip


class MaskRows:
    """The rows of one lexicon and pool: computed when first asked for, shared by all grammars. Thread-safe.

    The first rows are fixed (``ROW_BLANK``, ``ROW_SLICES`` + n, ``ROW_LENGTHS`` + n). ``blocks`` int64: addresses of
    the blocks that rows lie in. ``memory`` keeps finished masks of all grammars (`structgen.kernels.json.recall`).
    """

    def __init__(self, lexicon: JsonLexicon) -> None:
        self.lexicon = lexicon
        self.pool = AutomatonPool()
        self.lock = self.pool.lock
        fixed = layout.ROW_LENGTHS + lexicon.longest_text + 1
        self._blocks: list[Int32] = []
        self.blocks = np.zeros(FIRST_BLOCKS, np.int64)
        self.count = 0
        for _ in range(fixed):
            self._add_row()
        self.limits = np.zeros(4, np.int64)
        self.limits[layout.L_TEXT] = lexicon.longest_text
        self.limits[layout.L_UNIVERSAL] = self.pool.universal
        self.limits[layout.L_WIDTH] = lexicon.width
        self.limits[layout.L_WRITTEN] = lexicon.longest_written
        self.memory = np.full(MEMORY_BYTES // 8, 0, np.int64)  # touched here, and not in the middle of a mask
        self.memory[[layout.M_HEAD, layout.M_LAST]] = layout.M_RING
        self.memory[layout.M_TAIL] = len(self.memory)
        self.slices = np.zeros(layout.SLICES, np.int32)
        self.slice_sizes = np.zeros((layout.SLICES, lexicon.longest_text + 1), np.int32)  # by code points at most
        self._token_kinds = token_characters(lexicon)
        self.kinds = KINDS
        self._local = threading.local()
        header = array("i", [0] * layout.H_SIZE)
        header[layout.H_ESCAPES] = int(lexicon.escapes)
        self._header = JsonTables(header, array("q", [0]), array("B", [0]), 0, False)
        self._fill_fixed()

    @property
    def memory_bytes(self) -> int:
        """Bytes of rows, pool and memory."""
        return sum(block.nbytes for block in self._blocks) + self.pool.memory_bytes + self.memory.nbytes

    def context(self) -> KernelContext:
        """The calling thread's kernel memory."""
        try:
            context: KernelContext = self._local.context
        except AttributeError:
            context = self._local.context = KernelContext(self)
        return context

    def compute(self, state: int, place: int) -> None:
        """Compute the row of a pool state (place BODY or ESCAPE) and enter it into the pool's slots."""
        with self.lock:
            if self.pool.slots[2 * state + place] >= 0:
                return
            place_of_row = self._add_row()
            out = self.row(place_of_row)
            context = self.context()
            number = self.pool.is_number(state)
            while True:
                status = machine.fill_row(context.enter(self._header), state, place, number, out.ctypes.data)
                if status < layout.MISS:
                    break
                context.resolve(status)
            self.pool.slots[2 * state + place] = place_of_row

    def row(self, number: int) -> Int32:
        """int32[width], a row, where it lies."""
        return self._blocks[number // layout.BLOCK_ROWS][number % layout.BLOCK_ROWS]

    def _add_row(self) -> int:
        """The number of a new row, all zero."""
        number, place = self.count, self.count // layout.BLOCK_ROWS
        if place == len(self._blocks):
            block = np.zeros((layout.BLOCK_ROWS, self.lexicon.width), np.int32)
            if place == len(self.blocks):
                self.blocks = np.concatenate([self.blocks, np.zeros(place, np.int64)])
                self.pool.version[0] += 1
            self.blocks[place] = block.ctypes.data
            self._blocks.append(block)
        self.count += 1
        return number

    def _fill_fixed(self) -> None:
        lexicon = self.lexicon
        self.row(layout.ROW_BLANK)[:] = packed(widened(lexicon.kinds & t.BLANK != 0, lexicon.width))
        free = self.text_tokens()
        inside = [(kinds, free & (self._token_kinds & ~np.int64(kinds) == 0)) for kinds in SLICES]
        inside.sort(key=lambda entry: -int(entry[1].sum()))
        for number, (kinds, tokens) in enumerate(inside):
            self.slices[number] = kinds
            self.row(layout.ROW_SLICES + number)[:] = packed(widened(tokens, lexicon.width))
            sizes = np.bincount(lexicon.points[tokens], minlength=lexicon.longest_text + 1)
            self.slice_sizes[number] = np.cumsum(sizes)
        self.compute(self.pool.universal, layout.BODY)
        stay = unpacked(self.row(self.pool.slots[2 * self.pool.universal]))[: len(lexicon.kinds)]
        for length in range(lexicon.longest_text + 1):
            tokens = stay & (lexicon.points <= length)
            self.row(layout.ROW_LENGTHS + length)[:] = packed(widened(tokens, lexicon.width))

    def text_tokens(self) -> npt.NDArray[np.bool_]:
        """bool[V]: tokens of whole or unfinished UTF-8 characters, none of them special in a string."""
        return self._token_kinds & (1 << NEVER) == 0


def widened(bits: npt.NDArray[np.bool_], width: int) -> npt.NDArray[np.bool_]:
    """Pad bool[V] to bool[32 * width]."""
    return np.pad(bits, (0, 32 * width - len(bits)))


def packed(bits: npt.NDArray[np.bool_]) -> Int32:
    """bool[32 n] as int32[n], bit i % 32 of word i // 32."""
    return np.packbits(bits, bitorder="little").view(np.int32)


def unpacked(row: Int32) -> npt.NDArray[np.bool_]:
    """int32[n] as bool[32 n]."""
    return np.unpackbits(row.view(np.uint8), bitorder="little").astype(bool)


def token_characters(lexicon: JsonLexicon) -> npt.NDArray[np.int64]:
    """int64[V]: the kinds of characters of each token (NEVER where it is empty or not UTF-8 from its first byte on)."""
    kinds = np.full(lexicon.vocabulary.size, 1 << NEVER, np.int64)
    end = int(lexicon.tries[layout.TEXT, 1])
    path = np.zeros(lexicon.max_depth + 2, np.int64)
    t.path_kinds(lexicon.nodes[:end], lexicon.next_same, lexicon.own_kinds[:end], path, kinds)
    return kinds


_LOCK = threading.Lock()
_CURRENT: OrderedDict[tuple[str, bool], MaskRows] = OrderedDict()  # the one used last is last
MAX_VOCABULARIES = 8  # whose rows are kept for further grammars; grammars keep their own alive in any case


@lru_cache(8)
def _lexicon(vocabulary: Vocabulary, escapes: bool) -> JsonLexicon:
    return load_lexicon(vocabulary, escapes)


def mask_rows(vocabulary: Vocabulary, escapes: bool) -> MaskRows:
    """The rows that new grammars of a vocabulary share; a fresh set once the last has outgrown ``MAX_POOL_BYTES``."""
    key = (vocabulary.digest, escapes)
    with _LOCK:
        current = _CURRENT.get(key)
        if current is None or current.memory_bytes > MAX_POOL_BYTES:
            with waiting("making the first tables of a vocabulary"):
                current = _CURRENT[key] = MaskRows(_lexicon(vocabulary, escapes))
        _CURRENT.move_to_end(key)
        if len(_CURRENT) > MAX_VOCABULARIES:
            _CURRENT.popitem(last=False)
        return current
