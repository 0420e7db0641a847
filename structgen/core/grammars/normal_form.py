"""The normal form of grammars: what every front end (Lark, GBNF, regular expressions) gives and the machine takes."""

from __future__ import annotations

from dataclasses import dataclass

from structgen.core.grammars.token_terminals import TokenPattern
from structgen.core.regex.dfa import Dfa
from structgen.core.regions import Region


@dataclass(frozen=True)
class Place:
    """Where a rule or terminal stands in the grammar's text: 1-based line and column (0: nowhere, generated)."""

    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Terminal:
    """A regular language of non-empty texts.

    Attributes:
        name: as the grammar calls it; anonymous ones have the name Lark gives them.
        dfa: over the UTF-8 bytes of the text.
        source: the pattern, for messages.
        priority: higher wins under the contextual lexer; without meaning for the full context-free language.
        tokens: special tokens that it is, until a vocabulary says which these are; its automaton is not looked at.
    """

    name: str
    dfa: Dfa
    source: str = ""
    priority: int = 0
    position: Place = Place()
    tokens: TokenPattern | None = None


@dataclass(frozen=True)
class Rule:
    """``nonterminals[lhs]`` may be the symbols ``rhs``: nonterminal n as n, terminal t as ~t (negative)."""

    lhs: int
    rhs: tuple[int, ...]
    position: Place = Place()


@dataclass(frozen=True)
class ContextFreeGrammar:
    """Rules over terminals. Any context-free grammar: left recursion, empty rules and ambiguity included.

    A text is in the language if it splits into texts of terminals, with any number of ``ignored`` terminals' texts
    before, between and after them, such that the terminals derive from ``start``. A terminal that can be empty is
    given as one without the empty text plus a rule that leaves it out.

    Attributes:
        captures: symbols (as in rules) whose texts an output's captures name, and the names; in place of a name, how
            the texts are written. They change no text.
    """

    terminals: tuple[Terminal, ...]
    nonterminals: tuple[str, ...]
    rules: tuple[Rule, ...]
    start: int
    ignored: tuple[int, ...] = ()
    captures: tuple[tuple[int, str | Region], ...] = ()
