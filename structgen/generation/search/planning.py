"""Planning (PG-TD, Zhang et al. 2023): tree search over tokens, judged by what a critic says of whole outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from structgen.errors import GenerationError, IncompleteOutputError
from structgen.generation.decoding.critics import CheckedCritic, CriticLike, critic
from structgen.generation.search.method import Method, check_number
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.space import SearchNode, Space
from structgen.options import check_count


@dataclass(frozen=True, kw_only=True)
class Planning(Method):
    """Outputs of the greatest value; of equals, the likeliest.

    Attributes:
        critic: the value of whole texts, from 0 to 1.
        rollouts: outputs that are completed, greedily, to be judged; equal ones are judged once.
        width: tokens that may follow each hypothesis: so many of the likeliest.
        exploration, base: c and c_base of the rule that chooses: the greatest value seen beyond a token, plus
            (ln((N + base + 1) / base) + c) · p · √ln N / (1 + N'), N and N' the visits of a hypothesis and of what
            follows it.
    """

    critic: CriticLike
    rollouts: int = 256
    width: int = 3
    exploration: float = 4.0
    base: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        critic(self.critic)
        check_count("rollouts", self.rollouts)
        check_count("width", self.width)
        check_number("exploration", self.exploration, 0)
        check_number("base", self.base, 1e-9)

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``.

        Raises:
            GenerationError: a value is no number from 0 to 1.
        """
        tree = _Tree(self, space, critic(self.critic))
        for _ in range(self.rollouts):
            if tree.root.is_over:
                break
            tree.roll()
        finished = [(value, node) for node, value in tree.values.items()]
        return SearchOutcome(sorted(finished, key=lambda pair: (-pair[0], -pair[1].log_prob)))


@dataclass
class _State:
    """A hypothesis in the tree, after the tokens that it must go on with.

    Attributes:
        prob: of it after the one before, masked.
        visits: how often it was gone through, and once more (1 + N'). best: the greatest value seen beyond it.
        is_over: whether all that follows was seen.
    """

    node: SearchNode
    prob: float = 1.0
    visits: int = 1
    best: float = 0.0
    is_over: bool = False
    children: list[_State] = field(default_factory=list)


@dataclass
class _Tree:
    """What was seen: ``values`` of the outputs."""

    options: Planning
    space: Space
    critic: CheckedCritic
    values: dict[SearchNode, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = _State(self._after_forced(self.space.root))

    def roll(self) -> None:
        """Choose a way down, add what may follow, complete it, and note its value all the way up."""
        path = [self.root]
        while path[-1].children:
            path.append(self._chosen(path[-1]))
        state = path[-1]
        if not state.node.is_finished:
            state.children = self._followers(state.node)
        value = self._value(self._completed(state.node))
        state.is_over = state.node.is_finished
        for state in reversed(path):
            state.visits += 1
            state.best = max(state.best, value)
            state.is_over |= bool(state.children) and all(child.is_over for child in state.children)

    def _chosen(self, state: _State) -> _State:
        weight = math.log((state.visits + self.options.base + 1) / self.options.base) + self.options.exploration
        spread = weight * math.sqrt(math.log(state.visits))
        going_on = [child for child in state.children if not child.is_over]
        return max(going_on, key=lambda child: child.best + spread * child.prob / child.visits)

    def _followers(self, node: SearchNode) -> list[_State]:
        self.space.expand([node])
        tokens, _ = self.space.ranked(node)
        followers = list[_State]()
        for token in tokens.tolist():
            child = self.space.child(node, token)
            if child is not None:
                prob = math.exp(child.log_local - node.log_local)
                followers.append(_State(self._after_forced(child), prob))
            if len(followers) == self.options.width:
                break
        return followers or [_State(self._after_forced(self._planned(node)))]

    def _after_forced(self, node: SearchNode) -> SearchNode:
        """After the tokens that it must go on with."""
        while not node.is_finished and node.is_forced:
            node = self._likeliest(node)
        return node

    def _completed(self, node: SearchNode) -> SearchNode:
        while not node.is_finished:
            node = self._likeliest(node)
        return node

    def _likeliest(self, node: SearchNode) -> SearchNode:
        """With the likeliest token that can be closed in time."""
        self.space.expand([node])
        tokens, _ = self.space.ranked(node)
        children = (self.space.child(node, token) for token in tokens.tolist())
        return next((child for child in children if child is not None), None) or self._planned(node)

    def _planned(self, node: SearchNode) -> SearchNode:
        child = self.space.planned(node)
        if child is None:
            raise IncompleteOutputError(
                "A stop string comes before the output is whole; change stop.",
                partial=node.hypothesis.text,
                option="stop",
            )
        return child

    def _value(self, node: SearchNode) -> float:
        if node not in self.values:
            (value,) = self.critic(self.space.candidates([node]))
            if not 0 <= value <= 1:
                raise GenerationError(
                    f"The value of {node.hypothesis.text!r:.100} is {value:g}; planning needs one from 0 to 1.",
                    text=node.hypothesis.text,
                )
            self.values[node] = value
        return self.values[node]
