"""The table of measurements: what each asks, the bar that it must meet, and what was found."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from serving_load.lab import Lab


@dataclass(frozen=True)
class Found:
    """What a measurement found.

    Attributes:
        value: what is compared with the bar.
        details: what else there is to know, JSON values.
        wrong: why the bar is not met, whatever the value; "": nothing is wrong.
    """

    value: float
    details: dict[str, Any] = field(default_factory=dict)
    wrong: str = ""


@dataclass(frozen=True)
class Measurement:
    """A row of the table.

    Attributes:
        name: by which it is asked for.
        question: what it answers.
        bar: what the value must be at least, or at most.
        sense: which of the two.
        unit: of the value; "x" for ratios.
        run: makes it.
    """

    name: str
    question: str
    bar: float
    sense: Literal["at least", "at most"]
    unit: str
    run: Callable[[Lab], Awaitable[Found]]

    def is_met(self, found: Found) -> bool:
        """Whether what was found meets the bar; a value that is no number does not."""
        meets = found.value >= self.bar if self.sense == "at least" else found.value <= self.bar
        return meets and not found.wrong


MEASUREMENTS: dict[str, Measurement] = {}


def measurement(
    name: str, question: str, *, at_least: float | None = None, at_most: float | None = None, unit: str = "x"
) -> Callable[[Callable[[Lab], Awaitable[Found]]], Callable[[Lab], Awaitable[Found]]]:
    """Register a measurement; give one of the two bars."""

    def register(run: Callable[[Lab], Awaitable[Found]]) -> Callable[[Lab], Awaitable[Found]]:
        assert (at_least is None) != (at_most is None) and name not in MEASUREMENTS
        bar = at_least if at_least is not None else at_most
        assert bar is not None
        sense: Literal["at least", "at most"] = "at least" if at_least is not None else "at most"
        MEASUREMENTS[name] = Measurement(name, question, bar, sense, unit, run)
        return run

    return register


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share does not exceed; NaN of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def ratio_of_rounds(these: Sequence[Sequence[float]], others: Sequence[Sequence[float]], share: float) -> float:
    """A quantile over another one of the same round; the median of the rounds."""
    rounds = zip(these, others, strict=True)
    return statistics.median(quantile(one, share) / quantile(other, share) for one, other in rounds)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, p99 and number."""
    if not values:
        return {"n": 0}
    return {
        "p50": round(statistics.median(values), 4),
        "p99": round(quantile(values, 0.99), 4),
        "n": len(values),
    }


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"    {text}", file=sys.stderr, flush=True)
