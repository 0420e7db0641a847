"""Drafts for outputs that another engine writes, a chain of tokens at a time, and near the end of a token budget."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.core.engines.protocols import Matcher
from structgen.generation.decoding.closing_budget import Speller, closing_tokens, shortest_completion
from structgen.generation.speculative.acceptance import Acceptance
from structgen.generation.speculative.copying import CopyDrafter
from structgen.generation.speculative.cost import TYPICAL
from structgen.generation.speculative.drafter import Proposal, Source, Written
from structgen.generation.speculative.forced import CanonicalTokens, ForcedDrafter
from structgen.generation.speculative.length import Fixed, Pause
from structgen.generation.speculative.merge import grow
from structgen.generation.speculative.ngram import NgramDrafter
from structgen.generation.speculative.shape import ShapeDrafter
from structgen.generation.speculative.structure import StructureDrafter
from structgen.generation.speculative.tree import TAIL, DraftTree, Node

NAME = "closing"
SPARE = 3  # tokens that may be left over after the closing text where it is drafted
LOOK = 48  # tokens before the end of the budget from which on the closing text is looked at
PRIORS = (0.8, 0.4, 0.2, 0.1)  # by the tokens to spare


class ClosingDrafter:
    """Proposes the fewest tokens that close the output, where hardly more are left of its budget."""

    name = NAME

    def start(self, prompt: Sequence[int], output: Written) -> Source:
        """See ``Drafter.start``."""
        return _ClosingSource(output)


class _ClosingSource(Source):
    name = NAME

    def __init__(self, output: Written) -> None:
        self._output = output
        self._speller = Speller(closing_tokens(output.vocabulary))
        self._remaining_at: dict[Node, Sequence[int]] = {}  # what closes the output after nodes

    def prepare(self, root: Node, depth: int) -> None:
        """See ``Source``."""
        self._remaining_at.clear()

    def propose(self, node: Node) -> list[Proposal]:
        """See ``Source``. Looks for a completion near the end only."""
        left = self._output.remaining - node.depth
        if left > LOOK or node.matcher is None:
            return []
        remaining = self._remaining_at[node] = self._remaining(node)
        spare = left - len(remaining)
        if not remaining or not 0 <= spare <= SPARE:
            return []
        return [Proposal(remaining[0], (NAME, spare, len(remaining) > 1), PRIORS[spare])]

    def _remaining(self, node: Node) -> Sequence[int]:
        above = self._remaining_at.get(node.parent, ()) if node.parent is not None else ()
        if above and above[0] == node.token:
            return above[1:]
        assert node.matcher is not None
        text = shortest_completion(node.matcher)
        return (None if text is None else self._speller.fewest(text)) or ()


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
