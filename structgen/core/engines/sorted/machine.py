"""What matchers of sorted texts share: the kernel's tables, and masks that took long."""

from __future__ import annotations

import threading
from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from structgen.core.bounded_cache import BoundedCache
from structgen.core.kernels.sorted import calls as k
from structgen.core.text_sets.sorted_texts import SortedTexts
from structgen.core.vocabulary.vocabulary import Vocabulary

MASK_BYTES = 64 << 20
KEPT_FROM = 1_000
"""Nodes of the trie that a mask looked at, from which it is kept."""
Mask = npt.NDArray[np.int32]
_MASKS: BoundedCache[Hashable, Mask] = BoundedCache(MASK_BYTES, lambda mask: mask.nbytes)


class SortedMachine:
    """The kernel of sorted texts over a vocabulary. Nothing in it changes but masks that are kept, and scratch.

    Attributes:
        lock: held around calls of the kernel.
        root: what the kernel is called with.
        start: the state before any text.
        width: int32 words of a mask.
        is_full: never.
    """

    is_full = False
    start = k.START

    def __init__(self, texts: SortedTexts, least: int, most: int | None, vocabulary: Vocabulary, cut: bool) -> None:
        """See `SortedGrammar`; ``cut``: whether texts were cut where the vocabulary does not spell them."""
        trie = vocabulary.trie
        self.lock = threading.RLock()
        self.width = -(-vocabulary.size // 32)
        settings = texts.settings(least, most, self.width)
        settings[k.S_LIMITED] |= cut
        self._arrays = (
            *texts.tables(settings), trie.byte, trie.depth, trie.subtree_end, trie.token, trie.roots,
            trie.next_same, vocabulary.token_bytes, vocabulary.token_offsets,
            np.array(vocabulary.eos_token_ids, np.int32), np.zeros(k.LEVEL_WORDS * (trie.max_depth + 2), np.int64),
        )  # fmt: skip
        self._words = k.table_words(*self._arrays)
        self.root: int = self._words.buffer_info()[0]
        # As one text, whose hash is computed once.
        self._key = repr((texts.digest, texts.boundary, least, most, vocabulary.digest, sorted(vocabulary.named)))

    def call(self, operation: int, x: int, y: int = 0, z: int = 0) -> int:
        """Run an operation of the kernel."""
        with self.lock:
            return k.run(self.root, operation, x, y, z)

    def completion(self, state: int) -> bytes:
        """A short text that completes a state."""
        out = np.zeros(2, np.int64)
        self.call(k.SHORTEST, state, out.ctypes.data)
        begin, count = out.tolist()
        return self._arrays[1][begin : begin + count].tobytes()

    def kept(self, state: int) -> Mask | None:
        """The mask of a state, if it is kept. Most are not, so that is seen without the lock."""
        key = self._key, state
        return None if _MASKS.peek(key) is None else _MASKS.get(key)

    def keep(self, state: int, mask: Mask) -> None:
        """Keep a mask: all machines of the same texts and vocabulary have it."""
        _MASKS.put((self._key, state), mask)
