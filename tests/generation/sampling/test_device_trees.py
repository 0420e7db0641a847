"""Draft trees judged by torch operations, where Triton does not run; the kernel's cases serve both."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
from structgen.generation.sampling import device_trees as trees
from structgen.generation.sampling.torch_sampler import TorchSampler
from tests.generation.sampling.interpreted import cases_trees as cases


@pytest.fixture(autouse=True)
def without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "triton_runs_on", lambda device_type: False)
    monkeypatch.setattr(cases, "SAMPLER", TorchSampler)


test_paths_are_those_of_a_walk = cases.test_paths_are_those_of_a_walk
test_no_trees = cases.test_no_trees
test_children_before_their_parents_are_refused = cases.test_children_before_their_parents_are_refused
