"""The trie of expanded prefixes as array code: walks that draw texts from it, and bounds that move up to the root.

`structgen.decoding.aligned.store` owns the arrays. All probabilities are natural logarithms in float64.

- Edges of a node lie together, most probable first: ``edge_logp``, ``edge_child`` (a node, ``UNSEEN`` or ``COMPLETE``).
  ``node_start[u] < 0``: the edges were evicted. A prefix that leads nowhere is a node without edges.
- ``node_high[u]`` bounds the mass of the language after u from above, ``node_low[u]`` from below; ``node_mass[u]`` is
  the mass of the tokens that the mask allows.
"""

import math

from numba import njit

UNSEEN, COMPLETE = -1, -2
# What became of a walk.
RUNNING, WAITING, FINISHED, REJECTED, STUCK = 0, 1, 2, 3, 4
# A walk's columns of integers and of floats.
W_NODE, W_EDGE, W_STATUS, W_STEPS = 0, 1, 2, 3  # the edge by its number among the node's; -1: at the node itself
W_BOUND, W_WEIGHT, W_LOGP = 0, 1, 2
NONE = -math.inf


@njit(cache=True)
def next_uniform(states, i):
    """SplitMix64 (Steele, Lea, Flood 2014): the next float in [0, 1) of generator ``i``; ``states`` uint64, mutated."""
    states[i] += 0x9E3779B97F4A7C15
    z = states[i]
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    z = z ^ (z >> 31)
    return (z >> 11) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def _bound_of(child, node_high):
    """The logarithm of the upper bound behind an edge: a node's, or 1 (nothing is known, or the text is complete)."""
    return node_high[child] if child >= 0 else 0.0


@njit(cache=True)
def refresh(node, node_parent, node_start, node_count, node_high, node_low, edge_logp, edge_child):
    """Recompute the bounds of a node from its edges, then of its ancestors; upper bounds only fall, lower only rise.

    O(edges of the path). Sums of what is left, not differences: they keep their precision when little is left.
    """
    while node >= 0:
        first, last = node_start[node], node_start[node] + node_count[node]
        if first < 0:  # evicted: the bounds stay as they are, which is sound
            return
        top = NONE
        for e in range(first, last):
            top = max(top, edge_logp[e] + _bound_of(edge_child[e], node_high))
        high = low = 0.0
        if top > NONE:
            for e in range(first, last):
                child = edge_child[e]
                high += math.exp(edge_logp[e] + _bound_of(child, node_high) - top)
                if child >= 0:
                    low += math.exp(edge_logp[e] + node_low[child] - top)
                elif child == COMPLETE:
                    low += math.exp(edge_logp[e] - top)
        node_high[node] = min(node_high[node], top + math.log(high) if high > 0 else NONE)
        node_low[node] = max(node_low[node], top + math.log(low) if low > 0 else NONE)
        node = node_parent[node]


@njit(cache=True)
def _choose(node, total, learned, u, node_start, node_count, node_high, edge_logp, edge_child):
    """The number of one of the node's edges, by inversion of the cumulative distribution; -1 if none has mass."""
    found, sum_ = -1, 0.0
    for i in range(node_count[node]):
        e = node_start[node] + i
        share = edge_logp[e] - total
        if learned:
            share += _bound_of(edge_child[e], node_high)
        if share > NONE:
            found = i
            sum_ += math.exp(share)
            if u < sum_:
                break
    return found


@njit(cache=True)
def walk(
    whole, real, states, learned, coin,
    node_start, node_count, node_high, node_mass, node_used, edge_logp, edge_child, clock,
):  # fmt: skip
    """Move every walk on, in order, until it waits for an expansion or has ended.

    On arrival at a node under the bound B that its parent used, the mass m is what the node's bound is now. With the
    coin, the walk survives with probability m / B; without, the factor goes into its weight. Then an edge is chosen
    in proportion to probability times bound. The factors telescope: see docs/aligned.md.

    Args:
        whole, real: int64 and float64 columns of each walk (``W_...``); mutated.
        states: uint64, a random number generator for each walk; mutated.
        learned: use the bounds; else every node's mask only (plain masking, or with the coin plain rejection).
        coin: reject in place of weighing.
        clock: written to ``node_used`` of visited nodes.
    """
    for i in range(len(states)):
        if whole[i, W_STATUS] > WAITING:
            continue
        whole[i, W_STATUS] = RUNNING
        node, edge = whole[i, W_NODE], whole[i, W_EDGE]
        while True:
            if edge >= 0:
                child = edge_child[node_start[node] + edge]
                if child == COMPLETE:
                    whole[i, W_STATUS] = FINISHED
                    break
                if child == UNSEEN:
                    whole[i, W_STATUS] = WAITING
                    break
                node, edge = child, -1
                whole[i, W_STEPS] += 1
            if node_start[node] < 0:
                whole[i, W_STATUS] = WAITING
                break
            node_used[node] = clock
            mass = node_high[node] if learned else node_mass[node]
            if mass == NONE:
                whole[i, W_STATUS] = REJECTED if coin else STUCK
                real[i, W_WEIGHT] = NONE
                break
            if mass < real[i, W_BOUND]:
                if not coin:
                    real[i, W_WEIGHT] += mass - real[i, W_BOUND]
                elif next_uniform(states, i) >= math.exp(mass - real[i, W_BOUND]):
                    whole[i, W_STATUS] = REJECTED
                    break
            edge = _choose(
                node, mass, learned, next_uniform(states, i), node_start, node_count, node_high, edge_logp, edge_child
            )
            place = node_start[node] + edge
            real[i, W_LOGP] += edge_logp[place]
            real[i, W_BOUND] = _bound_of(edge_child[place], node_high) if learned else 0.0
        whole[i, W_NODE], whole[i, W_EDGE] = node, edge
