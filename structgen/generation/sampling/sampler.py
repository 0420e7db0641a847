"""One way to draw for one row and many, wherever the logits are: what samplers are given, and what they give.

The distribution of a row, whatever draws from it: logits, adjusted (`penalties`), masked, then ``params.steps``
(`filters`). The drawing rule: with tokens in ascending order of their ids, the first whose cumulative weight exceeds u
times the sum, u the row's own number (`uniforms`); greedily, the lowest id of those with the highest logit. So rows do
not see each other, and a single call is a batch of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from structgen.generation.sampling.params import SamplingParams
from structgen.generation.sampling.penalties import Adjustments

Bitmask = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class DrawRequest:
    """A token that is to be drawn.

    Attributes:
        params: how.
        seed: of the row's random numbers, below 2**64.
        position: tokens of the row's output before this one.
        logits_row, mask_row: where its logits and its mask are.
        adjustments: bias and penalties; None: none.
    """

    params: SamplingParams
    seed: int
    position: int
    logits_row: int
    mask_row: int
    adjustments: Adjustments | None = None


@dataclass(frozen=True, slots=True)
class Choices:
    """Tokens drawn for R requests, on the host.

    Attributes:
        token_ids: int64 [R]; -1 where none could be drawn: the row's allowed logits (adjusted) hold NaN or +inf, or are
            all -inf, or no token is allowed.
        log_probs: float64 [R], nats: of the token under the adjusted and masked distribution, renormalised, at
            temperature 1 and before the filters.
        log_kept: float64 [R], nats: the mass that the mask kept of the adjusted distribution; None if not asked for.
    """

    token_ids: npt.NDArray[np.int64]
    log_probs: npt.NDArray[np.float64]
    log_kept: npt.NDArray[np.float64] | None = None


class TokenSampler(Protocol):
    """Draws where the logits are."""

    def send(self, bitmask: Bitmask) -> Any:
        """Begin to bring masks, int32 [M, ceil(V / 32)], to where they are used; what ``draw`` takes. Rows are not to
        be written to before it was called."""
        ...

    def draw(self, logits: Any, masks: Any, requests: Sequence[DrawRequest], *, kept: bool = False) -> Choices:
        """Draw a token for each request.

        Args:
            logits: floating [N, V'] where the model left them; V' is at least V, and what lies after V (a multiple of
                32 of which only bits of tokens are set) is not allowed. They come out as they went in.
            masks: what ``send`` gave.
            kept: compute ``log_kept``.
        """
        ...
