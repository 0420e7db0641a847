"""Tokens in which one text goes over into another: where they can, and by which pieces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from structgen.vocabulary.vocabulary import Vocabulary

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Crossings:
    """Tokens that may cross, by the piece before the crossing.

    Attributes:
        pieces: the distinct pieces before it.
        gates: int64[len(pieces)], the longest token that begins each piece (-1: none): where the mask of the first text
            does not have it, the piece cannot be its end.
        quoted: bool[len(pieces)], whether the piece holds a double quote.
        rests: what follows each piece, with the token that piece and rest make.
    """

    pieces: tuple[bytes, ...]
    gates: Ints
    quoted: npt.NDArray[np.bool_]
    rests: tuple[tuple[tuple[bytes, int], ...], ...]


class CrossingIndex:
    """All places inside the tokens of a vocabulary. Make it with `crossing_index`.

    Attributes:
        ids: lowest token id of each text.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        starts = np.zeros(len(vocabulary.token_bytes) + 1, np.bool_)
        starts[vocabulary.token_offsets] = True
        self._places = np.flatnonzero(~starts[:-1])  # of the byte behind the crossing
        self._first = vocabulary.token_bytes[self._places]
        self._last = vocabulary.token_bytes[self._places - 1]
        self._owners = np.searchsorted(vocabulary.token_offsets, self._places, "right") - 1
        self._known: dict[tuple[int, int], Crossings] = {}
        self.ids = dict(zip(reversed(vocabulary.tokens), range(vocabulary.size - 1, -1, -1), strict=True))
        self.ids.pop(b"", None)

    def between(self, last: int, first: int) -> Crossings:
        """Tokens with a byte of the set ``last`` right before one of the set ``first``; kept. O(bytes of tokens)."""
        known = self._known.get((last, first))
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            chosen = _flags(last)[self._last] & _flags(first)[self._first]
            known = self._known[last, first] = self._group(np.flatnonzero(chosen))
        return known

    def outside(self, last: int, first: int, row: npt.NDArray[np.int32]) -> Crossings:
        """The same of tokens that a mask does not have, for large sets; not kept."""
        chosen = np.flatnonzero(_flags(last)[self._last] & _flags(first)[self._first])
        return self._group(chosen[~has_tokens(row, self._owners[chosen])])

    def _group(self, chosen: Ints) -> Crossings:
        tokens, offsets = self._vocabulary.tokens, self._vocabulary.token_offsets
        owners = self._owners[chosen]
        groups: dict[bytes, list[tuple[bytes, int]]] = {}
        for token, at in zip(owners.tolist(), (self._places[chosen] - offsets[owners]).tolist(), strict=True):
            text = tokens[token]
            groups.setdefault(text[:at], []).append((text[at:], token))
        pieces = tuple(groups)
        return Crossings(
            pieces,
            np.array([self._gate(piece) for piece in pieces], np.int64),
            np.array([b'"' in piece for piece in pieces], np.bool_),
            tuple(map(tuple, groups.values())),
        )

    def _gate(self, piece: bytes) -> int:
        return next((self.ids[piece[:n]] for n in range(len(piece), 0, -1) if piece[:n] in self.ids), -1)


_MOST_KNOWN = 256


def has_tokens(row: npt.NDArray[np.int32], tokens: Ints) -> npt.NDArray[np.bool_]:
    """Which tokens (-1: none) a mask has."""
    found: npt.NDArray[np.bool_] = (tokens >= 0) & (row[np.maximum(tokens, 0) >> 5] >> (tokens & 31) & 1).astype(
        np.bool_
    )
    return found


@lru_cache(4)
def crossing_index(vocabulary: Vocabulary) -> CrossingIndex:
    """The index of a vocabulary; kept for the last few. O(bytes of all tokens)."""
    return CrossingIndex(vocabulary)


def _flags(members: int) -> npt.NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(members.to_bytes(32, "little"), np.uint8), bitorder="little").astype(np.bool_)
