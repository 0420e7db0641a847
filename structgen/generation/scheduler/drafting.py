"""Drafts of all rows of a step: which of them are worth reading, given what the step reads anyway."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.generation.decoding.choosing import OnError, guarded
from structgen.generation.speculative.cost import Cost, CostCurve, LearnedCost
from structgen.generation.speculative.length import RATE_WEIGHT, CostAware, allocate
from structgen.generation.speculative.speculator import DraftedSequence
from structgen.generation.speculative.tree import DraftTree


class Drafting:
    """Chooses drafts by goodput, tokens for the time of a step; it learns the rate by the number of rows."""

    def __init__(self) -> None:
        self._reached: dict[int, tuple[float, float]] = {}  # tokens and time, running means, by rows (powers of two)
        self._beside = 1
        self._curve: Cost = CostCurve()
        self._is_asked = False  # whether a row of this step has drafters

    def choose(
        self, rows: Sequence[DraftedSequence], *, beside: int, writing: int, room: int, failed: OnError
    ) -> list[DraftTree | None]:
        """A tree for each row; None of one that failed.

        A row that is alone has what its policy keeps. Of several, the likeliest drafts are read, as many as pay. Trees
        with drafts drawn at random, whose size was decided before they were drawn, and those of other policies than
        ``CostAware`` are read whole.

        Args:
            beside: tokens that the step reads without drafts.
            writing: rows that it gives tokens to, those without drafts included.
            room: tokens that may come on top.
            failed: called with a sequence whose drafter raised.
        """
        self._beside, self._is_asked = beside, bool(rows)
        if not rows:
            return []
        self._curve = next((row.policy.curve for row in rows if isinstance(row.policy, CostAware)), self._curve)
        if isinstance(self._curve, LearnedCost) and self._curve.is_plain_due:
            return [row.pause() for row in rows]
        is_alone = writing == 1 and len(rows) == 1 and beside == len(rows[0].output.pending)
        rate = self._rate(writing)
        trees: list[DraftTree | None] = []
        shared = []
        for row in rows:
            tree = None
            with guarded(row.output, failed):
                tree = row.grow() if is_alone else self._grow(row, rate, writing)
            trees.append(tree)
            if tree is None:
                continue
            if not tree.sampled and (is_alone or not isinstance(row.policy, CostAware)):
                tree.cut(row.policy.trim(tree.chances))
            elif not tree.sampled:
                shared.append(tree)
                continue
            beside, room = beside + len(tree.nodes), room - len(tree.nodes)
        chances = [tree.chances for tree in shared]
        counts = allocate(chances, rate, self._curve, beside=beside, room=max(0, room))
        for tree, count in zip(shared, counts, strict=True):
            tree.cut(count)
        return trees

    def _grow(self, row: DraftedSequence, rate: float, writing: int) -> DraftTree:
        """What a row among others may have read: nothing that does not pay for its place even after the next step of
        the curve."""
        least = rate * self._curve.marginal(self._beside) if isinstance(row.policy, CostAware) else 0.0
        return row.grow(least, beside=self._beside, rows=writing)

    def observe(self, writing: int, tokens: int, read: int, seconds: float | None) -> None:
        """A step that read ``read`` tokens gave so many to the rows that are written, in so long; None: that says
        nothing of steps without prompts."""
        if self._is_asked and seconds is not None and isinstance(self._curve, LearnedCost):
            self._curve.observe(read, seconds, drafts=read - self._beside)
        if self._is_asked and writing > 1:
            key = writing.bit_length()
            known, time = self._reached.get(key, (float(tokens), self._curve(read)))
            self._reached[key] = known + RATE_WEIGHT * (tokens - known), time + RATE_WEIGHT * (self._curve(read) - time)

    def _rate(self, writing: int) -> float:
        """Tokens of all rows for the time of a forward of one token: what was reached, at least that without drafts."""
        without = writing / self._curve(self._beside)
        known, time = self._reached.get(writing.bit_length(), (without, 1.0))
        return max(without, known / time)
