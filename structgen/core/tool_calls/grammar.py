"""Patterns as rules of a context-free grammar, with the grammars of arguments embedded in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from structgen.core.engines.composed.grammar import embed
from structgen.core.engines.counted.grammar import CountedTexts
from structgen.core.engines.counted.lengths import CharacterCounts
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.grammars.regular import without_empty, word_dfa
from structgen.core.grammars.token_terminals import pattern_of, resolved
from structgen.core.regex.dfa import AUTOMATON_STATES, Dfa, difference, empty
from structgen.core.regex.free_text import free_text_dfa, word_search
from structgen.core.regex.joining import concatenation
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.tool_calls.patterns import CallId, Gap, Marker, Piece, WithId
from structgen.core.vocabulary.special_tokens import SpecialToken
from structgen.core.vocabulary.vocabulary import TextVocabulary, Vocabulary
from structgen.errors import TooComplexError

Content = Callable[[Vocabulary], Grammar]
START = 0


@dataclass(frozen=True)
class BoundedStrings:
    """Strings with bounds on their characters that are too many to be states of an automaton.

    Attributes:
        texts: the strings without the bounds, as they are written.
        least, most: the bounds; None: no limit.
        escaped: whether they are written with Python's escapes.
    """

    texts: Dfa
    least: int
    most: int | None
    escaped: bool = False


COUNTED_FROM = 32
"""Bounds from here on are counted where that can be."""


def is_counted(least: int, most: int | None) -> bool:
    """Whether bounds are as large as those of `BoundedStrings`."""
    return max(least, most or 0) >= COUNTED_FROM


class GrammarBuilder:
    """Collects rules. Symbols are as in `structgen.core.grammars.normal_form`; equal texts are one symbol.

    Attributes:
        vocabulary: the model's tokens: which markers are special tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._terminals: list[Terminal] = []
        self._nonterminals: list[str] = ["start"]
        self._rules: list[Rule] = []
        self._symbols: dict[Hashable, tuple[int, ...]] = {}
        self._regular: dict[Hashable, tuple[int, ...] | None] = {}
        self._contents: dict[int, Content] = {}

    def rule(self, symbol: int, *right: int) -> None:
        """Say that a nonterminal may be these symbols."""
        self._rules.append(Rule(symbol, right))

    def nonterminal(self, name: str) -> int:
        """A new nonterminal."""
        self._nonterminals.append(name)
        return len(self._nonterminals) - 1

    def is_special(self, marker: str) -> bool:
        """Whether a marker is a special token of the vocabulary."""
        return not isinstance(self.vocabulary, TextVocabulary) and marker in self.vocabulary.special_tokens

    def is_end(self, marker: str) -> bool:
        """Whether a marker is an end of sequence of the vocabulary."""
        return self.is_special(marker) and self.vocabulary.special_tokens[marker] in self.vocabulary.eos_token_ids

    def pieces(self, pattern: Iterable[Piece | BoundedStrings | tuple[int, ...]]) -> tuple[int, ...]:
        """The symbols of a pattern without slots; symbols in it stand for themselves. Texts side by side are one.

        Raises:
            TooComplexError: bounds on characters cannot be counted.
        """
        symbols: list[int] = []
        text, strings = "", None
        for piece in (*pattern, ()):
            if isinstance(piece, str) or (isinstance(piece, Marker) and not self.is_special(piece.text)):
                text += piece if isinstance(piece, str) else piece.text
                continue
            if strings is not None:  # together with what closes them, so that they end with one byte
                symbols += self._counted(strings, text)
            elif text:
                symbols += self._word(text)
            text, strings = "", piece if isinstance(piece, BoundedStrings) else None
            if isinstance(piece, BoundedStrings):
                continue
            if isinstance(piece, tuple):
                symbols += piece
            elif isinstance(piece, Marker):
                symbols += self._marker(piece.text)
            elif isinstance(piece, WithId):
                symbols += self.optional(self.pieces(piece.pattern))
            else:
                assert isinstance(piece, Gap | CallId)
                symbols += self.regular(piece.expression, partial(full_match_dfa, piece.expression)) or ()
        return tuple(symbols)

    def regular(self, key: Hashable, build: Callable[[], Dfa]) -> tuple[int, ...] | None:
        """The symbols of a regular language, which may hold the empty text; None: it holds none. Built once a key."""
        if key not in self._regular:
            dfa = build()
            solid = without_empty(dfa)
            symbols: tuple[int, ...] = () if solid.is_empty else (self._terminal(str(key)[:100], solid),)
            if not dfa.is_empty and dfa.accepting[0] and symbols:
                symbols = self.optional(symbols)
            self._regular[key] = None if dfa.is_empty else symbols
        return self._regular[key]

    def optional(self, symbols: tuple[int, ...]) -> tuple[int, ...]:
        """These symbols, or nothing."""
        key = "optional", symbols
        if key not in self._symbols:
            name = self.nonterminal("optional")
            self.rule(name, *symbols)
            self.rule(name)
            self._symbols[key] = (name,)
        return self._symbols[key]

    def embedded(self, key: Hashable, content: Content) -> tuple[int, ...]:
        """The symbol of a text that another grammar reads, compiled by ``content``; found again by its key."""
        if key not in self._symbols:
            symbol = self._terminal(str(key)[:100], empty())
            self._contents[~symbol] = content
            self._symbols[key] = (symbol,)
        return self._symbols[key]

    def free_text(self, without: Sequence[str], but: Dfa | None = None) -> tuple[int, ...]:
        """Text, perhaps none, that holds none of some strings; ``but``: nor is any of these texts."""
        words = [word.encode() for word in without if not any(other in word for other in without if other != word)]

        def build() -> Dfa:
            dfa = free_text_dfa(word_search(words))
            return dfa if but is None else difference(dfa, but)

        return self.optional(self.regular(("text", tuple(words), None if but is None else but.digest), build) or ())

    def compile(self) -> Grammar:
        """The grammar of the nonterminal 0 over the vocabulary."""
        outer = ContextFreeGrammar(tuple(self._terminals), tuple(self._nonterminals), tuple(self._rules), START)
        outer, naming = resolved(outer, self.vocabulary)
        within = self.vocabulary.within(naming)
        return embed(outer, {terminal: content(within) for terminal, content in self._contents.items()}, naming)

    def _counted(self, strings: BoundedStrings, closing: str) -> tuple[int, ...]:
        """The symbols of strings and the text that closes them."""
        texts, size = strings.texts, len(closing)
        most = None if strings.most is None else strings.most + size
        whole = concatenation([texts, word_dfa(closing)]) if closing else without_empty(texts)
        if whole.is_empty:  # only the empty text is one of them
            return ()
        lengths = CharacterCounts(whole, escaped=strings.escaped)
        if not lengths.are_spelled_by(self.vocabulary):
            what = "a bound on characters of which not every byte is a token"
            raise TooComplexError(what, budget=AUTOMATON_STATES, limit=len(whole))
        least = max(strings.least + size, 1)
        key = "counted", whole.digest, least, most, strings.escaped
        symbols = self.embedded(key, partial(CountedTexts, lengths, least, most))
        return self.optional(symbols) if not closing and not strings.least and texts.accepting[0] else symbols

    def _word(self, text: str) -> tuple[int, ...]:
        key = "word", text
        if key not in self._symbols:
            self._symbols[key] = (self._terminal(repr(text), word_dfa(text)),)
        return self._symbols[key]

    def _marker(self, text: str) -> tuple[int, ...]:
        key = "marker", text
        if key not in self._symbols:
            self._terminals.append(Terminal(text, empty(), tokens=pattern_of(SpecialToken(text))))
            self._symbols[key] = (~(len(self._terminals) - 1),)
        return self._symbols[key]

    def _terminal(self, name: str, dfa: Dfa) -> int:
        self._terminals.append(Terminal(name, dfa))
        return ~(len(self._terminals) - 1)
