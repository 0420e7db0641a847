"""What Lark makes of a grammar for its LALR parser and contextual lexer, in numbers.

Lark itself builds the parse table and the lexers; this reads them, so that priorities, conflicts, the order in which
terminals are tried and which keywords retype which terminals are Lark's own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from structgen.core.engines.lalr.terminals import TerminalAutomata, TerminalError, terminal_automata
from structgen.core.grammars.lark_internals import LalrParser, build_lalr
from structgen.core.grammars.lark_options import CALLBACKS, INDENTATION, about_indentation
from structgen.core.grammars.lark_reader import Places, lark_errors, load, special_tokens
from structgen.core.grammars.limits import check_text, grammar_refusal, limited
from structgen.core.grammars.normal_form import Place
from structgen.core.grammars.python_regex import parse
from structgen.core.grammars.sources import load_text
from structgen.core.kernels.lalr.layout import FINAL, PENDING_END
from structgen.core.regex.charset import EMPTY, CharSet, single
from structgen.core.regex.ecma_ast import Node
from structgen.errors import GrammarError, PatternError, PatternTooComplexError, TooComplexError

END = "$END"
INDENT, DEDENT = "_INDENT", "_DEDENT"
OPENING, CLOSING = ("LPAR", "LSQB", "LBRACE"), ("RPAR", "RSQB", "RBRACE")
TAB_WIDTH = 8
MAX_ENTRIES = 1 << 25
"""Of the parse table; Lark's own takes a hundred times the memory."""
_building = threading.Lock()


@dataclass(frozen=True, eq=False)
class LalrTables:
    """A grammar for Lark's LALR parser in numbers.

    Attributes:
        text: the grammar's text.
        terminals: names; the end of the text is the last one.
        automata: of the terminals.
        action: int32[states, terminals]: 0 none, ``(state + 1) << 1`` shift, ``(rule + 1) << 1 | 1`` reduce.
        goto: int32[states, nonterminals].
        rules: origin and expansion of each rule, terminals as ``~terminal``.
        start, end: the states where parsing begins and ends.
        lexer_of: int32[states].
        lexers: for each lexer the terminals that it tries, in order.
        retyped: int32[lexers, keyword sets]: what a text of such keywords is retyped to, or -1.
        ignored: the ignored terminals.
        newline: the terminal whose text the indenter looks at, or -1.
        distrust: whether the parser may run into dead ends: Lark has resolved conflicts, some rule has no text, or
            (`trust`) none that the lexers surely read as meant.
        clean: terminals that every lexer ends cleanly wherever they may stand, if nothing is distrusted.
    """

    text: str
    terminals: list[str]
    automata: TerminalAutomata
    action: npt.NDArray[np.int32]
    goto: npt.NDArray[np.int32]
    rules: list[tuple[int, tuple[int, ...]]]
    start: int
    end: int
    lexer_of: npt.NDArray[np.int32]
    lexers: list[list[int]]
    retyped: npt.NDArray[np.int32]
    ignored: list[int]
    newline: int
    distrust: bool
    clean: frozenset[int] = frozenset()


def read_tables(
    source: str | Path, start: str = "start", import_paths: Iterable[str | Path] = (), absent: CharSet = EMPTY
) -> LalrTables:
    """Read a grammar in Lark's language as ``Lark(..., parser="lalr", lexer="contextual")`` does.

    A grammar that declares ``_INDENT`` and ``_DEDENT`` gets an indenter as Lark's ``PythonIndenter`` (newlines are
    ``_NEWLINE`` or else ``_NL``; brackets LPAR, LSQB, LBRACE and their like). Characters of ``absent`` are in no text.

    Raises:
        GrammarError: not a legal grammar, not LALR(1), or a terminal that looks too far around itself.
        ConstraintError: the package lark is missing, or the file cannot be read.
    """
    text, file = load_text(source)
    check_text(text)
    _refuse_special_tokens(text)
    with _building, limited(grammar_refusal(text)):
        parser = _build(text, file, start, list(map(str, import_paths)))
        return _Reader(text, parser, absent).read()


def _refuse_special_tokens(text: str) -> None:
    """Raise GrammarError where a grammar names special tokens: Lark's lexer reads text, and these are none."""
    for token, place in special_tokens(text):
        raise GrammarError(
            f"the contextual lexer reads text, and the special token {token} is none",
            line=place.line,
            column=place.column,
            source=text,
            hint="Use lexer='dynamic', or embed this grammar in one that has the special tokens around it.",
        )


