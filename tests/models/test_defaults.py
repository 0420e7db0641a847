"""What is done with a model where nobody says, by what the model tells of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from structgen.models.defaults import SMALL, ModelDefaults, defaults_of
from structgen.models.tiny import TinyModel


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (object(), ModelDefaults()),
        (TinyModel(8), ModelDefaults()),
        (SimpleNamespace(parameter_count=0), ModelDefaults()),
        (SimpleNamespace(parameter_count=SMALL), ModelDefaults()),
        (SimpleNamespace(parameter_count=SMALL - 1), ModelDefaults("skeleton", 0.2)),
        (
            SimpleNamespace(parameter_count=5, sampling_settings={"temperature": 0.6, "top_p": 0.95, "top_k": 20.0}),
            ModelDefaults("skeleton", 0.6, 0.95, 20),
        ),
        (SimpleNamespace(sampling_settings={"min_p": 0.1, "repetition_penalty": 1.1}), ModelDefaults(min_p=0.1)),
        (
            SimpleNamespace(sampling_settings={"temperature": 9, "top_p": 0, "top_k": 0, "min_p": None}),
            ModelDefaults(),
        ),
        (SimpleNamespace(sampling_settings=None, parameter_count="many"), ModelDefaults()),
        (SimpleNamespace(sampling_settings={"temperature": float("nan"), "top_k": float("inf")}), ModelDefaults()),
    ],
)
def test_defaults(model: Any, expected: ModelDefaults) -> None:
    assert defaults_of(model) == expected
