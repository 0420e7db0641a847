"""A branch: one way to read the text so far. A composed state is a small set of them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from structgen.grammar_machine.matcher import CfgMatcher
from structgen.matcher import GrammarMatcher
from structgen.protocols import Matcher

if TYPE_CHECKING:
    from structgen.composition.grammar import Content


class Branch:
    """A matcher that reads the text at its end: of the grammar around, or of an embedded one.

    Attributes:
        matcher: where this reading stands.
        content: what it reads; None: the grammar around.
        after: the grammar around behind the embedded text, never advanced (None for the grammar around).
        ends: bytes[256], 1 for bytes behind which another text can begin.
        steps: steps of the matcher, to roll back by.
        memo: what is known of the matcher's states, valid until it is rolled back.
        closing: a shortest text behind the embedded one, once known.
    """

    __slots__ = ("after", "closing", "content", "ends", "matcher", "memo", "steps")

    def __init__(self, matcher: Matcher, content: Content | None, after: CfgMatcher | None, ends: bytes) -> None:
        self.matcher = matcher
        self.content = content
        self.after = after
        self.ends = ends
        self.steps = 0
        self.memo: dict[Hashable, Any] = {}
        self.closing: bytes | None = None

    def key(self) -> Hashable:
        """Equal for branches with the same future, whichever matcher; None where that cannot be told."""
        state = state_key(self.matcher)
        return None if state is None else (id(self.content), state, self.after and state_key(self.after))

    def go_back(self, steps: int) -> None:
        """Undo all but the first ``steps`` steps."""
        if steps < self.steps:
            self.matcher.rollback(self.steps - steps)
            self.steps = steps
            self.memo.clear()

    def fork(self) -> Branch:
        """The same, apart, with its history."""
        twin = Branch(self.matcher.fork(), self.content, self.after, self.ends)
        twin.steps = self.steps
        return twin

    def copy(self) -> Branch:
        """The same, apart, without its history."""
        return Branch(self.matcher.copy(), self.content, self.after, self.ends)


def state_key(matcher: Matcher) -> Hashable:
    """Equal for matchers of one grammar in the same state; None where states cannot be compared. O(1)."""
    if isinstance(matcher, CfgMatcher):
        return matcher._machine, matcher._config
    if isinstance(matcher, GrammarMatcher):
        threads = matcher._threads
        closed = matcher.grammar.tables.distinct is False and all(frame < 0 for frame in threads[3::4])
        return threads.tobytes() if closed else None
    own = getattr(matcher, "state_key", None)
    found: Hashable = own() if own is not None else None
    return found


def local_key(matcher: Matcher) -> Hashable:
    """As `state_key`, but only among the states of one matcher that was not rolled back in between."""
    if isinstance(matcher, GrammarMatcher):  # its frames are never changed
        return None if matcher.grammar.tables.distinct else matcher._threads.tobytes()
    return state_key(matcher)
