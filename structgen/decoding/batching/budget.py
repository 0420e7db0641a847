"""How much a step may read: what steps take by their number of tokens, and what a scheduler is held to."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

WEIGHT = 0.2  # of the latest step in the running means
FIXED = 16  # tokens that a step's fixed cost is worth, while only one number of tokens was seen


@dataclass(frozen=True)
class SchedulerLimits:
    """What a scheduler is held to.

    Attributes:
        rows: requests that are read or written at once.
        rows_a_key: of them, of one key; None: all.
        waiting: requests in the queue; None: any number.
        step_tokens: tokens of one call of the model.
        step_factor: how much longer than without it a step may take for the sake of prompts, where outputs are being
            written (at least ``least_chunk`` tokens of a prompt are read all the same); infinite: any time.
        least_chunk: tokens.
        max_bytes: what keys and values may take; None: any number.
        patience: seconds of waiting that are worth a class of priority.
        late_seconds: how long the loop waits for a row's mask; then the others go on, and the row follows when it can.
            Rows that are not read apart are always waited for. None: all masks are made in the loop.
        max_mask_seconds: after which a row whose mask is not made yet fails; None: never. Needs ``late_seconds``.
    """

    rows: int = 32
    rows_a_key: int | None = None
    waiting: int | None = 256
    step_tokens: int = 4096
    step_factor: float = 2.0
    least_chunk: int = 16
    max_bytes: int | None = None
    patience: float = 10.0
    late_seconds: float | None = 0.01
    max_mask_seconds: float | None = None


class StepCost:
    """Seconds of a step by the tokens that it reads, learned from the steps that were made.

    Running means by powers of two; between them it is interpolated, beyond them it grows in proportion.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, float]] = {}

    def observe(self, tokens: int, seconds: float) -> None:
        """A step that read so many tokens took so long."""
        key = tokens.bit_length()
        count, mean = self._seen.get(key, (float(tokens), seconds))
        self._seen[key] = (count + WEIGHT * (tokens - count), mean + WEIGHT * (seconds - mean))

    def seconds(self, tokens: int) -> float:
        """What a step takes; 0 while nothing is known. Never falls with ``tokens``."""
        points = sorted(self._seen.values())
        if not points:
            return 0.0
        if len(points) == 1 or tokens <= points[0][0]:
            count, mean = points[0]
            return mean * (FIXED + tokens) / (FIXED + count)
        place = bisect_right(points, (float(tokens), math.inf))
        highest = max(mean for _, mean in points[:place])
        if place == len(points):
            return highest * tokens / points[-1][0]
        (low, first), (high, second) = points[place - 1], points[place]
        return max(highest, first + (second - first) * (tokens - low) / (high - low))

    def tokens_within(self, seconds: float, most: int) -> int:
        """The most tokens that a step reads in so many seconds, at most ``most``; ``most`` while nothing is known."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.seconds(middle) <= seconds else (low, middle - 1)
        return low
