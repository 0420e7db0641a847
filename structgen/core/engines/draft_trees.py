"""Draft trees: tokens that follow on one another, with the shape that SGLang and XGrammar give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import numbers_by_key
from structgen.errors import BitmaskError, TokenError

if TYPE_CHECKING:
    from structgen.core.engines.protocols import Matcher

NO_TOKEN = -1
"""What drafts are padded with: it is never taken."""
NEVER = float("inf")
Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DraftTrees:
    """R draft trees of N nodes each. Node 0 is the root, where a matcher stands; its token is not looked at.

    Attributes:
        children, siblings: int64[R, N]: the first child of each node, and the next child of its parent, or -1.
        tokens: int64[R, N]: ids of the vocabulary, or -1, which is refused.
    """

    children: Nodes
    siblings: Nodes
    tokens: Nodes

    @classmethod
    def checked(cls, children: Nodes, siblings: Nodes, tokens: Nodes, size: int) -> Self:
        """Trees over a vocabulary of so many tokens; each an array [R, N].

        Raises:
            BitmaskError: links that make no trees.
            TokenError: tokens outside the vocabulary, at nodes that a link leads to.
        """
        trees = cls(children, siblings, tokens)
        wrong = trees._linked() & ((tokens < NO_TOKEN) | (tokens >= size))
        if wrong.any():
            raise TokenError.out_of_range(int(tokens[wrong][0]), size)
        return trees

    @classmethod
    def chain(cls, tokens: Sequence[int], size: int) -> Self:
        """A tree without branches.

        Raises:
            TokenError: tokens outside the vocabulary.
        """
        nodes = np.arange(1, len(tokens) + 2)
        nodes[-1] = -1
        return cls.checked(nodes[None], np.full((1, len(nodes)), -1), np.array([[0, *tokens]], np.int64), size)

    def of(self, numbers: Sequence[int]) -> DraftTrees:
        """Some of the trees."""
        return DraftTrees(self.children[numbers], self.siblings[numbers], self.tokens[numbers])

    def _linked(self) -> npt.NDArray[np.bool_]:
        """Which nodes a link leads to, bool[R, N]. No node has two, the root none: what it leads to is a tree."""
        shapes = self.children.shape, self.siblings.shape, self.tokens.shape
        if len(set(shapes)) > 1 or not shapes[0][1]:
            lengths = ", ".join(f"{shape[1]} {name}" for shape, name in zip(shapes, _NAMES, strict=True))
            raise BitmaskError(f"a draft tree has as many links as tokens, and a root; got {lengths}")
        if (self.siblings[:, 0] != -1).any():
            first = self.siblings[self.siblings[:, 0] != -1][0, 0]
            raise BitmaskError(f"node 0 is the root and has no sibling; retrieve_next_sibling[0] is {first}")
        trees, count = shapes[0]
        linked = np.zeros((trees, count), np.int64)
        for name, links in (("retrieve_next_token", self.children), ("retrieve_next_sibling", self.siblings)):
            outside = (links < -1) | (links == 0) | (links >= count)
            if outside.any():
                tree, node = np.argwhere(outside)[0].tolist()
                wanted = f"wanted -1 or a node from 1 to {count - 1}"
                raise BitmaskError(f"{name}[{node}] is {links[tree, node]}; {wanted}")
            tree_of, node_of = np.nonzero(links > 0)
            targets = links[tree_of, node_of]
            np.add.at(linked, (tree_of, targets), 1)
            twice = linked[tree_of, targets] > 1
            if twice.any():
                node, target = node_of[twice][-1], targets[twice][-1]
                raise BitmaskError(f"{name}[{node}] is {target}, which another node leads to; this is no tree")
        return linked > 0


_NAMES = "children", "siblings", "tokens"


def walk_tree(
    matcher: Matcher, trees: DraftTrees, tree: int, bitmask: npt.NDArray[np.int32], first: int, deadline: float = NEVER
) -> list[bool] | None:
    """The masks of the nodes of a tree, step by step and back; see `Matcher.fill_trees`. Its parents come first.

    ``deadline``: of `time.perf_counter`; then no other node is begun. None, if there was one.
    """
    children, siblings, tokens = (links[tree].tolist() for links in (trees.children, trees.siblings, trees.tokens))
    bitmask[first : first + len(tokens)] = 0
    matcher.fill_next_token_bitmask(bitmask, first)
    taken, waiting, path = [True, *[False] * (len(tokens) - 1)], [(children[0], 1)], 0
    try:
        while waiting:
            node, depth = waiting.pop()  # the length of the path to it
            if node < 0:
                continue
            if perf_counter() > deadline:
                return None
            waiting.append((siblings[node], depth))
            if path >= depth:
                matcher.rollback(path - depth + 1)
                path = depth - 1
            if tokens[node] != NO_TOKEN and matcher.advance_and_fill(tokens[node], bitmask, first + node):
                taken[node], path = True, depth
                waiting.append((children[node], depth + 1))
    finally:
        matcher.rollback(path)
    return taken


def fill_trees_of(
    matchers: Sequence[Matcher], trees: DraftTrees, bitmask: npt.NDArray[np.int32], rows: Sequence[int]
) -> npt.NDArray[np.bool_]:
    """`Matcher.fill_trees` of matchers of any classes."""
    kinds: list[Any] = list(map(type, matchers))
    taken = np.zeros(trees.tokens.shape, np.bool_)
    for chosen in numbers_by_key(kinds):
        members, firsts = [matchers[number] for number in chosen], [rows[number] for number in chosen]
        taken[chosen] = kinds[chosen[0]].fill_trees(members, trees.of(chosen), bitmask, firsts)
    return taken
