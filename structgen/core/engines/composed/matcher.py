"""The matcher of a composed grammar."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from structgen.core.engines.cfg.matcher import CfgMatcher
from structgen.core.engines.composed import masks
from structgen.core.engines.composed.branch import Branch
from structgen.core.engines.matcher import BaseMatcher
from structgen.errors import CompletionTooLongError, MatcherStateError, TokenError

if TYPE_CHECKING:
    from structgen.core.engines.composed.grammar import ComposedGrammar

MAX_BRANCHES = 64
"""So many readings of a text are kept, and one more for each embedded grammar; others are given up and counted."""
# Equal branches are merged at the end of each piece, so long texts are read in pieces.
PIECE = 16

_Snapshot = list[tuple[Branch, int]]


class ComposedMatcher(BaseMatcher["ComposedGrammar"]):
    """One output in progress; see `structgen.core.engines.protocols.Matcher`. Make one with `ComposedGrammar.matcher`.

    Its state is a set of branches: at every point where an embedded text may begin or end, there is a branch that goes
    on in it and one that goes on in the grammar around.
    """

    def __init__(self, grammar: ComposedGrammar) -> None:
        super().__init__(grammar)
        self._dropped = 0
        start = Branch(grammar.outer.matcher(), None, None, grammar.ends)
        self._branches = self._distinct([start, *self._entries(start)])
        self._history: list[tuple[_Snapshot, bool]] = []

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what budgets gave up, embedded grammars' included; ``dropped_alternatives``: readings given up."""
        total = {"dropped_alternatives": self._dropped}
        seen = {id(b): b for snapshot, _ in self._history for b, _ in snapshot}
        seen.update({id(b): b for b in self._branches})
        for branch in seen.values():
            for name, count in branch.matcher.stats.items():
                total[name] = total.get(name, 0) + count
        return total

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, address: int) -> None:
        masks.fill(self, self._branches, bitmask, index)

    def accept_token(self, token_id: int) -> bool:
        """See `Matcher.accept_token`."""
        vocabulary = self._grammar.vocabulary
        if not 0 <= token_id < vocabulary.size:
            raise TokenError.out_of_range(token_id, vocabulary.size)
        if self._in_use:
            raise MatcherStateError.in_use()
        if self._terminated:
            return False
        self._in_use = True
        try:
            return self._accept_token(token_id)
        finally:
            self._in_use = False

    def _accept_token(self, token_id: int) -> bool:
        vocabulary = self._grammar.vocabulary
        before = [(branch, branch.steps) for branch in self._branches]
        data = vocabulary.tokens[token_id]
        if not data:
            if token_id not in vocabulary.eos_token_ids or not self.is_accepting():
                return False
            self._terminated = True
        else:
            found = self.advance(self._branches, data, token_id)
            if not found:
                return False
            self._branches = found
        self._history.append((before, False))
        return True

    def _accept(self, data: bytes) -> bool:
        if not isinstance(data, bytes):
            data = bytes(memoryview(data))
        if self._terminated and data:
            return False
        before, dropped = [(branch, branch.steps) for branch in self._branches], self._dropped
        for start in range(0, len(data), PIECE):
            self._branches = self.advance(self._branches, data[start : start + PIECE])
            if not self._branches:
                self._restore(before)
                self._dropped = dropped
                return False
        self._history.append((before, self._terminated))
        return True

    def rollback(self, steps: int = 1) -> None:
        """See `Matcher.rollback`. O(branches)."""
        if self._in_use:
            raise MatcherStateError.in_use()
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError.past_the_start(steps, len(self._history))
        if steps:
            before, self._terminated = self._history[-steps]
            del self._history[-steps:]
            self._restore(before)

    def fork(self) -> ComposedMatcher:
        """See `Matcher.fork`. O(steps)."""
        if self._in_use:
            raise MatcherStateError.in_use()
        twins: dict[int, Branch] = {}

        def twin_of(branch: Branch) -> Branch:
            if id(branch) not in twins:
                twins[id(branch)] = branch.fork()
            return twins[id(branch)]

        twin = self._bare([twin_of(branch) for branch in self._branches])
        twin._history = [([(twin_of(b), n) for b, n in before], ended) for before, ended in self._history]
        return twin

    def copy(self) -> ComposedMatcher:
        """See `Matcher.copy`. O(branches)."""
        if self._in_use:
            raise MatcherStateError.in_use()
        return self._bare([branch.copy() for branch in self._branches])

    def is_accepting(self) -> bool:
        """See `Matcher.is_accepting`."""
        return not self._terminated and any(b.content is None and b.matcher.is_accepting() for b in self._branches)

    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        found = np.zeros(256, np.bool_)
        for branch in self._branches:
            found |= branch.matcher.next_bytes()
        out[:] = np.packbits(found, bitorder="little").view(np.int32)

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`: the shortest that one of the branches writes."""
        if self._terminated or self.is_accepting():
            return b""
        found, refused = [], None
        for branch in self._branches:
            try:
                found.append(branch.shortest_completion())
            except CompletionTooLongError as error:
                refused = error
        if refused and not found:
            raise refused
        return min(found, key=len)

    def completion_bound(self) -> int:
        """See `Matcher.completion_bound`: the least of the branches' own."""
        if self._terminated or self.is_accepting():
            return 0
        return min(branch.completion_bound() for branch in self._branches)

    def state_key(self, *, own: bool = False) -> Hashable:
        """See `Matcher.state_key`."""
        keys = frozenset(branch.own_key() if own else branch.key() for branch in self._branches)
        return None if None in keys else (keys, self._terminated)

    # --- what masks are made with ---
    def advance(self, branches: Sequence[Branch], data: bytes, token: int = -1) -> list[Branch]:
        """The branches behind a text (not empty); those of ``branches`` that take it move. None: nothing has changed.

        Args:
            branches: where to start, all at the same place.
            data: the text.
            token: its id, which is faster; -1: no token.
        """
        waiting = {0: list(branches)}
        found: list[Branch] = []
        while waiting:
            start = min(waiting)
            fresh = waiting.pop(start)
            for branch in self._distinct(fresh) if start else fresh:
                self._advance_branch(branch, data, start, token, waiting, found)
        return self._distinct(found)

    def exits(self, branch: Branch) -> list[Branch]:
        """The branches that begin where ``branch`` stands: embedded texts, or what comes after one."""
        if branch.content is None:
            return list(self._entries(branch))
        if branch.after is None or not branch.matcher.is_accepting():
            return []
        return self.behind(branch.after)

    def behind(self, after: CfgMatcher) -> list[Branch]:
        """The branches behind an embedded text."""
        outer = Branch(after.copy(), None, None, self._grammar.ends)
        return [outer, *self._entries(outer)]

    def survives(self, branches: Sequence[Branch], data: bytes) -> bool:
        """Whether some branch takes the text; nothing changes."""
        before = [(branch, branch.steps) for branch in branches]
        dropped = self._dropped
        found = self.advance(branches, data)
        for branch, steps in before:
            branch.go_back(steps)
        self._dropped = dropped
        return bool(found)

    # --- internals ---
    def _advance_branch(
        self, branch: Branch, data: bytes, start: int, token: int, waiting: dict[int, list[Branch]], found: list[Branch]
    ) -> None:
        """Read ``data[start:]`` by one branch; what begins inside goes to ``waiting``, what lives on to ``found``."""
        marks = data.translate(branch.ends)
        at, steps, matcher = start, 0, branch.matcher
        cut = marks.find(1, start, -1)
        while cut >= 0:
            if not matcher.accept_bytes(data[at : cut + 1]):
                break
            at, steps = cut + 1, steps + 1
            fresh = self.exits(branch)
            if fresh:
                waiting.setdefault(at, []).extend(fresh)
            cut = marks.find(1, at, -1)
        else:
            whole = token >= 0 and at == 0
            if matcher.accept_token(token) if whole else matcher.accept_bytes(data[at:]):
                branch.steps += steps + 1
                found.append(branch)
                if marks[-1]:
                    found += self.exits(branch)
                return
        if steps:
            matcher.rollback(steps)

    def _entries(self, branch: Branch) -> Iterator[Branch]:
        """The embedded texts that may begin where a branch of the grammar around stands."""
        outer = cast(CfgMatcher, branch.matcher)  # which all branches without content have
        for terminal in sorted(outer.embedded_here()):
            content = self._grammar.contents[terminal]
            yield Branch(content.grammar.matcher(), content, outer.after_embedded(terminal), content.ends)

    def _distinct(self, branches: list[Branch]) -> list[Branch]:
        """Without those that another has the future of, and no more than are kept."""
        if len(branches) < 2:
            return branches
        kept: dict[Hashable, Branch] = {}
        for branch in branches:
            key = branch.key()
            kept.setdefault(id(branch) if key is None else key, branch)
        most = MAX_BRANCHES + len(self._grammar.contents)  # all may begin at one place, such as behind a trigger
        self._dropped += max(0, len(kept) - most)
        return list(kept.values())[:most]

    def _restore(self, snapshot: _Snapshot) -> None:
        for branch, steps in snapshot:
            branch.go_back(steps)
        self._branches = [branch for branch, _ in snapshot]

    def _bare(self, branches: list[Branch]) -> ComposedMatcher:
        twin = ComposedMatcher.__new__(ComposedMatcher)
        BaseMatcher.__init__(twin, self._grammar)
        twin._branches, twin._history = branches, []
        twin._terminated, twin._dropped = self._terminated, self._dropped
        return twin
