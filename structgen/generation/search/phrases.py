"""Beams that bring phrases into their outputs: dynamic beam allocation (Post, Vilar 2018; grid beam search is its plain
form), over bytes, so that it does not matter in what tokens a phrase is spelled.

A beam is shared out to *banks*, hypotheses of equal progress, so that those which have begun a phrase, and pay for it,
are not crowded out by those that have not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import numpy as np

from structgen.core.constraints.combined import intersect
from structgen.core.constraints.phrases import including
from structgen.core.constraints.text import ChoiceConstraint, RegexConstraint
from structgen.errors import ConstraintError, OptionsError
from structgen.generation.decoding.closing_budget import MAX_TOKEN_BYTES, closing_tokens
from structgen.generation.search.beam import Beam, BeamEntry, Group, check_some
from structgen.generation.search.method import check_number
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.space import SearchNode, Space


@dataclass(frozen=True, kw_only=True)
class Phrases(Beam):
    """See ``Beam`` for the other options.

    Attributes:
        phrases: texts that outputs hold.
        bonus: nats for each that an output holds, under any constraint; 0 is beam search. None: every output holds
            them all, which is made part of the constraint: of an expression, or of a choice.
    """

    phrases: tuple[str, ...] | list[str] = ()
    bonus: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        is_list = isinstance(self.phrases, (list, tuple))
        if not is_list or not self.phrases or not all(isinstance(one, str) and one for one in self.phrases):
            raise OptionsError(
                f"phrases must be a list of texts, none empty, not {self.phrases!r:.100}", option="phrases"
            )
        if self.bonus is not None:
            check_number("bonus", self.bonus, 0)

    def constrained(self, constraint: Any) -> Any:
        """See ``Method.constrained``."""
        if self.bonus is not None:
            return constraint
        if isinstance(constraint, ChoiceConstraint):
            options = tuple(one for one in constraint.options if all(phrase in one for phrase in self.phrases))
            if options:
                return replace(constraint, options=options)
            raise ConstraintError(f"no choice holds all of the phrases {list(self.phrases)!r:.200}; give bonus")
        if isinstance(constraint, RegexConstraint):
            return intersect(constraint, including(self.phrases))
        raise ConstraintError(
            "Phrases that every output must hold are for expressions and choices. Say them in the constraint (a "
            "pattern on a member, or a rule), or give bonus, which makes them likelier."
        )

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``."""
        if self.bonus == 0:
            return super().run(space, n, rng)
        progress = Progress([phrase.encode() for phrase in self.phrases])
        group = _PhraseGroup(space, self, self.beams(n), progress=progress)
        while group.run:
            space.expand([entry.node for entry in group.run])
            group.step()
            space.retain([entry.node for entry in group.run])
        check_some(group.done)
        return SearchOutcome(group.done)


class Covered(NamedTuple):
    """How far a text has come: the longest end of it that a phrase begins with, and the phrases that it holds."""

    begun: bytes = b""
    met: frozenset[bytes] = frozenset()


class Progress:
    """Which phrases a text holds or has begun: the automaton of Aho and Corasick, whose states are texts."""

    def __init__(self, phrases: list[bytes]) -> None:
        self.phrases = phrases
        self._beginnings = {phrase[:length] for phrase in phrases for length in range(len(phrase) + 1)}

    def after(self, covered: Covered, data: bytes) -> Covered:
        """With more bytes."""
        begun, met = covered
        for byte in data:
            begun += bytes([byte])
            while begun not in self._beginnings:
                begun = begun[1:]
            met |= {phrase for phrase in self.phrases if begun.endswith(phrase)}
        return Covered(begun, met)

    def bank(self, covered: Covered) -> int:
        """Bytes of phrases that it holds, and of the one that it has begun."""
        begun = max((len(begun) for begun, _ in self._open(covered)), default=0)
        return sum(map(len, covered.met)) + begun

    def next_texts(self, covered: Covered) -> set[bytes]:
        """What goes on with a phrase that it does not hold, or begins it, perhaps after a space."""
        left = {phrase[len(begun) :] for begun, phrase in self._open(covered)}
        left |= {start + phrase for phrase in self.phrases if phrase not in covered.met for start in (b"", b" ")}
        return {text[:length] for text in left for length in range(1, min(len(text), MAX_TOKEN_BYTES) + 1)}

    def _open(self, covered: Covered) -> Iterator[tuple[bytes, bytes]]:
        """Ends of the text with which phrases begin that it does not hold."""
        for start in range(len(covered.begun) + 1):
            begun = covered.begun[start:]
            yield from ((begun, one) for one in self.phrases if one not in covered.met and one.startswith(begun))


