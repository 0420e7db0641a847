"""Drafts of the target itself with some of its layers skipped (self-speculation; SWIFT, Xia et al. 2024).

Which layers to skip is chosen online among a few sets, output by output, by upper confidence bounds of the tokens
gained for the time spent.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

from structgen.errors import ModelError
from structgen.generation.decoding.output import Output
from structgen.generation.models.transformers_model import TransformersModel
from structgen.generation.speculative.drafter import Source
from structgen.generation.speculative.model_drafter import ModelDrafter, _ModelSource

NAME = "layer_skip"
SHARES = (0.25, 0.4, 0.55)  # of the layers that are skipped


class LayerSkipDrafter:
    """Proposes what the target says without some of its layers. Arguments as ``ModelDrafter``.

    Raises:
        ModelError: the model is no transformers model with a list of layers.
    """

    name = NAME

    def __init__(self, model: TransformersModel, **options: Any) -> None:
        layers = count_layers(model)
        sets = [spread(layers, share) for share in SHARES]
        self.arms = [
            (ModelDrafter(skip_layers(model, skipped), name=NAME, **options), 1 - len(skipped) / layers)
            for skipped in sets
        ]
        self._gains, self._outputs = [0.0] * len(sets), [0] * len(sets)

    def start(self, prompt: Sequence[int], output: Output) -> Source:
        """See ``Drafter.start``."""
        total = sum(self._outputs) + 1
        bounds = [
            gain / count + 0.3 * math.sqrt(2 * math.log(total) / count) if count else math.inf
            for gain, count in zip(self._gains, self._outputs, strict=True)
        ]
        arm = bounds.index(max(bounds))
        return _LayerSkipSource(self, arm, prompt, output)

    def reward(self, arm: int, drafted: int, accepted: int) -> None:
        """Note how a set of layers did in one output."""
        cost = self.arms[arm][1]
        self._gains[arm] += (accepted + 1) / (drafted * cost + 1)
        self._outputs[arm] += 1


class _LayerSkipSource(_ModelSource):
    def __init__(self, drafter: LayerSkipDrafter, arm: int, prompt: Sequence[int], output: Output) -> None:
        super().__init__(drafter.arms[arm][0], prompt, output)
        self._owner, self._arm = drafter, arm

    def finish(self) -> None:
        self._owner.reward(self._arm, self._reader.drafted, self._reader.accepted)


def spread(layers: int, share: float) -> tuple[int, ...]:
    """Layers to skip, evenly spread; the first (which the cache counts tokens by) and the last stay."""
    count = min(layers - 2, round(share * layers))
    return (
        tuple(sorted({1 + round((index + 0.5) * (layers - 2) / count - 0.5) for index in range(count)}))
        if count > 0
        else ()
    )


def count_layers(model: Any) -> int:
    """How many layers a model has that can be skipped.

    Raises:
        ModelError: it is no transformers model with a list of layers.
    """
    if not isinstance(model, TransformersModel):
        raise ModelError(f"{type(model).__name__} is no transformers model; its layers cannot be skipped.")
    return len(_layer_list(model.model)[2])


def skip_layers(model: TransformersModel, skipped: Sequence[int]) -> TransformersModel:
    """The same model without these layers. Weights are shared."""
    import torch

    root = copy.copy(model.model)
    root._modules = dict(root._modules)
    base_name, list_name, layers = _layer_list(model.model)
    base = copy.copy(getattr(model.model, base_name))
    base._modules = dict(base._modules)
    base._modules[list_name] = torch.nn.ModuleList(
        layer for number, layer in enumerate(layers) if number not in set(skipped)
    )
    root._modules[base_name] = base
    return TransformersModel(root)


def _layer_list(model: Any) -> tuple[str, str, Any]:
    """Name of the decoder in a causal language model, of its list of layers, and the list.

    Raises:
        ModelError: there is none.
    """
    base_name = getattr(model, "base_model_prefix", "")
    base = getattr(model, base_name, None)
    count = getattr(model.config.get_text_config(), "num_hidden_layers", 0)
    for list_name, module in base.named_children() if base is not None else ():
        if type(module).__name__ == "ModuleList" and len(module) == count:
            return base_name, list_name, module
    raise ModelError(f"{type(model).__name__} has no list of layers to skip; use another draft.")
