"""Guidance: what a model says after one prompt, pushed away from what it says after another.

Classifier-free guidance (Sanchez et al. 2023) and context-aware decoding (Shi et al. 2024) are one formula:
log p is, up to a constant, scale · log p(after the prompt) + (1 - scale) · log p(after the other one).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structgen.generation.decoding.hypothesis import Hypothesis
from structgen.generation.decoding.prompts import Prompt
from structgen.generation.models.guided_sequences import log_softmax, pushed
from structgen.generation.models.prefix_reader import Logits, Prefix, PromptReader
from structgen.generation.search.method import check_number
from structgen.generation.search.space import Distribution, distribution, distribution_of

IMPLAUSIBLE = 1e4
"""Nats that are taken off what is not plausible: it comes after all that is, and only where nothing else can."""


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """What is guided, and by how much.

    Attributes:
        without: the prompt that outputs are pushed away from: without the instruction, without the context.
        scale: 1 is the prompt alone, 0 the other one; above 1 guides.
        plausibility: of allowed tokens, those stay that have at least this share of the likeliest one's probability
            after the prompt: tokens that are improbable after both may have any ratio. 0: all stay.

    Raises:
        OptionsError: a number out of range.
    """

    without: Prompt
    scale: float = 1.5
    plausibility: float = 0.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale)
        check_number("plausibility", self.plausibility, 0, 1)

    def weigh(self, hypothesis: Hypothesis, both: Any) -> Distribution:
        """What ``GuidedReader`` says of what is allowed."""
        guided = distribution_of(hypothesis, both[0])
        if not self.plausibility:
            return guided
        given = distribution_of(hypothesis, both[1]).log_probs
        plausible = given >= math.log(self.plausibility) + given.max(initial=-math.inf)
        return distribution(guided.tokens, np.where(plausible, guided.log_probs, guided.log_probs - IMPLAUSIBLE))


def context_aware(without: Prompt, alpha: float = 0.5, plausibility: float = 0.0) -> Guidance:
    """Context-aware decoding: ``without`` is the prompt without the context, which weighs 1 + ``alpha``."""
    check_number("alpha", alpha, 0)
    return Guidance(without=without, scale=1 + alpha, plausibility=plausibility)


class GuidedReader:
    """Two readers of one model, as one: logits [n, 2, V], the guided ones and those after the prompt, normalised."""

    def __init__(self, given: PromptReader, other: PromptReader, scale: float) -> None:
        self._readers, self._scale = (given, other), scale
        self.reads_chains = given.reads_chains and other.reads_chains

    @property
    def tokens(self) -> int:
        """Read after either prompt."""
        return sum(reader.tokens for reader in self._readers)

    @property
    def calls(self) -> int:
        """Of the model."""
        return sum(reader.calls for reader in self._readers)

    def read(self, prefixes: Sequence[Prefix]) -> Logits:
        """See ``PromptReader.read``."""
        given, other = (log_softmax(reader.read(prefixes)) for reader in self._readers)
        return np.stack([pushed(given, other, self._scale), given], axis=1)

    def retain(self, prefixes: Iterable[Prefix]) -> None:
        """See ``PromptReader.retain``."""
        kept = list(prefixes)
        for reader in self._readers:
            reader.retain(kept)