@dataclass
class _PhraseGroup(Group):
    """A beam whose hypotheses are shared out to banks. ``covered``: how far each has come."""

    progress: Progress = field(default_factory=lambda: Progress([]))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ids = closing_tokens(self.space.root.hypothesis.grammar.vocabulary).ids
        self._covered = {self.space.root: Covered()}
        self.space.wanted = self._advancing

    def _pool(self, penalties: Any, weight: float) -> list[tuple[int, BeamEntry]]:
        """The best, the best of each hypothesis, and what advances a phrase; those that run, a bank after the other."""
        pool = {id(entry.node): (token, entry) for token, entry in super()._pool(penalties, weight)}
        for entry in self.run:
            for token in self._advancing(entry.node):
                self._add(pool, entry, token)
        chosen = [(token, self._paid(entry)) for token, entry in pool.values()]
        chosen.sort(key=lambda pair: -pair[1].score)
        ended = [pair for rank, pair in enumerate(chosen) if pair[1].node.is_finished and rank < self.size]
        running = self._shared([pair for pair in chosen if not pair[1].node.is_finished])
        self._covered = {entry.node: self._covered[entry.node] for _, entry in running}
        return ended + running

    def _advancing(self, node: SearchNode) -> list[int]:
        """The tokens with which a phrase that is not met goes on, or begins."""
        texts = self.progress.next_texts(self._covered[node])
        ids, _ = node.hypothesis.allowed()
        tokens = np.array(sorted(self._ids[text] for text in texts if text in self._ids), np.int64)
        return [int(token) for token in tokens[np.isin(tokens, ids)]]

    def _add(self, pool: dict[int, tuple[int, BeamEntry]], entry: BeamEntry, token: int) -> None:
        child = self.space.child(entry.node, token)
        if child is not None:
            self._cover(entry.node, child)
            pool.setdefault(id(child), (token, BeamEntry(child, entry.offset)))

    def _paid(self, entry: BeamEntry) -> BeamEntry:
        """With the bonus for the phrases that its last token has met."""
        options = self.options
        assert isinstance(options, Phrases)
        covered = self._covered.get(entry.node)
        if covered is None:
            parent = next(one.node for one in self.run if entry.node in one.node.children.values())
            covered = self._cover(parent, entry.node)
        return BeamEntry(entry.node, (options.bonus or 0.0) * len(covered.met))

    def _cover(self, parent: SearchNode, child: SearchNode) -> Covered:
        data = child.hypothesis.data[len(parent.hypothesis.data) :]
        self._covered[child] = self.progress.after(self._covered[parent], data)
        return self._covered[child]

    def _shared(self, running: list[tuple[int, BeamEntry]]) -> list[tuple[int, BeamEntry]]:
        """As many as run, taken from the banks in turn, that of the greatest progress first; best first."""
        banks = defaultdict[int, list[tuple[int, BeamEntry]]](list)
        for pair in running:
            banks[self.progress.bank(self._covered[pair[1].node])].append(pair)
        in_turn = zip_longest(*(banks[bank] for bank in sorted(banks, reverse=True)))
        kept = list(islice((pair for turn in in_turn for pair in turn if pair is not None), self.size))
        return sorted(kept, key=lambda pair: -pair[1].score)
