"""The paths of draft trees, found on the device, are those of a walk on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from structgen.errors import OptionsError
from structgen.generation.sampling import SamplingParams
from structgen.generation.sampling.device_trees import Drafted, verify_trees
from structgen.generation.sampling.sampler import Choices, DrawRequest
from structgen.generation.sampling.torch_sampler import TorchSampler
from structgen.generation.sampling.triton_sampler import TritonSampler
from tests.generation.sampling.oracle import bits

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SAMPLER: type[TorchSampler] = TritonSampler
VOCABULARY = 12  # few tokens, so that drafts are right
GREEDY, SAMPLED = SamplingParams(), SamplingParams(temperature=0.8)


def random_tree(rng: np.random.Generator, params: SamplingParams, first_row: int) -> Drafted:
    tokens, parents = [0], [-1]
    for _ in range(int(rng.integers(0, 20))):
        parent, token = int(rng.integers(len(tokens))), int(rng.integers(VOCABULARY))
        if not any(p == parent and t == token for p, t in zip(parents, tokens, strict=True)):
            tokens.append(token)
            parents.append(parent)
    rows = np.arange(first_row, first_row + len(tokens))
    return Drafted(tokens, parents, params, int(rng.integers(1 << 40)), int(rng.integers(50)), rows, rows)


def walk(tree: Drafted, drawn: Choices, first_row: int) -> list[tuple[int, int, float]]:
    """Nodes, tokens and log-probabilities, from the definition."""
    node, steps = 0, []
    while True:
        token = int(drawn.token_ids[first_row + node])
        steps.append((node, token, float(drawn.log_probs[first_row + node])))
        children = [c for c, parent in enumerate(tree.parents) if parent == node and tree.tokens[c] == token]
        if not children:
            return steps
        (node,) = children


def depth(tree: Drafted, node: int) -> int:
    return 0 if node == 0 else 1 + depth(tree, int(tree.parents[node]))


def make(rng: np.random.Generator, trees: int) -> tuple[list[Drafted], np.ndarray, np.ndarray]:
    made: list[Drafted] = []
    rows = 0
    for place in range(trees):
        made.append(random_tree(rng, SAMPLED if place % 2 else GREEDY, rows))
        rows += len(made[-1].tokens)
    logits = rng.normal(0, 1, (rows, VOCABULARY)).astype(np.float32)
    for tree in made:  # let children be likely
        for node, parent in enumerate(tree.parents):
            if parent >= 0 and rng.random() < 0.7:
                logits[np.asarray(tree.logits_rows)[parent], tree.tokens[node]] += 4
    allowed = rng.random((rows, VOCABULARY)) < 0.9
    allowed[:, 0] = True
    return made, logits, bits(allowed)


@pytest.mark.parametrize("seed", range(2))
def test_paths_are_those_of_a_walk(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees, logits, bitmask = make(rng, 3)
    logits[-1] = np.nan  # a node at which nothing can be drawn
    sampler = SAMPLER(DEVICE)
    there = torch.from_numpy(logits).to(DEVICE)
    paths = verify_trees(sampler, there, sampler.send(bitmask), trees)
    requests = [
        DrawRequest(tree.params, tree.seed, tree.position + depth(tree, node), int(row), int(row))
        for tree in trees
        for node, row in enumerate(np.asarray(tree.logits_rows))
    ]
    drawn = sampler.draw(there, sampler.send(bitmask), requests)
    assert len(paths) == len(trees)
    accepted = 0
    for tree, path in zip(trees, paths, strict=True):
        expected = walk(tree, drawn, int(np.asarray(tree.logits_rows)[0]))
        found: list[Any] = list(zip(path.nodes.tolist(), path.token_ids.tolist(), path.log_probs.tolist(), strict=True))
        assert str(found) == str(expected)
        accepted += len(found) - 1
    assert accepted > 0


def test_no_trees() -> None:
    sampler = SAMPLER(DEVICE)
    assert verify_trees(sampler, torch.zeros((0, 3)), sampler.send(np.zeros((0, 1), np.int32)), []) == []


@pytest.mark.parametrize("parents", [[-1, 1], [-1, 2, 0], [0, 0], [-1, -1]])
def test_children_before_their_parents_are_refused(parents: list[int]) -> None:
    size = len(parents)
    tree = Drafted(range(size), parents, GREEDY, 0, 0, range(size), range(size))
    sampler = SAMPLER(DEVICE)
    with pytest.raises(OptionsError, match="comes before"):
        verify_trees(sampler, torch.zeros((size, 3)), sampler.send(np.full((size, 1), -1, np.int32)), [tree])
