"""Draft trees: what may come next, as far as someone dares to guess."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from structgen.core.engines.protocols import Matcher

if TYPE_CHECKING:
    from structgen.generation.speculative.rules import Draws

# Tokens before a node that drafters look at.
TAIL = 16

Evidence = tuple[Hashable, ...]
"""What speaks for a token: the drafter's name, then what it knows (length of the match, rank, ...)."""


@dataclass(slots=True, eq=False)
class Node:
    """A token in a draft tree; the root is the last token of the output, which is no draft.

    Attributes:
        token: its id.
        parent: the token before it; None for the root.
        tail: the last ``TAIL`` tokens up to and including this one.
        matcher: the constraint's state after it; None for free text. Not to be moved: copy it.
        depth: tokens since the root.
        chance: estimated probability that it and all before it are accepted.
        worth: the same, calibrated by how often such estimates were right.
        evidence: what speaks for it.
        proposals: what its drafters propose to follow it, with what speaks for each, most promising first.
        refused: those of them that the constraint forbids.
        children: the other ones, as far as they were looked at.
        draws: where proposals were drawn at random, how the next token is to be verified; else None.
        forced: canonical tokens of the text that must follow; None where not looked at.
        index: place among the tree's nodes; -1 if it is not (or no longer) one.
    """

    token: int
    parent: Node | None
    tail: tuple[int, ...]
    matcher: Matcher | None
    depth: int = 0
    chance: float = 1.0
    worth: float = 1.0
    evidence: tuple[Evidence, ...] = ()
    proposals: dict[int, tuple[Evidence, ...]] = field(default_factory=dict)
    refused: frozenset[int] = frozenset()
    children: dict[int, Node] = field(default_factory=dict)
    draws: Draws | None = None
    forced: tuple[int, ...] | None = None
    index: int = -1

    def child(self, token: int) -> Node | None:
        """The node after this one for a token, advancing the constraint; None if it does not allow the token."""
        cached = self.children.get(token)
        if cached is not None:
            return cached
        matcher = None
        if self.matcher is not None:
            matcher = self.matcher.copy()
            if not matcher.accept_token(token):
                return None
        node = Node(token, self, (*self.tail[1 - TAIL :], token), matcher, self.depth + 1)
        self.children[token] = node
        return node

    def path(self) -> tuple[int, ...]:
        """The tokens from the root (not included) to this one."""
        return () if self.parent is None else (*self.parent.path(), self.token)


@dataclass(slots=True, eq=False)
class DraftTree:
    """Nodes to be read in one forward, parents before children.

    Attributes:
        root: the last token of the output.
        nodes: the drafts, at ``node.index``; descending in ``chance`` where the tree was grown best first.
    """

    root: Node
    nodes: list[Node] = field(default_factory=list)

    def add(self, node: Node) -> None:
        """Append a node whose parent is in the tree."""
        node.index = len(self.nodes)
        self.nodes.append(node)

    def cut(self, count: int) -> None:
        """Keep the first ``count`` nodes."""
        for node in self.nodes[count:]:
            node.index = -1
        del self.nodes[count:]

    @property
    def chances(self) -> list[float]:
        """Each node's calibrated probability of being accepted."""
        return [node.worth for node in self.nodes]

    @property
    def sampled(self) -> bool:
        """Whether any of it was drawn at random (then no part may be dropped for what was drawn)."""
        return any(node.draws is not None for node in (self.root, *self.nodes))

    def flat(self, before: Sequence[int]) -> tuple[list[int], list[int]]:
        """Token ids and parents for ``TreeLanguageModel.forward_tree``: the chain ``before`` (its last is the root),
        then the nodes."""
        start = len(before)
        parents = list(range(-1, start - 1))
        for node in self.nodes:
            parent = node.parent
            parents.append(start - 1 if parent is None or parent is self.root else start + parent.index)
        return [*before, *(node.token for node in self.nodes)], parents
