"""What a string or number must satisfy, as plain conjunctions: the normal form between formulas and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from structgen.core.engines.json.numbers.automaton import NumberAutomaton
from structgen.core.engines.json.numbers.spec import MANY
from structgen.core.engines.json.numbers.values import value_texts
from structgen.core.json_schema.formula.values import Canonical, exact_number
from structgen.core.regex.dfa import Dfa, count_words
from structgen.core.regex.lengths import Distances

if TYPE_CHECKING:
    from structgen.core.text_sets.corpus import Corpus

CUT = object()
"""Stands for values that are not listed."""

MAX_WORDS = 20_000
"""Words of a language that are listed."""

LISTED_QUOTES = 80
"""Quotes that are listed, of the very many that documents have."""

NEVER = 1 << 40
"""What it costs to write what has no text, or none of a length that is written."""

ITEM_BYTES = 192  # of an item or constant with the formulas that speak of it alone; measured, within some 20 %
ARRAY_BYTES = 512  # of an automaton besides its table

AddAutomaton = Callable[..., int]
"""Takes the table and labels of an automaton that is encoded; gives back its number."""


def is_new(automaton: object, counted: set[int]) -> bool:
    """Whether an automaton is not ``counted`` (by its id) yet; it is then."""
    if id(automaton) in counted:
        return False
    counted.add(id(automaton))
    return True


def dfa_bytes(dfa: Dfa) -> int:
    """Of an automaton."""
    return ARRAY_BYTES + dfa.transitions.nbytes + dfa.accepting.nbytes


@dataclass(slots=True)
class EnumSpec:
    """A string that is one of ``values``."""

    values: tuple[str, ...]

    @property
    def is_endless(self) -> bool:
        """Whether there are endlessly many."""
        return False

    def count(self) -> tuple[int, bool]:
        """How many there are at least, and whether that is exact."""
        return len(set(self.values)), True

    def listed(self) -> Iterator[Canonical]:
        """The strings; `CUT` where there may be others."""
        yield from self.values

    def memory_bytes(self, counted: set[int]) -> int:
        """About what the spec takes, without automata that are ``counted`` already (by id)."""
        return ITEM_BYTES * len(self.values)

    def pooled_states(self, counted: set[int]) -> int:
        """States of its automaton, as the pool has them."""
        return 0

    def encoded(self, add: AddAutomaton) -> Any:
        """As plain JSON, for files."""
        return list(self.values)


@dataclass(slots=True)
class StringSpec:
    """A string in the language of ``dfa`` (None: any) with ``least`` to ``most`` code points (None: no limit).

    ``distances`` is there when both the automaton and a length limit matter. Methods: see `EnumSpec`.
    """

    dfa: Dfa | None
    least: int
    most: int | None
    distances: Distances | None

    @property
    def is_endless(self) -> bool:
        if self.dfa is None:
            return self.most is None or self.most > 0
        return self.most is None and bool(count_words(self.dfa, MANY)[0] >= MANY)

    def count(self) -> tuple[int, bool]:
        if self.dfa is None:
            return (MANY, True) if self.most != 0 else (1, True)
        if self.most is not None or self.least:
            return 1, False
        return int(count_words(self.dfa, MANY)[0]), True

    def listed(self) -> Iterator[Canonical]:
        if self.dfa is None:
            lengths = range(self.least, self.least + 2)
            yield from ("a" * length for length in lengths if length <= (self.most or length))
            yield CUT
        elif int(count_words(self.dfa, MAX_WORDS)[0]) >= MAX_WORDS:
            yield CUT
        else:
            for word in _words(self.dfa):
                if self.least <= len(word) and (self.most is None or len(word) <= self.most):
                    yield word

    def memory_bytes(self, counted: set[int]) -> int:
        if self.dfa is None or not is_new(self.dfa, counted):
            return 0
        return dfa_bytes(self.dfa) + (0 if self.distances is None else self.distances.nxt.nbytes)

    def pooled_states(self, counted: set[int]) -> int:
        return len(self.dfa) if self.dfa is not None and is_new(self.dfa, counted) else 0

    def encoded(self, add: AddAutomaton) -> Any:
        dfa = None if self.dfa is None else add(self.dfa.transitions, self.dfa.accepting)
        return {"dfa": dfa, "lengths": [self.least, self.most]}


def _words(dfa: Dfa) -> Iterator[str]:
    """All texts of a finite language."""
    stack = [(0, b"")]
    while stack:
        state, text = stack.pop()
        if dfa.accepting[state]:
            yield text.decode()
        row = dfa.transitions[state]
        stack += [(int(row[byte]), text + bytes([byte])) for byte in (row >= 0).nonzero()[0].tolist()]


@dataclass(slots=True)
class QuoteSpec:
    """A part of some documents, of ``least`` to ``most`` code points (None: no limit). Methods: see `EnumSpec`."""

    corpus: Corpus
    least: int
    most: int | None

    @property
    def is_endless(self) -> bool:
        return False

    def count(self) -> tuple[int, bool]:
        return sum(value is not CUT for value in self.listed()), False

    def listed(self) -> Iterator[Canonical]:
        yield from islice(self.corpus.some_quotes(max(self.least, 1), self.most), LISTED_QUOTES)
        yield CUT

    def memory_bytes(self, counted: set[int]) -> int:
        return self.corpus.memory_bytes if is_new(self.corpus, counted) else 0

    def pooled_states(self, counted: set[int]) -> int:
        return 0

    def encoded(self, add: AddAutomaton) -> Any:
        return {
            "quoted": self.corpus.texts(),
            "boundary": self.corpus.boundary_name,
            "fold": self.corpus.folds,
            "lengths": [self.least, self.most],
        }


@dataclass(slots=True)
class NumberChoice:
    """A number that the automaton accepts. ``has_ends``: the schema would allow longer ones (``with_ends``).

    Methods: see `EnumSpec`.
    """

    automaton: NumberAutomaton
    has_ends: bool = False

    @property
    def is_endless(self) -> bool:
        return self.automaton.spec.count() >= MANY

    def count(self) -> tuple[int, bool]:
        return self.automaton.spec.count(), self.automaton.spec.max_length is None

    def listed(self) -> Iterator[Canonical]:
        return (exact_number(Fraction(text.decode())) for text in value_texts(self.automaton))

    def memory_bytes(self, counted: set[int]) -> int:
        return self.automaton.memory_bytes if is_new(self.automaton, counted) else 0
