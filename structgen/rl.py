"""Reinforcement learning from constrained rollouts: the masks that a text was drawn under, and what they took.

A sampler that masks draws from μ(a) = π(a) / S at each token: π is the model, S the mass of what was allowed. A trainer
that compares its own log π with the sampler's log μ sees a ratio of S where the weights are the same, and so weighs
every constrained token down. Two ways out, both right:

- train the masked policy: compute its log-probabilities with the masks (``log_probs``), so that ratios are 1;
- train the model as it is: add the log-mass to the sampler's log-probabilities: log π = log μ + log S.

Masks are a function of the constraint and the tokens: they need not travel with the rollouts, ``masks`` makes them
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import as_constraint
from structgen.core.engines.apply import unpacked
from structgen.core.engines.batches import host_integers
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import BitmaskError, ConstraintError, TokenError

if TYPE_CHECKING:
    from torch import Tensor

Bitmask = npt.NDArray[np.int32]
MOST_ELEMENTS = 1 << 24  # logits that are worked on at once


def masks(constraint: Any, vocabulary: Vocabulary, completion_ids: Sequence[int]) -> Bitmask:
    """What was allowed at each token of a completion: int32 [T, ceil(V / 32)].

    Row t has a bit for each token that may stand at place t. Rows of places after the end of sequence allow all:
    nothing is asked of padding. O(T) steps of a matcher, a few µs each.

    Args:
        constraint: what the text was written under: a constraint, or anything ``json_schema`` takes; None: free text.
        vocabulary: the sampler's, with all of its ends.
        completion_ids: integers [T]: the tokens that were drawn, with the end of sequence if it was.

    Raises:
        ConstraintError: a token that the constraint does not allow, by its place; a bad constraint.
        TokenError: ids that are no integers, or not in the vocabulary.
    """
    ids = host_integers(completion_ids, "completion_ids", TokenError)
    rows = np.full((len(ids), -(-vocabulary.size // 32)), -1, np.int32)
    checked: Constraint[Any] | None = as_constraint(constraint)
    if checked is None or not ids:
        return rows
    matcher = checked.compile(vocabulary).matcher()
    matcher.fill_next_token_bitmask(rows, 0)
    for index, token in enumerate(ids[:-1]):
        if not matcher.advance_and_fill(token, rows, index + 1):
            _refuse(ids, index, vocabulary)
        if matcher.is_terminated():
            rows[index + 1 :] = -1
            return rows
    if not matcher.accept_token(ids[-1]):
        _refuse(ids, len(ids) - 1, vocabulary)
    return rows


def log_probs(logits: Tensor, ids: Tensor, masks: Any) -> tuple[Tensor, Tensor]:
    """Log-probabilities of tokens under the masked policy, and the log-mass that the masks left. Differentiable.

    Their sum is the log-probability of the model without masks.

    Args:
        logits: floating [..., V'], divided by the temperature if the policy has one. V' may exceed the masks' width:
            what is beyond is not allowed.
        ids: integers [...]: the token at each place.
        masks: int32 [..., W], numpy or torch: see ``masks``.

    Returns:
        log π(a) - log S, -inf where the token is not allowed, and log S, both float32 (or the logits' float64) [...],
        in nats.

    Raises:
        BitmaskError: shapes or dtypes that do not fit.
    """
    import torch

    bits = torch.from_numpy(np.ascontiguousarray(masks)) if isinstance(masks, np.ndarray) else masks
    _check(logits, ids, bits)
    flat, tokens = logits.flatten(0, -2), ids.reshape(-1)
    words = bits.reshape(-1, bits.shape[-1]).to(logits.device)
    step = max(1, MOST_ELEMENTS // logits.shape[-1])
    parts = [
        _part(flat[start : start + step], tokens[start : start + step], words[start : start + step])
        for start in range(0, max(1, len(flat)), step)
    ]
    policy, mass = (torch.cat([part[number] for part in parts]).reshape(ids.shape) for number in (0, 1))
    return policy, mass


def _part(logits: Tensor, ids: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    import torch

    values = logits if logits.dtype == torch.float64 else logits.float()
    covered = min(values.shape[1], 32 * words.shape[1])
    allowed = torch.nn.functional.pad(unpacked(words, covered), (0, values.shape[1] - covered))
    masked = values.masked_fill(~allowed, -torch.inf)
    total = masked.logsumexp(dim=1)
    return masked.gather(1, ids.long()[:, None])[:, 0] - total, total - values.logsumexp(dim=1)


def _check(logits: Tensor, ids: Tensor, words: Any) -> None:
    import torch

    fits = isinstance(words, torch.Tensor) and words.dtype == torch.int32 and logits.is_floating_point()
    if not fits or not logits.shape[:-1] == ids.shape == words.shape[:-1]:
        shapes = f"{logits.dtype} {tuple(logits.shape)}, {tuple(ids.shape)}, {getattr(words, 'dtype', type(words))}"
        raise BitmaskError(
            f"logits, ids and masks are {shapes} {tuple(getattr(words, 'shape', ()))}; wanted floating [..., V], "
            "integers [...] and int32 [..., words], as structgen.rl.masks makes them"
        )


def _refuse(ids: Sequence[int], index: int, vocabulary: Vocabulary) -> None:
    spelled = vocabulary.tokens[ids[index]]
    raise ConstraintError(
        f"completion_ids[{index}] is token {ids[index]} ({spelled!r:.100}), which the constraint does not allow there; "
        "pass the constraint that the completion was written under, its ids alone without the prompt, and a vocabulary "
        "with all ids that end a text"
    )
