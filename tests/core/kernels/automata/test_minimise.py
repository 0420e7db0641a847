"""Minimisation against Moore's algorithm on random tables."""

from __future__ import annotations

import numpy as np
import pytest

from structgen.core.kernels.automata import calls


def moore(table: np.ndarray, accepting: np.ndarray) -> tuple[int, list[int]]:
    """The number of classes of the reachable live states, and every state's class (−1: dead), by refinement."""
    n = len(table)
    live = {s for s in range(n) if accepting[s]}
    while grown := {s for s in range(n) if s not in live and any(t in live for t in table[s] if t >= 0)}:
        live |= grown
    block = [int(accepting[s]) if s in live else -1 for s in range(n)]
    for _ in range(n):
        keys = [(block[s], *(block[t] if t >= 0 else -1 for t in table[s])) if s in live else () for s in range(n)]
        names = {key: i for i, key in enumerate(sorted({key for key in keys if key}))}
        block = [names[key] if key else -1 for key in keys]
    reached, todo = {0}, [0]
    while todo:
        new = {int(t) for t in table[todo.pop()] if t >= 0} - reached
        reached |= new
        todo += new
    return len({block[s] for s in reached if s in live}), block


@pytest.mark.parametrize("seed", range(60))
def test_minimise_agrees_with_moore(seed):
    source = np.random.default_rng(seed)
    n, k = int(source.integers(1, 30)), int(source.integers(1, 4))
    table = source.integers(-1, n, (n, k)).astype(np.int32)
    table[source.random((n, k)) < 0.3] = -1
    accepting = (source.random(n) < 0.2).astype(np.uint8)
    result, flags = calls.minimise(table, accepting)
    count, block = moore(table, accepting)
    assert len(flags) == (count if block[0] >= 0 else 0)
    if len(flags) == 0:
        return
    pairs, todo = {0: 0}, [0]  # the states of both that the same word reaches
    while todo:
        s = todo.pop()
        assert flags[pairs[s]] == accepting[s]
        for c in range(k):
            target, image = int(table[s, c]), int(result[pairs[s], c])
            alive = target >= 0 and block[target] >= 0
            assert (image >= 0) == alive
            if alive and target not in pairs:
                pairs[target] = image
                todo.append(target)
            elif alive:
                assert pairs[target] == image


def test_column_classes():
    table = np.array([[1, 0, 1, -1], [2, 2, 2, 2]], np.int32)
    classes, count = calls.column_classes(table)
    assert (classes.tolist(), count) == ([0, 1, 0, 2], 3)
