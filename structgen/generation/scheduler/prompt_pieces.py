"""Which pieces of prompts a step reads."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from structgen.generation.scheduler.budget import FIRST_PIECE, REFRESH, PieceTime, SchedulerLimits, StepCost
from structgen.generation.scheduler.shares import Shares

OF_OLDEST = 0.25  # of what a step reads of prompts
SHORT, SHORT_TOKENS = 4.0, 256  # pieces that a short prompt takes at most, and tokens that it has


class Unread(NamedTuple):
    """A prompt that is being read: how many tokens are left, of how many that had to be read, and whose it is."""

    tokens: int
    whole: int
    key: str


class PromptPieces:
    """Shares out what a step may read of prompts.

    Args:
        limits: ``step_tokens``, ``step_factor`` and ``least_chunk`` of them.
        cost: what steps take.
        piece: how long a step of prompts may take.
    """

    def __init__(self, limits: SchedulerLimits, cost: StepCost, piece: PieceTime) -> None:
        self._limits, self._cost, self._piece = limits, cost, piece
        self._borne = 0.0  # tokens that steps beside prompts could have borne and did not read
        self._saved = 0.0  # tokens that steps before there were prompts could have borne
        self._of_oldest = 0.0  # tokens that the oldest prompt is to have
        self._oldest = 0  # tokens of it that are not read yet
        self._shares = Shares()  # tokens of prompts that were read for each key
        self._keys: set[str] = set()  # whose prompts were read in the last step

    def counts(
        self, unread: Sequence[Unread], waiting: int, writing: Collection[str], later: Collection[str] = ()
    ) -> list[int]:
        """How many tokens are read of each prompt.

        Three quarters go to keys in turn, and of a key to the shortest, so that a short prompt does not wait for long
        ones; the others to the oldest, so that a long one gets on whatever comes after it. What either leaves goes to
        the next ones.

        Args:
            unread: what is left of each, in the order of their admission.
            waiting: tokens that the step reads for sequences that are written.
            writing: keys of these sequences.
            later: keys whose turn it is not.
        """
        keys = {prompt.key for prompt in unread}
        for key in keys - self._keys:
            self._shares.arrive(key, keys & self._keys)
        self._keys = keys
        if not unread:
            self._save(waiting)
            self._of_oldest, self._oldest = 0.0, 0
            return []
        if unread[0].tokens > self._oldest:  # it is another one
            self._cost.begin()
        now = [prompt for prompt in unread if prompt.key not in later]
        if not now:
            return [0] * len(unread)
        tokens = [prompt.tokens if prompt.key not in later else 0 for prompt in unread]
        room = self._room(waiting, now, writing)
        self._of_oldest += OF_OLDEST * room
        of_oldest = min(room // 2 if len(keys) > 1 else room, int(self._of_oldest), tokens[0])
        counts = [of_oldest, *[0] * (len(unread) - 1)]
        used = {key: self._shares.used(key) for key in keys}
        order = sorted(range(len(unread)), key=lambda index: (used[unread[index].key], tokens[index]))
        _give(counts, tokens, order, room - of_oldest)
        for prompt, count in zip(unread, counts, strict=True):
            self._shares.charge(prompt.key, count)
        self._of_oldest = max(0.0, self._of_oldest - counts[0])
        self._oldest = unread[0].tokens - counts[0]
        return counts

    def _save(self, waiting: int) -> None:
        """A step reads no prompts."""
        self._borne = 0.0
        spare = self._cost.room(waiting, self._limits.step_factor) if waiting else None
        self._saved = min(self._saved + (spare or 0.0), FIRST_PIECE, self._cost.piece(self._piece.seconds))

    def _room(self, waiting: int, unread: Sequence[Unread], writing: Collection[str]) -> int:
        """How many tokens of prompts the step may read: beside sequences that are written as much as these can bear,
        else what takes no longer than others may wait for."""
        limits, most = self._limits, max(self._limits.step_tokens - waiting, self._limits.least_chunk)
        if not waiting:
            short = limits.step_factor * self._shortest_of_another(unread)
            piece = self._cost.piece(self._piece.seconds if short == math.inf else limits.piece_seconds)
            return int(min(most, short, max(piece, limits.least_chunk)))
        if limits.step_factor == math.inf:
            return most
        spare = self._cost.room(waiting, limits.step_factor)
        if spare is None:
            return 0
        spare = max(spare, limits.least_chunk / REFRESH)  # prompts get on, however slow they are
        spare = max(spare, self._of_many(waiting, unread, writing))
        if spare >= limits.least_chunk:
            return int(min(most, spare))
        self._borne = min(self._borne + spare, limits.least_chunk)
        shortest = min(prompt.tokens for prompt in unread)
        if shortest <= self._borne + self._saved:  # a short prompt is read at once, by what was saved before it came
            self._saved -= max(0.0, shortest - self._borne)
            self._borne = max(0.0, self._borne - shortest)
            return min(most, shortest)
        if self._borne < limits.least_chunk:
            return 0
        self._borne = 0.0
        return limits.least_chunk

    def _shortest_of_another(self, unread: Sequence[Unread]) -> float:
        """Tokens of the shortest prompt, where it is short and another caller's prompts are read beside it: it does not
        wait for a whole piece of these."""
        if len({prompt.key for prompt in unread}) == 1:
            return math.inf
        shortest = min(prompt.whole for prompt in unread)
        return shortest if shortest <= SHORT_TOKENS else math.inf

    def _of_many(self, waiting: int, unread: Sequence[Unread], writing: Collection[str]) -> float:
        """What short prompts may have beyond what sequences bear, up to a piece a step.

        Sequences of keys that have short prompts themselves wait for these: then all are written together, which takes
            less
        time than one after the other. Others bear more only where they are fewer keys than those that wait.
        """
        piece = self._cost.piece(self._piece.seconds)
        short = [prompt for prompt in unread if prompt.whole <= min(SHORT * piece, SHORT_TOKENS)]
        keys = {prompt.key for prompt in short}
        others = set(writing) - keys
        if not others:
            bound = self._limits.step_factor * self._shortest_of_another(unread)
            if self._piece.has_several:  # sequences and prompts take a piece together
                bound = min(bound, self._cost.piece(max(0.0, self._piece.seconds - self._cost.seconds(waiting))))
            return min(piece, float(sum(prompt.tokens for prompt in short)), bound)
        if len(keys) <= len(others):
            return 0.0
        factor = 1 + (self._limits.step_factor - 1) * len(keys) / len(others)
        return min(piece, self._cost.room(waiting, factor) or 0.0)


def _give(counts: list[int], unread: Sequence[int], places: Iterable[int], room: int) -> None:
    """Give so many tokens to these prompts, one after the other."""
    for index in places:
        count = min(room, unread[index] - counts[index])
        counts[index] += count
        room -= count
