"""The walks' kernel against the same rules in plain Python, and the random numbers against their reference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from structgen.core.kernels.aligned import calls as k


def test_split_mix_64() -> None:
    """Reference outputs of SplitMix64 for the seed 1234567 (Vigna's splitmix64.c)."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    states = np.array([1234567], dtype=np.uint64)
    for value in expected:
        assert k.next_uniform(states, 0) == (value >> 11) / 2**53


class Trie:
    """Random trees: nodes as the store keeps them."""

    def __init__(self, seed: int, nodes: int = 40) -> None:
        rng = np.random.default_rng(seed)
        self.parent = np.full(nodes, -1, np.int32)
        self.count = rng.integers(1, 5, size=nodes).astype(np.int32)
        self.count[rng.random(nodes) < 0.1] = 0
        self.count[0] = 4
        self.start = np.concatenate([[0], np.cumsum(self.count)[:-1]])
        edges = int(self.count.sum())
        self.logp = np.log(rng.random(edges))
        for node in range(nodes):  # at most 1 in all, most probable first
            block = slice(self.start[node], self.start[node] + self.count[node])
            probs = np.exp(self.logp[block])
            self.logp[block] = np.log(np.sort(probs / max(1.0, probs.sum() / rng.uniform(0.3, 1)))[::-1])
        self.child = np.where(rng.random(edges) < 0.3, k.COMPLETE, k.UNSEEN).astype(np.int32)
        linked = 1
        for edge in rng.permutation(edges):
            owner = int(np.searchsorted(np.cumsum(self.count), edge, side="right"))
            if linked < nodes and owner < linked and self.child[edge] == k.UNSEEN:
                self.child[edge], self.parent[linked] = linked, owner
                linked += 1
        self.nodes = linked
        self.high, self.low = np.zeros(nodes), np.full(nodes, -math.inf)
        self.mass = np.array([math.log(p) if (p := math.fsum(self.probs(u))) else -math.inf for u in range(nodes)])

    def probs(self, node: int) -> list[float]:
        return [math.exp(self.logp[e]) for e in self.block(node)]

    def block(self, node: int) -> range:
        return range(self.start[node], self.start[node] + self.count[node])

    def bounds(self, node: int) -> tuple[float, float]:
        """Upper and lower bound of a node, by the definition."""
        high = low = 0.0
        for e in self.block(node):
            p, child = math.exp(self.logp[e]), int(self.child[e])
            behind = self.bounds(child) if child >= 0 else (1.0, float(child == k.COMPLETE))
            high, low = high + p * behind[0], low + p * behind[1]
        return high, low

    def refresh(self) -> None:
        for node in range(self.nodes - 1, -1, -1):
            k.refresh(node, self.parent, self.start, self.count, self.high, self.low, self.logp, self.child)

    def walk(
        self, numbers: Iterator[float], learned: bool, coin: bool, bound: float
    ) -> tuple[int, int, int, float, float]:
        """One walk with these random numbers: status, node, edge, weight, log-probability."""
        node, weight, logp = 0, bound, 0.0
        while True:
            mass = float((self.high if learned else self.mass)[node])
            if mass == -math.inf:
                return (k.REJECTED if coin else k.STUCK), node, -1, -math.inf, logp
            if mass < bound:
                if not coin:
                    weight += mass - bound
                elif next(numbers) >= math.exp(mass - bound):
                    return k.REJECTED, node, -1, weight, logp
            shares = [
                math.exp(self.logp[e] - mass + (self.high[c] if learned and (c := int(self.child[e])) >= 0 else 0.0))
                for e in self.block(node)
            ]
            at = next(numbers)
            within = [i for i in range(len(shares)) if at < sum(shares[: i + 1])]
            edge = within[0] if within else max(i for i, share in enumerate(shares) if share > 0)
            child = int(self.child[self.start[node] + edge])
            logp += self.logp[self.start[node] + edge]
            bound = float(self.high[child]) if learned and child >= 0 else 0.0
            if child < 0:
                return (k.FINISHED if child == k.COMPLETE else k.WAITING), node, edge, weight, logp
            node = child


@pytest.mark.parametrize("seed", range(8))
def test_bounds(seed: int) -> None:
    trie = Trie(seed)
    trie.refresh()
    for node in range(trie.nodes):
        high, low = trie.bounds(node)
        assert math.exp(trie.high[node]) == pytest.approx(high) and math.exp(trie.low[node]) == pytest.approx(low)


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("coin", [True, False])
def test_walks(learned: bool, coin: bool) -> None:
    statuses = set()
    for seed in range(6):
        trie = Trie(seed)
        if learned:
            trie.refresh()
        count, bound = 300, 0.0  # above what is known at the root, so that coin and weight have work to do
        whole, real = np.zeros((count, 4), dtype=np.int64), np.zeros((count, 3))
        whole[:, k.W_EDGE] = -1
        states = np.random.default_rng(seed).integers(0, 1 << 64, size=count, dtype=np.uint64)
        twins = states.copy()
        used = np.zeros(len(trie.count), dtype=np.int64)
        k.walk(
            whole, real, states, learned, coin, trie.start, trie.count, trie.high, trie.mass, used, trie.logp,
            trie.child, 7,
        )  # fmt: skip
        for i in range(count):
            numbers = (k.next_uniform(twins, i) for _ in itertools.count())
            status, node, edge, weight, logp = trie.walk(numbers, learned, coin, bound)
            assert (whole[i, k.W_STATUS], whole[i, k.W_NODE], whole[i, k.W_EDGE]) == (status, node, edge)
            assert real[i, k.W_WEIGHT] == pytest.approx(weight) and real[i, k.W_LOGP] == pytest.approx(logp)
            statuses.add(status)
        assert used[0] == 7
    assert {k.FINISHED, k.WAITING} | ({k.REJECTED} if coin else set()) <= statuses
