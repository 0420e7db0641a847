"""The matcher of Lark's LALR parser with its contextual lexer: where an output stands; the move to a new machine."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from structgen.core.engines.protocols import TOO_LONG
from structgen.core.engines.state_matcher import StateMatcher
from structgen.core.kernels.lalr import machine as k
from structgen.errors import MatcherStateError

if TYPE_CHECKING:
    from structgen.core.engines.lalr.compiled import LalrGrammar
    from structgen.core.engines.lalr.machine import LalrMachine


def moved_states(old: LalrMachine, new: LalrMachine, states: Iterable[int]) -> list[int] | None:
    """The states of ``new`` that are those of ``old``; None if one is not known to be live there.

    O(records that the states are made of). The caller holds both locks.
    """
    moving, moved, live = _Moving(old, new), [], set[int]()
    for state in states:
        config = moving.config(state & k.STATE_MASK)
        if config not in live:
            if not new.is_live(config):
                return None
            live.add(config)
        moved.append(config | state >> k.STATE_BITS << k.STATE_BITS)
    return moved


class _Moving:
    """Records of one machine and what they are in another."""

    def __init__(self, old: LalrMachine, new: LalrMachine) -> None:
        self._old, self._new = old, new
        self._known: dict[int, int] = {0: 0}  # no record, no fallback

    def config(self, config: int) -> int:
        """A configuration, after those that it falls back to."""
        above = []
        while config not in self._known:
            above.append(config)
            config = self._old.config(config)[2]
        for current in reversed(above):
            parser, d, fallback, column = self._old.config(current)
            key = self._parser(parser), self._lexer(d), self._known[fallback], column
            self._known[current] = self._adopt(k.CONFIG, key)
        return self._known[above[0] if above else config]

    def _parser(self, parser: int) -> int:
        if parser not in self._known:
            node, indent, brackets = self._old.parser(parser)
            key = self._chain(k.NODE, node), self._chain(k.INDENT, indent), brackets
            self._known[parser] = self._adopt(k.PARSER, key)
        return self._known[parser]

    def _chain(self, kind: int, record: int) -> int:
        """A stack of states or of indentations, from the bottom."""
        above = []
        while record not in self._known:
            above.append(record)
            record = self._old.pair(record)[0]
        for current in reversed(above):
            record, value = self._old.pair(current)
            self._known[current] = self._adopt(kind, (self._known[record], value))
        return self._known[above[0] if above else record]

    def _lexer(self, d: int) -> int:
        if d not in self._known:
            number, threads = self._old.lexer(d)
            key = number, *(terminal << 32 | state for terminal, state in threads)
            self._known[d] = self._adopt(k.LEX, key)
        return self._known[d]

    def _adopt(self, kind: int, key: tuple[int, ...]) -> int:
        words = array("q", key)
        return self._new.call(k.ADOPT, kind, words.buffer_info()[0], len(key))


class LalrMatcher(StateMatcher["LalrGrammar"]):
    """One output in progress. Make one with `LalrGrammar.matcher`. Its state is a configuration of the machine, and
    where in a character it stands."""

    __slots__ = ()

    _grammar: LalrGrammar
    _run = staticmethod(k.run)

    @property
    def stats(self) -> dict[str, int]:
        """``undecided``: states that were given up because no completion was found in bounded time."""
        return {"undecided": self._machine.liveness.undecided}

    def _make_room(self) -> None:
        """Move to another machine once this one is outgrown, so that a long text takes no more memory than a short one.

        States that cannot be shown live there keep the matcher here.
        """
        old = self._machine
        if not old.is_outgrown:
            return
        new = self._grammar.machine_after(old)
        with old.lock, new.lock:  # the older one first
            moved = moved_states(old, new, [self._state, *map(abs, self._history)])
            if moved is None:
                old.settled = int(old.heap[k.H_TOP])
                return
            new.settled = int(new.heap[k.H_TOP])
            new.liveness.undecided = max(new.liveness.undecided, old.liveness.undecided)
        self._state = moved[0]
        self._history = [state if was > 0 else -state for state, was in zip(moved[1:], self._history, strict=True)]
        self._machine, self._root, self._lock = new, new.root, new.lock

    def shortest_completion(self) -> bytes:
        """A short text that completes the output from here (b"" if it may stop); mostly a shortest one.

        Raises:
            MatcherStateError: none was found (the grammar resists all bounded search; none has been seen to).
        """
        if self._terminated or self.is_accepting():
            return b""
        first, whole = self._whole_character()
        with whole._lock:
            remaining = whole._machine.liveness.complete(whole._state)
        if remaining is None:
            raise MatcherStateError("no completion was found")
        return first + remaining.encode()

    def completion_bound(self) -> int:
        """See `Matcher.completion_bound`: the length of a completion that is kept, so mostly more than the text's.

        O(1) for states that were seen before.
        """
        if self._terminated:
            return 0
        bound = self._machine.bounds.get(self._state)
        if bound is None:
            first, whole = self._whole_character()
            with whole._lock:
                remaining = whole._machine.liveness.bound(whole._state)
            with self._lock:
                bound = self._machine.bounds[self._state] = TOO_LONG if remaining is None else len(first) + remaining
        return bound

    def _whole_character(self) -> tuple[bytes, LalrMatcher]:
        """The bytes that complete the character in which the text ends, if it does, and a matcher after them."""
        if not self._state >> k.STATE_BITS:
            return b"", self
        walker, data = self.copy(), bytearray()
        while walker._state >> k.STATE_BITS:
            byte = bytes([int(np.flatnonzero(walker.next_bytes())[0])])
            walker.accept_bytes(byte)
            data += byte
        return bytes(data), walker
