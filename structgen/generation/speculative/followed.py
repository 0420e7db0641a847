"""Drafts for an output that another engine writes: a chain of tokens at a time, judged by what is written then."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.core.engines.protocols import Matcher
from structgen.generation.speculative.acceptance import Acceptance
from structgen.generation.speculative.copying import CopyDrafter
from structgen.generation.speculative.cost import TYPICAL
from structgen.generation.speculative.drafter import Source, Written
from structgen.generation.speculative.forced import CanonicalTokens, ForcedDrafter
from structgen.generation.speculative.length import Fixed, Pause
from structgen.generation.speculative.merge import grow
from structgen.generation.speculative.near_end import ClosingDrafter
from structgen.generation.speculative.ngram import NgramDrafter
from structgen.generation.speculative.shape import ShapeDrafter
from structgen.generation.speculative.structure import StructureDrafter
from structgen.generation.speculative.tree import TAIL, DraftTree, Node

LEAST = 0.15  # the calibrated chance of a chain's last token, below which it ends before

NAMES = (
    ForcedDrafter.name,
    StructureDrafter.name,
    ShapeDrafter.name,
    CopyDrafter.name,
    ClosingDrafter.name,
    NgramDrafter.name,
)
"""Drafters that need neither the model nor its logits."""


class Follower:
    """The drafters of an engine, and what they learn from output to output. Not for several threads at once.

    Args:
        tokenizer: of transformers.
        names: of `NAMES`.
    """

    def __init__(self, tokenizer: object, written: Written, names: Sequence[str] = NAMES) -> None:
        vocabulary = written.vocabulary
        canonical = CanonicalTokens(tokenizer, vocabulary)
        drafters = (
            ForcedDrafter(canonical),
            StructureDrafter(canonical),
            ShapeDrafter(vocabulary),
            CopyDrafter(canonical, vocabulary),
            ClosingDrafter(),
            NgramDrafter(),
        )
        self.drafters = [drafter for drafter in drafters if drafter.name in names]
        self.acceptance = Acceptance()

    def start(self, prompt: Sequence[int], written: Written) -> FollowedSequence:
        """Begin an output."""
        sources = [drafter.start(prompt, written) for drafter in self.drafters]
        return FollowedSequence(sources, self.acceptance, prompt, written)


class FollowedSequence:
    """One output while another engine writes it. Made by `Follower.start`."""

    def __init__(
        self, sources: Sequence[Source], acceptance: Acceptance, prompt: Sequence[int], written: Written
    ) -> None:
        self._sources, self._acceptance, self._written = sources, acceptance, written
        self._tail = tuple(prompt[-TAIL:])
        self._tree = DraftTree(Node(-1, None, (), None))
        self._pause = Pause(TYPICAL)

    def extend(self, tokens: Sequence[int]) -> None:
        """These tokens came next: the drafts before are judged by them."""
        self._judge(tokens)
        self._tail = (*self._tail, *tokens)[-TAIL:]
        for source in self._sources:
            source.extend(tokens)

    def propose(self, matcher: Matcher, most: int, *, pauses: bool = False) -> list[int]:
        """The tokens that may come next, as far as their chance is fair.

        Args:
            matcher: where the output stands; it is not moved.
            most: tokens at most.
            pauses: whether none are drafted for a while where drafts have not paid lately.
        """
        if most < 1 or not self._tail or (pauses and self._pause.step()):
            return []
        root = Node(self._tail[-1], None, self._tail, matcher)
        for source in self._sources:
            source.prepare(root, most)
        ends = self._written.vocabulary.eos_token_ids
        self._tree = grow(
            root,
            self._sources,
            self._acceptance,
            Fixed(most),
            depth=most,
            ends=ends,
            shape=(1,) * most,
            least=LEAST,
        )
        return [node.token for node in self._tree.nodes]

    def _judge(self, tokens: Sequence[int]) -> None:
        """Learn which of the last drafts were right."""
        node: Node | None = self._tree.root
        nodes, right = self._tree.nodes, list[Node]()
        for token in tokens:
            if node is None:
                break
            allowed = [proposed for proposed in node.proposals if proposed not in node.refused]
            right_one = allowed.index(token) if token in allowed else None
            self._acceptance.learn([node.proposals[proposed] for proposed in allowed], right_one)
            following = node.children.get(token)
            node = following if following is not None and following.index >= 0 else None
            if node is not None:
                right.append(node)
        for each in nodes:
            self._acceptance.calibrated.learn(each.chance, each in right)
        if nodes:
            self._pause.observe(len(nodes), len(tokens), 0.0)
        self._tree = DraftTree(Node(-1, None, (), None))
