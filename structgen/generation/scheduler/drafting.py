"""Drafts of all sequences of a step: which of them are worth reading, given what the step reads anyway."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.generation.decoding.choosing import OnError, guarded
from structgen.generation.speculative.cost import Cost, CostCurve, LearnedCost
from structgen.generation.speculative.length import RATE_WEIGHT, CostAware, allocate
from structgen.generation.speculative.speculator import DraftedSequence
from structgen.generation.speculative.tree import DraftTree


class Drafting:
    """Chooses drafts by goodput, tokens for the time of a step; it learns the rate by the number of sequences."""

    def __init__(self) -> None:
        self._reached: dict[int, tuple[float, float]] = {}  # tokens and time, by sequences (powers of two)
        self._other_tokens = 1
        self._curve: Cost = CostCurve()
        self._is_asked = False  # whether a sequence of this step has drafters

    def choose(
        self, sequences: Sequence[DraftedSequence], *, other_tokens: int, writing: int, room: int, failed: OnError
    ) -> list[DraftTree | None]:
        """A tree for each sequence; None of one that failed.

        A sequence that is alone has what its policy keeps. Of several, the likeliest drafts are read, as many as pay.
        Trees with drafts drawn at random, whose size was decided before they were drawn, and those of other policies
        than ``CostAware`` are read whole.

        Args:
            other_tokens: tokens that the step reads without drafts.
            writing: sequences that it gives tokens to, those without drafts included.
            room: tokens that may come on top.
            failed: called with a sequence whose drafter raised.
        """
        self._other_tokens, self._is_asked = other_tokens, bool(sequences)
        if not sequences:
            return []
        self._curve = next(
            (sequence.policy.curve for sequence in sequences if isinstance(sequence.policy, CostAware)), self._curve
        )
        if isinstance(self._curve, LearnedCost) and self._curve.is_plain_due:
            return [sequence.pause() for sequence in sequences]
        is_alone = writing == 1 and len(sequences) == 1 and other_tokens == len(sequences[0].output.pending)
        rate = self._rate(writing)
        trees: list[DraftTree | None] = []
        shared = []
        for sequence in sequences:
            tree = None
            with guarded(sequence.output, failed):
                tree = sequence.grow() if is_alone else self._grow(sequence, rate, writing)
            trees.append(tree)
            if tree is None:
                continue
            if not tree.sampled and (is_alone or not isinstance(sequence.policy, CostAware)):
                tree.cut(sequence.policy.trim(tree.chances))
            elif not tree.sampled:
                shared.append(tree)
                continue
            other_tokens, room = other_tokens + len(tree.nodes), room - len(tree.nodes)
        chances = [tree.chances for tree in shared]
        counts = allocate(chances, rate, self._curve, other_tokens=other_tokens, room=max(0, room))
        for tree, count in zip(shared, counts, strict=True):
            tree.cut(count)
        return trees

    def _grow(self, sequence: DraftedSequence, rate: float, writing: int) -> DraftTree:
        """What a sequence among others may have read: nothing that does not pay for its place even after the next step
        of the curve."""
        least = rate * self._curve.marginal(self._other_tokens) if isinstance(sequence.policy, CostAware) else 0.0
        return sequence.grow(least, other_tokens=self._other_tokens, sequences=writing)

    def observe(self, writing: int, tokens: int, read: int, seconds: float | None) -> None:
        """A step that read ``read`` tokens gave so many to the sequences that are written, in so long; None: that says
        nothing of steps without prompts."""
        if self._is_asked and seconds is not None and isinstance(self._curve, LearnedCost):
            self._curve.observe(read, seconds, drafts=read - self._other_tokens)
        if self._is_asked and writing > 1:
            key = writing.bit_length()
            mean, time = self._reached.get(key, (float(tokens), self._curve(read)))
            self._reached[key] = mean + RATE_WEIGHT * (tokens - mean), time + RATE_WEIGHT * (self._curve(read) - time)

    def _rate(self, writing: int) -> float:
        """Tokens of all sequences for the time of a forward of one token: what was reached, at least that without
        drafts."""
        without = writing / self._curve(self._other_tokens)
        mean, time = self._reached.get(writing.bit_length(), (without, 1.0))
        return max(without, mean / time)
