"""A configuration: one possible parse of the text so far. A composed state is a small set of them."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count
from typing import Any

from structgen.core.engines.cfg.matcher import CfgMatcher
from structgen.core.engines.composed.content import Content
from structgen.core.engines.protocols import TOO_LONG, Matcher
from structgen.core.regions import OpenRegion, PartialParse

MOST_REMEMBERED = 1 << 12
_SERIALS = count()


class Configuration:
    """A matcher that reads the text at its end: of the grammar around, or of an embedded one.

    Attributes:
        matcher: where this parse stands.
        content: what it reads; None: the grammar around.
        after: the grammar around after the embedded text, never advanced (None for the grammar around).
        ends: bytes[256], 1 for bytes after which another text can begin.
        steps: steps of the matcher, to roll back by.
        serial: a number of its own.
        closing: a shortest text after the embedded one, once known.
    """

    __slots__ = ("_memo", "_sizes", "after", "closing", "content", "ends", "matcher", "serial", "steps")

    def __init__(self, matcher: Matcher, content: Content | None, after: CfgMatcher | None, ends: bytes) -> None:
        self.matcher = matcher
        self.content = content
        self.after = after
        self.ends = ends
        self.steps = 0
        self._sizes: list[tuple[int, int]] = []  # after steps
        self.serial = next(_SERIALS)
        self._memo: dict[Hashable, tuple[int, Any]] = {}
        self.closing: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes that it has read since it began."""
        return self._sizes[-1][1] if self._sizes else 0

    def go_on(self, steps: int, size: int) -> None:
        """The matcher has made so many steps and read so many bytes."""
        self._sizes.append((self.steps + steps, self.size + size))
        self.steps += steps

    def partial_parses(self) -> list[PartialParse]:
        """See `Matcher.partial_parses`."""
        matcher_bound, region = self.matcher.completion_bound(), None if self.content is None else self.content.region
        after = 0 if self.after is None else self.after.completion_bound()
        around = () if region is None else (OpenRegion(region, self.size, matcher_bound),)
        inner = self.matcher.partial_parses()
        if inner is None:
            following = self.matcher.next_bytes()
            if not self.size and self.after is not None and self.content is not None and self.content.is_nullable:
                following |= self.after.next_bytes()  # what comes next may come after its empty text
            return [PartialParse(around, min(matcher_bound + after, TOO_LONG), following, not self.size)]
        return [
            PartialParse((*around, *each.regions), min(each.bound + after, TOO_LONG), each.next, not self.size)
            for each in inner
        ]

    def completion_bound(self) -> int:
        """Bytes of `shortest_completion`, or more; see `Matcher.completion_bound`."""
        matcher_bound = self.matcher.completion_bound()
        return matcher_bound if self.after is None else min(matcher_bound + self.after.completion_bound(), TOO_LONG)

    def shortest_completion(self) -> bytes:
        """A shortest text of what it reads, and of the grammar around after it.

        Raises:
            CompletionTooLongError: every text of what it reads is too long.
        """
        completion = self.matcher.shortest_completion()
        if self.closing is None:
            self.closing = b"" if self.after is None else self.after.shortest_completion()
        return completion + self.closing

    def key(self) -> Hashable:
        """Equal for configurations with the same future, whichever matcher; None where that cannot be told."""
        state = self.matcher.state_key()
        content = self.content and self.content.key
        return None if state is None else (content, state, self.after and self.after.state_key())

    def own_key(self) -> Hashable:
        """Equal for the same future of this one while it is not rolled back; None where that is not known."""
        state = self.matcher.state_key(same_matcher=True)
        return None if state is None else (self.serial, state)

    def recall(self, key: Hashable) -> Any:
        """What was remembered under a key made of own keys, or None."""
        entry = self._memo.get(key)
        return None if entry is None else entry[1]

    def remember(self, key: Hashable, value: Any) -> None:
        """Keep a value until the configuration is rolled back after where it stands now."""
        if len(self._memo) >= MOST_REMEMBERED:
            self._memo = {}
        self._memo[key] = self.steps, value

    def go_back(self, steps: int) -> None:
        """Undo all but the first ``steps`` steps."""
        if steps < self.steps:
            self.matcher.rollback(self.steps - steps)
            self.steps = steps
            while self._sizes and self._sizes[-1][0] > steps:
                self._sizes.pop()
            # What was written after that place will be written anew; keys of before say what they said.
            self._memo = {key: entry for key, entry in self._memo.items() if entry[0] <= steps}

    def fork(self) -> Configuration:
        """The same, apart, with its history."""
        twin = Configuration(self.matcher.fork(), self.content, self.after, self.ends)
        twin.steps, twin._sizes = self.steps, self._sizes.copy()
        return twin

    def copy(self) -> Configuration:
        """The same, apart, without its history."""
        twin = Configuration(self.matcher.copy(), self.content, self.after, self.ends)
        twin._sizes = [(0, self.size)]
        return twin
