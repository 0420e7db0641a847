"""Short completions of an output from any state of its matcher.

A configuration of the machine (`structgen.core.kernels.json`) is read as what is still to be written: the rest of a
string, number or key, then what each open container lacks, innermost first. Each piece is a shortest one
(`completion.cheapest_values`); of several configurations the one with the shortest text decides. What comes out
is fed to the matcher before it is returned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Protocol

import numpy as np
import numpy.typing as npt

from structgen.core.engines.json.completion.cheapest_values import Values
from structgen.core.engines.json.completion.draft_candidates import LikelyTexts, Spacing
from structgen.core.engines.json.completion.lengths import Lengths
from structgen.core.engines.json.completion.remaining_text import Arena, Index, RemainderWriter, Tabled
from structgen.core.engines.json.numbers.values import symbols
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.kernels.json import layout
from structgen.errors import CompletionTooLongError, InternalError
from structgen.options import JsonOptions

MAX_STEPS = 10_000
# Bytes to try inside an escape, in this order: any live one can be completed; "d" may begin a surrogate pair.
_ESCAPE_BYTES = [bytes([byte]) for byte in b'"\\/nrt0123456789abcefud']
# Bytes in the order in which one is taken where the cheapest value is an item already: what ends things first, blanks
# and what only respells a number or character last.
_PREFERRED = (
    b'"}],:1234567890tfnabcdeghijklmopqrsuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_/'
    + bytes(byte for byte in range(0x21, 0x5C) if not chr(byte).isalnum() and byte not in b'",-.+/:[')
    + bytes(byte for byte in range(0x5E, 0x7F) if not chr(byte).isalpha() and byte not in b"_{}")
    + bytes(range(0x80, 0x100))
    + b"{[.+\\ \n"
)
# Values that are tried for an item, beyond those that the array may have already, before it is written byte by byte.
MORE_TRIED = 64


class OpenOutput(Protocol):
    """What is needed of a `matcher.JsonMatcher`."""

    dropped: int

    @property
    def grammar(self) -> Tabled: ...
    def configurations(self) -> tuple[npt.NDArray[np.int64], Arena]: ...
    def accept_bytes(self, data: bytes) -> bool: ...
    def is_accepting(self) -> bool: ...
    def next_bytes(self) -> npt.NDArray[np.bool_]: ...
    def rollback(self, steps: int = 1) -> None: ...


class JsonCompletions:
    """Completions of the outputs of one grammar. Threads may share it."""

    def __init__(self, root: ValueNode, options: JsonOptions) -> None:
        self._root = root
        self._values = Values(options)
        self._index: Index | None = None

    @property
    def memory_bytes(self) -> int:
        """Bytes of the texts that are kept: each may be large."""
        return self._values.bytes

    def index(self, grammar: Tabled) -> Index:
        """What the places in the grammar's tables stand for."""
        if self._index is None:
            self._index = Index(self._root, grammar, self._values)
        return self._index

    def lengths(self, grammar: Tabled) -> Lengths:
        """How long the texts are that `complete` writes."""
        return Lengths(self.index(grammar), self._values, bytes(grammar.vocabulary.missing_bytes))

    def likely(self, matcher: OpenOutput, written: bytes) -> list[bytes]:
        """See `Matcher.likely_texts`: of the first configuration. O(size of the arena)."""
        threads, arena = matcher.configurations()
        if not len(threads):
            return []
        q, a, b, frame = threads[0].tolist()
        return LikelyTexts(self.index(matcher.grammar), self._values, arena).after(q, a, b, frame, Spacing(written))

    def complete(self, matcher: OpenOutput) -> bytes:
        """A short text that completes the output: ``matcher.accept_bytes`` takes it and then the text may stop.

        Close to the shortest: see `completion.cheapest_values` for what is approximate, and of an escape that
        was begun any character may come that does. The matcher is left as it was. O(depth) for values whose value nodes
        were completed before.

        Raises:
            CompletionTooLongError: every text needs more characters, items or members than are written.
        """
        self.index(matcher.grammar)
        text, steps, dropped = b"", 0, matcher.dropped
        cursors: dict[ValueNode, Iterator[bytes]] = {}
        try:
            while not matcher.is_accepting():
                threads, arena = matcher.configurations()
                if threads[0, 0] > layout.STRING and threads[0, 0] & 15:
                    pieces = list(self._escape_remainders(threads, arena))
                else:
                    pieces = self._texts(threads, arena)
                piece = next((piece for piece in pieces if matcher.accept_bytes(piece)), None)
                if piece is None:  # most likely an item is there already
                    piece = self._other_item(matcher, threads, arena, cursors)
                piece = piece or _first_items(matcher, pieces) or self._next_byte(matcher, threads)
                if piece is None or steps > MAX_STEPS:
                    raise InternalError(f"no completion of {text!r:.200} from configurations {threads.tolist()}")
                text, steps = text + piece, steps + 1
            return text
        finally:
            matcher.rollback(steps)
            matcher.dropped = dropped

    def _texts(self, threads: npt.NDArray[np.int64], arena: Arena) -> list[bytes]:
        """A completion for each configuration, shortest first."""
        assert self._index is not None
        reader = RemainderWriter(self._index, self._values, arena)
        texts = []
        for thread in threads.tolist():
            with suppress(CompletionTooLongError):
                texts.append(reader.completion(*thread))
        sorted_texts = sorted((text for text in texts if text is not None), key=len)
        if not sorted_texts:
            raise CompletionTooLongError.whole()
        return sorted_texts

    def _other_item(
        self,
        matcher: OpenOutput,
        threads: npt.NDArray[np.int64],
        arena: Arena,
        cursors: dict[ValueNode, Iterator[bytes]],
    ) -> bytes | None:
        """Accept another value than the cheapest for the next item, by the configuration that is nearest to its end.

        ``cursors`` go on after the values that were tried for earlier items, which repeat one of these.
        """
        assert self._index is not None
        reader = RemainderWriter(self._index, self._values, arena)
        order = threads.tolist()
        if len(order) > 1:
            order.sort(key=lambda thread: len(reader.completion(*thread) or b"") or layout.LOW32)
        for thread in order:
            following = reader.next_item(*thread)
            if following is not None:
                node, lead, used, depth = following
                values = cursors.setdefault(node, self._values.distinct.of(node, depth))
                for value in islice(values, used + MORE_TRIED):
                    if matcher.accept_bytes(lead + value):
                        if _may_end(matcher, value):
                            return lead + value
                        matcher.rollback()
        return None

    def _next_byte(self, matcher: OpenOutput, threads: npt.NDArray[np.int64]) -> bytes | None:
        """Accept one byte, of those that end things first, and of a number one that leads to another value.

        For arrays of distinct items, where the cheapest repeats one.
        """
        following = matcher.next_bytes()
        if (threads[:, 0] == layout.NUMBER).all():
            pool, led = matcher.grammar.rows.pool, np.ones(256, np.bool_)
            led[list(b"0123456789+-.eE")] = False
            for state in threads[:, 2].tolist():
                led[list(symbols(*pool.number_at(state)))] = True
            following = following & led if (following & led).any() else following
        byte = next((bytes([byte]) for byte in _PREFERRED if following[byte]), None)
        return byte if byte is not None and matcher.accept_bytes(byte) else None

    def _escape_remainders(self, threads: npt.NDArray[np.int64], arena: Arena) -> Iterator[bytes]:
        """What to try inside an escape: the rest of one for the character that is wanted most, then any next byte."""
        bodies = threads.copy()
        bodies[:, 0] &= ~15
        bodies[:, 1] &= layout.LOW32
        escape_state, read = int(threads[0, 0]) & 15, int(threads[0, 1]) >> 32
        for text in self._texts(bodies, arena):
            for escape in _escapes_of(text):
                begun = _begun(escape_state, read)
                if begun is not None and escape.startswith(begun):
                    yield escape[len(begun) :]
        yield from _ESCAPE_BYTES


