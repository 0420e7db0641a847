"""The default model made quicker for long benchmark runs on few cores: three times as many tokens a second.

    PYTHONPATH=benchmarks structgen bench jsonschemabench --model smollm2_int8:load --pace together ...

Dynamic quantisation of the linear layers (weights int8 by tensor, activations by row, on the fly), and a cache with
room to grow, which a new token is written into; transformers' own is copied for each token.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import DynamicLayer

from structgen.generation.generator import Generator
from structgen.generation.models.transformers_model import TransformersModel
from structgen.generation.models.transformers_store import load_transformers

ROOM = 64  # tokens


class RoomyLayer(DynamicLayer):
    """Keys and values are the first columns of larger tensors."""

    keys: Any
    values: Any

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.lazy_initialization(layer.keys, layer.values)
        self.keys, self.values = layer.keys, layer.values
        self._room: tuple[Any, Any] | None = None

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Append the states of new tokens."""
        start, count = self.keys.shape[-2], key_states.shape[-2]
        if self._room is None or start + count > self._room[0].shape[-2]:
            self._room = (_with_room(self.keys), _with_room(self.values))
        for large, new in zip(self._room, (key_states, value_states), strict=True):
            large[:, :, start : start + count] = new
        self.keys, self.values = (large[:, :, : start + count] for large in self._room)
        return self.keys, self.values

    def batch_select_indices(self, indices: Any) -> None:
        """Keep these rows."""
        super().batch_select_indices(indices)
        self._room = None


def _with_room(states: Any) -> Any:
    rows, heads, length, width = states.shape
    large = states.new_empty(rows, heads, length + ROOM, width)
    large[:, :, :length] = states
    return large


class RoomyModel(TransformersModel):
    """A model whose caches have room to grow."""

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """See ``LanguageModel.prefill``."""
        logits, cache = super().prefill(prompts)
        cache.cache.layers = [RoomyLayer(layer) for layer in cache.cache.layers]
        return logits, cache


def load() -> Generator:
    """The model on one thread."""
    torch.set_num_threads(1)
    loaded, tokenizer = load_transformers()
    model = RoomyModel(loaded.model)
    with warnings.catch_warnings():  # torch points to torchao, another package, for what is to come
        warnings.simplefilter("ignore")
        quantize: Any = torch.ao.quantization.quantize_dynamic
        model.model = quantize(loaded.model, {torch.nn.Linear}, dtype=torch.qint8)
    return Generator(model, tokenizer)
