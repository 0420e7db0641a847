"""The comparison of methods."""

from __future__ import annotations

from pathlib import Path

import pytest

from structgen.generation.target.compare import compare, plot
from structgen.generation.target.results import Budget, effective_sample_size, log_mean_exp
from tests.generation.target import closed_forms as cf


def test_case_1_side_by_side(tmp_path: Path) -> None:
    """00000 is 1/17 of the target and half of what masks write; ASAp lies between."""
    case = cf.skewed()
    comparison = compare(case.target(), 400, seed=1)
    (zeros,) = [text for text in comparison.texts if text.text == "00000"]
    assert zeros.target[0] <= case.truth["00000"] + 1e-12 <= zeros.target[1] + 2e-12
    assert zeros.shares["local"] == pytest.approx(0.5, abs=0.1)
    assert zeros.shares["exact"] == pytest.approx(1 / 17, abs=0.04)
    assert comparison.distance("local") > 0.35 > comparison.distance("asap")
    assert comparison.distance("exact") == 0
    assert sum(text.shares["asap"] for text in comparison.texts) == pytest.approx(1)
    pytest.importorskip("matplotlib")
    plot(comparison, str(tmp_path / "plot.svg"))
    assert "<svg" in (tmp_path / "plot.svg").read_text(encoding="utf-8")


def test_an_empty_comparison() -> None:
    comparison = compare(cf.dyck().target(), 5, budget=Budget(attempts=0))
    assert comparison.texts == [] and all(run.stopped_by == "attempts" for run in comparison.runs.values())


def test_means_and_sizes() -> None:
    assert effective_sample_size([0.0, 0.0, -float("inf")]) == 2 and effective_sample_size([]) == 0
    assert effective_sample_size([-2000.0, -2000.0]) == 2
    assert log_mean_exp([-1000.0, -float("inf")]) == pytest.approx(-1000.693147)
    assert log_mean_exp([]) == -float("inf")
