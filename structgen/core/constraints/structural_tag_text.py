"""Free text of structural tags: text without some words, in which some special tokens may stand, and tags in it.

Words are searched for in what is written, special tokens included: a word that holds the name of a special token is
found where that token stands, and where its name is spelled.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.constraints.combined import Combinable
from structgen.core.constraints.parts import compile_together
from structgen.core.constraints.text import TextConstraint
from structgen.core.engines.captures.capturing import with_captures
from structgen.core.engines.composed.grammar import embed
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.limits import MAX_STATES
from structgen.core.grammars.named_tokens import split_names
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.grammars.regular import chain
from structgen.core.grammars.token_terminals import texts_with_tokens
from structgen.core.regex.dfa import Dfa, empty, intersect
from structgen.core.regex.free_text import free_text_dfa, word_search
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.special_tokens import stand_in
from structgen.core.vocabulary.vocabulary import TextVocabulary, Vocabulary
from structgen.errors import ConstraintError

MAX_CHARS = 2_000
"""The largest limit on characters: each character has states of its own."""
MOST_NAMES = 8
"""Pieces of a word whose spellings are all looked at."""

Unit = str | int
"""A piece of a word: text, or the id of a special token."""


@dataclass(frozen=True)
class ExcludedWords:
    """What free text does not hold, and which special tokens it may hold.

    Attributes:
        names: ids by name, of special tokens.
        excluded: texts that it does not hold.
        allowed: special tokens that it may hold, by id.
    """

    names: tuple[tuple[str, int], ...] = field(repr=False)
    excluded: tuple[str, ...] = ()
    allowed: frozenset[int] = frozenset()

    def units(self, word: str) -> tuple[Unit, ...]:
        """A word in which names are tokens."""
        names = dict(self.names)
        return tuple(names.get(piece, piece) for piece in split_names(word, names))

    def spellings(self, word: str) -> list[tuple[Unit, ...]]:
        """A word with names as tokens or spelled, in every combination; the first has tokens alone."""
        names = dict(self.names)
        spellings = [(names[p], p) if p in names else (p,) for p in split_names(word, names)]
        return list(product(*spellings)) if len(spellings) <= MOST_NAMES else [self.units(word), (word,)]


class Search:
    """The automata of free text over a vocabulary.

    Attributes:
        named: special tokens that stand for themselves in it.
    """

    def __init__(self, words: ExcludedWords, vocabulary: Vocabulary) -> None:
        self._words, self._vocabulary = words, vocabulary
        self._is_text = isinstance(vocabulary, TextVocabulary)
        self.named: set[int] = set() if self._is_text else set(words.allowed)
        self._excluded = [data for word in words.excluded for data in self._spelled(words.spellings(word))]

    def _spelled(self, spellings: Iterable[tuple[Unit, ...]]) -> list[bytes]:
        """Those of some words that free text could hold."""
        allowed = self._words.allowed
        return [
            self.bytes_of(units)
            for units in spellings
            if all(isinstance(unit, str) or unit in allowed for unit in units)
        ]

    def add_trigger(self, word: str) -> None:
        """Exclude the ways of spelling a trigger that are none."""
        self._excluded += self._spelled(self._words.spellings(word)[1:])

    def bytes_of(self, units: Iterable[Unit]) -> bytes:
        """A word as it stands in texts over the vocabulary."""
        result = b""
        for unit in units:
            if isinstance(unit, int) and not self._is_text:
                self.named.add(unit)
                result += stand_in(unit, self._vocabulary.size)
            else:
                result += (unit if isinstance(unit, str) else self._name(unit)).encode()
        return result

    def _name(self, token_id: int) -> str:
        return next(name for name, other in self._words.names if other == token_id)

    def is_searched(self, units: Iterable[Unit]) -> bool:
        """Whether free text could hold a word, so that it must be searched for it."""
        return self._is_text or all(isinstance(unit, str) or unit in self._words.allowed for unit in units)

    def text(self, others: Sequence[bytes] = (), max_chars: int | None = None) -> Dfa:
        """Free text of one character at least, without other words either."""
        result = free_text_dfa(self._search(others), texts=self._texts())
        if max_chars is None:
            return result
        return intersect(result, full_match_dfa(f"[^]{{0,{max_chars}}}", max_states=MAX_STATES), MAX_STATES)

    def text_up_to(self, words: Sequence[bytes], number: int) -> Dfa:
        """Free text, and after it one of some words, none of which it holds."""
        return free_text_dfa(self._search(words), number, texts=self._texts())

    def _search(self, words: Sequence[bytes]) -> Any:
        return word_search([*words, *(w for w in dict.fromkeys(self._excluded) if not any(o in w for o in words))])

    def _texts(self) -> Dfa | None:
        allowed = self._words.allowed
        return texts_with_tokens(allowed, self._vocabulary.size) if allowed and not self._is_text else None


@dataclass(frozen=True)
class FreeText(TextConstraint):
    """Text without some words.

    Attributes:
        words: which.
        max_chars: characters that it may have; None: any number.
    """

    words: ExcludedWords
    max_chars: int | None = None

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        search = Search(self.words, vocabulary)
        result = search.text(max_chars=self.max_chars)
        rules = (Rule(0, ()), *([] if result.is_empty else [Rule(0, (~0,))]))
        grammar = ContextFreeGrammar((Terminal("TEXT", result),) if not result.is_empty else (), ("text",), rules, 0)
        return embed(grammar, {}, vocabulary.naming(search.named))

    def instruction(self) -> str:
        """Says what the text does not hold."""
        return f"Answer with text that does not hold any of {', '.join(map(repr, self.words.excluded))}"


@dataclass(frozen=True)
class TagsInText(Combinable):
    """Free text in which words begin tags.

    Attributes:
        words: what the text does not hold.
        triggers: what begins tags; names of special tokens in it are these.
        tags: the number of its trigger, and what follows that, for each tag.
        at_least_one, only_one: whether there must be a tag, and whether the output ends after the first.
        text_first: whether text may stand before the first tag, where there must be one.
    """

    words: ExcludedWords
    triggers: tuple[str, ...]
    tags: tuple[tuple[int, Constraint], ...]
    at_least_one: bool
    only_one: bool
    text_first: bool

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The grammar over ``vocabulary``; a few are kept for the process.

        Raises:
            ConstraintError: what compiling the tags raises; or a trigger that can never be written.
        """
        return COMPILED.get(joined(self.content_key(), vocabulary), lambda: self._compiled(vocabulary))

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        special = (self.words, self.triggers, tuple(number for number, _ in self.tags))
        options = (self.at_least_one, self.only_one, self.text_first)
        return joined("tags in text", special, options, *(content_key(content) for _, content in self.tags))

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        rules = _Rules(self, Search(self.words, vocabulary))
        source = rules.grammar()
        parts = compile_together([content for _, content in self.tags], vocabulary, rules.named)
        naming = vocabulary.naming(rules.named.union(*(part.vocabulary.named for part in parts)))
        return with_captures(
            embed(source, {~part: result for part, result in zip(rules.parts, parts, strict=True)}, naming)
        )

    def parse(self, text: str) -> str:
        """The text."""
        return text

    def parse_partial(self, text: str) -> str:
        """The text so far."""
        return text

    def instruction(self) -> str:
        """Says what begins tags."""
        return f"Answer in text with parts that begin with {', '.join(map(str, self.triggers))}"


