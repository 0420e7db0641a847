"""The trie of expanded prefixes as array code: walks that draw texts from it, and bounds that move up to the root.

The arguments are those of `structgen.core.kernels.aligned.calls`. All probabilities are natural logarithms in float64.
"""

import math

from structgen.core.kernels.aligned.layout import *
from structgen.core.kernels.aligned.store import (
    edge_child,
    edge_logp,
    node_count,
    node_high,
    node_low,
    node_mass,
    node_parent,
    node_start,
    set_node_high,
    set_node_low,
    set_node_used,
)  # fmt: skip
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import float_matrix, hash_array, word_matrix

NONE = -math.inf


@internal
def next_uniform(states, i):
    """SplitMix64 (Steele, Lea, Flood 2014): the next float in [0, 1) of generator ``i``; ``states`` uint64, mutated."""
    states[i] += 0x9E3779B97F4A7C15
    z = states[i]
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    z = z ^ (z >> 31)
    return (z >> 11) * (1.0 / 9007199254740992.0)


@internal
def _bound_of(m, child):
    """The logarithm of the upper bound behind an edge: a node's, or 1 (nothing is known, or the text is complete)."""
    return node_high(m, child) if child >= 0 else 0.0


@internal
def refresh(m, node):
    """Recompute the bounds of a node from its edges, then of its ancestors; upper bounds only fall, lower only rise.

    O(edges of the path). Sums of what is left, not differences: they keep their precision when little is left.
    """
    while node >= 0:
        first, last = node_start(m, node), node_start(m, node) + node_count(m, node)
        if first < 0:  # evicted: the bounds stay as they are, which is sound
            return
        top = NONE
        for e in range(first, last):
            top = max(top, edge_logp(m, e) + _bound_of(m, edge_child(m, e)))
        high = low = 0.0
        if top > NONE:
            for e in range(first, last):
                child = edge_child(m, e)
                high += math.exp(edge_logp(m, e) + _bound_of(m, child) - top)
                if child >= 0:
                    low += math.exp(edge_logp(m, e) + node_low(m, child) - top)
                elif child == COMPLETE:
                    low += math.exp(edge_logp(m, e) - top)
        set_node_high(m, node, min(node_high(m, node), top + math.log(high) if high > 0 else NONE))
        set_node_low(m, node, max(node_low(m, node), top + math.log(low) if low > 0 else NONE))
        node = node_parent(m, node)


@internal
def _choose(m, node, total, learned, u):
    """The number of one of the node's edges, by inversion of the cumulative distribution; -1 if none has mass."""
    chosen, sum_ = -1, 0.0
    for i in range(node_count(m, node)):
        e = node_start(m, node) + i
        share = edge_logp(m, e) - total
        if learned:
            share += _bound_of(m, edge_child(m, e))
        if share > NONE:
            chosen = i
            sum_ += math.exp(share)
            if u < sum_:
                break
    return chosen


@internal
def walk(m, learned, coin, clock):
    """Move every walk on, in order, until it waits for an expansion or has ended.

    On arrival at a node under the bound B that its parent used, the mass m is what the node's bound is now. With the
    coin, the walk survives with probability m / B; without, the factor goes into its weight. Then an edge is chosen
    in proportion to probability times bound. The factors telescope: see docs/aligned.md.
    """
    whole, real, states = word_matrix(m, A_WHOLE), float_matrix(m, A_REAL), hash_array(m, A_STATES)
    for i in range(len(states)):
        if whole[i, W_STATUS] > WAITING:
            continue
        whole[i, W_STATUS] = RUNNING
        node, edge = whole[i, W_NODE], whole[i, W_EDGE]
        while True:
            if edge >= 0:
                child = edge_child(m, node_start(m, node) + edge)
                if child == COMPLETE:
                    whole[i, W_STATUS] = FINISHED
                    break
                if child == UNSEEN:
                    whole[i, W_STATUS] = WAITING
                    break
                node, edge = child, -1
                whole[i, W_STEPS] += 1
            if node_start(m, node) < 0:
                whole[i, W_STATUS] = WAITING
                break
            set_node_used(m, node, clock)
            mass = node_high(m, node) if learned else node_mass(m, node)
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
            edge = _choose(m, node, mass, learned, next_uniform(states, i))
            edge_index = node_start(m, node) + edge
            real[i, W_LOGP] += edge_logp(m, edge_index)
            real[i, W_BOUND] = _bound_of(m, edge_child(m, edge_index)) if learned else 0.0
        whole[i, W_NODE], whole[i, W_EDGE] = node, edge