def _build(text: str, file: Path | None, start: str, folders: list[str]) -> LalrParser:
    """Lark's own parser."""
    with lark_errors(text):
        postlex = _indenter(text) if re.search(rf"^\s*%declare\b[^\n]*\b{INDENT}\b", text, re.MULTILINE) else None
        grammar = load(text, text, file, folders)
        try:
            parser = build_lalr(grammar, start, postlex)
        except re.error as error:  # Lark puts all terminals of a lexer into one expression
            raise GrammarError(f"a terminal's expression cannot be used: {error}", source=text) from error
    _check_declared(text, parser)
    return parser


def _check_declared(text: str, parser: LalrParser) -> None:
    """Refuse terminals that only a callback, or another indenter, would bring."""
    rules = {rule for row in parser.states.values() for reduces, rule in row.values() if reduces}
    used = {symbol.name for rule in rules for symbol in rule.expansion if symbol.is_term}
    without = sorted(used - set(parser.terminals) - ({INDENT, DEDENT} if parser.newline else set()))
    if without:
        place = Places(text).of(without[0])
        raise GrammarError(
            f"the terminal {without[0]} is declared, but has no pattern",
            line=place.line,
            column=place.column,
            source=text,
            hint=about_indentation(without[0]) or CALLBACKS,
        )
    if parser.newline and parser.newline not in parser.terminals:
        raise GrammarError(
            "the indenter looks at the terminal _NL or _NEWLINE, and none of them stands in a rule",
            source=text,
            hint=INDENTATION,
        )


def _indenter(text: str) -> Any:
    from lark.indenter import PythonIndenter

    if re.search(r"\b_NEWLINE\b", text):
        return PythonIndenter()
    return type("NlIndenter", (PythonIndenter,), {"NL_type": "_NL"})()


