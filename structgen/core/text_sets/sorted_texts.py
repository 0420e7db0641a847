"""What sets of names and documents have in common: entries in order, as arrays that the kernel reads."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.sorted import calls as k

Bytes = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
MAX_TEXT = (1 << 31) - 1
"""Bytes of all texts together: places in it are int32."""
MAX_POINTS = (1 << 21) - 1
"""Code points of a quote, at most: a state holds a text of as many bytes as these have."""
SHARED: dict[str, SortedTexts] = {}
"""By their hash: texts that all processes of a server have, so that between them the hash is sent."""
_NO_BYTES, _NO_INTS = np.zeros(0, np.uint8), np.zeros(0, np.int32)
_NO_VOCABULARY: tuple[npt.NDArray[Any], ...] = (
    _NO_BYTES,
    *[_NO_INTS] * 5,
    _NO_BYTES,
    _NO_INTS,
    _NO_INTS,
    np.zeros(4, np.int64),
)


class SortedTexts:
    """Entries in the order of their bytes (`structgen.core.kernels.sorted`). Immutable; equal and hashed by content.

    Attributes:
        kind: NAMES or QUOTES.
        boundary: where quotes may end, CHAR, WORD or LINE.
        text: uint8, all texts one after another.
        starts: int32, where in it entries begin; of names one more, its end.
        border: a bit for each place in the text, see `tables`; empty for CHAR.
        shortest: int32, the shortest of each `BLOCK` names; empty for quotes.
        steps: int64, of each `STEP` places of documents the first: code points before it, and the next border and the
            next end of a document from it on; empty for names.
        longest: code points of the longest text, or more.
        digest: content hash.
    """

    kind: int
    boundary: int
    text: Bytes
    starts: Int32
    border: Bytes
    shortest: Int32
    steps: tuple[Int64, Int64, Int64]
    longest: int
    digest: str

    @property
    def entries(self) -> int:
        """How many there are."""
        return len(self.starts) - (self.kind == k.NAMES)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        return self.text.nbytes + self.starts.nbytes + self.border.nbytes + self.shortest.nbytes

    @cached_property
    def bounds(self) -> Int64:
        """int64[257]: of each byte the first entry that begins with it or a higher one."""
        empty = int(self.kind == k.NAMES and self.entries > 0 and self.starts[1] == self.starts[0])
        first = self.starts[empty : self.entries]
        bounds = np.full(257, self.entries, np.int64)
        last = len(self.text) - 1
        letters = self.text[np.clip(first, 0, last)] if last >= 0 else _NO_BYTES
        bounds[:] = np.searchsorted(letters, np.arange(257)) + empty
        return bounds

    def settings(self, least: int, most: int | None, width: int) -> Int64:
        """What the kernel needs to know, see `layout`.

        Args:
            least, most: code points of a quote.
            width: int32 words of a mask.
        """
        limited = self.kind == k.QUOTES and (least > 1 or most is not None or self.longest > MAX_POINTS)
        settings = np.zeros(k.S_SIZE, np.int64)
        settings[k.S_KIND], settings[k.S_BOUNDARY], settings[k.S_LIMITED] = self.kind, self.boundary, limited
        settings[k.S_LEAST], settings[k.S_MOST] = max(least, 1), min(most or MAX_POINTS, MAX_POINTS)
        settings[k.S_WIDTH], settings[k.S_ENTRIES] = width, self.entries
        return settings

    def tables(self, settings: Int64) -> tuple[npt.NDArray[Any], ...]:
        """The kernel's tables of the texts, in its order."""
        return settings, self.text, self.starts, self.bounds, self.border, self.shortest, *self.steps

    def reader(self, least: int = 0, most: int | None = None) -> SortedReader:
        """What kernels read the texts by where others know the vocabulary."""
        return SortedReader(self, least, most)

    def interval(self, data: bytes) -> tuple[int, int]:
        """(first, end) of the entries that begin with some bytes; equal: none does."""
        root = self._reader.address
        given = np.frombuffer(data, np.uint8)
        state = k.run(root, k.ADVANCE, k.START, given.ctypes.data, len(data)) if data else k.START
        if state == k.DEAD:
            return 0, 0
        return (state - k.START) >> k.DEPTH_BITS, k.run(root, k.INTERVAL, state, 0, 0)

    @cached_property
    def _reader(self) -> SortedReader:
        return SortedReader(self, 0, None)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_shared, (self.digest,)) if self.digest in SHARED else super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[str, Any]:
        """What others compute of it is not sent."""
        return {name: value for name, value in vars(self).items() if name not in ("_reader", "bounds", "steps")}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SortedTexts) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class SortedReader:
    """The kernel's tables of texts, without a vocabulary.

    Attributes:
        address: what the kernel is called with.
    """

    def __init__(self, texts: SortedTexts, least: int, most: int | None) -> None:
        self._arrays = (*texts.tables(texts.settings(least, most, 0)), *_NO_VOCABULARY)
        self._words = k.table_words(*self._arrays)
        self.address: int = self._words.buffer_info()[0]

    def completion(self, state: int) -> bytes:
        """A short text that completes a state."""
        out = np.zeros(2, np.int64)
        k.run(self.address, k.SHORTEST, state, out.ctypes.data, 0)
        begin, count = out.tolist()
        return self._arrays[1][begin : begin + count].tobytes()


def _shared(digest: str) -> SortedTexts:
    return SHARED[digest]
