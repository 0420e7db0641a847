"""The tree of hypotheses that a search walks through: what the model said after each, read once, and what follows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.constraints.base import Constraint
from structgen.errors import GenerationError
from structgen.generation.decoding.critics import Candidate
from structgen.generation.decoding.hypothesis import END, Hypothesis
from structgen.generation.models.prefix_reader import Logits, Prefix, PromptReader, TreeReader
from structgen.generation.search.scores import Scoring, Surprisals, Values
from structgen.generation.target.results import Budget, Limit
from structgen.generation.target.target import text_log_prob

Tokens = npt.NDArray[np.int64]
# Of what may follow a hypothesis, so many of the likeliest are kept; where a search asks for more, it is read again.
MOST_KEPT = 512
# Forced tokens that are read together with the one before them.
LONGEST_CHAIN = 32


@dataclass(frozen=True, slots=True)
class Distribution:
    """What the model said after a hypothesis, of what is allowed there.

    Attributes:
        tokens: ascending, the ``END`` last.
        log_probs: nats, not renormalised.
        log_mass: of their sum.
        log_end: of the ``END``; -inf where it is not allowed.
    """

    tokens: Tokens
    log_probs: Values
    log_mass: float
    log_end: float

    def likeliest(self, count: int) -> Distribution:
        """So many of them, as they fall; of equals, the lowest ids first."""
        log_probs = self.log_probs
        if len(log_probs) > count:
            kept = np.sort(np.argpartition(-log_probs, count)[:count])
        else:
            kept = np.arange(len(log_probs))
        kept = kept[np.argsort(-log_probs[kept], kind="stable")]
        kept = kept[log_probs[kept] > -math.inf]
        return Distribution(self.tokens[kept], log_probs[kept], self.log_mass, self.log_end)

    def with_tokens(self, whole: Distribution, tokens: Sequence[int]) -> Distribution:
        """With these of ``whole`` besides, after those that it has, which are likelier."""
        more = np.isin(whole.tokens, tokens) & ~np.isin(whole.tokens, self.tokens)
        order = np.flatnonzero(more)[np.argsort(-whole.log_probs[more], kind="stable")]
        order = order[whole.log_probs[order] > -math.inf]
        together = np.concatenate([self.tokens, whole.tokens[order]])
        return replace(self, tokens=together, log_probs=np.concatenate([self.log_probs, whole.log_probs[order]]))


class SearchNode:
    """A hypothesis in the tree.

    Attributes:
        log_prob: nats, of its tokens under the model, the end included; ``log_local``: masked and renormalised.
        score: see ``Scoring``.
        length: tokens, the end of sequence included.
        is_shaped: whether something likelier was refused because it could not have been closed in time.
    """

    __slots__ = (
        "children", "expansion", "hypothesis", "is_cut", "is_shaped", "length", "log_local", "log_prob", "refused",
        "score", "surprisals",
    )  # fmt: skip

    def __init__(self, hypothesis: Hypothesis, length: int) -> None:
        self.hypothesis, self.length = hypothesis, length
        self.log_prob = self.log_local = self.score = 0.0
        self.surprisals = Surprisals()
        self.is_shaped = self.refused = self.is_cut = False
        self.expansion: Distribution | None = None
        self.children: dict[int, SearchNode | None] = {}

    @property
    def is_finished(self) -> bool:
        """Whether it has ended."""
        return self.hypothesis.is_finished

    @property
    def is_forced(self) -> bool:
        """Whether only one thing may follow."""
        ids, may_end = self.hypothesis.allowed()
        return len(ids) + may_end == 1


class Space:
    """All that a search method is given: it knows hypotheses and what follows them, never the model's memory.

    Args:
        reader: of the model, after the prompt.
        root: the hypothesis to begin with.
        scoring: what hypotheses are worth.
        key_of: what finished hypotheses are merged by.
        budget: of the search; None: none.
        weigh: what the logits after a hypothesis say of what is allowed.

    Attributes:
        expansions: hypotheses of which the model was asked what follows.
        most_kept: of what may follow each, so many are kept.
        longest_chain: of forced tokens that follow one, so many are read with it, itself counted.
        wanted: tokens that are kept besides.
        constraint: what reads values, for critics; None: free text.
    """

    def __init__(
        self,
        reader: PromptReader,
        root: Hypothesis,
        scoring: Scoring,
        key_of: Callable[[Hypothesis], Hashable] | None = None,
        budget: Budget | None = None,
        weigh: Callable[[Hypothesis, Any], Distribution] | None = None,
    ) -> None:
        self.reader, self.scoring, self.budget = reader, scoring, budget or Budget()
        self._weigh = weigh or distribution_of
        self.constraint: Constraint[Any] | None = None
        self.root = SearchNode(root, 0)
        self.key_of: Callable[[Hypothesis], Hashable] = key_of or (lambda hypothesis: hypothesis.tokens)
        self.expansions = 0
        self.most_kept, self.longest_chain = MOST_KEPT, LONGEST_CHAIN
        self.wanted: Callable[[SearchNode], Sequence[int]] = lambda _: ()
        self._ahead: dict[Prefix, Distribution] = {}
        self._started = time.perf_counter()

    @property
    def most_tokens(self) -> int:
        """The greatest length of a finished hypothesis."""
        return self.root.hypothesis.remaining + 1

    def exceeded(self) -> Limit | None:
        """The budget that is used up."""
        attempts = self.budget.attempts
        met = self.budget.used_up(self.reader.tokens, self.seconds)
        return met or ("attempts" if attempts is not None and self.expansions >= attempts else None)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._started

    def expand(self, nodes: Sequence[SearchNode], also: Sequence[Prefix] = ()) -> None:
        """Ask the model what follows these, in one call; those that are expanded or finished are left out.

        Args:
            also: tokens of which nothing is asked but that the model reads them, for their ``states``.
        """
        unread = [node for node in nodes if node.expansion is None and not node.is_finished]
        for node, whole in zip(unread, self.distributions(unread, also), strict=True):
            self._set(node, whole)

    def states(self, prefix: Prefix) -> Logits:
        """The model's hidden states [prompt + n, H] after each token of the prompt and of n tokens that it has read.
        For methods that say that they need them."""
        assert isinstance(self.reader, TreeReader)
        return self.reader.states(prefix)

    def widen(self, node: SearchNode) -> None:
        """Ask again, and keep all of what may follow."""
        (whole,) = self.distributions([node])
        assert node.expansion is not None
        kept = set(node.expansion.tokens.tolist())
        others = np.array([token not in kept for token in whole.tokens.tolist()])
        tail = replace(whole, tokens=whole.tokens[others], log_probs=whole.log_probs[others]).likeliest(
            len(whole.tokens)
        )
        node.expansion = Distribution(
            np.concatenate([node.expansion.tokens, tail.tokens]),
            np.concatenate([node.expansion.log_probs, tail.log_probs]),
            whole.log_mass,
            whole.log_end,
        )
        node.is_cut = False

    def distributions(self, nodes: Sequence[SearchNode], also: Sequence[Prefix] = ()) -> list[Distribution]:
        """What the model says after these, and in the same call after the forced tokens that follow them."""
        wanted = dict[Prefix, Hypothesis]()
        for node in nodes:
            if node.hypothesis.tokens not in self._ahead:
                wanted |= self._chain(node.hypothesis)
        if wanted or also:
            logits = self.reader.read([*wanted, *also])
            for hypothesis, line in zip(wanted.values(), logits, strict=False):
                self._ahead[hypothesis.tokens] = self._weigh(hypothesis, line)
        given = [self._ahead[node.hypothesis.tokens] for node in nodes]
        for node in nodes:
            self._ahead.pop(node.hypothesis.tokens, None)
        return given

    def candidates(self, nodes: Sequence[SearchNode]) -> list[Candidate]:
        """What a critic is asked about."""
        return [Candidate(node.hypothesis.text, node.is_finished, node.log_prob, self.constraint) for node in nodes]

    def retain(self, nodes: Sequence[SearchNode]) -> None:
        """What is asked from now on follows these."""
        live = {node.hypothesis.tokens for node in nodes}
        self._ahead = {
            tokens: given for tokens, given in self._ahead.items() if any(tokens[: len(one)] == one for one in live)
        }
        self.reader.retain([*live, *self._ahead])

    def ranked(self, node: SearchNode, shift: Values | None = None) -> tuple[Tokens, Values]:
        """What may follow an expanded node, and the scores that it would have, as they fall.

        Args:
            shift: added to the scores, [n] in the order of ``node.expansion.tokens``.
        """
        scores = self._scores_after(node)
        if shift is not None:
            scores = scores + shift
        elif self.scoring.regulariser is None:
            return node.expansion.tokens, scores  # type: ignore[union-attr]
        order = np.argsort(-scores, kind="stable")
        return node.expansion.tokens[order], scores[order]  # type: ignore[union-attr]

    def child(self, node: SearchNode, token: int) -> SearchNode | None:
        """What follows an expanded node with a token; None: it is not known how it could be closed in time."""
        child = self.any_child(node, token)
        if child is None or not child.hypothesis.closes:
            node.refused = True
            return None
        child.is_shaped |= node.is_shaped or node.refused or node.hypothesis.is_cut_off
        return child

    def any_child(self, node: SearchNode, token: int) -> SearchNode | None:
        """As ``child``; None only where it is certain that it cannot be closed in time."""
        if token not in node.children:
            hypothesis = node.hypothesis.extended(token)
            node.children[token] = None if hypothesis is None else self._made(node, token, hypothesis)
        return node.children[token]

    def planned(self, node: SearchNode) -> SearchNode | None:
        """What the known completion goes on with."""
        token = node.hypothesis.planned()
        if node.is_cut and token not in node.expansion.tokens:  # type: ignore[union-attr]
            self.widen(node)
        return self.child(node, token) if token in node.expansion.tokens else None  # type: ignore[union-attr]

    def _made(self, node: SearchNode, token: int, hypothesis: Hypothesis) -> SearchNode:
        after = node.expansion
        assert after is not None
        child = SearchNode(hypothesis, node.length + 1)
        log_prob = after.log_end if token == END else float(after.log_probs[after.tokens == token][0])
        child.log_prob = node.log_prob + log_prob
        child.log_local = node.log_local + log_prob - after.log_mass
        child.surprisals, regulariser = node.surprisals, self.scoring.regulariser
        if regulariser is not None and not node.is_forced:
            least = float(self._surprisals(after).min())
            u = -log_prob if self.scoring.score == "global" else after.log_mass - log_prob
            child.surprisals = node.surprisals.added(u, least)
        child.score = child.log_prob if self.scoring.score == "global" else child.log_local
        if regulariser is not None:
            child.score -= self.scoring.uid_weight * regulariser.value(child.surprisals)
        return child

    def _surprisals(self, after: Distribution) -> Values:
        return -after.log_probs if self.scoring.score == "global" else after.log_mass - after.log_probs

    def _scores_after(self, node: SearchNode) -> Values:
        after, regulariser = node.expansion, self.scoring.regulariser
        assert after is not None
        u = self._surprisals(after)
        base = node.log_prob if self.scoring.score == "global" else node.log_local
        if regulariser is None:
            return np.asarray(base - u)
        if node.is_forced or not len(u):
            return np.asarray(base - u - self.scoring.uid_weight * regulariser.value(node.surprisals))
        return np.asarray(base - u - self.scoring.uid_weight * regulariser.after(node.surprisals, u, float(u.min())))

    def _set(self, node: SearchNode, whole: Distribution) -> None:
        most = self.most_kept if self.scoring.regulariser is None else len(whole.tokens)
        node.expansion = whole.likeliest(most)
        node.is_cut = len(whole.tokens) > most
        if node.is_cut and (wanted := self.wanted(node)):
            node.expansion = node.expansion.with_tokens(whole, wanted)
        self.expansions += 1

    def _chain(self, hypothesis: Hypothesis) -> dict[Prefix, Hypothesis]:
        """A hypothesis and what it must go on with, as far as that is read at once."""
        chain = {hypothesis.tokens: hypothesis}
        while self.reader.reads_chains and len(chain) < self.longest_chain:
            follower = hypothesis.follower()
            if follower is None or follower.is_finished:
                break
            chain[follower.tokens] = hypothesis = follower
        return chain


def distribution_of(hypothesis: Hypothesis, logits: Any) -> Distribution:
    """What the logits [V'] after a hypothesis say of what is allowed.

    Raises:
        GenerationError: they are not numbers.
    """
    ids, may_end = hypothesis.allowed()
    logits = logits[: hypothesis.grammar.vocabulary.size]
    highest = logits.max()
    if not np.isfinite(highest):
        raise GenerationError(f"The model gave {highest} as the highest of {logits.size} logits; check weights, dtype.")
    total = float(highest) + math.log(float(np.exp(logits - highest).sum(dtype=np.float64)))
    log_probs = logits[ids].astype(np.float64) - total
    if may_end:
        ends = logits[hypothesis.ends].astype(np.float64) - total
        ids, log_probs = np.append(ids, END), np.append(log_probs, text_log_prob(ends, range(len(ends))))
    return distribution(ids, log_probs)


def distribution(tokens: Tokens, log_probs: Values) -> Distribution:
    """Of tokens, ascending, the ``END`` last if it is among them."""
    top = float(log_probs.max(initial=-math.inf))
    mass = top + math.log(float(np.exp(log_probs - top).sum())) if top > -math.inf else -math.inf
    may_end = len(tokens) > 0 and int(tokens[-1]) == END
    return Distribution(tokens, log_probs, mass, float(log_probs[-1]) if may_end else -math.inf)
