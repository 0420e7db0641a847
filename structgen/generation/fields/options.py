"""The few values that may stand somewhere, asked of any matcher byte by byte."""

from __future__ import annotations

import numpy as np

from structgen.core.engines.protocols import Matcher
from structgen.generation.fields.events import BLANKS, Decider, value_event

MAX_STEPS = 4096  # bytes and forced texts that are tried: a few milliseconds
MAX_BYTES = 1024  # of a value: longer ones are not few


def few_events(matcher: Matcher, decide: Decider, most: int) -> dict[str, bytes] | None:
    """All events that may come after the matcher's text, with a text of each; None: more than ``most``, or unknown.

    The matcher comes out as it went in.

    Args:
        matcher: where the bytes that ``decide`` reads begin.
        decide: names the events.
        most: events that are few.
    """
    return _Search(matcher, decide, most).run()


class _Search:
    """Depth first over the bytes that the matcher takes."""

    def __init__(self, matcher: Matcher, decide: Decider, most: int) -> None:
        self._matcher, self._decide, self._most = matcher, decide, most
        self._events: dict[str, bytes] = {}
        self._steps = 0

    def run(self) -> dict[str, bytes] | None:
        open_: list[tuple[bytes, bytes]] = [(b"", b"")]  # the text of the parent, and the bytes after it
        depths: list[int] = []  # texts that the matcher has taken, by length
        while open_:
            parent, step = open_.pop()
            while depths and depths[-1] > len(parent):
                depths.pop()
                self._matcher.rollback(1)
            if step:
                self._matcher.accept_bytes(step)
                depths.append(len(parent) + len(step))
            following = self._following(parent + step)
            if following is None:
                self._matcher.rollback(len(depths))
                return None
            open_ += [(parent + step, more) for more in following]
        self._matcher.rollback(len(depths))
        return self._events

    def _following(self, text: bytes) -> list[bytes] | None:
        """What may come after an undecided text; None where events are too many."""
        self._steps += 1
        event = self._decide(text, False)
        if event is not None:
            self._events.setdefault(event, text)
            return [] if len(self._events) <= self._most else None
        if self._matcher.is_accepting() and (event := self._decide(text, True)) is not None:
            self._events.setdefault(event, text)
        if len(self._events) > self._most or self._steps > MAX_STEPS or len(text) > MAX_BYTES:
            return None
        forced = self._matcher.forced_bytes()
        if forced:
            return [forced]
        following = np.flatnonzero(self._matcher.next_bytes()).tolist()
        if self._decide is value_event and not text.strip(BLANKS):  # a value is the same after more blanks
            following = [byte for byte in following if byte not in BLANKS] or following
        return None if len(following) > self._most + len(BLANKS) else [bytes([byte]) for byte in following]
