"""What aligned decoding calls of its kernel: walks that draw texts, and bounds that move up to the root.

`structgen.generation.target.store` owns the arrays. All probabilities are natural logarithms in float64.

- Edges of a node lie together, most probable first: ``edge_logp``, ``edge_child`` (a node, ``UNSEEN`` or ``COMPLETE``).
  ``node_start[u] < 0``: the edges were evicted. A prefix that leads nowhere is a node without edges.
- ``node_high[u]`` bounds the mass of the language after u from above, ``node_low[u]`` from below; ``node_mass[u]`` is
  the mass of the tokens that the mask allows.

Fields of nodes and edges may be those of arrays of records.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.aligned.layout import *
from structgen.core.kernels.calls import Function
from structgen.core.kernels.loading import kernel

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
_I4, _I8, _U8, _F8 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.float64)

run = kernel("aligned")
# In the order of the arguments' numbers; what an operation does not use is empty.
_TYPES = [_I8, _F8, _U8], [_I4, _I8, _I4, _F8, _F8, _F8, _I8, _F8, _I4]
_refresh, _walk, _uniform = (
    Function(run, operation, (), _TYPES[0], _TYPES[1]) for operation in (REFRESH, WALK, UNIFORM)
)
_NO_WHOLE, _NO_REAL, _NO_STATES = np.zeros((0, 4), _I8), np.zeros((0, 3), _F8), np.zeros(0, _U8)
_NO_I4, _NO_I8, _NO_F8 = np.zeros(0, _I4), np.zeros(0, _I8), np.zeros(0, _F8)


def next_uniform(states: npt.NDArray[np.uint64], i: int) -> float:
    """SplitMix64 (Steele, Lea, Flood 2014): the next float in [0, 1) of generator ``i``; ``states`` uint64, mutated."""
    out = np.zeros((1, 1), _F8)
    _uniform(_NO_WHOLE, out, states, _NO_I4, _NO_I8, _NO_I4, _NO_F8, _NO_F8, _NO_F8, _NO_I8, _NO_F8, _NO_I4, x=i)
    return float(out[0, 0])


def refresh(
    node: int, node_parent: Int32, node_start: Int64, node_count: Int32, node_high: Float64, node_low: Float64,
    edge_logp: Float64, edge_child: Int32,
) -> None:  # fmt: skip
    """Recompute the bounds of a node from its edges, then of its ancestors; upper bounds only fall, lower only rise.

    O(edges of the path). Sums of what is left, not differences: they keep their precision when little is left.
    """
    _refresh(
        _NO_WHOLE, _NO_REAL, _NO_STATES, node_parent, node_start, node_count, node_high, node_low, _NO_F8, _NO_I8,
        edge_logp, edge_child, x=node,
    )  # fmt: skip


def walk(
    whole: Int64, real: Float64, states: npt.NDArray[np.uint64], learned: bool, coin: bool,
    node_start: Int64, node_count: Int32, node_high: Float64, node_mass: Float64, node_used: Int64,
    edge_logp: Float64, edge_child: Int32, clock: int,
) -> None:  # fmt: skip
    """Move every walk on, in order, until it waits for an expansion or has ended.

    Args:
        whole, real: int64 and float64 columns of each walk (``W_...``); mutated.
        states: uint64, a random number generator for each walk; mutated.
        learned: use the bounds; else every node's mask only (plain masking, or with the coin plain rejection).
        coin: reject in place of weighing.
        clock: written to ``node_used`` of visited nodes.
    """
    _walk(
        whole, real, states, _NO_I4, node_start, node_count, node_high, _NO_F8, node_mass, node_used, edge_logp,
        edge_child, x=bool(learned) + 2 * bool(coin), y=clock,
    )  # fmt: skip
