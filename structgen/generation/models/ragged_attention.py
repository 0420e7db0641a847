"""Attention over sequences packed into one sequence: each sequence's tokens attend to the sequence's own keys. Imports
torch.

Registered with transformers under ``NAME``. A call of the model with a ``RaggedPlan`` as the argument ``plan`` hands it
to every layer, which writes the sequences' keys and values to the store and attends sequence by sequence; nothing is
padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from structgen.errors import ModelError
from structgen.generation.models.kv_cache import KvStore
from structgen.generation.models.trees import tree_attention

NAME = "structgen"
FEW = 32  # queries of a sequence that are read with the heads of a group side by side, so that keys are not repeated
# What models hand to attention beyond what is used here, which changes nothing: flags, or what the plan says better.
UNUSED = frozenset({"dropout", "is_causal", "position_ids", "use_cache", "output_attentions", "cache_position"})


@cache
def register() -> None:
    """Make the attention known to transformers, once. No mask is registered: models then make none."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, ragged_attention)


@dataclass(eq=False)
class Span:
    """One sequence's tokens in the packed sequence.

    Attributes:
        sequence: its number in the store.
        start, count: where its tokens are.
        held: tokens that the sequence held before.
        parents: as of ``Part``; None: a chain.
    """

    sequence: int
    start: int
    count: int
    held: int
    parents: Sequence[int] | None
    _masks: dict[int | None, Any] = field(default_factory=dict)

    def positions(self) -> list[int]:
        """Each token's place in its text."""
        if self.parents is None:
            return list(range(self.held, self.held + self.count))
        return [self.held + int(depth) for depth in tree_attention(self.parents)[1]]

    def mask(self, window: int | None, like: torch.Tensor) -> torch.Tensor | None:
        """What is added to the scores, [count, held + count]; None: every token sees all of them. ``window``: how many
        tokens, itself included, a token sees at most."""
        if window is not None and self.held + self.count <= window:
            window = None
        if window not in self._masks:
            self._masks[window] = self._made(window, like)
        return self._masks[window]

    def _made(self, window: int | None, like: torch.Tensor) -> torch.Tensor | None:
        if self.count == 1 and window is None:
            return None
        if self.parents is None:
            visible = torch.ones(self.count, self.count, dtype=torch.bool).tril()
        else:
            visible = torch.from_numpy(tree_attention(self.parents)[0])
        sees = pad(visible, (self.held, 0), value=True)
        if window is not None:
            places = torch.tensor(self.positions())
            columns = torch.cat([torch.arange(self.held), places])
            sees &= places[:, None] - columns < window
        least = torch.finfo(like.dtype).min
        return torch.zeros(sees.shape, dtype=like.dtype).masked_fill_(~sees, least).to(like.device)


@dataclass(eq=False)
class RaggedPlan:
    """What one call of the model reads.

    Attributes:
        store: where keys and values are kept.
        spans: the sequences, in the order of the packed sequence.
        windows: by layer, the window that the model asked for (filled in by the layers).
    """

    store: KvStore
    spans: Sequence[Span]
    windows: dict[int, int | None] = field(default_factory=dict)


def ragged_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    plan: RaggedPlan,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """What a layer calls: ``query`` [1, heads, T, width], keys and values likewise; [1, T, heads, width].

    ``softcap`` and ``s_aux`` (sinks: a score for each head that nothing answers to) as of transformers' own.

    Raises:
        ModelError: an argument that may change the result and is not known here.
    """
    unknown = [
        name for name, given in others.items() if given is not None and given is not False and name not in UNUSED
    ]
    if unknown or attention_mask is not None:
        raise ModelError(f"{type(module).__name__} passes {', '.join(unknown) or 'a mask'} to its attention.")
    plan.windows[module.layer_idx] = sliding_window
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    out = query.new_empty(1, query.shape[2], query.shape[1], value.shape[-1])
    for span in plan.spans:
        span_slice = slice(span.start, span.start + span.count)
        keys, values = plan.store.append(
            span.sequence, module.layer_idx, key[0, :, span_slice], value[0, :, span_slice]
        )
        asked = query[0, :, span_slice]
        if softcap is None and s_aux is None:
            answer = _fused(asked, keys, values, span, sliding_window, scale)
        else:
            answer = _plain(asked, keys, values, span.mask(sliding_window, asked), scale, softcap, s_aux)
        out[0, span_slice] = answer.transpose(0, 1)
    return out, None


def _fused(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, span: Span, window: int | None, scale: float
) -> torch.Tensor:
    """By torch's own kernel: [heads, n, width]."""
    heads, count, width = query.shape
    groups = heads // keys.shape[0]
    causal = count > 1 and span.held == 0 and span.parents is None and (window is None or count <= window)
    mask = None
    if count == 1 and window is not None:  # the last tokens are all that it sees
        keys, values = keys[:, -window:], values[:, -window:]
    if groups > 1 and count <= FEW:
        mask = None if count == 1 else span.mask(window, query)
        mask, causal = None if mask is None else mask.repeat(groups, 1), False
        query = query.reshape(keys.shape[0], groups * count, width)
    else:
        keys, values = keys.repeat_interleave(groups, 0), values.repeat_interleave(groups, 0)
        mask = None if causal or count == 1 else span.mask(window, query)
    answer = scaled_dot_product_attention(
        query[None], keys[None], values[None], attn_mask=mask, is_causal=causal, scale=scale
    )
    return answer.reshape(heads, count, -1)


def _plain(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    softcap: float | None,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Step by step, for what the kernel does not take: [heads, n, width]."""
    heads, count, _ = query.shape
    groups = heads // keys.shape[0]
    keys, values = keys.repeat_interleave(groups, 0), values.repeat_interleave(groups, 0)
    scores = query @ keys.transpose(1, 2) * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if mask is not None:
        scores = scores + mask
    if sinks is None:
        return torch.softmax(scores, -1, dtype=torch.float32).to(query.dtype) @ values
    scores = torch.cat([scores, sinks.reshape(heads, 1, 1).expand(heads, count, 1).to(scores.dtype)], -1)
    scores = scores - scores.max(-1, keepdim=True).values
    return torch.softmax(scores, -1, dtype=scores.dtype)[..., :-1].to(query.dtype) @ values
