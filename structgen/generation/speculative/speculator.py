"""``Speculator``: the drafters of a generator, what they have learned, and how much is drafted."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.generation.decoding.output import Output
from structgen.generation.speculative.acceptance import Acceptance
from structgen.generation.speculative.drafter import Drafter, Source, Step
from structgen.generation.speculative.length import CostAware, LengthPolicy, Pause
from structgen.generation.speculative.merge import Shape, grow
from structgen.generation.speculative.prediction import Prediction, PredictionSource
from structgen.generation.speculative.rules import Draws
from structgen.generation.speculative.tree import TAIL, DraftTree, Node

if TYPE_CHECKING:
    from structgen.generation.sampling.device_trees import Drafted


class Speculator:
    """Drafts for outputs and judges the drafts by what the target says. Keeps what it learns from output to output;
    what is learned changes the speed, never what is written. Not for several threads at once.

    Args:
        drafters: asked for proposals, all at each node.
        policy: how much is drafted; None: as much as pays by the typical cost curve.
        shape: a static tree shape (most children at each depth); None: trees follow the estimated chances.
    """

    def __init__(
        self, drafters: Sequence[Drafter], policy: LengthPolicy | None = None, *, shape: Shape | None = None
    ) -> None:
        self.drafters = tuple(drafters)
        self.policy = policy if policy is not None else CostAware()
        self.shape = shape
        self._acceptance = Acceptance(), Acceptance()
        self._pauses: dict[Hashable, Pause] = {}  # as the last output of each kind left them

    def acceptance(self, *, constrained: bool) -> Acceptance:
        """What was learned from outputs with or without a constraint: the one says little about the other."""
        return self._acceptance[constrained]

    def pause(self, output: Output) -> Pause | None:
        """Whether drafts have paid in outputs of this kind, to go on from; None: the policy does not weigh that."""
        if not isinstance(self.policy, CostAware):
            return None
        cached = self._pauses.get(_kind(output))
        return Pause(self.policy.curve) if cached is None else cached.resumed()

    def remember(self, output: Output, pause: Pause) -> None:
        """An output is whole, and this is how far drafts paid."""
        self._pauses[_kind(output)] = pause

    def start(self, prompt: Sequence[int], output: Output, prediction: Prediction | None = None) -> DraftedSequence:
        """Begin an output; tokens that it already has are part of the text. ``prediction``: what it may be like."""
        return DraftedSequence(self, prompt, output, prediction)


class DraftedSequence:
    """One output while it is written.

    Attributes:
        output: it.
        tree: the drafts of the current step.
        policy: of its speculator.
    """

    def __init__(
        self, speculator: Speculator, prompt: Sequence[int], output: Output, prediction: Prediction | None = None
    ) -> None:
        self.output = output
        self._speculator = speculator
        self._sources: list[Source] = [drafter.start(prompt, output) for drafter in speculator.drafters]
        if prediction is not None:
            self._sources.append(PredictionSource(prediction))
        self._tail = tuple(prompt[-TAIL:])
        self._known = 0  # output tokens that the sources have been told of
        self._acceptance = speculator.acceptance(constrained=output.matcher is not None)
        self.policy = speculator.policy
        self._pause = speculator.pause(output)
        self._other_tokens, self._sequences = 1, 1
        self._drafts, self._spent = True, 0.0  # whether this step has drafts, and the seconds that making them took
        self.tree = DraftTree(Node(-1, None, (), None))
        self._step_tokens: list[int] = []
        self._node = self.tree.root  # the last node on the path that was accepted
        self._kept: list[int] = []
        self._read = self._before = 0

    def grow(self, least: float = 0.0, *, other_tokens: int = 1, sequences: int = 1) -> DraftTree:
        """Draft what may follow the last token.

        Args:
            least: chance below which nothing is drafted.
            other_tokens, sequences: tokens that the step reads without its drafts, and sequences that it gives tokens
                to.
        """
        start = time.perf_counter()
        self._other_tokens, self._sequences = other_tokens, sequences
        try:
            return self._grow(least)
        finally:
            self._spent = time.perf_counter() - start
            self.output.stats.draft_seconds += self._spent

    def pause(self) -> DraftTree:
        """Draft nothing in this step."""
        self._extend_sources()
        self._drafts, self._spent = False, 0.0
        self.tree = DraftTree(Node(self._tail[-1], None, self._tail, self.output.matcher))
        return self.tree

    def _grow(self, least: float) -> DraftTree:
        output, speculator = self.output, self._speculator
        if self._pause is not None and self._pause.step():
            return self.pause()
        self._extend_sources()
        self._drafts = True
        root = Node(self._tail[-1], None, self._tail, output.matcher)
        depth = max(0, output.remaining - 1)  # the last token of the budget is not read
        for source in self._sources:
            source.prepare(root, depth)
        speculator.policy.begin()
        self.tree = grow(
            root,
            self._sources,
            self._acceptance,
            speculator.policy,
            depth=depth,
            ends=output.vocabulary.eos_token_ids,
            shape=speculator.shape,
            least=least,
        )
        return self.tree

    def begin(self) -> None:
        """Begin to verify the tree: the target has read the pending tokens and the tree's nodes."""
        self._step_tokens = self.tree.flat(self.output.pending)[0]
        self._node = self.tree.root
        self._read, self._before = len(self.output.pending), len(self.output.token_ids)
        self._kept = list(range(self._read))
        self.output.pending.clear()

    @property
    def last_read(self) -> int:
        """After which of the tokens that the target read the next one is chosen."""
        return self._kept[-1]

    @property
    def rule(self) -> Draws | None:
        """How the next token is verified, where its drafts were drawn at random, over what the output's mask allows."""
        return None if self.output.is_canonical else self._node.draws

    @property
    def looks_ahead(self) -> bool:
        """See ``Walk``: what must follow is judged."""
        return True

    @property
    def is_drawn_alone(self) -> bool:
        """Whether each node's draw needs nothing but its logits and mask: no bias or penalties, no drafts drawn at
        random."""
        return not self.output.is_adjusted and not self.tree.sampled

    def masks(self) -> npt.NDArray[np.int32]:
        """What may come after the root and after each node: int32 [1 + n, ceil(V / 32)]. A fill for each node."""
        nodes = self.tree.nodes
        masks = np.repeat(self.output.bitmask, 1 + len(nodes), axis=0)
        for node in nodes:
            if node.matcher is not None:
                node.matcher.fill_next_token_bitmask(masks, 1 + node.index)
        return masks

    def drafted(self, logits_row: int, mask_row: int) -> Drafted:
        """The tree as a device judges it; ``logits_row``: the sequence of the first token that was read."""
        from structgen.generation.sampling.device_trees import Drafted

        nodes, root = self.tree.nodes, self.tree.root
        request = self.output.request(0, 0)
        places = [self._read - 1, *range(self._read, self._read + len(nodes))]
        return Drafted(
            tokens=[root.token, *(node.token for node in nodes)],
            parents=[-1, *(0 if node.parent in (None, root) else 1 + node.parent.index for node in nodes)],
            params=request.params,
            seed=request.seed,
            position=request.position,
            logits_rows=[logits_row + index for index in places],
            mask_rows=list(range(mask_row, mask_row + 1 + len(nodes))),
        )

    def follow(self) -> bool:
        """Go along the drafts with the token that was chosen. Whether the target has read what comes after it.

        The tokens chosen are those of a loop without drafts, drawn in the same way from the same distributions; drafts
        only decide how many of them one forward gives.
        """
        output = self.output
        while output.pending:
            following = self._judge(self._node, output.pending[0])
            if following is None:
                break
            del output.pending[0]
            self._kept.append(self._read + following.index)
            self._node = following
        return not output.pending and output.finish_reason is None

    def leave(self) -> list[int]:
        """Do without what is not judged yet, and learn nothing of this step: the output is not at rest. Which of the
        tokens that the target read are output."""
        self.tree = DraftTree(self.tree.root)
        return self._kept

    def end(self) -> None:
        """The output is whole: let the sources learn it."""
        self._extend_sources()
        for source in self._sources:
            source.finish()
        if self._pause is not None:
            self._speculator.remember(self.output, self._pause)

    def finish(self, logits: Any) -> list[int]:
        """Learn from what was accepted. Which of the tokens that the target read are output: indices, ascending.

        Args:
            logits: [n, V] after the output's pending tokens and the tree's nodes.
        """
        step = Step(self._step_tokens, logits, self.tree, self._kept)
        self._learn(step, self._kept[self._read :], len(self.output.token_ids) - self._before)
        return self._kept

    def _judge(self, node: Node, token: int) -> Node | None:
        """The node after ``node`` for the token that was taken, if the target has read it; learns who was right."""
        allowed = [proposed for proposed in node.proposals if proposed not in node.refused]
        right = allowed.index(token) if token in allowed else None
        self._acceptance.learn([node.proposals[proposed] for proposed in allowed], right)
        node.proposals = {}  # judged
        following = node.children.get(token)
        return following if following is not None and following.index >= 0 else None

    def _learn(self, step: Step, accepted: Sequence[int], tokens: int) -> None:
        """After a forward that gave ``tokens`` tokens; ``accepted`` are indices into what it read."""
        start = time.perf_counter()
        stats, nodes = self.output.stats, step.tree.nodes
        _count(stats.drafted, nodes)
        first = len(step.tokens) - len(nodes)
        right = [nodes[index - first] for index in accepted]
        _count(stats.accepted, right)
        stats.draft_trees += bool(nodes)
        stats.draft_tokens += len(nodes)
        stats.accepted_draft_tokens += len(right)
        for node in nodes:
            self._acceptance.calibrated.learn(node.chance, node in right)
        if self._sequences == 1 or not isinstance(self.policy, CostAware):  # else the step's rate is the batch's
            self.policy.observe(len(nodes), tokens)
        if self._drafts:
            for source in self._sources:
                source.observe(step)
            if self._pause is not None:
                spent = self._spent + time.perf_counter() - start
                self._pause.observe(len(nodes), tokens, spent, self._other_tokens, self._sequences)
        if self.output.finish_reason is not None:
            self.end()
        stats.draft_seconds += time.perf_counter() - start

    def _extend_sources(self) -> None:
        """Give the sources what has been written since the last time."""
        new = self.output.token_ids[self._known :]
        self._known += len(new)
        self._tail = (*self._tail, *new)[-TAIL:]
        for source in self._sources:
            source.extend(new)


def _kind(output: Output) -> Hashable:
    """Outputs that are alike in how well they can be foreseen."""
    return output.matcher is not None, output.params.temperature > 0


def _count(counts: dict[str, int], nodes: Sequence[Node]) -> None:
    """Count nodes by the names of what proposed them."""
    for node in nodes:
        for evidence in node.evidence:
            name = str(evidence[0])
            counts[name] = counts.get(name, 0) + 1
