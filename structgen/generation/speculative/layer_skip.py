"""Drafts of the target itself with some of its layers skipped (self-speculation; SWIFT, Xia et al. 2024).

Which layers to skip is chosen online among a few sets, output by output, by upper confidence bounds of the tokens
gained for the time spent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from structgen.generation.decoding.output import Output
from structgen.generation.models.layer_skipping import count_layers, skip_layers
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