class _Reader:
    """Numbers Lark's terminals, rules and states."""

    def __init__(self, text: str, parser: LalrParser, absent: CharSet) -> None:
        self._absent = absent
        self._text, self._parser = text, parser
        self._patterns = parser.terminals
        declared = [INDENT, DEDENT] if parser.newline else []
        self._names = [*self._patterns, *(name for name in declared if name not in self._patterns), END]
        self._numbers = {name: i for i, name in enumerate(self._names)}

    def read(self) -> LalrTables:
        nodes = self._nodes()
        rules, origins = self._rules()
        action, goto = self._table(rules, origins)
        parser = self._parser
        lexers, lexer_of, callbacks = self._lexers()
        automata = self._automata(nodes, callbacks)
        symbols = {**{name: ~i for name, i in self._numbers.items()}, **origins}
        numbered = [(origins[r.origin.name], tuple(symbols[s.name] for s in r.expansion)) for r in rules]
        return LalrTables(
            self._text,
            self._names,
            automata,
            action,
            goto,
            numbered,
            parser.start,
            parser.end,
            lexer_of,
            lexers,
            self._retyped(automata, callbacks),
            [self._numbers[name] for name in parser.ignored],
            self._numbers[parser.newline] if parser.newline else -1,
            parser.conflicts or not _all_productive(numbered, len(origins), _without_text(automata)),
        )

    def _rules(self) -> tuple[list[Any], dict[str, int]]:
        rules: dict[Any, None] = {}
        origins: dict[str, int] = {}
        for row in self._parser.states.values():
            for name, (reduces, rule) in row.items():
                if name not in self._numbers:
                    origins.setdefault(name, len(origins))
                elif reduces:
                    rules.setdefault(rule)
                    origins.setdefault(rule.origin.name, len(origins))
        return list(rules), origins

    def _table(self, rules: list[Any], origins: dict[str, int]) -> tuple[Any, Any]:
        states = self._parser.states
        size = max(states) + 1
        numbers = {rule: i for i, rule in enumerate(rules)}
        if size * (len(self._names) + len(origins)) > MAX_ENTRIES:
            raise TooComplexError("Lark's parse table is too large", budget="table entries", limit=MAX_ENTRIES)
        action = np.zeros((size, len(self._names)), np.int32)
        goto = np.full((size, max(len(origins), 1)), -1, np.int32)
        for state, row in states.items():
            for name, (reduces, argument) in row.items():
                if name not in self._numbers:
                    goto[state, origins[name]] = argument
                elif reduces:
                    action[state, self._numbers[name]] = (numbers[argument] + 1) << 1 | 1
                else:
                    action[state, self._numbers[name]] = (argument + 1) << 1
        return action, goto

    def _lexers(self) -> tuple[list[list[int]], Any, list[dict[int, list[int]]]]:
        """The terminals of each lexer, the lexer of each state, and the keywords of each lexer's terminals."""
        number = self._numbers
        found, lexer_at = self._parser.lexers()
        lexers = [[number[name] for name in lexer.terminals] for lexer in found]
        callbacks = [
            {number[name]: [number[word] for word in words] for name, words in lexer.keywords.items()}
            for lexer in found
        ]
        lexer_of = np.zeros(max(self._parser.states) + 1, np.int32)
        for state, lexer_number in lexer_at.items():
            lexer_of[state] = lexer_number
        return lexers, lexer_of, callbacks

    def _nodes(self) -> list[Node | None]:
        """The syntax trees of the terminals."""
        nodes = []
        for name in self._names:
            definition = self._patterns.get(name)
            try:
                nodes.append(parse(definition.pattern.to_regexp()) if definition else None)
            except PatternTooComplexError as error:
                place = self._place(name)
                refuse = grammar_refusal(self._text, place.line, place.column)
                raise refuse(f"the terminal {name}: {error.message}", error.budget, error.limit) from None
            except PatternError as error:
                self._refuse(name, error.message)
        return nodes

    def _automata(self, nodes: list[Node | None], callbacks: list[dict[int, list[int]]]) -> TerminalAutomata:
        keywords: dict[int, dict[int, Any]] = {}
        for callback in callbacks:
            for terminal, words in callback.items():
                keywords.setdefault(terminal, {}).update((word, nodes[word]) for word in words)
        told_apart: list[CharSet] = [single(ord(c)) for c in "\n\t "] if self._parser.newline else []
        try:
            return terminal_automata(nodes, keywords, told_apart, self._absent)
        except TerminalError as error:
            name, cause = self._names[error.number], error.cause
            if cause is None:
                self._refuse(name, error.message)
            place = self._place(name)
            refuse = grammar_refusal(self._text, place.line, place.column)
            raise refuse(f"the terminal {name}: {error.message}", cause.budget or "size", cause.limit) from None

    def _place(self, name: str) -> Place:
        return Places(self._text).of(name)

    def _refuse(self, name: str, message: str) -> NoReturn:
        place = self._place(name)
        raise GrammarError(
            f"the terminal {name}: {message}",
            line=place.line,
            column=place.column,
            source=self._text,
            hint="Write it without that lookaround, or use lexer='dynamic'.",
        )

    def _retyped(self, automata: TerminalAutomata, callbacks: list[dict[int, list[int]]]) -> npt.NDArray[np.int32]:
        """The first keyword, in the lexer's order, that the text is."""
        retyped = np.full((len(callbacks), len(automata.keyword_sets)), -1, np.int32)
        for lexer, callback in enumerate(callbacks):
            for number, (terminal, words) in enumerate(automata.keyword_sets):
                for word in callback.get(terminal, ()):
                    if word in words:
                        retyped[lexer, number] = word
                        break
        return retyped


def _without_text(automata: TerminalAutomata) -> set[int]:
    """The terminals that match no text (their characters are absent); not those that have no pattern."""
    found = set()
    for terminal, start in enumerate(automata.starts):
        seen, work = {start}, [start] if start else []
        while work and not automata.flags[work[-1]] & (FINAL | PENDING_END):
            fresh = set((automata.transitions[work.pop()] >> 1).tolist()) - seen - {0}
            seen |= fresh
            work += fresh
        if start and not work:
            found.add(terminal)
    return found


def _all_productive(rules: list[tuple[int, tuple[int, ...]]], count: int, dead: set[int]) -> bool:
    """Whether every nonterminal, and every terminal of a rule, has a text; ``dead`` terminals have none. Linear."""
    uses: dict[int, list[int]] = {}
    missing = [sum(symbol >= 0 for symbol in body) for _, body in rules]
    for number, (_, body) in enumerate(rules):
        for symbol in body:
            if symbol >= 0:
                uses.setdefault(symbol, []).append(number)
            elif ~symbol in dead:
                return False
    productive: set[int] = set()
    work = [origin for (origin, _), left in zip(rules, missing, strict=True) if not left]
    while work:
        origin = work.pop()
        if origin in productive:
            continue
        productive.add(origin)
        for number in uses.get(origin, ()):
            missing[number] -= 1
            if not missing[number]:
                work.append(rules[number][0])
    return len(productive) == count
