"""What masks need to know of a vocabulary, apart from any grammar: tries of the tokens that can stand where in JSON.

A mask is not one walk over all tokens. Inside a string nearly all tokens stay inside, and which ones depends on the
lexical state only: a row, computed once. What remains is the few tokens that cross a boundary. Here the vocabulary is
split accordingly (`docs/architecture.md`, "Masks"), once for each way of spelling escapes, and kept
in the cache folder.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from structgen.kernels import json_machine as k
from structgen.kernels import token_kinds as t
from structgen.machine.context import Context
from structgen.machine.pool import AutomatonPool
from structgen.masks.remainders import Remainders, find_remainders
from structgen.vocabulary.trie import Trie, subtrie
from structgen.vocabulary.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]
MAX_POOL_BYTES = 256 << 20


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Tries and groups of one vocabulary under one way of spelling escapes. Arrays as `k.Tokens` names them."""

    vocabulary: Vocabulary
    escapes: bool
    nodes: Int32
    tries: npt.NDArray[np.int64]
    next_same: Int32
    remainders: Remainders
    classes: Int32
    points: Int32
    kinds: Int32
    longest_text: int
    longest_escaped: int
    max_depth: int

    @property
    def width(self) -> int:
        """int32 words of a mask row."""
        return -(-self.vocabulary.size // 32)


def build_lexicon(vocabulary: Vocabulary, escapes: bool) -> Lexicon:
    """Split a vocabulary. About 0.3 s for 200,000 tokens."""
    kinds = np.zeros(vocabulary.size, np.int32)
    points = np.zeros(vocabulary.size, np.int32)
    t.token_kinds(vocabulary.token_bytes, vocabulary.token_offsets, kinds, points)
    lengths = np.diff(vocabulary.token_offsets)
    text = (lengths > 0) & (kinds & t.CONTROL_FIRST == 0)
    quoted = text & (kinds & t.QUOTE != 0)
    escaped = text & (kinds & (t.QUOTE | t.BACKSLASH) != 0)
    blank, digits = kinds & t.BLANK != 0, kinds & t.DIGITS != 0
    structure = (kinds & t.STRUCTURE != 0) & ~blank & ~digits
    remainders = find_remainders(vocabulary, np.flatnonzero(quoted).tolist(), escapes)
    whole = vocabulary.trie
    parts: list[Trie] = [subtrie(whole, keep) for keep in (text, quoted, escaped, structure, blank, digits)]
    parts.append(remainders.trie)
    parts.append(subtrie(whole, remainders.hard_tokens(vocabulary.size)))
    nodes, tries = join(parts)
    text_end = int(tries[k.TEXT, 1])
    classes = np.zeros(text_end, np.int32)
    depth = max((part.max_depth for part in parts), default=0)
    t.subtree_kinds(nodes[:text_end], depth, np.zeros(depth + 2, np.int32), classes)
    plain = text & (kinds & (t.QUOTE | t.BACKSLASH) == 0)
    return Lexicon(
        vocabulary=vocabulary,
        escapes=escapes,
        nodes=nodes,
        tries=tries,
        next_same=whole.next_same,
        remainders=remainders,
        classes=classes,
        points=points,
        kinds=kinds,
        longest_text=int(max(points[plain], default=0)) + 1,
        longest_escaped=int(max(lengths[escaped], default=0)) + 1,
        max_depth=depth,
    )


def join(parts: Sequence[Trie]) -> tuple[Int32, npt.NDArray[np.int64]]:
    """The tries one after the other as int32[N, 4] (byte, depth, subtree end, token), and where each lies."""
    tries = np.zeros((len(parts), 2), np.int64)
    rows = []
    base = 0
    for index, part in enumerate(parts):
        tries[index] = base, base + len(part)
        rows.append(np.stack([part.byte.astype(np.int32), part.depth, part.subtree_end + base, part.token], axis=1))
        base += len(part)
    return np.ascontiguousarray(np.concatenate(rows), np.int32), tries


class MaskRows:
    """The rows of one lexicon and pool: computed when first asked for, shared by all grammars. Thread-safe.

    ``rows`` int32[n, width]; the first are fixed (`k.ROW_BLANK`, `k.ROW_ESCAPED`, `k.ROW_LENGTHS` + n).
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.pool = AutomatonPool()
        self.lock = self.pool.lock
        self.version = 0
        fixed = k.ROW_LENGTHS + lexicon.longest_text + 1
        self.rows = np.zeros((fixed + 64, lexicon.width), np.int32)
        self.count = fixed
        self.limits = np.zeros(4, np.int64)
        self.limits[k.L_TEXT] = lexicon.longest_text
        self.limits[k.L_ESCAPED] = lexicon.longest_escaped
        self.limits[k.L_UNIVERSAL] = self.pool.universal
        self.limits[k.L_WIDTH] = lexicon.width
        self._grammar = np.zeros(k.H_SIZE, np.int32)
        self._grammar[k.H_ESCAPES] = int(lexicon.escapes)
        self._fill_fixed()

    @property
    def memory_bytes(self) -> int:
        """Bytes of rows and pool."""
        return self.rows.nbytes + self.pool.memory_bytes

    def compute(self, state: int, place: int) -> None:
        """Compute the row of a pool state (place BODY or ESCAPE) and enter it into the pool's slots."""
        with self.lock:
            if self.pool.slots[2 * state + place] >= 0:
                return
            if self.count == len(self.rows):
                grown = np.zeros((2 * len(self.rows), self.lexicon.width), np.int32)
                grown[: self.count] = self.rows
                self.rows = grown
                self.version += 1
            out = self.rows[self.count]
            while True:
                context = Context.for_rows(self, self._grammar)
                status = k.fill_row(context.address, state, place, self.pool.is_number(state), out.ctypes.data)
                if status != k.MISS:
                    break
                self.pool.fill_number(context.missing)
            assert status < k.MISS, status
            self.pool.slots[2 * state + place] = self.count
            self.count += 1

    def _fill_fixed(self) -> None:
        lexicon = self.lexicon
        self.rows[k.ROW_BLANK] = packed(widened(lexicon.kinds & t.BLANK != 0, lexicon.width))
        self.compute(self.pool.universal, k.BODY)
        stay = unpacked(self.rows[self.pool.slots[2 * self.pool.universal]])[: len(lexicon.kinds)]
        plain = stay & (lexicon.kinds & (t.QUOTE | t.BACKSLASH) == 0)
        self.rows[k.ROW_ESCAPED] = packed(widened(stay & ~plain, lexicon.width))
        for length in range(lexicon.longest_text + 1):
            self.rows[k.ROW_LENGTHS + length] = packed(widened(plain & (lexicon.points <= length), lexicon.width))


def widened(bits: npt.NDArray[np.bool_], width: int) -> npt.NDArray[np.bool_]:
    """Pad bool[V] to bool[32 * width]."""
    return np.pad(bits, (0, 32 * width - len(bits)))


def packed(bits: npt.NDArray[np.bool_]) -> Int32:
    """bool[32 n] as int32[n], bit i % 32 of word i // 32."""
    return np.packbits(bits, bitorder="little").view(np.int32)


def unpacked(row: Int32) -> npt.NDArray[np.bool_]:
    """int32[n] as bool[32 n]."""
    return np.unpackbits(row.view(np.uint8), bitorder="little").astype(bool)


_LOCK = threading.Lock()
_CURRENT: dict[tuple[str, bool], MaskRows] = {}


@lru_cache(8)
def _lexicon(vocabulary: Vocabulary, escapes: bool) -> Lexicon:
    return build_lexicon(vocabulary, escapes)


def mask_rows(vocabulary: Vocabulary, escapes: bool) -> MaskRows:
    """The rows that new grammars of a vocabulary share; a fresh set once the last has outgrown ``MAX_POOL_BYTES``."""
    key = (vocabulary.digest, escapes)
    with _LOCK:
        current = _CURRENT.get(key)
        if current is None or current.memory_bytes > MAX_POOL_BYTES:
            current = _CURRENT[key] = MaskRows(_lexicon(vocabulary, escapes))
        return current
