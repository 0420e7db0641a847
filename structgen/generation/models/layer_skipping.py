"""The same model without some of its layers, weights shared: the door to ``torch.nn.Module._modules``.

No other module touches it (``tests/test_fences.py``): copying a module without its parameters has no public way.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from structgen.errors import ModelError
from structgen.generation.models.transformers_model import TransformersModel


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
