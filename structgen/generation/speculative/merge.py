"""One tree out of the proposals of several drafters, best first, pruned by the constraint."""

from __future__ import annotations

from collections.abc import Container, Sequence
from heapq import heappop, heappush
from itertools import count

import numpy as np

from structgen.core.engines.protocols import Matcher
from structgen.generation.speculative.acceptance import Acceptance
from structgen.generation.speculative.drafter import Proposal, Source
from structgen.generation.speculative.length import LengthPolicy
from structgen.generation.speculative.tree import DraftTree, Node

Shape = Sequence[int]
"""Most children of a node at each depth; nothing is drafted deeper."""


def grow(
    root: Node,
    sources: Sequence[Source],
    acceptance: Acceptance,
    policy: LengthPolicy,
    *,
    depth: int,
    ends: Container[int] = (),
    shape: Shape | None = None,
    least: float = 0.0,
) -> DraftTree:
    """Grow a tree: again and again the likeliest proposal that the constraint allows, as long as ``policy`` admits it.

    A node is asked for what follows only once it is in the tree, and whether it gets in depends on nothing below it.
    So trees with proposals drawn at random stay lossless: no draw is dropped for what it turned out to be.

    Args:
        depth: tokens that may follow the root at most.
        ends: tokens that end the output: nothing follows them, so they are not drafted.
        shape: a static shape, in place of one that follows the chances.
        least: the tree ends where nothing likelier than this is left.
    """
    tree = DraftTree(root)
    if shape is not None:
        depth = min(depth, len(shape))
    heap: list[tuple[float, int, Node, int]] = []
    order = count()
    gain = 0.0
    node: Node | None = root
    while True:
        if node is not None and node.depth < depth:
            limit = None if shape is None else shape[node.depth]
            for token, chance in _following(node, sources, acceptance, ends)[:limit]:
                heappush(heap, (-node.chance * chance, next(order), node, token))
        if not heap:
            return tree
        negative, _, parent, token = heappop(heap)
        worth = acceptance.calibrated(-negative)
        if worth < least or not policy.admit(len(tree.nodes), gain, worth):
            return tree
        node = parent.child(token)
        if node is not None:
            node.chance, node.evidence = -negative, parent.proposals[token]
            node.worth = worth
            gain += worth
            tree.add(node)


def _following(
    node: Node, sources: Sequence[Source], acceptance: Acceptance, ends: Container[int]
) -> list[tuple[int, float]]:
    """Proposed tokens that the constraint allows and the chance of each, given that the node is right; the likeliest
    first."""
    by_token: dict[int, list[Proposal]] = {}
    for source in sources:
        for proposal in source.propose(node):
            if proposal.token not in ends:
                by_token.setdefault(proposal.token, []).append(proposal)
    if not by_token:
        return []
    refused = [] if node.matcher is None else _refused(node.matcher, list(by_token))
    node.refused = frozenset(refused)
    allowed = [token for token in by_token if token not in node.refused]
    chances = acceptance.chances([by_token[token] for token in allowed])
    following = sorted(zip(allowed, chances, strict=True), key=lambda pair: -pair[1])
    order = [*(token for token, _ in following), *refused]
    node.proposals = {token: tuple(proposal.evidence for proposal in by_token[token]) for token in order}
    return following


def _refused(matcher: Matcher, tokens: Sequence[int]) -> list[int]:
    """Those of the tokens that the constraint forbids."""
    mask = np.zeros((1, -(-matcher.grammar.vocabulary.size // 32)), np.int32)
    matcher.fill_next_token_bitmask(mask, 0)
    words = mask[0, [token >> 5 for token in tokens]].tolist()
    return [token for token, word in zip(tokens, words, strict=True) if not word >> (token & 31) & 1]
