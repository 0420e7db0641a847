"""States of one machine in another of the same grammar, which knows nothing else of the text.

A state is what its records say: the stack of the parser, indentations, brackets, the threads of the lexer, and the
same of what it falls back to. Records that states share are read once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

from structgen.core.kernels.lalr import machine as k

if TYPE_CHECKING:
    from structgen.core.engines.lalr.machine import LalrMachine


def moved_states(old: LalrMachine, new: LalrMachine, states: Iterable[int]) -> list[int] | None:
    """The states of ``new`` that are those of ``old``; None if one is not known to be live there.

    O(records that the states are made of). The caller holds both locks.
    """
    moving, found, live = _Moving(old, new), [], set[int]()
    for state in states:
        config = moving.config(state & k.STATE_MASK)
        if config not in live:
            if not new.is_live(config):
                return None
            live.add(config)
        found.append(config | state >> k.STATE_BITS << k.STATE_BITS)
    return found


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
