"""From logits to tokens: the constraint's mask first, then temperature, top-k and top-p.

Everything works on the allowed tokens only, so a narrow mask costs next to nothing and the filters can never leave
a row of all −inf. Host arrays in float64; a torch tensor is copied to the host if it is not there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.errors import GenerationError, OptionsError
from structgen.options import check_count

Ids = npt.NDArray[np.int64]
LogProbs = npt.NDArray[np.float64]
FirstDraw = Callable[[LogProbs, np.random.Generator], int]
"""Draws a position from probabilities [n], distributed as they say."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a token is drawn from the masked distribution.

    Attributes:
        temperature: logits are divided by it; 0 is greedy (the lowest id wins a tie).
        top_k: keep the k likeliest allowed tokens; None keeps all.
        top_p: keep the likeliest allowed tokens up to this share of the probability after ``top_k``, at least one.
        seed: of the random numbers; None takes fresh entropy.

    Raises:
        OptionsError: a value out of range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if not (_is_number(self.temperature) and math.isfinite(self.temperature) and self.temperature >= 0):
            raise OptionsError(f"temperature must be a finite number >= 0, not {self.temperature!r:.100}")
        check_count("top_k", self.top_k, optional=True)
        if not (_is_number(self.top_p) and 0 < self.top_p <= 1):
            raise OptionsError(f"top_p must be a number in (0, 1], not {self.top_p!r:.100}")
        check_count("seed", self.seed, 0, optional=True)


def _is_number(value: object) -> bool:
    """Python's and numpy's numbers; no Booleans."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def to_numpy(logits: Any) -> npt.NDArray[np.floating[Any]]:
    """Logits as a numpy array of float32 or float64; no copy where the values already are one on the host."""
    if isinstance(logits, np.ndarray):
        return logits if logits.dtype in (np.float32, np.float64) else logits.astype(np.float32)
    array: npt.NDArray[np.floating[Any]] = logits.detach().float().cpu().numpy()
    return array


def allowed_token_ids(bitmask_row: npt.NDArray[np.int32], vocab_size: int) -> Ids:
    """The ids whose bit is set in one row of a token bitmask (int32 [ceil(V/32)]), ascending."""
    bits = np.unpackbits(np.ascontiguousarray(bitmask_row).view(np.uint8), bitorder="little")
    return np.flatnonzero(bits[:vocab_size].view(np.bool_))  # as Booleans: 4 to 20 times faster than as bytes


def masked_log_probs(logits_row: npt.NDArray[np.floating[Any]], allowed: Ids | None) -> LogProbs:
    """Log-probabilities (nats, temperature 1) of the allowed tokens, renormalised over them; None allows all.

    Raises:
        GenerationError: the model's logits are not numbers, or rule out every allowed token.
    """
    logits = (logits_row if allowed is None else logits_row[allowed]).astype(np.float64)
    highest = logits.max()
    if not np.isfinite(highest):
        what = "nan" if np.isnan(highest) else f"{highest} as the highest"
        raise GenerationError(f"The model gave {what} over the {logits.size} allowed tokens; check weights and dtype.")
    logits -= highest
    return np.asarray(logits - np.log(np.exp(logits).sum()), dtype=np.float64)


def filtered_probs(log_probs: LogProbs, params: SamplingParams) -> LogProbs:
    """Probabilities after temperature (> 0), top-k and top-p, in that order; they sum to 1, in the same positions."""
    scaled = log_probs / params.temperature
    probs = np.exp(scaled - scaled.max())
    if params.top_k is not None and params.top_k < probs.size:
        probs[np.argsort(-probs, kind="stable")[params.top_k :]] = 0.0
    probs /= probs.sum()
    if params.top_p < 1:
        order = np.argsort(-probs, kind="stable")
        before = np.cumsum(probs[order]) - probs[order]
        probs[order[before >= params.top_p]] = 0.0
        probs /= probs.sum()
    return np.asarray(probs, dtype=np.float64)


def draw(
    log_probs: LogProbs, params: SamplingParams, rng: np.random.Generator, first: FirstDraw | None = None
) -> Iterator[int]:
    """Positions in ``log_probs``, drawn one after the other without replacement.

    The first is the sample (or the argmax); a caller that has to turn one down takes the next, which is distributed
    as the sample given that it is none of those before. Ends when the filters leave no more. ``first``, if given,
    takes the place of the first draw of a sample.
    """
    if params.temperature == 0:
        left = log_probs.copy()
        while np.isfinite(left[best := int(left.argmax())]):
            yield best
            left[best] = -np.inf
        return
    probs = filtered_probs(log_probs, params)
    while (total := probs.sum()) > 0:
        position = sample(probs, rng) if first is None else first(probs, rng)
        first = None
        yield position
        probs[position] = 0.0
        if total < 1e-12:  # what is left is rounding error
            return


def sample(weights: LogProbs, rng: np.random.Generator) -> int:
    """A position drawn with probability in proportion to ``weights`` (not all zero)."""
    edges = np.cumsum(weights)
    position = int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
    if position >= weights.size or weights[position] == 0:  # rounding at the very end of the cumulative sum
        position = int(np.flatnonzero(weights)[-1])
    return position
