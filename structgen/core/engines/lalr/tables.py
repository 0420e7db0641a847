"""What Lark makes of a grammar for its LALR parser and contextual lexer, in numbers.

Lark's loader reads the grammar. Its parse table, the lexer of each state, the order in which terminals are tried and
the keywords that retype texts of others are made here as Lark makes them: it cannot be stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from structgen.core.engines.lalr.automaton import LalrAutomaton, RuleConflict, lalr_automaton
from structgen.core.engines.lalr.terminals import TerminalAutomata, TerminalError, terminal_automata
from structgen.core.grammars.lark_options import CALLBACKS, INDENTATION, about_indentation
from structgen.core.grammars.lark_reader import Places, lark_errors, load, special_tokens
from structgen.core.grammars.limits import check_text, grammar_refusal, limited, load_text
from structgen.core.grammars.normal_form import Place
from structgen.core.grammars.python_regex import parse
from structgen.core.kernels.lalr.layout import FINAL, PENDING_END
from structgen.core.regex.charset import EMPTY, CharSet, single
from structgen.core.regex.ecma_ast import Node
from structgen.core.regex.steps import check_time
from structgen.errors import GrammarError, PatternError, PatternTooComplexError

END = "$END"
INDENT, DEDENT = "_INDENT", "_DEDENT"
OPENING, CLOSING = ("LPAR", "LSQB", "LBRACE"), ("RPAR", "RSQB", "RBRACE")
TAB_WIDTH = 8


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
        items: the kernel items ``(rule, dot)`` of each state; of the first one, the rules of the whole text at dot 0.
        start, end: the states where parsing begins and ends.
        lexer_of: int32[states].
        lexers: for each lexer the terminals that it tries, in order.
        retyped: int32[lexers, keyword sets]: what a text of such keywords is retyped to, or -1.
        ignored: the ignored terminals.
        newline: the terminal whose text the indenter looks at, or -1.
        distrust: whether the parser may run into dead ends: Lark has resolved conflicts, some rule has no text, or
            (`liveness_tables`) none that the lexers surely read as meant.
        clean: terminals that every lexer ends cleanly wherever they may stand, if nothing is distrusted.
    """

    text: str
    terminals: list[str]
    automata: TerminalAutomata
    action: npt.NDArray[np.int32]
    goto: npt.NDArray[np.int32]
    rules: list[tuple[int, tuple[int, ...]]]
    items: list[list[tuple[int, int]]]
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
    with limited(grammar_refusal(text)):
        loaded = _load(text, file, start, list(map(str, import_paths)))
        return _Reader(text, loaded, start, absent).read()


@dataclass(frozen=True, eq=False)
class _Loaded:
    """What Lark's loader has made of a grammar: definitions of terminals by name, in Lark's order, rules, the names of
    ignored terminals and of the one that the indenter looks at (None without an indenter)."""

    terminals: dict[str, Any]
    rules: list[Any]
    ignored: list[str]
    newline: str | None


def _refuse_special_tokens(text: str) -> None:
    """Raise GrammarError where a grammar names special tokens: Lark's lexer reads text, and these are none."""
    for token, position in special_tokens(text):
        raise GrammarError(
            f"the contextual lexer reads text, and the special token {token} is none",
            line=position.line,
            column=position.column,
            source=text,
            hint="Use lexer='dynamic', or embed this grammar in one that has the special tokens around it.",
        )


def _load(text: str, file: Path | None, start: str, folders: list[str]) -> _Loaded:
    newline = None
    if re.search(rf"^\s*%declare\b[^\n]*\b{INDENT}\b", text, re.MULTILINE):
        newline = "_NEWLINE" if re.search(r"\b_NEWLINE\b", text) else "_NL"
    kept = {newline} if newline else set()
    terminals, rules, ignored, _ = load(text, text, file, start, folders, kept)
    loaded = _Loaded({terminal.name: terminal for terminal in terminals}, _reached(rules, start), ignored, newline)
    _check_declared(text, loaded)
    return loaded


def _reached(rules: list[Any], start: str) -> list[Any]:
    """The rules that the first one leads to; Lark leaves out others only where they do not use each other."""
    by_origin: dict[str, list[Any]] = {}
    for rule in rules:
        by_origin.setdefault(rule.origin.name, []).append(rule)
    names = [start]
    reached = {start}
    for name in names:  # which grows
        for rule in by_origin[name]:
            fresh = {symbol.name for symbol in rule.expansion if not symbol.is_term} - reached
            reached |= fresh
            names += sorted(fresh)
    return [rule for name in names for rule in by_origin[name]]


