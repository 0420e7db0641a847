"""Reading tagged text: where its parts begin and end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.parts import BYTES
from structgen.core.engines.captures.ends import text_ends
from structgen.core.engines.composed.tags import Mark, TagRules


class FoundPart(NamedTuple):
    """A part of a text: the number of its tag, its text, and whether that goes on after the end of the data."""

    tag: int
    text: str
    is_open: bool


@dataclass(frozen=True)
class _Reading:
    """A place in the data, the parts before it, and what was found, the last first: (before it, the last)."""

    offset: int
    used: int
    pieces: Any

    def then(self, offset: int, text: bytes = b"", part: FoundPart | None = None) -> _Reading:
        """The reading that goes on at a place, after free text (unless it is empty) and perhaps a part."""
        pieces = (self.pieces, text.decode(errors="ignore")) if text else self.pieces
        if part is None:
            return _Reading(offset, self.used, pieces)
        return _Reading(offset, self.used + 1, (pieces, part))


def read_parts(
    rules: TagRules, constraints: Sequence[Constraint], text: str, *, is_whole: bool
) -> list[str | FoundPart] | None:
    """Free text and parts in the order of the text; None if there is no such reading.

    Of several readings the first is taken that reads the text to its end, where at each part the tags that fit are
    tried in their order, and a part is as long as it can be.

    Args:
        rules: what delimits parts.
        constraints: of the parts, by tag.
        text: the output.
        is_whole: whether the text is finished; else it may end anywhere.
    """
    reader = _Reader(rules, constraints, text.encode(errors="replace"), is_whole)
    waiting, seen = [_Reading(0, 0, None)], set[tuple[int, int]]()
    counted = max(rules.min_uses, 1) if rules.max_uses is None else rules.max_uses
    while waiting:
        reading = waiting.pop()
        if (reading.offset, min(reading.used, counted)) in seen:
            continue
        seen.add((reading.offset, min(reading.used, counted)))
        following = []
        for after in reader.after(reading):
            if after.offset < 0:
                return _in_order(after.pieces)
            following.append(after)
        waiting += following[::-1]
    return None


END = -1
"""The place of a reading that is at its end."""


class _Reader:
    """The steps of readings of a text."""

    def __init__(self, rules: TagRules, constraints: Sequence[Constraint], data: bytes, is_whole: bool) -> None:
        self._rules, self._constraints, self._data, self._is_whole = rules, constraints, data, is_whole
        self._words = [word.encode() for word in rules.forbidden]
        self._stop = None if rules.stop is None else _data(rules.stop)
        self._separator = b"" if rules.separator is None else _data(rules.separator)

    def after(self, reading: _Reading) -> Iterator[_Reading]:
        """What follows a reading, the preferred first: at its end, or after another part."""
        rules, offset, used = self._rules, reading.offset, reading.used
        word = self._next_word(offset)
        if used >= rules.min_uses:
            yield from self._ends(reading, word if rules.text_at_end(used) else None, rules.text_at_end(used))
        if used == rules.max_uses:
            return
        begin = offset
        if used and self._separator:
            begin += len(self._separator)
            if not self._data.startswith(self._separator, offset):
                if self._is_cut(self._separator, offset):
                    yield reading.then(END)
                return
        if not rules.text_before(used):
            yield from self._parts(reading, begin, b"", None)
        elif word is None:
            if not self._is_whole:
                yield reading.then(END, self._data[offset:])
        else:
            yield from self._parts(reading, word[0], self._data[offset : word[0]], word[1])

    def _ends(self, reading: _Reading, word: tuple[int, bytes] | None, has_text: bool) -> Iterator[_Reading]:
        """The end of the text after ``reading``, with the word that free text leads up to."""
        remaining = self._data[reading.offset :]
        if not has_text:
            if remaining == (self._stop or b"") or self._is_cut(self._stop or b"", reading.offset):
                yield reading.then(END)
        elif word is None:
            if self._stop is None or not self._is_whole:
                yield reading.then(END, remaining)
        elif word[1] == self._stop and word[0] + len(word[1]) == len(self._data):
            yield reading.then(END, self._data[reading.offset : word[0]])

    def _parts(self, reading: _Reading, begin: int, text: bytes, trigger: bytes | None) -> Iterator[_Reading]:
        """After a part that begins at ``begin``, by the tags of a trigger (None: by all)."""
        for number, (tag, tag_triggers) in enumerate(zip(self._rules.tags, self._rules.triggers, strict=True)):
            if trigger is not None and _data(tag_triggers) != trigger:
                continue
            word = _data(tag[0])
            if self._data.startswith(word, begin):
                yield from self._part(reading, number, begin + len(word), text)
            elif self._is_cut(word, begin):
                yield reading.then(END, text)

    def _part(self, reading: _Reading, number: int, begin: int, text: bytes) -> Iterator[_Reading]:
        """After a part whose own text begins at ``begin``, the longest first."""
        closing = _data(self._rules.tags[number][1])
        ends, is_open = text_ends(self._constraints[number].compile(BYTES), self._data, begin)
        if is_open and not self._is_whole:
            yield reading.then(END, text, FoundPart(number, self._data[begin:].decode(errors="ignore"), True))
        for end in reversed(ends):
            part = FoundPart(number, self._data[begin:end].decode(), False)
            if self._data.startswith(closing, end):
                yield reading.then(end + len(closing), text, part)
            elif self._is_cut(closing, end):
                yield reading.then(END, text, part)

    def _is_cut(self, word: bytes, offset: int) -> bool:
        """Whether unfinished data ends within a word that begins at ``offset``."""
        return not self._is_whole and len(self._data) - offset < len(word) and word.startswith(self._data[offset:])

    def _next_word(self, offset: int) -> tuple[int, bytes] | None:
        """The first word to end that free text does not hold, and where it begins."""
        starts = [(self._data.find(word, offset), word) for word in self._words]
        return min((s for s in starts if s[0] >= 0), key=lambda s: s[0] + len(s[1]), default=None)


def _data(mark: Mark) -> bytes:
    """What text shows of a mark."""
    return str(mark).encode()


def _in_order(pieces: Any) -> list[Any]:
    result = []
    while pieces is not None:
        pieces, piece = pieces
        result.append(piece)
    return result[::-1]