class _Rules:
    """The grammar of text with tags.

    Attributes:
        parts: the terminal of each tag.
        named: special tokens that stand for themselves in it.
    """

    def __init__(self, given: TagsInText, search: Search) -> None:
        self._given, self._search = given, search
        units = [given.words.units(trigger) for trigger in given.triggers]
        for trigger in given.triggers:
            search.add_trigger(trigger)
        self._marks = [search.bytes_of(each) for each in units]
        self._searched = [mark for mark, each in zip(self._marks, units, strict=True) if search.is_searched(each)]
        self.named = search.named
        self._terminals: list[Terminal] = []
        self._names = ["start", "after", "text"]
        self._rules: list[Rule] = []
        self.parts = [self._terminal(f"TAG {number}", empty()) for number in range(len(given.tags))]

    def grammar(self) -> ContextFreeGrammar:
        """The normal form."""
        start, after, text = range(3)
        given = self._given
        result = self._search.text(self._searched)
        if not result.is_empty:
            self._rules.append(Rule(text, (self._terminal("TEXT", result),)))
        self._rules.append(Rule(text, ()))
        if not given.at_least_one:
            self._rules.append(Rule(start, (text,)))
        self._add(start, () if given.only_one else (after,), not given.at_least_one or given.text_first)
        if not given.only_one:
            self._rules.append(Rule(after, (text,)))
            self._add(after, (after,), True)
        return ContextFreeGrammar(tuple(self._terminals), tuple(self._names), tuple(self._rules), start)

    def _add(self, symbol: int, following: tuple[int, ...], with_text: bool) -> None:
        """A trigger, perhaps with text before it, one of its tags, and what follows."""
        for number, mark in enumerate(self._marks):
            begun = self._begun(number, mark, with_text)
            for (trigger, _), terminal in zip(self._given.tags, self.parts, strict=True):
                if trigger == number:
                    self._rules.append(Rule(symbol, (*begun, terminal, *following)))

    def _begun(self, number: int, mark: bytes, with_text: bool) -> tuple[int, ...]:
        """The symbols of a trigger, perhaps with text before it."""
        name = repr(self._given.triggers[number])
        if with_text and mark in self._searched:
            dfa = self._search.text_up_to(self._searched, self._searched.index(mark))
            if dfa.is_empty:
                raise ConstraintError(
                    f"the trigger {name} can never be written: it holds another one, or what free text must not hold"
                )
            return (self._terminal(f"TEXT, {name}", dfa),)
        exact = self._terminal(name, chain(mark))
        return (self._names.index("text"), exact) if with_text else (exact,)

    def _terminal(self, name: str, dfa: Dfa) -> int:
        """The symbol of a terminal."""
        for number, other in enumerate(self._terminals):
            if other.name == name:
                return ~number
        self._terminals.append(Terminal(name, dfa))
        return ~(len(self._terminals) - 1)
