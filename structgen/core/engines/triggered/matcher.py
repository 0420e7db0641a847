"""The matcher of a grammar whose names are a monitor's."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import allows, row_of
from structgen.core.engines.matcher import BaseMatcher
from structgen.core.engines.protocols import Matcher
from structgen.core.engines.triggered.tokens import IN_NAMES, name_end
from structgen.core.monitors.protocol import TriggerMonitor, asked, new_stats
from structgen.core.regions import PartialParse
from structgen.errors import CompletionTooLongError, MatcherStateError

MAX_STEPS = 256
"""Names after which a completion is given up."""


@dataclass(frozen=True)
class _Names:
    """Names that may come, ascending."""

    names: tuple[bytes, ...]

    @cached_property
    def all(self) -> frozenset[bytes]:
        """The same, as a set."""
        return frozenset(self.names)

    def after(self, start: bytes) -> list[bytes]:
        """What names go on with that begin with ``start``."""
        result = []
        for name in self.names[bisect_left(self.names, start) :]:
            if not name.startswith(start):
                break
            result.append(name[len(start) :])
        return result


@dataclass(frozen=True, slots=True)
class _Run:
    """A name that is being written: what it may be, and what there is of it."""

    names: _Names
    start: bytes = b""

    @property
    def is_whole(self) -> bool:
        """Whether it may end."""
        return self.start in self.names.all

    def then(self, data: bytes) -> _Run | None:
        """With more bytes of names; None: no name begins so."""
        start = self.start + data
        first = bisect_left(self.names.names, start)
        begins = first < len(self.names.names) and self.names.names[first].startswith(start)
        return _Run(self.names, start) if begins else None


class Suggestions:
    """What a monitor has said, by text: of one output and its forks, so that an answer stays what it was."""

    def __init__(self, monitor: TriggerMonitor) -> None:
        self.stats = new_stats()
        self._monitor = monitor
        self._by_text: dict[bytes, _Names | None] = {}

    def after(self, text: bytes, base: Matcher) -> _Run | None:
        """The name that is to come after a text, where ``base`` stands; None: nothing is said of it.

        Raises:
            GenerationError: the monitor raised.
        """
        if text not in self._by_text:
            suggested = asked(self._monitor, text, self.stats)
            names = None if suggested is None else tuple(sorted(self._kept(suggested, base)))
            if names is not None and not names:
                self.stats["empty_suggestions"] += 1
            self._by_text[text] = _Names(names) if names else None
        kept = self._by_text[text]
        return None if kept is None else _Run(kept)

    def _kept(self, names: Iterable[str], base: Matcher) -> Iterator[bytes]:
        """Those that are names, and that ``base`` takes as such."""
        for name in names:
            data = name.encode(errors="replace")
            if not data or name_end(data) < len(data):
                continue
            after = base.copy()
            if after.accept_bytes(data) and (after.is_accepting() or bool((after.next_bytes() & ~IN_NAMES).any())):
                yield data


class TriggeredMatcher(BaseMatcher[Any]):
    """One output in progress; see `structgen.core.engines.protocols.Matcher`. Make one with `TriggeredGrammar.matcher`.

    Its state is that of a matcher of the grammar below, the text, and the name that is being written after a trigger.
    """

    __slots__ = ("_base", "_history", "_run", "_suggestions", "_text")

    def __init__(self, grammar: Any) -> None:  # a `TriggeredGrammar`
        super().__init__(grammar)
        self._base = grammar.base.matcher()
        self._suggestions = Suggestions(grammar.monitor)
        self._text = b""
        self._run: _Run | None = None
        self._history: list[tuple[int, _Run | None]] = []

    @property
    def stats(self) -> dict[str, int]:
        """See `Matcher.stats`: the other grammar's, and of the monitor (``new_stats``), which forks share."""
        return self._base.stats | self._suggestions.stats

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, address: int) -> None:
        self._base.fill_next_token_bitmask(bitmask, index)
        row = bitmask[index] if bitmask.ndim == 2 else bitmask
        if self._run is None:
            self._narrow(row)
        else:
            self._narrow_to_names(row, self._run)

    @property
    def fill_upper_bound(self) -> Any:
        """What fills a mask without asking a monitor that is slow: tokens that go on after a trigger are all allowed.
        None: the monitor is not."""
        return self._fill_unasked if getattr(self._grammar.monitor, "is_slow", False) else None

    def _fill_unasked(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        self._base.fill_next_token_bitmask(bitmask, index)
        if self._run is not None:
            row = bitmask[index] if bitmask.ndim == 2 else bitmask
            self._leave(row, self._named(row, self._run), self._run)

    def _named(self, row: npt.NDArray[np.int32], run: _Run) -> npt.NDArray[np.int64]:
        """Tokens of a mask that go on with a name."""
        fitting = self._grammar.tokens.all.fitting(run.names.after(run.start))
        return np.asarray(fitting[allows(row, fitting)])

    def _leave(self, row: npt.NDArray[np.int32], ids: npt.NDArray[np.int64], run: _Run) -> None:
        """Leave of a mask these tokens, and the end where a name may end."""
        ends = np.array(self._grammar.vocabulary.eos_token_ids if run.is_whole else (), np.int64)
        ends = ends[allows(row, ends)]
        row[:] = row_of(np.concatenate([ids, ends]), len(row))

    def _narrow(self, row: npt.NDArray[np.int32]) -> None:
        """Take out of a mask what goes on after a trigger as it may not."""
        tokens, refused = self._grammar.tokens, self._refused_begun(row)
        for piece, group in tokens.after.items():
            ids = group.ids[allows(row, group.ids)]
            if not len(ids):
                continue
            base = self._base.copy()
            base.accept_bytes(piece)
            run = self._suggestions.after(self._text + piece, base)
            fitting = ids if run is None else np.intersect1d(ids, group.fitting(run.names.names))
            refused += np.setdiff1d(ids, fitting).tolist()
            refused += self._refused_of(np.intersect1d(fitting, group.crossing))
        if refused:
            row &= ~row_of(refused, len(row))

    def _narrow_to_names(self, row: npt.NDArray[np.int32], run: _Run) -> None:
        """Leave of a mask what goes on with a name."""
        group = self._grammar.tokens.all
        fitting = group.fitting(end for end in run.names.after(run.start) if end)
        fitting = fitting[allows(row, fitting)]
        refused = self._refused_begun(row) + self._refused_of(np.intersect1d(fitting, group.crossing))
        apart = row.copy()  # what goes on without a name, as where none is being written
        if run.is_whole:
            apart &= row_of(group.fitting([b""]), len(row))
            self._narrow(apart)
        self._leave(row, fitting, run)
        if run.is_whole:
            row |= apart
        if refused:
            row &= ~row_of(refused, len(row))

    def _refused_begun(self, row: npt.NDArray[np.int32]) -> list[int]:
        """Tokens of a mask that go on after a trigger that was begun before them, as they may not."""
        tokens = self._grammar.tokens
        pieces = tokens.triggers.begun(self._text)
        ids = {token for piece in pieces for token in tokens.beginning(piece)}
        those = np.array(sorted(ids), np.int64)
        return self._refused_of(those[allows(row, those)])

    def _refused_of(self, ids: npt.NDArray[np.int64]) -> list[int]:
        """Those of some tokens, which the other grammar takes, that may not come."""
        tokens = self._grammar.vocabulary.tokens
        return [token for token in ids.tolist() if not self._walked(self._base, tokens[token])[0]]

    def _walked(self, base: Matcher, data: bytes) -> tuple[bool, _Run | None]:
        """Whether a text may come that ``base``, which stays as it is, takes; and the name that it ends in."""
        run, offset, triggers = self._run, 0, self._grammar.triggers
        tail = (
            self._text[len(self._text) - triggers.longest + 1 :] if len(self._text) >= triggers.longest else self._text
        )
        context = tail + data
        walker, walked = None, 0
        while offset < len(data):
            if run is not None:
                end = name_end(data, offset)
                run = run.then(data[offset:end])
                if run is None or (end < len(data) and not run.is_whole):
                    return False, None
                if end == len(data):
                    return True, run
                offset, run = end, None
            end = triggers.end_after(context, len(tail) + offset) - len(tail)
            if end < 0:
                break
            walker = walker or base.copy()
            if not walker.accept_bytes(data[walked:end]):
                return False, None
            run, offset, walked = self._suggestions.after(self._text + data[:end], walker), end, end
        return True, run

    def _accept_token(self, token_id: int) -> bool:
        if self._terminated:
            return False
        vocabulary = self._grammar.vocabulary
        data = vocabulary.tokens[token_id]
        if data:
            return self._step(data, token_id)
        if token_id not in vocabulary.eos_token_ids or not self._may_stop() or not self._base.accept_token(token_id):
            return False
        self._history.append((len(self._text), self._run))
        self._terminated = True
        return True

    def _accept(self, data: bytes) -> bool:
        data = bytes(memoryview(data))
        return not (self._terminated and data) and self._step(data)

    def _step(self, data: bytes, token: int = -1) -> bool:
        allows, run = self._walked(self._base, data)
        if not allows or not (self._base.accept_bytes(data) if token < 0 else self._base.accept_token(token)):
            return False
        self._history.append((len(self._text), self._run))
        self._text += data
        self._run = run
        return True

    def reset(self) -> None:
        """See `Matcher.reset`; what the monitor has said stays."""
        suggestions = self._suggestions
        super().reset()
        self._suggestions = suggestions

    def _rollback(self, steps: int) -> None:
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError.past_the_start(steps, len(self._history))
        if steps:
            self._base.rollback(steps)
            length, self._run = self._history[-steps]
            self._text, self._terminated = self._text[:length], self._base.is_terminated()
            del self._history[-steps:]

    def _fork(self) -> Self:
        twin = self._twin(self._base.fork())
        twin._history = self._history.copy()
        return twin

    def _copy(self) -> Self:
        return self._twin(self._base.copy())

    def _twin(self, base: Matcher) -> Self:
        twin = object.__new__(type(self))
        BaseMatcher.__init__(twin, self._grammar)
        twin._base, twin._suggestions = base, self._suggestions
        twin._text, twin._run, twin._terminated = self._text, self._run, self._terminated
        twin._history = []
        return twin

    def is_accepting(self) -> bool:
        """See `Matcher.is_accepting`."""
        return not self._terminated and self._may_stop()

    def _may_stop(self) -> bool:
        return (self._run is None or self._run.is_whole) and self._base.is_accepting()

    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        following = self._base.next_bytes()
        if self._run is not None:
            names = np.zeros(256, np.bool_)
            names[[end[0] for end in self._run.names.after(self._run.start) if end]] = True
            following &= names | ~IN_NAMES if self._run.is_whole else names
        out[:] = np.packbits(following, bitorder="little").view(np.int32)

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`: the other grammar's, with names of the monitor's in place of its own.

        Raises:
            CompletionTooLongError: none was found with so many names.
        """
        walker = self._copy()
        for _ in range(MAX_STEPS):
            if walker._terminated or walker.is_accepting():
                return walker._text[len(self._text) :]
            walker._go_on()
        raise CompletionTooLongError(f"no text of {MAX_STEPS} names completes the output")

    def _go_on(self) -> None:
        """Write the name that is begun, or what the other grammar ends with, up to where a name must be another."""
        if self._run is not None:
            name = min(self._run.names.after(self._run.start), key=len)
            self._accept(name)
            if self.is_accepting():
                return
            following = np.flatnonzero(self._base.next_bytes() & ~IN_NAMES).tolist()
            self._accept(min((bytes([byte]) for byte in following), key=self._bound_after))
            return
        text = self._base.shortest_completion()
        if not self._accept(text):
            for byte in text:
                if not self._accept(bytes([byte])) or self.is_accepting():
                    return

    def _bound_after(self, byte: bytes) -> int:
        after = self._base.copy()
        after.accept_bytes(byte)
        return after.completion_bound()

    def partial_parses(self) -> list[PartialParse] | None:
        """See `Matcher.partial_parses`."""
        return self._base.partial_parses()

    def bytes_to_stop(self) -> int:
        """See `Matcher.bytes_to_stop`."""
        return self._base.bytes_to_stop()
