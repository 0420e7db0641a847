"""How the tokens of one output are drawn: its seed, its bias and penalties, and what follows a token turned down."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import OptionsError
from structgen.generation.sampling import (
    FirstDraw,
    Ids,
    LogProbs,
    SamplingParams,
    allowed_token_ids,
    deviation,
    draw,
    filtered_probs,
    masked_log_probs,
    to_numpy,
)
from structgen.generation.sampling.penalties import History
from structgen.generation.sampling.sampler import Bitmask, DrawRequest
from structgen.generation.sampling.uniforms import generator, seed_or_entropy, uniform

# Drawn tokens that may be turned down for one position before the known completion is followed. Only an output at the
# very end of its budget gets there; the bound keeps that step under a few milliseconds.
MAX_REJECTED = 32
SURPRISING = -math.log(2.0)  # less than half of the mass: the likeliest text is mostly one that is not allowed
FEW_ALLOWED = 1024  # tokens whose probabilities are kept: those within a string are not
WANTED = 3  # tokens that are kept of what the model wanted


@dataclass(frozen=True, slots=True)
class Surprise:
    """A token that was chosen where the model mostly wanted what the mask forbids.

    Attributes:
        index: of the token in the output; the number of tokens for the end of the output.
        kept: the mass that the mask left, 0 to 1.
        wanted: text and probability of the likeliest tokens before the mask, likeliest first; special ones by name.
    """

    index: int
    kept: float
    wanted: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class AllowedProbs:
    """What the model gave to each of the few tokens that were allowed somewhere.

    Attributes:
        allowed: their ids, ascending.
        log_probs: nats, of the model's own distribution, before the mask, bias and penalties.
    """

    allowed: Ids
    log_probs: LogProbs


class TokenDrawing:
    """The draws of one output.

    Args:
        vocabulary: the tokens that it is written in.
        params: how they are drawn.
        bitmask: int32 [1, ceil(V / 32)], what may come next; read at each draw.
        prompt_ids: what ``repetition_penalty`` counts before the output.

    Raises:
        OptionsError: ``logit_bias`` names a token that there is not.
    """

    def __init__(
        self, vocabulary: Vocabulary, params: SamplingParams, bitmask: Bitmask, prompt_ids: Sequence[int] = ()
    ) -> None:
        self.params = params
        self._vocabulary, self._size, self._bitmask = vocabulary, vocabulary.size, bitmask
        self._seed = seed_or_entropy(params.seed)
        self._history = _history(params, prompt_ids, vocabulary)

    @property
    def is_adjusted(self) -> bool:
        """Whether bias or penalties may change the logits, these by what was chosen before."""
        return self._history is not None

    def add(self, token: int) -> None:
        """A token was chosen (not forced)."""
        if self._history is not None:
            self._history.add(token)

    def follow(self, token: int) -> None:
        """A token was taken, chosen or forced."""
        if self._history is not None:
            self._history.follow(token)

    def request(self, position: int, logits_row: int, mask_row: int) -> DrawRequest:
        """What is to be drawn next: see ``DrawRequest``."""
        adjustments = None if self._history is None else self._history.adjustments()
        return DrawRequest(self.params, self._seed, position, logits_row, mask_row, adjustments)

    def by_rule(self, rule: FirstDraw, position: int, logits_row: Any) -> tuple[int, float]:
        """The token that ``rule`` draws from the filtered probabilities of the allowed tokens, ascending by id, and its
        log-probability as ``Choices`` has it."""
        allowed, log_probs, sigma = self._distribution(logits_row)
        drawn = rule(filtered_probs(log_probs, self.params, sigma), generator(self._seed, position))
        return int(allowed[drawn]), float(log_probs[drawn])

    def others(self, refused: int, position: int, logits_row: Any) -> Iterator[tuple[int, float]]:
        """Tokens drawn after ``refused`` was turned down, without replacement, with their log-probabilities; at most
        ``MAX_REJECTED``, the refused one among them. -1: that many, drawn under a wider mask, were turned down."""
        allowed, log_probs, sigma = self._distribution(logits_row)
        first = None if refused < 0 else int(np.searchsorted(allowed, refused))
        before = MAX_REJECTED if refused < 0 else 0

        def number(attempt: int) -> float:
            return uniform(self._seed, position, before + attempt)

        drawn = draw(log_probs, self.params, number, sigma=sigma, first=first)
        for index in islice(drawn, MAX_REJECTED):
            yield int(allowed[index]), float(log_probs[index])

    def log_probs(self, logits_row: Any) -> tuple[Ids, LogProbs]:
        """The allowed tokens, ascending, and their log-probabilities (nats) at temperature 1 after the mask."""
        return self._distribution(logits_row)[:2]

    def own_probs(self, logits_row: Any) -> AllowedProbs | None:
        """What the model itself gives to the allowed tokens; None where these are many."""
        allowed = allowed_token_ids(self._bitmask[0], self._size)
        if len(allowed) > FEW_ALLOWED:
            return None
        row = to_numpy(logits_row)[: self._size].astype(np.float64)
        return AllowedProbs(allowed, row[allowed] - _log_sum(row))

    def log_mass(self, logits_row: Any) -> float:
        """The mass (log, nats) that the mask leaves of the model's distribution, after bias and penalties."""
        row = self._adjusted(logits_row).astype(np.float64)
        return min(0.0, float(_log_sum(row[allowed_token_ids(self._bitmask[0], len(row))]) - _log_sum(row)))

    def surprise(self, index: int, log_mass: float, logits_row: Any) -> Surprise:
        """What the model wanted where the mask left ``log_mass``; of equals, the lowest ids first."""
        log_probs = masked_log_probs(self._adjusted(logits_row), None)
        near = np.argpartition(-log_probs, min(2 * WANTED, len(log_probs) - 1))[: 2 * WANTED]
        order = near[np.lexsort((near, -log_probs[near]))][:WANTED].tolist()
        wanted = tuple((self._shown(token), math.exp(log_probs[token])) for token in order)
        return Surprise(index, math.exp(log_mass), wanted)

    def _shown(self, token: int) -> str:
        data = self._vocabulary.tokens[token]
        return self._vocabulary.rendered(data).decode(errors="replace") if data else self._vocabulary.names_of(token)

    def _distribution(self, logits_row: Any) -> tuple[Ids, LogProbs, float | None]:
        """The allowed tokens, their log-probabilities, and the deviation that filters may need."""
        row = self._adjusted(logits_row)
        allowed = allowed_token_ids(self._bitmask[0], len(row))
        return allowed, masked_log_probs(row, allowed), deviation(row, self.params)

    def _adjusted(self, logits_row: Any) -> npt.NDArray[np.floating[Any]]:
        """A row of the vocabulary's length, with bias and penalties."""
        row = to_numpy(logits_row)[: self._size]
        if self._history is not None and (adjustments := self._history.adjustments()) is not None:
            row = row.copy()
            adjustments.apply(row)
        return row


def _log_sum(logits: npt.NDArray[np.float64]) -> float:
    """The logarithm of the sum of exponentials; minus infinity of none."""
    highest = float(logits.max(initial=-np.inf))
    return highest + math.log(float(np.exp(logits - highest).sum())) if math.isfinite(highest) else highest


def _history(params: SamplingParams, prompt_ids: Sequence[int], vocabulary: Vocabulary) -> History | None:
    """What bias and penalties look at; None if there are none."""
    highest = params.bias_pairs[-1][0] if params.bias_pairs else -1
    if highest >= vocabulary.size:
        raise OptionsError(f"logit_bias names token {highest}; the vocabulary has {vocabulary.size} tokens, from 0 on")
    return History(params, prompt_ids, vocabulary.tokens) if params.bias_pairs or params.has_penalties else None
