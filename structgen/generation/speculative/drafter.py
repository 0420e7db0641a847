"""What proposes drafts: ``Drafter`` for all outputs of a generator, ``Source`` for one output.

A drafter is asked node by node what may follow, so that proposals of several drafters merge into one tree, and one
drafter may continue what another began. It may propose what the constraint forbids: that is never drafted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.output import Output
from structgen.generation.speculative.tree import DraftTree, Evidence, Node


@dataclass(frozen=True, slots=True)
class Proposal:
    """A token that may follow a node.

    Attributes:
        token: its id.
        evidence: the drafter's name, then what it knows; tokens with the same evidence are accepted about as often.
        prior: the chance of acceptance where nothing has been seen yet.
    """

    token: int
    evidence: Evidence
    prior: float


@dataclass(frozen=True, slots=True)
class Step:
    """What the target said in one forward.

    Attributes:
        tokens: what it read: the tokens before and including the root, then the tree's nodes.
        logits: [n, V], after each of them (rows beyond are padding).
        tree: the drafts; node i is token ``len(tokens) - len(tree.nodes) + i``.
        kept: which of the tokens are output: indices, ascending.
    """

    tokens: Sequence[int]
    logits: Any
    tree: DraftTree
    kept: Sequence[int]

    def logits_after(self, node: Node) -> Any:
        """The logits [V] after a node of the tree or its root."""
        return self.logits[len(self.tokens) - len(self.tree.nodes) + node.index]


class Written(Protocol):
    """What drafters look at of an output: ours, or one that another engine writes."""

    @property
    def data(self) -> bytes:
        """The bytes of the text so far."""
        ...

    @property
    def remaining(self) -> int:
        """Tokens left of the budget."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that it is written in."""
        ...


class Source:
    """Proposals for one output. Override ``propose`` and what else is needed."""

    name: str = ""

    def extend(self, tokens: Sequence[int]) -> None:
        """These tokens are output now."""

    def prepare(self, root: Node, depth: int) -> None:
        """A new tree begins, of at most this depth."""

    def propose(self, node: Node) -> Sequence[Proposal]:
        """What may follow ``node``; sets ``node.draws`` if it is None and the proposals are drawn at random."""
        raise NotImplementedError

    def observe(self, step: Step) -> None:
        """Learn from what the target said."""

    def finish(self) -> None:
        """The output is complete."""


class Drafter(Protocol):
    """Makes sources, and keeps what is learned from one output for the next."""

    @property
    def name(self) -> str:
        """Its name in statistics."""
        ...

    def start(self, prompt: Sequence[int], output: Output) -> Source:
        """A source for a new output after ``prompt``."""
        ...
