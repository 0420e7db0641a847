"""The matcher of a context-free grammar: where an output stands."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.bitmask import check_row
from structgen.errors import MatcherStateError, TokenError
from structgen.kernels import grammar_machine as k
from structgen.kernels.grammar_machine import ACCEPT, DEAD, FILL, call

if TYPE_CHECKING:
    from structgen.grammar_machine.compiled import CfgGrammar

_NOT_CHECKED: Any = None


class CfgMatcher:
    """One output in progress. Make one with `CfgGrammar.matcher`; see `structgen.protocols.Matcher`.

    Its state is one integer, the configuration, in the memory of the grammar's machine. Matchers of one grammar may be
    used in different threads at once, one matcher in one thread at a time.
    """

    __slots__ = ("_checked", "_config", "_grammar", "_history", "_machine", "_root", "_size", "_terminated")

    def __init__(self, grammar: CfgGrammar) -> None:
        self._grammar = grammar
        self._size = grammar.vocabulary.size
        self._machine = grammar.machine()
        self._root = self._machine.root
        self._config = self._machine.start
        self._history: list[int] = []  # configurations before each step; negative: the step was the end of sequence
        self._terminated = False
        self._checked = (_NOT_CHECKED, 0, 0)  # the last bitmask, its address and rows

    @property
    def grammar(self) -> CfgGrammar:
        """The grammar that this matcher follows."""
        return self._grammar

    @property
    def stats(self) -> dict[str, int]:
        """``dropped_alternatives``: always 0, no parse is ever given up."""
        return {"dropped_alternatives": 0}

    def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        """Write the mask of the next token into row ``index`` of ``bitmask``.

        Bit t % 32 of word t // 32 is set exactly if `accept_token` would take token t. End-of-sequence bits are set
        exactly if `is_accepting`. After the end of sequence the row is all zero.

        Args:
            bitmask: int32[batch, ceil(V / 32)] or int32[ceil(V / 32)], C-contiguous; mutated.
            index: the row.

        Raises:
            BitmaskError: wrong dtype, shape or layout.
        """
        checked, address, rows = self._checked
        if bitmask is not checked or not 0 <= index < rows:
            address, rows = check_row(bitmask, index, self._size)
            self._checked = (bitmask, address, rows)
        if self._terminated:
            (bitmask[index] if bitmask.ndim == 2 else bitmask)[:] = 0
            return
        out = address + 4 * self._machine.width * index
        while call(self._root, FILL, self._config, out, 0) < 0:
            self._machine.grow()

    def accept_token(self, token_id: int) -> bool:
        """Advance by a token. False, and nothing changes, if it is not allowed here.

        Raises:
            TokenError: the id lies outside the vocabulary.
        """
        if not 0 <= token_id < self._size:
            raise TokenError(f"token id {token_id} is out of range; the vocabulary has ids 0 to {self._size - 1}")
        if self._terminated:
            return False
        before = self._config
        while (config := call(self._root, ACCEPT, before, token_id, 0)) < 0:
            self._machine.grow()
        if config == DEAD:
            return token_id in self._grammar.vocabulary.eos_token_ids and self._terminate()
        self._history.append(before)
        self._config = config
        return True

    def accept_bytes(self, data: bytes) -> bool:
        """Advance by text (UTF-8, any split). False, and nothing changes, if it is not allowed here.

        Counts as one step for `rollback`.
        """
        if self._terminated and data:
            return False
        before = -self._config if self._terminated else self._config
        text = np.frombuffer(data, np.uint8)
        if data:
            config = self._call(k.ADVANCE, self._config, text.ctypes.data, len(data))
            if config == k.DEAD:
                return False
            self._config = config
        self._history.append(before)
        return True

    def rollback(self, steps: int = 1) -> None:
        """Undo the last ``steps`` accepted tokens or texts, the end of sequence included. O(1).

        Raises:
            MatcherStateError: fewer were accepted.
        """
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError(f"cannot roll back {steps} steps; {len(self._history)} were accepted")
        if steps:
            before = self._history[-steps]
            self._config, self._terminated = abs(before), before < 0
            del self._history[-steps:]

    def fork(self) -> CfgMatcher:
        """An independent matcher in the same state, which can be rolled back as far. O(1) but for the step list."""
        twin = self.copy()
        twin._history = self._history.copy()
        return twin

    def copy(self) -> CfgMatcher:
        """An independent matcher in the same state, without the history. O(1)."""
        twin = CfgMatcher.__new__(CfgMatcher)
        twin._grammar, twin._size = self._grammar, self._size
        twin._machine, twin._root, twin._config = self._machine, self._root, self._config
        twin._history, twin._terminated = [], self._terminated
        twin._checked = (_NOT_CHECKED, 0, 0)
        return twin

    def reset(self) -> None:
        """Back to the start of the text; forgets the history."""
        self.__init__(self._grammar)  # type: ignore[misc]

    def is_accepting(self) -> bool:
        """Whether the text may stop here."""
        return not self._terminated and bool(self._call(k.ENDS, self._config, 0, 0) & 1)

    def is_terminated(self) -> bool:
        """Whether the end of sequence was accepted."""
        return self._terminated

    def next_bytes(self) -> npt.NDArray[np.bool_]:
        """Which bytes may come next, bool[256]."""
        out = np.zeros(8, np.int32)
        if not self._terminated:
            self._call(k.NEXT_BYTES, self._config, out.ctypes.data, 0)
        return np.unpackbits(out.view(np.uint8), bitorder="little").astype(bool)

    def forced_bytes(self) -> bytes:
        """The longest text that every completion starts with (empty where the text may stop or embed another)."""
        forced = bytearray()
        walker = self.copy()
        if self._terminated:
            return b""
        while not walker._call(k.ENDS, walker._config, 0, 0):
            following = np.flatnonzero(walker.next_bytes())
            if len(following) != 1:
                break
            byte = bytes([int(following[0])])
            walker.accept_bytes(byte)
            forced += byte
        return bytes(forced)

    def state_key(self, *, own: bool = False) -> Hashable:
        """See `structgen.protocols.Matcher`."""
        return self._machine, self._config, self._terminated

    def shortest_completion(self) -> bytes:
        """A shortest text that completes the output from here (b"" if it may stop).

        Embedded terminals count as the empty text; the matcher that embeds them adds theirs.
        """
        if self._terminated or self.is_accepting():
            return b""
        return self._grammar.completions.complete(self._machine, self._config)

    # --- embedded terminals ---
    def embedded_here(self) -> frozenset[int]:
        """The embedded terminals (ids of the normal form) that may begin exactly here."""
        tables = self._grammar.tables
        if self._terminated or not tables.embedded or not self._call(k.ENDS, self._config, 0, 0) & 2:
            return frozenset()
        classes = {kind for _, d in self._machine.threads(self._config) for kind in self._machine.pseudo_classes(d)}
        return frozenset(t for t, c in tables.embedded.items() if c in classes)

    def after_embedded(self, terminal: int) -> CfgMatcher:
        """A matcher behind the text of an embedded terminal that began here. It has no history.

        Raises:
            MatcherStateError: the terminal may not begin here.
        """
        if terminal not in self.embedded_here():
            raise MatcherStateError(f"terminal {terminal} cannot be embedded here; {sorted(self.embedded_here())} can")
        twin = self.copy()
        twin._config = self._call(k.AFTER, self._config, self._grammar.tables.embedded[terminal], 0)
        return twin

    # --- internals ---
    def _call(self, operation: int, x: int, y: int, z: int) -> int:
        return self._machine.call(operation, x, y, z)

    def _terminate(self) -> bool:
        if not self.is_accepting():
            return False
        self._history.append(self._config)
        self._terminated = True
        return True
