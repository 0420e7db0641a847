"""What a forward of several tokens costs, relative to one of a single token."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

COUNTS = (1, 2, 3, 4, 8, 9, 16, 17, 32, 33, 48)  # steps, where models pad
CONTEXT = 128  # tokens in the cache while measuring
REPEATS = 3
MOST = 8.0  # times of one token: what takes longer is not measured, the curve goes on straight


@dataclass(frozen=True)
class CostCurve:
    """Time of a forward by its number of tokens.

    Attributes:
        counts: numbers of tokens, ascending, from 1.
        times: of each, relative to the first; not descending.
        seconds: time of one token (0 where not measured).
    """

    counts: tuple[int, ...] = (1,)
    times: tuple[float, ...] = (1.0,)
    seconds: float = 0.0
    _table: list[float] = field(init=False, repr=False, compare=False)
    _marginals: list[float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        last = self.counts[-1]
        slope = 0.0
        if len(self.counts) > 1:
            slope = (self.times[-1] - self.times[-2]) / (last - self.counts[-2])
        table = [0.0, *np.interp(np.arange(1, last + 1), self.counts, self.times).tolist()]
        table += [table[last] + slope * more for more in range(1, 4 * last)]
        marginals = [
            min((table[end] - table[here]) / (end - here) for end in range(here + 1, max(here + 1, last) + 1))
            for here in range(last + 1)
        ]
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_marginals", marginals)

    def __call__(self, tokens: int) -> float:
        """Time of a forward of that many tokens, relative to one; linear between what was measured and beyond."""
        last = len(self._table) - 1
        if tokens <= last:
            return self._table[tokens]
        return self._table[last] + (self._table[last] - self._table[last - 1]) * (tokens - last)

    def marginal(self, tokens: int) -> float:
        """The least average cost of a further token over all numbers to come: min over n of (t(tokens + n) - t) / n.

        A curve has steps; what counts for going on is what lies behind them.
        """
        return self._marginals[min(tokens, len(self._marginals) - 1)]


# SmolLM2-135M in float32 on two cores, one row; stands in where nothing can be measured.
TYPICAL = CostCurve((1, 4, 8, 16, 32, 48), (1.0, 1.5, 1.6, 1.95, 2.65, 3.4))


def measure(model: Any, counts: Sequence[int] = COUNTS, token: int = 0) -> CostCurve:
    """Time forwards of a model: about 50 times that of one token. Takes the least of ``REPEATS`` times, since what else
    the machine does only adds to it.

    ``token`` is the id that it is fed with; it does not matter which.
    """
    room = model.context_length
    counts = [count for count in counts if count == 1 or room is None or 2 * count <= room]
    context = CONTEXT if room is None else min(CONTEXT, room - max(counts))
    _, cache = model.prefill([[token] * max(1, context)])
    length = cache.length

    def timed(number: int) -> float:
        start = time.perf_counter()
        _wait_for(model.forward([[token] * number], cache))
        seconds = time.perf_counter() - start
        cache.crop(length)
        return seconds

    times: dict[int, list[float]] = {}
    single = min(timed(1), timed(1))
    for number in counts:  # the first round warms up
        times[number] = []
        if timed(number) > MOST * single and timed(number) > MOST * single:  # twice: something else may have been busy
            break
    for _ in range(REPEATS):
        for number, seen in times.items():
            seen.append(timed(number))
    least = np.maximum.accumulate([min(each) for each in times.values()])
    return CostCurve(tuple(times), tuple((least / least[0]).tolist()), float(least[0]))


def _wait_for(logits: Any) -> None:
    """Until the device has computed them."""
    device = getattr(logits, "device", None)
    if getattr(device, "type", "cpu") != "cpu":
        logits[0, -1, 0].item()
