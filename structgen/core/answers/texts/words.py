"""The words of a grammar's rules by length, each with one derivation, until one has two."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from structgen.core.answers.texts.rules import Bodies, GrammarRules
from structgen.core.engines.captures.network import is_generated
from structgen.core.regex.dfa import Dfa, distinct_columns

MAX_LENGTH = 40


class WordBudget:
    """Words that may still be kept."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, count: int) -> None:
        """Count some words; raises where there were too many."""
        self.left -= count
        if self.left < 0:
            raise _OutOfWordsError


class _OutOfWordsError(Exception):
    """The budget is spent."""


class Letter:
    """The words of a terminal that is a letter of its own."""

    def __init__(self, letter: str) -> None:
        self._words: list[Sequence[str]] = [(), (letter,)]

    def of(self, length: int) -> Sequence[str]:
        """Those of a length."""
        return self._words[length] if length < 2 else ()


class SpeltTerminal:
    """The words of a terminal byte by byte, with one byte for all that its automata treat alike."""

    def __init__(self, dfa: Dfa, letters: Sequence[int], budget: WordBudget) -> None:
        self._dfa, self._letters, self._budget = dfa, letters, budget
        self._layers: list[list[tuple[str, int]]] = [[("", 0)]]
        self._words: list[list[str]] = [[]]

    def of(self, length: int) -> Sequence[str]:
        """Those of a length."""
        while len(self._layers) <= length:
            table = self._dfa.transitions
            layer = [
                (word + chr(byte), after)
                for word, state in self._layers[-1]
                for byte in self._letters
                if (after := int(table[state, byte])) >= 0
            ]
            self._budget.spend(len(layer))
            self._layers.append(layer)
            self._words.append([word for word, state in layer if self._dfa.accepting[state]])
        return self._words[length]


def representatives(dfas: Sequence[Dfa]) -> list[int]:
    """A readable byte for each class of bytes that the automata treat alike, without those that none reads."""
    columns, classes = distinct_columns(np.concatenate([dfa.transitions for dfa in dfas]))
    letters = []
    for number in range(columns.shape[1]):
        if (columns[:, number] >= 0).any():
            letters.append(min(np.flatnonzero(classes == number).tolist(), key=_readability))
    return letters


def _readability(byte: int) -> tuple[bool, bool, int]:
    return not chr(byte).isalnum(), not 32 <= byte < 127, byte


class FirstStep(NamedTuple):
    """How a word comes of a symbol at its first step: which of its rules, and the length of the first part."""

    body: int
    first: int


class AmbiguousWord(NamedTuple):
    """A word of a symbol with two first steps."""

    symbol: int
    word: str
    one: FirstStep
    other: FirstStep


class WordSearch:
    """The words of all rules by length, each with one derivation, until one has two. A word is a string of letters.

    Rules of more than two symbols are read as chains of rules of two, whose symbols are numbered after the grammar's.

    Attributes:
        finished: all words up to this length were looked at.
        owners: of each symbol the nonterminal whose rule it is part of.
    """

    def __init__(self, rules: GrammarRules, words_of: Sequence[Letter | SpeltTerminal], budget: WordBudget) -> None:
        self.rules, self._letters, self._budget = rules, words_of, budget
        self.bodies: Bodies = [[] for _ in rules.bodies]
        self.owners = list(range(len(rules.bodies)))
        self._parents: dict[int, tuple[int, int]] = {}
        for number, alternatives in enumerate(rules.bodies):
            for body in alternatives:
                self._add(number, number, body)
        self.words: list[list[dict[str, FirstStep]]] = [[] for _ in self.bodies]
        self.finished = -1

    def _add(self, symbol: int, owner: int, body: tuple[int, ...]) -> None:
        while len(body) > 2:
            self.bodies.append([])
            self.owners.append(owner)
            self._parents[len(self.bodies) - 1] = symbol, body[0]
            self.bodies[symbol].append((body[0], len(self.bodies) - 1))
            symbol, body = len(self.bodies) - 1, body[1:]
        self.bodies[symbol].append(body)

    def before(self, symbol: int) -> list[int]:
        """Of a symbol for the end of a rule, the symbols before it in the rule."""
        symbols = list[int]()
        while symbol in self._parents:
            symbol, first = self._parents[symbol]
            symbols.insert(0, first)
        return symbols

    def run(self, longest: int = MAX_LENGTH) -> AmbiguousWord | None:
        """The first word with two derivations; None: there is none among those looked at."""
        try:
            for length in range(longest + 1):
                ambiguous = self._layer(length)
                if ambiguous is not None:
                    return ambiguous
                self.finished = length
        except _OutOfWordsError:
            pass
        return None

    def _layer(self, length: int) -> AmbiguousWord | None:
        """All words of a length: a least fixpoint, since some are words of what they are made of."""
        for layers in self.words:
            layers.append({})
        splits: Sequence[int] = range(length + 1)
        changed = True
        while changed:
            changed = False
            for symbol, alternatives in enumerate(self.bodies):
                words = self.words[symbol][length]
                for index, body in enumerate(alternatives):
                    for word, first in self._of_body(body, length, splits):
                        derived = FirstStep(index, first)
                        before = words.setdefault(word, derived)
                        if before is derived:
                            changed = True
                            self._budget.spend(1)
                        elif before != derived:
                            return AmbiguousWord(symbol, word, before, derived)
            splits = sorted({0, length})  # what is shorter does not change any more
        return None

    def _of_body(self, body: tuple[int, ...], length: int, splits: Sequence[int]) -> Iterator[tuple[str, int]]:
        if not body:
            yield from [("", 0)] if length == 0 else ()
        elif len(body) == 1:
            for word in list(self._words_of(body[0], length)):
                yield word, length
        else:
            for first in splits:
                later = self._words_of(body[1], length - first)
                if later:
                    ends = list(later)
                    for begin in list(self._words_of(body[0], first)):
                        for end in ends:
                            yield begin + end, first

    def _words_of(self, symbol: int, length: int) -> Collection[str]:
        return self.words[symbol][length] if symbol >= 0 else self._letters[~symbol].of(length)

    # --- trees ---
    def tree(self, symbol: int, word: str, derived: FirstStep | None = None) -> Tree:
        """The derivation of a word that is kept, or one with another first step."""
        if symbol < 0:
            return Tree(symbol, word, ())
        derived = derived or self.words[symbol][len(word)][word]
        body = self.bodies[symbol][derived.body]
        words = (word[: derived.first], word[derived.first :])[: len(body)]
        parts: list[Tree] = []
        for inner, part in zip(body, words, strict=True):
            tree = self.tree(inner, part)
            parts += tree.parts if self._is_dissolved(inner) else [tree]
        return Tree(self.owners[symbol], word, tuple(parts))

    def _is_dissolved(self, symbol: int) -> bool:
        return symbol >= 0 and (self.owners[symbol] != symbol or is_generated(self.rules.names[symbol]))


class Tree(NamedTuple):
    """A derivation: a symbol, its word, and its parts; what front ends made of parts of rules has no node."""

    symbol: int
    word: str
    parts: tuple[Tree, ...]
