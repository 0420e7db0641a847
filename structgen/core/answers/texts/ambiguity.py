"""Texts that a grammar reads in two ways.

Whether a grammar is ambiguous is undecidable. Where its LALR(1) tables have no conflict, no text has two trees over the
same terminals: a proof. Else a rule's own words are looked at by length, shortest first: a grammar is ambiguous if and
only if some rule has a word with two derivations that differ at their first step, and such words are much shorter than
whole texts. What splits into terminals in two ways is looked for apart, byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from structgen.core.answers.texts.rules import GrammarRules, contextual_lexer, grammar_of, name_of, rules_for
from structgen.core.answers.texts.words import (
    AmbiguousWord,
    Letter,
    SpeltTerminal,
    Tree,
    WordBudget,
    WordSearch,
    representatives,
)
from structgen.core.engines.captures.network import is_generated
from structgen.core.engines.lalr.automaton import RuleConflict, lalr_automaton
from structgen.core.grammars.normal_form import Terminal
from structgen.core.regex.dfa import shortest
from structgen.core.vocabulary.vocabulary import TextVocabulary
from structgen.errors import TooComplexError
from structgen.options import check_count

MAX_WORDS = 60_000
"""Words of all rules together that are looked at."""
Kind = Literal["structure", "lexer"]


@dataclass(frozen=True)
class ReadingTree:
    """A tree: a rule or terminal, its text, and its parts (none of a terminal)."""

    name: str
    text: str
    parts: tuple[ReadingTree, ...] = ()

    def __str__(self) -> str:
        return self.shown()

    def shown(self, *, names: bool = False) -> str:
        """In brackets; ``names``: of terminals the names, too."""
        if not self.parts:
            return f"{self.name}:{self.text!r}" if names else self.text or f"({self.name})"
        return f"({' '.join([self.name, *(part.shown(names=names) for part in self.parts)])})"


@dataclass(frozen=True)
class Ambiguity:
    """What `ambiguity` has found.

    Attributes:
        kind: "structure": two trees over the same terminals; "lexer": two splits into terminals; None: none was found.
        text: a whole text that has both readings.
        rule: the one whose part of the text has them.
        readings: that part's two trees.
        is_proved: that no text has two trees over the same terminals.
        terminals: no word of so many terminals of any rule has two trees.
        characters: no text of so many bytes of any rule has two readings.
    """

    kind: Kind | None
    text: str = ""
    rule: str = ""
    readings: tuple[ReadingTree, ...] = ()
    is_proved: bool = False
    terminals: int = 0
    characters: int = 0

    def __bool__(self) -> bool:
        return self.kind is not None

    def __str__(self) -> str:
        if self.kind is None:
            proof = (
                "no text has two trees of the same terminals"
                if self.is_proved
                else (f"no words of up to {self.terminals} terminals have two trees")
            )
            return (
                f"not ambiguous as far as was looked: {proof}; none of up to {self.characters} bytes has two readings"
            )
        one, other = (reading.shown(names=self.kind == "lexer") for reading in self.readings)
        return f"{self.text!r} has two readings: {one} and {other}"


def ambiguity(constraint: Any, *, max_words: int = MAX_WORDS) -> Ambiguity:
    """A text that a grammar reads in two ways, or how far there is none. It changes no mask: both readings are allowed.

    Args:
        constraint: a grammar or expression (`structgen.lark`, `gbnf`, `regex`, `choice`).
        max_words: words of rules that are looked at, shortest first, before the search ends.

    Raises:
        ConstraintError: it cannot be compiled, or has parts without rules (JSON, tags, names).
    """
    check_count("max_words", max_words, 1)
    if contextual_lexer(constraint):  # each text has the one reading that its tables give it
        constraint.compile(TextVocabulary())
        return Ambiguity(None, is_proved=True)
    rules = rules_for(grammar_of(constraint))
    is_proved, terminals = has_no_conflicts(rules), 0
    if not is_proved:
        search = WordSearch(
            _merged(rules), [Letter(chr(t)) for t in range(len(rules.terminals))], WordBudget(max_words)
        )
        ambiguous = search.run()
        if ambiguous is not None:
            return _shown(rules, search, ambiguous, lambda letter: rules.words[ord(letter)])
        terminals = search.finished
    spaced, budget = _with_gaps(rules), WordBudget(max_words)
    bytes_read = representatives([terminal.dfa for terminal in spaced.terminals])
    search = WordSearch(
        spaced, [SpeltTerminal(terminal.dfa, bytes_read, budget) for terminal in spaced.terminals], budget
    )
    ambiguous = search.run()
    if ambiguous is None:
        return Ambiguity(None, is_proved=is_proved, terminals=terminals, characters=search.finished)
    answer = _shown(rules, search, ambiguous, lambda letter: bytes([ord(letter)]))
    return replace(answer, is_proved=is_proved, terminals=terminals)


def _shown(
    rules: GrammarRules, search: WordSearch, ambiguous: AmbiguousWord, spell: Callable[[str], bytes]
) -> Ambiguity:
    """A word with two derivations, in the shortest text around it, and the trees of the first named rule around it."""
    trees = [search.tree(ambiguous.symbol, ambiguous.word, derived) for derived in (ambiguous.one, ambiguous.other)]
    kind: Kind = "structure" if _leaves(trees[0]) == _leaves(trees[1]) else "lexer"
    space = b"" if rules.gap is None else shortest(rules.gap) or b""
    between = space if len(search.rules.terminals) == len(rules.terminals) else b""  # else the word has its gaps
    readings = [_reading(search.rules, tree, lambda word: between.join(map(spell, word))) for tree in trees]
    data = between.join(map(spell, ambiguous.word))

    def spelled(symbols: Sequence[int]) -> bytes:
        return space.join(rules.words[t] for t in rules.cheapest(symbols))

    symbol, is_part = (
        _symbol_of(rules, search.owners[ambiguous.symbol]),
        search.owners[ambiguous.symbol] != ambiguous.symbol,
    )
    first = [_symbol_of(rules, one) for one in search.before(ambiguous.symbol)]
    around: list[tuple[int, Sequence[int], Sequence[int]]] = [(symbol, first, ())] if is_part else []
    around += [(owner, body[:index], body[index + 1 :]) for owner, body, index in rules.path(symbol)]
    for owner, before, after in around:
        data = space.join(filter(None, [spelled(before), data, spelled(after)]))
        if is_part or is_generated(name_of(rules, symbol)):  # shown is what has a name
            symbol, is_part = owner, False
            left, right = (
                [ReadingTree(name_of(rules, one), _text(spelled([one]))) for one in part] for part in (before, after)
            )
            readings = [
                ReadingTree(name_of(rules, owner), _text(data), (*left, *one.parts, *right)) for one in readings
            ]
    return Ambiguity(kind, _text(data), name_of(rules, symbol), tuple(readings))


def _symbol_of(rules: GrammarRules, symbol: int) -> int:
    """The symbol of the grammar for one of the rules with gaps."""
    count, terminals = len(rules.bodies), len(rules.terminals)
    return symbol if symbol < count else ~(symbol - count) if symbol < count + terminals else rules.start


def _reading(rules: GrammarRules, tree: Tree, spelled: Callable[[str], bytes]) -> ReadingTree:
    parts = [_reading(rules, part, spelled) for part in tree.parts]
    shown = tuple(part for part in parts if part.name != IGNORED)
    return ReadingTree(name_of(rules, tree.symbol), _text(spelled(tree.word)), shown)


def _leaves(tree: Tree) -> list[tuple[int, str]]:
    if tree.symbol < 0:
        return [(tree.symbol, tree.word)]
    return [leaf for part in tree.parts for leaf in _leaves(part)]


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def has_no_conflicts(rules: GrammarRules) -> bool:
    """Whether the LALR(1) tables have none, so that each word of terminals has one tree."""
    numbers = {
        number: new for new, number in enumerate(n for n, alternatives in enumerate(rules.bodies) if alternatives)
    }
    if rules.start not in numbers:
        return True
    listed = [
        (numbers[number], tuple(numbers[s] if s >= 0 else s for s in body))
        for number, alternatives in enumerate(rules.bodies)
        for body in alternatives
    ]
    try:
        automaton = lalr_automaton(listed, numbers[rules.start], len(rules.terminals) + 1, len(numbers), lambda _: 0)
    except (RuleConflict, TooComplexError):
        return False
    return not automaton.has_conflicts


# --- from the rules to what is searched ---
def _merged(rules: GrammarRules) -> GrammarRules:
    """The rules with one terminal in place of all that stand in the same rules at the same places, repeatedly: a word
    has as many derivations as the same word with another of them."""
    bodies = rules.bodies
    while True:
        seen: dict[int, set[tuple[int, tuple[int, ...]]]] = {}
        for number, alternatives in enumerate(bodies):
            for body in alternatives:
                for t in {~symbol for symbol in body if symbol < 0}:
                    seen.setdefault(t, set()).add((number, tuple(_HOLE if s == ~t else s for s in body)))
        first: dict[frozenset[tuple[int, tuple[int, ...]]], int] = {}
        merged = {t: first.setdefault(frozenset(places), t) for t, places in seen.items()}
        if all(t == other for t, other in merged.items()):
            return replace(rules, bodies=bodies)
        bodies = [
            list(dict.fromkeys(tuple(s if s >= 0 else ~merged[~s] for s in body) for body in alternatives))
            for alternatives in bodies
        ]


_HOLE = -(1 << 30)


def _with_gaps(rules: GrammarRules) -> GrammarRules:
    """The rules with a place for ignored text before each terminal and at the end, all of it one terminal."""
    if rules.gap is None:
        return rules
    count, gap = len(rules.bodies), len(rules.terminals)
    bodies = [
        [tuple(s if s >= 0 else count + ~s for s in body) for body in alternatives] for alternatives in rules.bodies
    ]
    used = {~symbol for alternatives in rules.bodies for body in alternatives for symbol in body if symbol < 0}
    bodies += [[(~t,), (~gap, ~t)] if t in used else [] for t in range(gap)]
    bodies.append([(rules.start,), (rules.start, ~gap)])
    names = [*rules.names, *(f"__{t}" for t in range(gap)), "__whole"]
    terminals = [*rules.terminals, Terminal(IGNORED, rules.gap)]
    return GrammarRules(names, bodies, len(bodies) - 1, terminals, None)


IGNORED = "__ignored"
