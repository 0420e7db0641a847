"""Linear layers on the CPU that read a few tokens at once for little more than one. Imports torch.

A forward of one token is limited by reading the weights, and one of 16 should cost hardly more. For few rows, however,
MKL's float32 product spends most of its time on rearranging the weights, at each call. oneDNN takes weights that were
rearranged once, in one copy for any number of rows (products of SmolLM2-135M's 135 million weights, one thread of a
Zen 5, ms):

    rows                                     1     4     8    16    32    64   200
    MKL, weights as they are                34    53    64    94   129   219   608
    MKL, transposed                         34    31    66   108   138   226   617
    oneDNN, weights rearranged              19    22    28    39    59    95   269

A copy takes as long to make as a few dozen products, so each layer makes its own once it has read a few tokens at once
so often (as one who rents until the rent has come to the price); until then, and where copies would be too large, it
takes the cheaper of MKL's products.

Which is the cheapest for few rows depends on the processor. One thread of an Emerald Rapids takes for 1, 2 and 4 rows
45, 53 and 81 ms as they are, 108 transposed (2 and 4), and 51, 56 and 59 rearranged. So each layer tries two ways for
such numbers of rows, and stays with the faster.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

Multiplication = Callable[[torch.Tensor], torch.Tensor]
TRANSPOSED = range(2, 7)
"""Numbers of rows for which the transposed product may be the cheaper one without a copy."""
TRIED = range(1, 4)
"""Numbers of rows for which the weights as they are may be cheaper than a copy."""
TRIALS = 8
"""Products of each such number that are timed, in two ways by turns."""
COPIES_BYTES = 2 << 30
"""What the copies of a model may take."""
AFTER, SPREAD = 16, 16
"""Uses until the first layer makes its copy, and further uses until the last does: no single step takes long."""
_LOGGER = logging.getLogger(__name__)


def pack_linear_layers(model: torch.nn.Module) -> int:
    """Replace the float32 linear layers of a model on the CPU by ones that copy their weights where that pays; the
    parameters are shared. Results differ from before by rounding.

    Returns:
        how many were replaced; none of a model that has been here before.
    """
    layers = [
        (parent, name, layer)
        for parent in model.modules()
        for name, layer in parent.named_children()
        if type(layer) is torch.nn.Linear and layer.weight.dtype == torch.float32 and layer.weight.device.type == "cpu"
    ]
    size = sum(layer.weight.numel() * 4 for _, _, layer in layers)
    copies = size <= COPIES_BYTES and bool(layers) and _reads_rearranged(layers[0][2])
    for index, (parent, name, layer) in enumerate(layers):
        packed = PackedLinear(layer, AFTER + index * SPREAD // len(layers) if copies else math.inf)
        if index == 0 and copies:
            packed.announced = (
                f"{type(model).__name__}: rearranging a copy of the weights ({size / 2**20:.0f} MiB), "
                "with which a few tokens at once are read faster"
            )
        setattr(parent, name, packed)
    return len(layers)


class PackedLinear(torch.nn.Linear):
    """A linear layer for inference, over the parameters of another.

    Args:
        layer: the other.
        after: reads of a few rows after which the weights are copied; infinite: never.

    Attributes:
        announced: what the log is told when this layer makes its copy.
    """

    def __init__(self, layer: torch.nn.Linear, after: float) -> None:
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self.announced = ""
        self._after, self._uses = after, 0
        self._packed: Any = None
        self._copied: tuple[int, int] | None = None  # what the copy was made of
        self._seconds: dict[tuple[bool, int], list[float]] = {}  # of two ways by turns, by copy and number of rows
        self._faster: dict[tuple[bool, int], int] = {}  # which of them it is, once that is known

    @property
    def has_copy(self) -> bool:
        """Whether the weights have been copied."""
        return self._packed is not None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """x W^T + b for float32[..., in_features]."""
        inputs = input.numel() // self.in_features
        self._uses += inputs > 1
        if self._uses > self._after and input.is_cpu:
            if self._copied != _state(self.weight):  # the first time, or they were trained since
                self._copy()
            return self._tried(input, inputs, self._by_copy, self._plainly) if inputs in TRIED else self._by_copy(input)
        return (
            self._tried(input, inputs, self._plainly, self._transposed)
            if inputs in TRANSPOSED
            else self._plainly(input)
        )

    def _tried(self, input: torch.Tensor, inputs: int, first: Multiplication, second: Multiplication) -> torch.Tensor:
        """The product in the faster of two ways: they are taken by turns until it is known which has the least time."""
        key = self.has_copy, inputs
        faster = self._faster.get(key)
        if faster is not None:
            return second(input) if faster else first(input)
        seconds = self._seconds.setdefault(key, [])
        start = time.perf_counter()
        product = second(input) if len(seconds) % 2 else first(input)
        seconds.append(time.perf_counter() - start)
        if len(seconds) == TRIALS:
            self._faster[key] = int(min(seconds[1::2]) < min(seconds[::2]))
        return product

    def _by_copy(self, input: torch.Tensor) -> torch.Tensor:
        return _product(input, self._packed, self.bias)

    def _plainly(self, input: torch.Tensor) -> torch.Tensor:
        return functional.linear(input, self.weight, self.bias)

    def _transposed(self, input: torch.Tensor) -> torch.Tensor:
        out = torch.mm(self.weight, input.reshape(-1, self.in_features).t()).t()
        out = out if self.bias is None else out + self.bias
        return out.reshape(*input.shape[:-1], self.out_features)

    def _copy(self) -> None:
        if self.announced:
            _LOGGER.info("%s", self.announced)
            self.announced = ""
        self._packed, self._copied = _rearranged(self.weight), _state(self.weight)


def _reads_rearranged(layer: torch.nn.Linear) -> bool:
    """Whether this build of torch has oneDNN's product, and it says what the plain one says."""
    if not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")):  # type: ignore[no-untyped-call]
        return False
    inputs = torch.ones(2, layer.in_features)
    try:
        with torch.inference_mode():
            product = _product(inputs, _rearranged(layer.weight), layer.bias)
            return torch.allclose(product, functional.linear(inputs, layer.weight, layer.bias), rtol=1e-3, atol=1e-3)
    except RuntimeError:  # oneDNN has no such product here
        return False


def _rearranged(weight: torch.Tensor) -> Any:
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach())


def _product(input: torch.Tensor, packed: Any, bias: torch.Tensor | None) -> torch.Tensor:
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(input, packed, bias, "none", [], "")
    return product


def _state(weight: torch.Tensor) -> tuple[int, int]:
    """Changes when the weights do."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version
