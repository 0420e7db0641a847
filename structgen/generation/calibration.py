"""From probabilities that a model gives to probabilities that come true: temperature scaling, and a report on it.

A temperature T makes of probabilities p those in proportion to p ** (1 / T). It is fitted on beliefs whose truth is
known. It changes no order: what it repairs is how far numbers are from the shares that come true.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.errors import OptionsError
from structgen.generation.fields.results import Belief

LEAST_EXAMPLES = 20  # a temperature of fewer says nothing
HOTTEST = 8.0  # temperatures are looked for between its inverse and this
BINS = 10
RESAMPLES = 1000  # of the bootstrap


@dataclass(frozen=True)
class TemperatureScaling:
    """A fitted temperature.

    Attributes:
        temperature: 1 changes nothing; above, beliefs were too sure.
        examples: how many it was fitted on.
    """

    temperature: float
    examples: int

    @classmethod
    def fit(cls, beliefs: Sequence[Belief], truths: Sequence[Any]) -> TemperatureScaling:
        """The temperature under which the truths are the likeliest.

        Raises:
            OptionsError: fewer than 20 truths that are options, or not as many truths as beliefs.
        """
        cases = [case for case in _cases(beliefs, truths) if case[1] >= 0]
        if len(cases) < LEAST_EXAMPLES:
            raise OptionsError(
                f"{len(cases)} truths are options of their beliefs; a temperature needs at least {LEAST_EXAMPLES}"
            )
        return cls(_fitted(cases), len(cases))

    def probs(self, belief: Belief) -> list[float]:
        """The calibrated probabilities of a belief's options, in their order."""
        probs: list[float] = _scaled(_probs(belief), self.temperature).tolist()
        return probs

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        Path(path).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> TemperatureScaling:
        """Read what ``save`` wrote.

        Raises:
            OptionsError: the file is none of these.
        """
        try:
            read = json.loads(Path(path).read_text(encoding="utf-8"))
            temperature, examples = float(read["temperature"]), int(read["examples"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise OptionsError(f"{str(path)!r:.200} is no saved calibration: {error}") from error
        if not 0 < temperature < math.inf:
            raise OptionsError(f"{str(path)!r:.200} has the temperature {temperature}; a positive number is expected")
        return cls(temperature, examples)


@dataclass(frozen=True)
class CalibrationReport:
    """How good probabilities are. Of each number its 95 % interval by bootstrap is in ``intervals``.

    Attributes:
        accuracy: share of truths that were the likeliest option.
        ece: mean distance between probability and share that came true, over ten equal bins; ``ece_by_mass``: over ten
            bins of equal size.
        brier: mean squared error of the likeliest option's probability.
        nll: mean negative log-likelihood of the truths (nats).
        auroc: chance that a right answer has a higher probability than a wrong one; NaN where all are right, or none.
        at_coverage: accuracy of the surest 50, 80 and 100 %.
        intervals: by name of the number.
    """

    accuracy: float
    ece: float
    ece_by_mass: float
    brier: float
    nll: float
    auroc: float
    at_coverage: dict[int, float]
    intervals: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class JudgedBeliefs:
    """What a report says of probabilities as they are, and of those scaled by temperatures fitted on the other half.

    Attributes:
        raw, calibrated: the reports.
        temperatures: of the two halves.
    """

    raw: CalibrationReport
    calibrated: CalibrationReport
    temperatures: tuple[float, float]


def report(beliefs: Sequence[Belief], truths: Sequence[Any], *, seed: int = 0) -> JudgedBeliefs:
    """Judge beliefs by what was true. Temperatures are fitted on one half and judged on the other.

    Args:
        beliefs: of one field, each of another output.
        truths: the right value for each, plain JSON. One that is no option counts as wrong.
        seed: of the halves and of the bootstrap.

    Raises:
        OptionsError: fewer than 40 beliefs, or not as many truths.
    """
    cases = _cases(beliefs, truths, 2 * LEAST_EXAMPLES)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(cases))
    halves = order[: len(cases) // 2], order[len(cases) // 2 :]
    temperatures = [_fitted([cases[index] for index in half]) for half in halves]
    scaled = list(cases)
    for half, temperature in zip(halves, reversed(temperatures), strict=True):
        for index in half:
            probs, truth = cases[index]
            scaled[index] = _scaled(probs, temperature), truth
    return JudgedBeliefs(_report(cases, rng), _report(scaled, rng), (temperatures[0], temperatures[1]))


_Probs = npt.NDArray[np.float64]
_Case = tuple[_Probs, int]  # probabilities of options, and which is true; -1: none of them


def _cases(beliefs: Sequence[Belief], truths: Sequence[Any], least: int = LEAST_EXAMPLES) -> list[_Case]:
    beliefs, truths = list(beliefs), list(truths)
    if len(beliefs) != len(truths):
        raise OptionsError(f"{len(beliefs)} beliefs and {len(truths)} truths; give one truth for each")
    if len(beliefs) < least:
        raise OptionsError(f"{len(beliefs)} beliefs are too few to judge by; give at least {least}")
    cases = list[_Case]()
    for index, (belief, truth) in enumerate(zip(beliefs, truths, strict=True)):
        if not isinstance(belief, Belief):
            raise OptionsError(
                f"belief {index} is {belief!r:.60}; expected the value of a field with few options (other fields have "
                "none)"
            )
        option = belief.option(truth)
        cases.append((_probs(belief), -1 if option is None else belief.options.index(option)))
    return cases


def _probs(belief: Belief) -> _Probs:
    probs = np.array([each.prob for each in belief.options])
    return probs / probs.sum()


def _scaled(probs: _Probs, temperature: float) -> _Probs:
    with np.errstate(divide="ignore"):
        logs = np.log(probs) / temperature
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _nll(cases: Sequence[_Case], temperature: float = 1.0) -> float:
    """Mean negative log-likelihood of the truths that are options; probabilities are at least 1e-12."""
    logs = [math.log(max(1e-12, _scaled(probs, temperature)[truth])) for probs, truth in cases if truth >= 0]
    return -math.fsum(logs) / max(1, len(logs))


def _fitted(cases: Sequence[_Case]) -> float:
    """The temperature of least negative log-likelihood, by golden section over its logarithm; 1 where no truth is an
    option."""
    if all(truth < 0 for _, truth in cases):
        return 1.0
    low, high, ratio = -math.log(HOTTEST), math.log(HOTTEST), (math.sqrt(5) - 1) / 2
    while high - low > 1e-4:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if _nll(cases, math.exp(left)) <= _nll(cases, math.exp(right)):
            high = right
        else:
            low = left
    return math.exp((low + high) / 2)


def _report(cases: Sequence[_Case], rng: np.random.Generator) -> CalibrationReport:
    tops = np.array([float(probs.max()) for probs, _ in cases])
    right = np.array([float(int(probs.argmax()) == truth) for probs, truth in cases])
    numbers = _numbers(tops, right)
    drawn = rng.integers(0, len(cases), (RESAMPLES, len(cases)))
    many = [_numbers(tops[index], right[index]) for index in drawn]
    intervals = {
        name: (float(low), float(high))
        for name in numbers
        if not math.isnan(numbers[name])
        for low, high in [np.nanpercentile([each[name] for each in many], [2.5, 97.5])]
    }
    order = np.argsort(-tops, kind="stable")
    coverage = {share: float(right[order[: max(1, len(cases) * share // 100)]].mean()) for share in (50, 80, 100)}
    return CalibrationReport(**numbers, nll=_nll(cases), at_coverage=coverage, intervals=intervals)


def _numbers(tops: _Probs, right: _Probs) -> dict[str, float]:
    equal = np.minimum((tops * BINS).astype(int), BINS - 1)
    by_mass = np.argsort(np.argsort(tops, kind="stable"), kind="stable") * BINS // len(tops)
    return {
        "accuracy": float(right.mean()),
        "ece": _distance(tops, right, equal),
        "ece_by_mass": _distance(tops, right, by_mass),
        "brier": float(((tops - right) ** 2).mean()),
        "auroc": _auroc(tops, right),
    }


def _distance(tops: _Probs, right: _Probs, bins: npt.NDArray[Any]) -> float:
    total = 0.0
    for each in np.unique(bins):
        inside = bins == each
        total += abs(float(tops[inside].sum() - right[inside].sum()))
    return total / len(tops)


def _auroc(tops: _Probs, right: _Probs) -> float:
    """By ranks, ties counting half."""
    positives, negatives = int(right.sum()), int(len(right) - right.sum())
    if not positives or not negatives:
        return math.nan
    _, inverse, counts = np.unique(tops, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[right > 0].sum() - positives * (positives + 1) / 2) / (positives * negatives))
