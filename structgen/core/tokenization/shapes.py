"""What the automaton of borders sees of each token: classes of characters, and the cut ones at its ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structgen.core.tokenization.pretokens import DEAD, Pretokens

_LENGTHS = [1] * 0x80 + [0] * 0x42 + [2] * 0x1E + [3] * 0x10 + [4] * 5 + [0] * 11
"""Bytes of the character that a byte begins (RFC 3629); 0: it begins none."""


def lacking(cut: bytes) -> int:
    """How many bytes the character lacks of which ``cut`` is the beginning; 0 of nothing."""
    return _LENGTHS[cut[0]] - len(cut) if cut else 0


@dataclass(frozen=True, slots=True)
class TokenShape:
    """A token's bytes: what ends a cut character, whole characters by their classes, what begins a cut character."""

    lead: bytes
    classes: tuple[int, ...]
    tail: bytes


class TokenShapes:
    """The shapes of all tokens, and what becomes of a state over all of them at once.

    Attributes:
        of: the shape of each token; None: it is no text, or no part of UTF-8.
        leads: ids of tokens that begin within a character.
        begins: bool[V], whether the token can stand at the border of a character.
    """

    def __init__(self, tokens: Sequence[bytes], borders: Pretokens) -> None:
        self._borders = borders
        self._characters: dict[str, int] = {}
        numbers: dict[tuple[int, ...], int] = {(): 0}
        self.of = [self._shape(token) for token in tokens]
        self._number = np.zeros(len(tokens), np.int64)
        for token, shape in enumerate(self.of):
            if shape is not None and not shape.lead:
                self._number[token] = numbers.setdefault(shape.classes, len(numbers))
        self.leads = [token for token, shape in enumerate(self.of) if shape is not None and shape.lead]
        self.begins = np.array([shape is not None and not shape.lead for shape in self.of])
        tails = [token for token, shape in enumerate(self.of) if shape is not None and shape.tail and not shape.lead]
        self._tails = np.array(tails, np.int64)
        self._is_bare = np.array([not shape.classes for token in tails if (shape := self.of[token])], bool)
        possible = [shape.tail for token in tails if (shape := self.of[token])]
        count = borders.steps.shape[2]
        self._possible = np.array([self._classes_after(tail) for tail in possible], bool).reshape(-1, count)
        self._by_length = _by_length(list(numbers))
        self._count = len(numbers)

    def live(self, state: int, border: bool) -> NDArray[np.bool_]:
        """bool[V]: which tokens may be read from ``state``, at the border of a character. O(V)."""
        steps = self._borders.steps
        after = np.full(self._count, DEAD, np.int64)
        after[0] = state
        for ids, columns in self._by_length:
            index = steps[state, int(border), columns[0]]
            for column in columns[1:]:
                index = np.where(index >= 0, steps[index, 0, column], DEAD)
            after[ids] = index
        ends = after[self._number]
        result: NDArray[np.bool_] = self.begins & (ends >= 0)
        index, mark = ends[self._tails], self._is_bare & border
        result[self._tails] &= ((steps[index, mark.astype(np.int64)] >= 0) & self._possible).any(axis=1)
        return result

    def walk(self, state: int, cut: bytes, border: bool, token: int) -> tuple[int, bytes, bool] | None:
        """Where a token leads: state, the beginning of a cut character, and whether a border stands before that.

        Args:
            state, cut, border: where it begins, in the same form; ``border``: with no ``cut``, before the token.
        """
        shape, steps = self.of[token], self._borders.steps
        if shape is None or bool(cut) != bool(shape.lead):
            return None
        if shape.lead:
            cut += shape.lead
            if lacking(cut):
                goes_on = lacking(cut) > 0 and not shape.classes and not shape.tail
                return (state, cut, border) if goes_on and self._fits(state, cut, border) else None
            read = self._class(cut)
            state, border = DEAD if read is None else int(steps[state, int(border), read]), False
        for read in shape.classes:
            if state < 0:
                return None
            state, border = int(steps[state, int(border), read]), False
        if state < 0 or (shape.tail and not self._fits(state, shape.tail, border)):
            return None
        return state, shape.tail, border and bool(shape.tail)

    def _fits(self, state: int, cut: bytes, border: bool) -> bool:
        return bool(((self._borders.steps[state, int(border)] >= 0) & self._classes_after(cut)).any())

    def _shape(self, token: bytes) -> TokenShape | None:
        """Taken apart; at most three bytes at each end are of cut characters."""
        start = next((index for index, byte in enumerate(token[:4]) if not 0x80 <= byte < 0xC0), min(len(token), 4))
        if not token or start > 3:
            return None
        body, tail = token[start:], b""
        for back in range(1, min(3, len(body)) + 1):
            if _LENGTHS[body[-back]] > back:
                body, tail = body[:-back], body[-back:]
                break
        if tail and not self._range(tail):
            return None
        try:
            return TokenShape(token[:start], tuple(map(self._known, body.decode())), tail)
        except UnicodeDecodeError:
            return None

    def _known(self, character: str) -> int:
        """The class of a character."""
        result = self._characters.get(character)
        if result is None:
            result = self._characters[character] = int(self._borders.classes_of(np.array([ord(character)]))[0])
        return result

    def _class(self, data: bytes) -> int | None:
        try:
            return self._known(data.decode())
        except UnicodeDecodeError:
            return None

    def _range(self, cut: bytes) -> tuple[int, int] | None:
        """The first and last character that begins so."""
        ends = []
        for fill in (b"\x80\x90\xa0", b"\xbf\x9f\x8f"):
            for second in fill:
                filling = (bytes([second]) + bytes([fill[0]]) * 2)[: lacking(cut)]
                try:
                    ends.append(ord((cut + filling).decode()))
                    break
                except UnicodeDecodeError:
                    continue
        return (ends[0], ends[1]) if len(ends) == 2 else None

    def _classes_after(self, cut: bytes) -> NDArray[np.bool_]:
        """Which classes have a character that begins so."""
        result = np.zeros(self._borders.steps.shape[2], bool)
        ends = self._range(cut)
        if ends is not None:
            first, last = np.searchsorted(self._borders.firsts, ends, side="right") - 1
            result[self._borders.classes[first : last + 1]] = True
        return result


def _by_length(rows: Sequence[tuple[int, ...]]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows of one length together: their numbers, and their columns. The empty row is left out."""
    groups: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(len(row), []).append(number)
    groups.pop(0, None)
    return [(np.array(ids), np.array([rows[number] for number in ids]).T) for ids in groups.values()]
