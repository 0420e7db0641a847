"""The matcher of Lark's LALR parser with its contextual lexer: where an output stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structgen.engines.state_matcher import StateMatcher
from structgen.errors import MatcherStateError
from structgen.kernels.lalr import machine as k

if TYPE_CHECKING:
    from structgen.engines.lalr.compiled import LalrGrammar


class LalrMatcher(StateMatcher["LalrGrammar"]):
    """One output in progress. Make one with `LalrGrammar.matcher`. Its state is a configuration of the machine, and
    where in a character it stands."""

    __slots__ = ()

    _grammar: LalrGrammar
    _run = staticmethod(k.run)

    @property
    def stats(self) -> dict[str, int]:
        """``undecided``: states that were given up because no completion was found in bounded time."""
        return {"undecided": self._machine.witnesses.undecided}

    def shortest_completion(self) -> bytes:
        """A short text that completes the output from here (b"" if it may stop); mostly a shortest one.

        Raises:
            MatcherStateError: none was found (the grammar resists all bounded search; none has been seen to).
        """
        if self._terminated or self.is_accepting():
            return b""
        walker, first = self.copy(), bytearray()
        while walker._state >> k.STATE_BITS:  # within a character
            byte = bytes([int(np.flatnonzero(walker.next_bytes())[0])])
            walker.accept_bytes(byte)
            first += byte
        with self._machine.lock:
            rest = self._machine.witnesses.complete(walker._state)
        if rest is None:
            raise MatcherStateError("no completion was found")
        return bytes(first) + rest.encode()