def _may_end(matcher: OpenOutput, value: bytes) -> bool:
    """Whether a value that was accepted may end: a number that is there already can be the beginning of another."""
    return not value[-1:].isdigit() or bool(matcher.next_bytes()[list(b",]\n")].any())


def _first_items(matcher: OpenOutput, pieces: list[bytes]) -> bytes | None:
    """Accept of the first text that begins well as much as comes before the item that is there already."""
    for piece in pieces:
        taken, size = 0, 1
        while size:
            if matcher.accept_bytes(piece[: taken + size]):
                matcher.rollback()
                taken = min(taken + size, len(piece))
                size *= 2
            else:
                size //= 2
        start = max(piece.rfind(b",", 0, taken), piece.rfind(b"[", 0, taken)) + 1
        text = piece[: start or taken]
        if text and matcher.accept_bytes(text):
            return text
    return None


def _escapes_of(text: bytes) -> Iterator[bytes]:
    """Escapes of the first character of a string's rest (none if it ends there)."""
    if text[:1] == b'"':
        return
    if text[:1] == b"\\":
        first = text[: 6 if text[1:2] == b"u" else 2]
        yield first
        character = json.loads(b'"' + first + b'"')
    else:
        character = text[:4].decode(errors="ignore")[:1]
    units = character.encode("utf-16-be").hex()
    if units:
        yield "".join(f"\\u{units[offset : offset + 4]}" for offset in range(0, len(units), 4)).encode()


def _begun(escape_state: int, read: int) -> bytes | None:
    """The text of an escape so far, from its place and the digits read; None past a high surrogate."""
    if escape_state == layout.ESCAPE:
        return b"\\"
    if escape_state < layout.LOW_BACKSLASH:
        digits = escape_state - layout.HEX
        return b"\\u" + (b"%04x" % read)[4 - digits :]
    return None
