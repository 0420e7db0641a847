"""The matcher of Lark's LALR parser with its contextual lexer: where an output stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structgen.engines.protocols import TOO_LONG
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
        first, config = self._whole_character()
        with self._lock:
            rest = self._machine.witnesses.complete(config)
        if rest is None:
            raise MatcherStateError("no completion was found")
        return first + rest.encode()

    def completion_bound(self) -> int:
        """See `Matcher.completion_bound`: the length of a way to the end that is kept, so mostly more than the text's.

        O(1) for states that were seen before.
        """
        if self._terminated:
            return 0
        bound = self._machine.bounds.get(self._state)
        if bound is None:
            first, config = self._whole_character()
            with self._lock:
                rest = self._machine.witnesses.bound(config)
                bound = self._machine.bounds[self._state] = TOO_LONG if rest is None else len(first) + rest
        return bound

    def _whole_character(self) -> tuple[bytes, int]:
        """The bytes that complete the character in which the text ends, if it does, and the configuration then."""
        if not self._state >> k.STATE_BITS:
            return b"", self._state
        walker, data = self.copy(), bytearray()
        while walker._state >> k.STATE_BITS:
            byte = bytes([int(np.flatnonzero(walker.next_bytes())[0])])
            walker.accept_bytes(byte)
            data += byte
        return bytes(data), walker._state
