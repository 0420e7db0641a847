"""Masks applied to logits by torch operations, where Triton does not run; the kernel's cases serve both."""

from __future__ import annotations

import logging

import pytest

torch = pytest.importorskip("torch")
from structgen.core.engines.apply import apply, triton_here  # noqa: E402
from tests.generation.sampling.interpreted import cases_apply as cases  # noqa: E402


@pytest.fixture(autouse=True)
def without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "triton_runs_on", lambda device_type: False)


test_forbidden_logits_are_minus_infinity = cases.test_forbidden_logits_are_minus_infinity
test_rows_that_are_not_named_stay = cases.test_rows_that_are_not_named_stay
test_one_row = cases.test_one_row
test_rows_that_have_nothing_left_are_freed = cases.test_rows_that_have_nothing_left_are_freed
test_what_does_not_fit_is_named = cases.test_what_does_not_fit_is_named


def test_large_batches_are_masked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "_MOST_ELEMENTS", 100)
    cases.test_rows_that_are_not_named_stay("list", torch_mask=False)
    cases.test_forbidden_logits_are_minus_infinity(torch.float32, 100, 2, 3)


def test_a_triton_that_fails_is_not_used(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Such as one that finds no GPU."""
    triton_here.triton_runs_on.cache_clear()
    monkeypatch.setattr(torch, "zeros", Broken())
    with caplog.at_level(logging.INFO, "structgen"):
        assert not triton_here.triton_runs_on("cuda")
    assert "torch operations; RuntimeError: no compiler" in caplog.records[0].message
    triton_here.triton_runs_on.cache_clear()


class Broken:
    def __call__(self, *args: object, **options: object) -> object:
        raise RuntimeError("no compiler\nat all")


def test_a_fallback_is_said_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    triton_here.triton_runs_on.cache_clear()
    with caplog.at_level(logging.INFO, "structgen"):
        assert not triton_here.triton_runs_on("mps") and not triton_here.triton_runs_on("mps")
    assert [record.message[:30] for record in caplog.records] == ["masks and sampling on mps: tor"]
