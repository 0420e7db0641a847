"""What is done with a model where nobody says, by what the model tells of itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from structgen.errors import ModelError
from structgen.generation.models.defaults import (
    SMALL,
    ModelDefaults,
    defaults_of,
    read_sampling_settings,
    sampling_settings,
)
from structgen.generation.models.tiny import TinyModel


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (object(), ModelDefaults()),
        (TinyModel(8), ModelDefaults()),
        (SimpleNamespace(parameter_count=0), ModelDefaults()),
        (SimpleNamespace(parameter_count=SMALL), ModelDefaults()),
        (SimpleNamespace(parameter_count=SMALL - 1), ModelDefaults("skeleton", 0.2, max_tokens=256)),
        (
            SimpleNamespace(parameter_count=5, sampling_settings={"temperature": 0.6, "top_p": 0.95, "top_k": 20.0}),
            ModelDefaults("skeleton", 0.6, 0.95, 20, max_tokens=256),
        ),
        (SimpleNamespace(sampling_settings={"min_p": 0.1, "typical_p": 0.9}), ModelDefaults(min_p=0.1)),
        (
            SimpleNamespace(sampling_settings={"repetition_penalty": 1.1, "max_new_tokens": 300}),
            ModelDefaults(repetition_penalty=1.1, max_new_tokens=300),
        ),
        (
            SimpleNamespace(sampling_settings={"repetition_penalty": 0.0, "max_new_tokens": 0}),
            ModelDefaults(),
        ),
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


DRAWN = {"temperature": 0.6, "top_p": 0.9, "top_k": 20}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, {}),
        ({"do_sample": True, **DRAWN, "eos_token_id": 2}, DRAWN),
        ({"do_sample": True, "top_p": 1.0}, {"temperature": 1.0, "top_p": 1.0}),
        (DRAWN, DRAWN),  # as vLLM has it: nothing says that none are drawn
        ({"temperature": 1.0, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.0}, {}),  # nobody said these
        ({"do_sample": False, **DRAWN}, {}),
        (
            {"do_sample": False, **DRAWN, "repetition_penalty": 1.2, "max_new_tokens": 7},
            {"repetition_penalty": 1.2, "max_new_tokens": 7},
        ),
        ({"temperature": None, "min_p": 0.05}, {"min_p": 0.05}),
    ],
)
def test_generation_configurations(config: Any, expected: Any) -> None:
    assert sampling_settings(config) == expected


def test_other_settings_take_the_place_of_all() -> None:
    small = ModelDefaults("skeleton", 0.6, 0.95, 20, repetition_penalty=1.2, max_new_tokens=9, max_tokens=256)
    assert small.with_settings({}) == ModelDefaults("skeleton", 0.2, max_tokens=256)
    assert ModelDefaults(temperature=0.6).with_settings({}) == ModelDefaults()
    assert small.with_settings({"temperature": 0.9, "top_k": 5}) == ModelDefaults(
        "skeleton", 0.9, top_k=5, max_tokens=256
    )


def test_files_of_generation_settings(tmp_path: Path) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text('{"do_sample": true, "temperature": 0.6, "transformers_version": "5"}')
    assert read_sampling_settings(tmp_path) == read_sampling_settings(path) == {"temperature": 0.6}
    for text, said in (
        ("{", "is no JSON"),
        ("[]", "is a JSON list"),
        ('{"temperature": 9}', "temperature is 9, which is not allowed"),
        ('{"max_new_tokens": "many"}', "max_new_tokens is 'many'"),
    ):
        path.write_text(text)
        with pytest.raises(ModelError, match=said):
            read_sampling_settings(path)
    with pytest.raises(ModelError, match=r"Cannot read the generation settings .*nowhere"):
        read_sampling_settings(tmp_path / "nowhere")