def _check_declared(text: str, loaded: _Loaded) -> None:
    """Refuse terminals that only a callback, or another indenter, would bring."""
    used = {symbol.name for rule in loaded.rules for symbol in rule.expansion if symbol.is_term}
    without = sorted(used - set(loaded.terminals) - ({INDENT, DEDENT} if loaded.newline else set()))
    if without:
        position = Places(text).of(without[0])
        raise GrammarError(
            f"the terminal {without[0]} is declared, but has no pattern",
            line=position.line,
            column=position.column,
            source=text,
            hint=about_indentation(without[0]) or CALLBACKS,
        )
    if loaded.newline and loaded.newline not in loaded.terminals:
        raise GrammarError(
            "the indenter looks at the terminal _NL or _NEWLINE, and none of them stands in a rule",
            source=text,
            hint=INDENTATION,
        )


class _Reader:
    """Numbers Lark's terminals and rules, and makes of them what Lark's parser and lexers would be."""

    def __init__(self, text: str, loaded: _Loaded, start: str, absent: CharSet) -> None:
        self._absent = absent
        self._text, self._loaded, self._start = text, loaded, start
        self._patterns = loaded.terminals
        declared = [INDENT, DEDENT] if loaded.newline else []
        self._names = [*self._patterns, *(name for name in declared if name not in self._patterns), END]
        self._numbers = {name: i for i, name in enumerate(self._names)}

    def read(self) -> LalrTables:
        origins = {name: i for i, name in enumerate(dict.fromkeys(rule.origin.name for rule in self._loaded.rules))}
        symbols = {**{name: ~i for name, i in self._numbers.items()}, **origins}
        rules = [(origins[r.origin.name], tuple(symbols[s.name] for s in r.expansion)) for r in self._loaded.rules]
        parser = self._automaton(rules, origins[self._start])
        nodes = self._nodes()
        with lark_errors(self._text):  # of widths of expressions
            lexers, lexer_of = self._lexers(parser.action)
            self._check_lexers(lexers)
        automata = self._automata(nodes, lexers)
        newline = self._loaded.newline
        return LalrTables(
            self._text,
            self._names,
            automata,
            parser.action,
            parser.goto,
            rules,
            parser.items,
            0,
            parser.end,
            lexer_of,
            [self._without_words(lexer, automata) for lexer in lexers],
            _retyped(automata, lexers),
            [self._numbers[name] for name in self._loaded.ignored],
            self._numbers[newline] if newline else -1,
            parser.has_conflicts
            or any(rule.options.priority for rule in self._loaded.rules)
            or not _all_productive(rules, len(origins), _without_text(automata)),
        )

    def _automaton(self, rules: list[tuple[int, tuple[int, ...]]], start: int) -> LalrAutomaton:
        given = self._loaded.rules
        count = 1 + max(origin for origin, _ in rules)
        try:
            return lalr_automaton(rules, start, len(self._names), count, lambda rule: given[rule].options.priority or 0)
        except RuleConflict as conflict:
            shown = "".join(f"\n\t- {given[rule]}" for rule in conflict.rules)
            name = self._names[conflict.terminal]
            position = self._place(given[conflict.rules[0]].origin.name)
            raise GrammarError(
                f"Reduce/Reduce collision in {name} between the following rules: {shown}",
                line=position.line,
                column=position.column,
                source=self._text,
            ) from None

    def _lexers(self, action: npt.NDArray[np.int32]) -> tuple[list[list[int]], npt.NDArray[np.int32]]:
        """The terminals that each lexer looks for, in Lark's order, and the lexer of each state."""
        patterns = self._patterns
        always = [*self._loaded.ignored, *([self._loaded.newline] if self._loaded.newline else [])]
        numbers: dict[frozenset[str], int] = {}
        lexer_of = np.zeros(len(action), np.int32)
        for state, row in enumerate(action):
            names = frozenset(self._names[terminal] for terminal in np.flatnonzero(row).tolist())
            lexer_of[state] = numbers.setdefault(names | {*always} & patterns.keys(), len(numbers))

        def order(name: str) -> tuple[int, int, int, str]:
            pattern = patterns[name].pattern
            return -patterns[name].priority, -pattern.max_width, -len(pattern.value), name

        lexers = [sorted(names & patterns.keys(), key=order) for names in numbers]
        return [[self._numbers[name] for name in names] for names in lexers], lexer_of

    def _check_lexers(self, lexers: list[list[int]]) -> None:
        """Refuse what Lark's lexers refuse: terminals without text, and groups of one name in one lexer."""
        for lexer in lexers:
            groups = {self._names[number] for number in lexer}
            for name in map(self._names.__getitem__, lexer):
                pattern = self._patterns[name].pattern
                if pattern.min_width == 0:
                    self._refuse(name, "it may have no text", "Make it optional in a rule instead.")
                for group in re.findall(r"\(\?P<(\w+)>", pattern.to_regexp()):
                    if group in groups:
                        self._refuse(name, f"another group has the name {group!r}", "Name the groups differently.")
                    groups.add(group)

    def _nodes(self) -> list[Node | None]:
        """The syntax trees of the terminals."""
        nodes = []
        for name in self._names:
            definition = self._patterns.get(name)
            try:
                nodes.append(parse(definition.pattern.to_regexp()) if definition else None)
            except PatternTooComplexError as error:
                position = self._place(name)
                refuse = grammar_refusal(self._text, position.line, position.column)
                raise refuse(f"the terminal {name}: {error.message}", error.budget, error.limit) from None
            except PatternError as error:
                self._refuse(name, error.message)
        return nodes

    def _automata(self, nodes: list[Node | None], lexers: list[list[int]]) -> TerminalAutomata:
        distinguished: list[CharSet] = [single(ord(c)) for c in "\n\t "] if self._loaded.newline else []
        try:
            return terminal_automata(nodes, self._words_of(lexers), distinguished, self._absent)
        except TerminalError as error:
            name, cause = self._names[error.number], error.cause
            if cause is None:
                self._refuse(name, error.message)
            position = self._place(name)
            refuse = grammar_refusal(self._text, position.line, position.column)
            raise refuse(f"the terminal {name}: {error.message}", cause.budget or "size", cause.limit) from None

    def _words_of(self, lexers: list[list[int]]) -> dict[int, dict[int, str]]:
        """For each terminal that is an expression, the words of equal priority that some lexer looks for, too."""
        definitions = {self._numbers[name]: definition for name, definition in self._patterns.items()}
        keywords: dict[int, dict[int, str]] = {}
        for lexer in lexers:
            check_time()
            words = [terminal for terminal in lexer if definitions[terminal].pattern.type == "str"]
            for terminal in lexer:
                keyword = definitions[terminal]
                if keyword.pattern.type != "str":
                    equal = (word for word in words if definitions[word].priority == keyword.priority)
                    keywords.setdefault(terminal, {}).update((word, definitions[word].pattern.value) for word in equal)
        return keywords

    def _without_words(self, lexer: list[int], automata: TerminalAutomata) -> list[int]:
        """The terminals that a lexer tries: no words that are texts of others, if these have all of their flags."""
        flags = {number: frozenset(self._patterns[self._names[number]].pattern.flags) for number in lexer}
        left_out = {
            word
            for terminal in lexer
            for word in automata.words.get(terminal, ())
            if flags.get(word, {0}) <= flags[terminal]
        }
        return [terminal for terminal in lexer if terminal not in left_out]

    def _place(self, name: str) -> Place:
        return Places(self._text).of(name)

    def _refuse(
        self, name: str, message: str, hint: str = "Write it without that lookaround, or use lexer='dynamic'."
    ) -> NoReturn:
        position = self._place(name)
        raise GrammarError(
            f"the terminal {name}: {message}",
            line=position.line,
            column=position.column,
            source=self._text,
            hint=hint,
        )


def _retyped(automata: TerminalAutomata, lexers: list[list[int]]) -> npt.NDArray[np.int32]:
    """The first keyword, in each lexer's order, that a text is."""
    retyped = np.full((len(lexers), len(automata.keyword_sets)), -1, np.int32)
    for row, lexer in zip(retyped, lexers, strict=True):
        for number, (terminal, words) in enumerate(automata.keyword_sets):
            if terminal in lexer:
                row[number] = next((word for word in lexer if word in words), -1)
    return retyped


def _without_text(automata: TerminalAutomata) -> set[int]:
    """The terminals that match no text (their characters are absent); not those that have no pattern."""
    textless = set()
    for terminal, start in enumerate(automata.starts):
        seen, work = {start}, [start] if start else []
        while work and not automata.flags[work[-1]] & (FINAL | PENDING_END):
            fresh = set((automata.transitions[work.pop()] >> 1).tolist()) - seen - {0}
            seen |= fresh
            work += fresh
        if start and not work:
            textless.add(terminal)
    return textless


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
