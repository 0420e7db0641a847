"""Texts that repeat themselves: where an output does, and a guard that leaves the repetition where it can be left.

A model that has begun to loop goes on to the end of its budget. The guard changes no mask: where the drawn token would
go on with a text that has come several times in a row, and the output's known completion leaves it, the first token of
that is taken instead. It does so where the completion is shortest: between the items of a list rather than in a string.
"""

from __future__ import annotations

from dataclasses import dataclass

from structgen.options import check_count

AGREEMENT = 8
"""Bytes by which places are found that may be a period apart."""
LONGEST_END = 256
"""Bytes after a repetition by which an output was closed, at most."""


@dataclass(frozen=True)
class LoopGuard:
    """When a text counts as repeating itself.

    Attributes:
        repeats: how often the same must have come in a row.
        least_bytes: how long that must be in all.
        period_bytes: how long what is repeated may be.

    Raises:
        OptionsError: one of these is no count, or fewer than 2 repeats.
    """

    repeats: int = 3
    least_bytes: int = 24
    period_bytes: int = 200

    def __post_init__(self) -> None:
        check_count("repeats", self.repeats, 2)
        check_count("least_bytes", self.least_bytes)
        check_count("period_bytes", self.period_bytes)

    def period(self, data: bytes | bytearray) -> int:
        """Bytes of what the end of a text repeats; 0: it repeats nothing. O(repeats · period_bytes)."""
        longest = max(self.least_bytes, self.repeats * self.period_bytes)
        tail = bytes(data[-longest:])
        agreement = tail[-max(1, min(AGREEMENT, self.least_bytes // 2)) :]  # a period before the end, there is no less
        earlier = len(tail) - len(agreement)
        while (earlier := tail.rfind(agreement, 0, earlier + len(agreement) - 1)) >= 0:
            period = len(tail) - len(agreement) - earlier
            if period > self.period_bytes:
                return 0
            size = max(self.least_bytes, self.repeats * period)
            if size <= len(tail) and tail[len(tail) - size : len(tail) - period] == tail[len(tail) - size + period :]:
                return period
        return 0


@dataclass(frozen=True, slots=True)
class Loop:
    """A repetition in which an output ended.

    Attributes:
        text: what it repeats; a character that is cut becomes U+FFFD.
        repeats: how often it came in a row, the last time perhaps in part.
    """

    text: str
    repeats: float


def loop_of(data: bytes, guard: LoopGuard | None = None) -> Loop | None:
    """The repetition in which a text ends, but for what closed it then."""
    guard = guard or LoopGuard()
    for end in range(len(data), max(0, len(data) - LONGEST_END), -1):
        period = guard.period(data[:end])
        if period:
            start = end - period
            while start > 0 and data[start - 1] == data[start - 1 + period]:
                start -= 1
            return Loop(data[end - period : end].decode(errors="replace"), (end - start) / period)
    return None


class LoopWatch:
    """One output under a guard."""

    def __init__(self, guard: LoopGuard) -> None:
        self._guard = guard
        self._bounds: list[tuple[int, int]] = []  # bytes before a choice, and how long the known completion was

    def is_left(self, data: bytearray, token: bytes, bound: int) -> bool:
        """Whether an output of these bytes, whose known completion has ``bound`` of them, should follow that and not go
        on with a token. To be asked of every choice."""
        length, size = len(data), self._guard.period_bytes
        self._bounds.append((length, bound))
        while self._bounds[0][0] < length - 2 * size:
            del self._bounds[0]
        period = self._guard.period(data + token) if token else 0
        if not period or not self._guard.period(data):
            return False
        ago = [other for offset, other in self._bounds if offset <= length - period]
        growth = max(0, bound - ago[-1]) if ago else 0
        return bound <= min(other for offset, other in self._bounds if offset > length - period) + growth
