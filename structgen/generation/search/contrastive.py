"""Contrastive search (Su et al. 2022): of the likeliest tokens, one whose hidden state is unlike those before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structgen.errors import IncompleteOutputError
from structgen.generation.models.prefix_reader import Logits, Prefix
from structgen.generation.search.method import Method, check_number
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Scoring
from structgen.generation.search.space import SearchNode, Space
from structgen.options import check_count


@dataclass(frozen=True, kw_only=True)
class Contrastive(Method):
    """One output, of the model's hidden states.

    Attributes:
        penalty_alpha: α of (1 - α) · p - α · (the greatest cosine with the state after a token before it, the prompt's
            included); p is masked and renormalised. 0 is greedy decoding.
        top_k: tokens that are compared. Where the constraint allows no more than so many, the likeliest is taken: what
            JSON repeats by its syntax is not punished.
    """

    penalty_alpha: float = 0.6
    top_k: int = 4
    needs_states: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("penalty_alpha", self.penalty_alpha, 0, 1)
        check_count("top_k", self.top_k)

    @property
    def scoring(self) -> Scoring:
        """See ``Method.scoring``."""
        return Scoring("local")

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``; it knows one output only."""
        node = space.root
        while not node.is_finished:
            space.expand([node])
            node = self._next(space, node)
            space.retain([node])
        return SearchOutcome([(node.score, node)])

    def _next(self, space: Space, node: SearchNode) -> SearchNode:
        """With a token more; a call of the model, for all that are compared, gives what follows them, too."""
        ids, may_end = node.hypothesis.allowed()
        compared = self._likeliest(space, node, self.top_k if len(ids) + may_end > self.top_k else 1)
        if len(compared) == 1:
            return compared[0]
        read = [_tokens_with_end(child) for child in compared]
        ends = [prefix for prefix, child in zip(read, compared, strict=True) if child.is_finished]
        space.expand(compared, ends)
        before = _directions(space.states(node.hypothesis.tokens))
        after = _directions(np.stack([space.states(prefix)[-1] for prefix in read]))
        probs = [math.exp(child.log_local - node.log_local) for child in compared]
        scores = (1 - self.penalty_alpha) * np.array(probs) - self.penalty_alpha * (after @ before.T).max(axis=1)
        return compared[int(scores.argmax())]

    def _likeliest(self, space: Space, node: SearchNode, count: int) -> list[SearchNode]:
        children, (tokens, _) = list[SearchNode](), space.ranked(node)
        for token in tokens.tolist():
            child = space.child(node, token)
            if child is not None:
                children.append(child)
            if len(children) == count:
                break
        planned = None if children else space.planned(node)
        if not children and planned is None:
            raise IncompleteOutputError(
                "A stop string comes before the output is whole; change stop.",
                partial=node.hypothesis.text,
                option="stop",
            )
        return children if planned is None else [planned]


def _tokens_with_end(child: SearchNode) -> Prefix:
    """What the model reads of a hypothesis: its tokens, and a token that ends it, where it has ended by one."""
    hypothesis = child.hypothesis
    is_end = hypothesis.is_finished and child.length > len(hypothesis.tokens)
    return (*hypothesis.tokens, int(hypothesis.ends[0])) if is_end else hypothesis.tokens


def _directions(states: Logits) -> Logits:
    """States [n, H] of length 1."""
    return np.asarray(states / np.maximum(np.linalg.norm(states, axis=-1, keepdims=True), 1e-12))
