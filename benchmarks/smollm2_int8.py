"""The default model with 8-bit weights, for long benchmark runs on few cores: about half the time of float32.

    PYTHONPATH=benchmarks structgen bench jsonschemabench --model smollm2_int8:load ...

Dynamic quantisation of the linear layers (weights int8 by tensor, activations by row, on the fly).
"""

from __future__ import annotations

import warnings

from structgen.generator import Generator
from structgen.models.store import load_model


def load() -> Generator:
    """The model on one thread."""
    import torch
    from torch.ao.quantization import quantize_dynamic

    torch.set_num_threads(1)
    model, tokenizer = load_model()
    with warnings.catch_warnings():  # torch points to torchao, another package, for what is to come
        warnings.simplefilter("ignore")
        model.model = quantize_dynamic(model.model, {torch.nn.Linear}, dtype=torch.qint8)  # type: ignore[no-untyped-call]
    return Generator(model, tokenizer)
