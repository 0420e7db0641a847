"""Temperature scaling and its report, against brute force and beliefs whose truth is drawn from them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structgen.errors import OptionsError
from structgen.generation.calibration import TemperatureScaling, report
from structgen.generation.fields.results import Belief, ValueOption


def belief(probs: Any) -> Belief:
    order = np.argsort(-np.asarray(probs), kind="stable")
    options = tuple(ValueOption(int(each), float(probs[each]), 0.0, 1.0, float(probs[each])) for each in order)
    return Belief(options, 1.0, 0.0)


def world(count: int, temperature: float, seed: int = 0) -> tuple[list[Belief], list[int]]:
    """Truths drawn from probabilities, which are then made sharper by a temperature."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(5), count)
    truths = [int(rng.choice(5, p=each)) for each in probs]
    sharp = probs**temperature
    return [belief(each / each.sum()) for each in sharp], truths


@pytest.mark.first_case
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 3.0])
def test_the_temperature_comes_back(temperature: float) -> None:
    beliefs, truths = world(1500, temperature)
    fitted = TemperatureScaling.fit(beliefs, truths)
    assert fitted.temperature == pytest.approx(temperature, rel=0.2) and fitted.examples == 1500
    judged = report(beliefs[:600], truths[:600])
    assert judged.calibrated.ece < 0.08
    if temperature >= 2:
        assert judged.raw.ece > 2 * judged.calibrated.ece


def test_the_fit_is_the_best_of_a_grid() -> None:
    beliefs, truths = world(60, 1.7, seed=3)

    def nll(temperature: float) -> float:
        scaled = [TemperatureScaling(temperature, 0).probs(each) for each in beliefs]
        chosen = [
            probs[[option.value for option in each.options].index(truth)]
            for probs, each, truth in zip(scaled, beliefs, truths, strict=True)
        ]
        return -sum(map(math.log, chosen))

    best = min(nll(math.exp(each)) for each in np.linspace(-2, 2, 401))
    assert nll(TemperatureScaling.fit(beliefs, truths).temperature) <= best + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_auroc_is_the_share_of_pairs(seed: int) -> None:
    beliefs, truths = world(50, 1.0, seed)
    judged = report(beliefs, truths).raw
    tops = [each.prob for each in beliefs]
    right = [each.options[0].value == truth for each, truth in zip(beliefs, truths, strict=True)]
    rated = list(zip(tops, right, strict=True))
    pairs = [(a, b) for a, is_right in rated if is_right for b, other in rated if not other]
    share = sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)
    assert judged.auroc == pytest.approx(share)
    assert judged.accuracy == pytest.approx(sum(right) / 50) == judged.at_coverage[100]
    low, high = judged.intervals["accuracy"]
    assert low <= judged.accuracy <= high


def test_calibrated_probabilities_keep_their_order() -> None:
    (one, *_), _ = world(1, 1.0)
    probs = TemperatureScaling(3.0, 20).probs(one)
    assert probs == sorted(probs, reverse=True) and sum(probs) == pytest.approx(1)


def test_truths_that_are_no_options_are_wrong() -> None:
    beliefs, _ = world(50, 1.0)
    judged = report(beliefs, ["none"] * 50)
    assert judged.raw.accuracy == 0 and math.isnan(judged.raw.auroc) and "auroc" not in judged.raw.intervals


def test_what_is_saved_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    TemperatureScaling(1.5, 40).save(path)
    assert TemperatureScaling.load(path) == TemperatureScaling(1.5, 40)


def test_a_temperature_is_fitted_on_truths_that_are_options() -> None:
    """Of others it can say nothing."""
    beliefs, truths = world(60, 2.0)
    fitted = TemperatureScaling.fit(beliefs, truths)
    mixed = TemperatureScaling.fit([*beliefs, *beliefs], [*truths, *["none"] * 60])
    assert mixed.temperature == pytest.approx(fitted.temperature) and mixed.examples == 60
    with pytest.raises(OptionsError, match="19 truths are options"):
        TemperatureScaling.fit(beliefs, [*truths[:19], *["none"] * 41])
    assert report(beliefs, ["none"] * 60).temperatures == (1.0, 1.0)


@pytest.mark.parametrize("truth", [math.inf, math.nan, np.int64(1), object(), {1: 2}, [(1,)]])
def test_truths_that_are_no_json_are_refused(truth: Any) -> None:
    """Counted as wrong, they would make a good belief look bad."""
    beliefs, truths = world(40, 1.0)
    with pytest.raises(OptionsError, match="JSON"):
        report(beliefs, [*truths[1:], truth])


def test_beliefs_that_are_none_are_refused() -> None:
    """A field that is not few-valued has no belief."""
    beliefs, truths = world(40, 1.0)
    with pytest.raises(OptionsError, match="belief 1 is None"):
        report([beliefs[0], None, *beliefs[2:]], truths)  # type: ignore[list-item]
    assert report(iter(beliefs), iter(truths)) == report(beliefs, truths)  # type: ignore[arg-type]


HUGE = "9" * 400
BROKEN = [f'{{"temperature": {HUGE}, "examples": 1}}', '{"temperature": 1, "examples": 1e999}', "[" * 100_000]
BROKEN += ["", "[]", "{}", '{"temperature": "x", "examples": 1}', '{"temperature": -1, "examples": 2}']


@pytest.mark.parametrize("text", BROKEN)
def test_files_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "one.json"
    path.write_text(text)
    with pytest.raises(OptionsError):
        TemperatureScaling.load(path)


def test_too_few_examples_are_refused() -> None:
    beliefs, truths = world(19, 1.0)
    with pytest.raises(OptionsError, match="at least 20"):
        TemperatureScaling.fit(beliefs, truths)
    with pytest.raises(OptionsError, match="at least 40"):
        report(*world(39, 1.0))
    with pytest.raises(OptionsError, match="one truth for each"):
        TemperatureScaling.fit(beliefs, truths[1:])
