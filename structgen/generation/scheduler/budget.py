"""How much a step may read: what steps take by their number of tokens, and what a scheduler is held to."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from structgen.generation.scheduler.shares import CallersOfLate

WEIGHT, RATE_WEIGHT, SPREAD_WEIGHT = 0.2, 0.4, 0.1  # of the latest step in the running means
REFRESH = 64  # steps beside prompts, after which one without tells what it takes now
LEAST_SPREAD, FIRST_SPREAD, MOST_SPREAD = 0.04, 0.05, 0.3  # mean deviation of a step from what was expected, relative
DEVIATIONS = 3.0  # mean deviations that 99 of 100 steps stay below (normal: 2.33 standard, 2.9 mean deviations)
SEVERAL = 1.25  # times several steps of fewer tokens: what one of many takes at most
FIXED = 16  # tokens that a step's fixed cost is worth, while only one number of tokens was seen
FIRST_PIECE = 32  # tokens of a prompt that are read to learn what they take, and that are saved up for at most
FAST = 256  # tokens of prompts that took no time beside a step are taken to cost as much as it


@dataclass(frozen=True)
class SchedulerLimits:
    """What a scheduler is held to.

    Attributes:
        sequences: requests that are read or written at once.
        sequences_a_key: of them, of one key; None: all.
        waiting: requests in the queue; None: any number.
        step_tokens: tokens of one call of the model.
        step_factor: how much longer than without it a step may take for the sake of prompts, where outputs are being
            written; infinite: any time.
        piece_seconds: how long a step may take that reads nothing but prompts: what comes meanwhile waits for it,
            deadlines too. A quarter of it where several callers ask (see ``PieceTime``). Infinite: prompts are read
            whole.
        least_chunk: tokens of prompts that are worth a part of a step. Where a step bears fewer, several save up for
            them, also before there are any: then the mean of steps is held to ``step_factor``.
        max_bytes: what keys and values may take; None: any number.
        patience: seconds of waiting that are worth a class of priority.
        late_seconds: how long the loop waits for a sequence's mask; then the others go on, and the sequence follows
            when it can. Sequences that are not read apart are always waited for. None: all masks are made in the loop.
        max_mask_seconds: after which a sequence whose mask is not made yet fails; None: never. Needs ``late_seconds``.
    """

    sequences: int = 32
    sequences_a_key: int | None = None
    waiting: int | None = 256
    step_tokens: int = 4096
    step_factor: float = 2.0
    piece_seconds: float = 0.25
    least_chunk: int = 4
    max_bytes: int | None = None
    patience: float = 10.0
    late_seconds: float | None = 0.01
    max_mask_seconds: float | None = None


class PieceTime:
    """How long a step may take that has prompts or sequences of one caller only: ``piece_seconds``, and a quarter of it
    where several callers have asked lately, since the next request of another one may come while it runs.

    Args:
        limits: ``piece_seconds`` of them.
    """

    def __init__(self, limits: SchedulerLimits) -> None:
        self._whole = limits.piece_seconds
        self._lately = CallersOfLate()

    def arrived(self, key: str, now: float) -> None:
        """A request of that key came."""
        self._lately.arrived(key, now)

    @property
    def has_several(self) -> bool:
        """Whether several callers have asked lately, as of the latest request."""
        return self._lately.are_several

    @property
    def seconds(self) -> float:
        """The time of a step, as of the latest request."""
        return self._whole / 4 if self.has_several else self._whole


class StepCost:
    """Seconds of a step, learned from the steps that were made: by the tokens that it reads for sequences that are
    written, and a rate for each token of a prompt beside them; and the rate of prompts that are read alone.

    The first are running means by powers of two; between them it is interpolated, beyond them it grows in proportion.
    Many tokens are not taken to cost much more than several steps of fewer: else one slow step of a number that is then
    avoided would be believed for good. The rates follow the last steps closely, since they grow with what was read of
    the prompt. What a step takes beyond that (other work of the machine) is known as a spread.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, float]] = {}
        self._before: dict[int, tuple[float, float]] = {}  # what was ``seen`` before the prompts that are being read
        self._written = self._prompts = 0  # tokens that were read since: of sequences that are written, of prompts
        self._rate: float | None = None  # beside sequences that are written
        self._alone: float | None = None  # without them, all that the step takes included
        self._spread = FIRST_SPREAD
        self._prompt_steps = 0  # steps in succession that read prompts

    def observe(self, tokens: int, chunks: int, seconds: float) -> None:
        """A step that read so many tokens, ``chunks`` of them of prompts, took so long."""
        written = tokens - chunks
        self._written, self._prompts = self._written + written, self._prompts + chunks
        if not written:
            self._observe_alone(chunks, seconds)
            return
        expected = self.seconds(written) + chunks * (self._rate or 0.0)
        if expected and (not chunks or self._rate is not None):
            self._spread += SPREAD_WEIGHT * (min(abs(seconds / expected - 1), MOST_SPREAD) - self._spread)
        if not chunks:
            self._prompt_steps = 0
            key = tokens.bit_length()
            count, mean = self._seen.get(key, (float(tokens), seconds))
            self._seen[key] = (count + WEIGHT * (tokens - count), mean + WEIGHT * (seconds - mean))
            return
        self._prompt_steps += 1
        rate = max(0.0, seconds - self.seconds(written)) / chunks
        self._rate = rate if self._rate is None else self._rate + RATE_WEIGHT * (rate - self._rate)

    def _observe_alone(self, chunks: int, seconds: float) -> None:
        """What is slower than known is believed at once: the next piece would be too long."""
        rate, alone = seconds / chunks, self._alone
        self._alone = rate if alone is None or rate > alone else alone + RATE_WEIGHT * (rate - alone)

    def begin(self) -> None:
        """A prompt begins to be read. What a step takes now is what ``room`` goes by till the next one begins: the keys
        and values of a long prompt make steps slower that read nothing of it (llama.cpp looks at all of them)."""
        self._before = dict(self._seen)
        self._written = self._prompts = 0

    def seconds(self, tokens: int) -> float:
        """What a step takes that reads no prompts; 0 while nothing is known. Never falls with ``tokens``."""
        return _expected(self._seen, tokens)

    def is_known(self, tokens: int) -> bool:
        """Whether ``seconds`` says what steps of so many tokens took, and not that several of fewer would take less."""
        points = sorted(self._seen.values())
        return tokens.bit_length() in self._seen and _between(points, tokens) <= self.seconds(tokens)

    def room(self, written: int, factor: float) -> float | None:
        """How many tokens of prompts a step may read beside so many others, so that about 99 of 100 steps take at most
        ``factor`` times as long as without; None: a step without prompts should tell first what that is.

        Prompts have half of ``factor``'s part at least, however much steps vary by themselves, and however much slower
        they became since the first prompt began: a prompt that gets on more slowly is in their way for longer."""
        if written.bit_length() not in self._seen or self._prompt_steps >= REFRESH:
            return None
        rate = self._alone if self._rate is None else self._rate
        if rate is None:
            return 0.0
        now, slack = self.seconds(written), 1 + DEVIATIONS * max(self._spread, LEAST_SPREAD)
        part = max(factor / slack * self._without(written, now) - now, (factor - 1) / 2 * now)
        rate = rate or now / FAST
        return part / rate if rate else math.inf

    def _without(self, written: int, now: float) -> float:
        """What a step would take without the prompts that are being read. Sequences that are written grow too, and each
        token looks at those before it: a token of theirs has made steps slower as much as one of a prompt, at least."""
        before = min(now, _expected(self._before, written) or now)
        return before + (now - before) * self._written / max(1, self._written + self._prompts)

    def piece(self, seconds: float) -> float:
        """How many tokens of prompts a step may read that reads nothing else, to take about so many seconds."""
        if self._alone is None:
            return FIRST_PIECE if seconds < math.inf else math.inf
        return seconds / self._alone if self._alone else math.inf


def _expected(seen: Mapping[int, tuple[float, float]], tokens: int) -> float:
    """Seconds for so many tokens, of means (tokens, seconds)."""
    points = sorted(seen.values())
    several = (SEVERAL * mean * max(1.0, tokens / count) for count, mean in points)
    return min(_between(points, tokens), min(several, default=math.inf))


def _between(points: Sequence[tuple[float, float]], tokens: int) -> float:
    """Seconds for so many tokens, of points (tokens, seconds) in order."""
    if not points:
        return 0.0
    if len(points) == 1 or tokens <= points[0][0]:
        count, mean = points[0]
        return mean * (FIXED + tokens) / (FIXED + count)
    index = bisect_right(points, (float(tokens), math.inf))
    highest = max(mean for _, mean in points[:index])
    if index == len(points):
        return highest * tokens / points[-1][0]
    (low, first), (high, second) = points[index - 1], points[index]
    return max(highest, first + (second - first) * (tokens - low) / (high - low))
