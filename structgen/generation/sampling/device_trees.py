"""Draft trees of a batch judged on the device: one draw for all nodes, the accepted paths, one transfer up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from structgen.core.engines.apply.triton_here import current, triton_runs_on
from structgen.errors import OptionsError
from structgen.generation.sampling.device_batch import Batch, Entries, distinct, transfer
from structgen.generation.sampling.device_masks import SentMasks
from structgen.generation.sampling.params import SamplingParams
from structgen.generation.sampling.penalties import Adjustments
from structgen.generation.sampling.torch_sampler import TorchSampler
from structgen.generation.sampling.uniforms import uniforms

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drafted:
    """A draft tree of one output, whose nodes the model has read.

    Attributes:
        tokens, parents: of its n nodes, parents before children, siblings of different tokens. Node 0 is the root, the
            last token of the output, whose parent is -1.
        params, seed: as in ``DrawRequest``.
        position: of the token that is drawn at the root; at a node it is this plus the node's depth.
        logits_rows, mask_rows: of each node, [n].
        adjustments: of each node; None: none has any.
    """

    tokens: Sequence[int] | Ints
    parents: Sequence[int] | Ints
    params: SamplingParams
    seed: int
    position: int
    logits_rows: Sequence[int] | Ints
    mask_rows: Sequence[int] | Ints
    adjustments: Sequence[Adjustments | None] | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """What a tree's verification gives, from the root on.

    Attributes:
        nodes: int64 [k], the root and the drafts that were drawn.
        token_ids: int64 [k], what was drawn at each: the tokens of ``nodes[1:]``, and one more (-1 as in ``Choices``).
        log_probs: float64 [k], as in ``Choices``.
    """

    nodes: Ints
    token_ids: Ints
    log_probs: npt.NDArray[np.float64]


def verify_trees(sampler: TorchSampler, logits: Tensor, masks: SentMasks, trees: Sequence[Drafted]) -> list[Path]:
    """Draw a token at every node, and follow from each root the children whose tokens were drawn.

    The tokens are those of a loop without drafts: a node's draw depends on the seed and its place in the output.
    O(nodes · V) on the device, and its longest path times the nodes of a tree.

    Args:
        sampler: for the device of the logits.
        logits: floating [N, V'], of all nodes.
        masks: what ``sampler.send`` gave.

    Raises:
        OptionsError: a tree whose parents do not come before their children.
    """
    if not trees:
        return []
    tokens, parents, depths, starts = _flat(trees)
    drawn = sampler.drawn(logits, masks, _batch(trees, depths, starts))
    longest = int(depths.max()) + 1
    (there, before, bounds), size = transfer([tokens, parents, starts], sampler.device)
    sampler.transferred += size
    by_kernel = triton_runs_on(sampler.device.type) and drawn.dtype == torch.float64
    follow = _follow_by_kernel if by_kernel else _follow
    return _paths(follow(drawn, there, before, bounds, longest, int(np.diff(starts).max())).cpu().numpy())


def _flat(trees: Sequence[Drafted]) -> tuple[npt.NDArray[np.int32], ...]:
    """All trees after one another: tokens, parents, depths [nodes], and where each begins [trees + 1]; int32."""
    sizes = [len(tree.tokens) for tree in trees]
    starts = np.cumsum([0, *sizes]).astype(np.int32)
    tokens = np.concatenate([np.asarray(tree.tokens, np.int32) for tree in trees])
    parents = np.concatenate([np.asarray(tree.parents, np.int32) for tree in trees])
    index_in_tree = np.arange(len(tokens)) - np.repeat(starts[:-1], sizes)
    is_root = index_in_tree == 0
    if len(parents) != len(tokens) or not np.all(
        np.where(is_root, parents == -1, (parents >= 0) & (parents < index_in_tree))
    ):
        raise OptionsError("a draft tree begins with its root, of parent -1, and a node's parent comes before it")
    above = np.where(is_root, np.arange(len(tokens)), parents + np.repeat(starts[:-1], sizes))
    depths = np.where(is_root, 0, 1)
    while (further := depths[above] > 0).any():  # jump over twice as many ancestors each time
        depths = depths + np.where(further, depths[above], 0)
        above = above[above]
    return tokens, parents, depths.astype(np.int32), starts


def _batch(trees: Sequence[Drafted], depths: npt.NDArray[np.int32], starts: npt.NDArray[np.int32]) -> Batch:
    sizes = np.diff(starts)
    params, which = distinct([tree.params for tree in trees])
    seeds = np.repeat(np.array([tree.seed for tree in trees], np.uint64), sizes)
    positions = np.repeat(np.array([tree.position for tree in trees], np.int64), sizes) + depths
    adjusted: list[Adjustments | None] = []
    for tree in trees:
        adjusted += [None] * len(tree.tokens) if tree.adjustments is None else tree.adjustments
    return Batch(
        params,
        np.repeat(which, sizes),
        np.concatenate([np.asarray(tree.logits_rows, np.int32) for tree in trees]),
        np.concatenate([np.asarray(tree.mask_rows, np.int32) for tree in trees]),
        uniforms(seeds, positions),
        Entries.of(adjusted),
    )


def _follow_by_kernel(
    drawn: Tensor, tokens: Tensor, parents: Tensor, starts: Tensor, longest: int, largest: int
) -> Tensor:
    """Floating [trees, 1 + 3 · longest]: nodes on the path, then of each its place, its token, its log-probability."""
    from structgen.generation.sampling.draw_kernel import path_kernel

    trees = len(starts) - 1
    out = torch.empty(trees, 1 + 3 * longest, dtype=torch.float64, device=drawn.device)
    size = 1 << (largest - 1).bit_length()
    with current(drawn.device):
        path_kernel[trees,](drawn, tokens, parents, starts, out, out.stride(0), SIZE=size, num_warps=1)
    return out


def _follow(drawn: Tensor, tokens: Tensor, parents: Tensor, starts: Tensor, longest: int, largest: int) -> Tensor:
    """The same with torch operations, all trees a step."""
    trees = len(starts) - 1
    first, end = starts[:-1].long(), starts[1:].long()
    index = torch.arange(largest, device=drawn.device)
    inside = index < (end - first)[:, None]
    entry = torch.where(inside, first[:, None] + index, 0)
    token, parent = torch.where(inside, tokens[entry], -1), torch.where(inside, parents[entry], -1)
    out = torch.zeros(trees, 1 + 3 * longest, dtype=drawn.dtype, device=drawn.device)
    node = torch.zeros_like(first)
    going = end > first
    for step in range(longest):
        row = drawn[first + node]
        out[:, 0] += going
        out[:, 1 + 3 * step : 4 + 3 * step] = torch.stack([node.to(drawn.dtype), row[:, 0], row[:, 1]], 1)
        matches = (parent == node[:, None]) & (token == row[:, :1].long())
        following = torch.where(matches, index, largest).amin(1)
        going = going & (following < largest)
        node = torch.where(going, following, node)
    return out


def _paths(rows: npt.NDArray[Any]) -> list[Path]:
    paths = []
    for row in rows:
        steps = row[1 : 1 + 3 * int(row[0])].reshape(-1, 3)
        paths.append(Path(steps[:, 0].astype(np.int64), steps[:, 1].astype(np.int64), steps[:, 2].astype(np.float64)))
    return paths
