"""Terminals as llguidance writes them: expressions over texts, with ``&`` and ``~``, as automata.

An expression is a syntax tree as long as it can be (a tree is made an automaton once, as a whole), and an automaton
where ``&``, ``~`` or ``%regex`` make it one.
"""

from __future__ import annotations

from typing import NoReturn, TypeAlias

from structgen.core.grammars.dialects.llguidance.syntax import (
    CharacterRange,
    Choice,
    Complement,
    Expression,
    Literal,
    Many,
    Name,
    Option,
    Pieces,
    Scope,
    Series,
    Tree,
)
from structgen.core.grammars.limits import MAX_STATES as MOST_STATES
from structgen.core.grammars.regular import word_dfa
from structgen.core.grammars.rust_regex import parse_rust_regex, without_case
from structgen.core.regex import charset
from structgen.core.regex.dfa import MAX_STATES, Dfa, complement, intersect, too_complex
from structgen.core.regex.ecma_ast import END, START, Alternate, Chars, Concat, Node, Repeat
from structgen.core.regex.joining import alternation, concatenation, repetition
from structgen.core.regex.pattern import search_dfa
from structgen.core.regex.steps import check_time
from structgen.core.regex.substrings import substring_dfa
from structgen.errors import PatternError, TooComplexError
from structgen.options import near_name

Part: TypeAlias = Node | Dfa

_FLOAT = r"([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
COMMON = {
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9A-Fa-f]",
    "INT": "[0-9]+",
    "SIGNED_INT": "[+-]?[0-9]+",
    "DECIMAL": r"[0-9]+\.[0-9]*|\.[0-9]+",
    "_EXP": "[eE][+-]?[0-9]+",
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": f"[+-]?({_FLOAT})",
    "NUMBER": f"[0-9]+|{_FLOAT}",
    "SIGNED_NUMBER": f"[+-]?([0-9]+|{_FLOAT})",
    "ESCAPED_STRING": r'"([^"\\]|\\.)*"',
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": "[A-Za-z]",
    "WORD": "[A-Za-z]+",
    "CNAME": "[A-Za-z_][0-9A-Za-z_]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*([^*]|\*+[^*/])*\*+/",
    "SQL_COMMENT": r"--[^\n]*",
}
"""The terminals of ``%import common``, those of Lark's library that llguidance has."""


class Terminals:
    """Makes the automata of terminals."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, str], Part] = {}
        self._dfas: dict[int, tuple[object, Dfa]] = {}
        self._open: set[tuple[int, str]] = set()
        self.warnings: list[str] = []

    def dfa(self, tree: Tree | Series | Option, scope: Scope, offset: int) -> Dfa:
        """The automaton of an expression, which the offset ``offset`` is blamed for.

        Raises:
            GrammarError: it holds what is no terminal, or something illegal.
            GrammarTooComplexError: it is too large.
        """
        kept = self._dfas.get(id(tree))
        if kept is not None and kept[0] is tree:
            return kept[1]
        try:
            result = self._as_dfa(self._part(tree, scope))
            self._dfas[id(tree)] = tree, result
            return result
        except TooComplexError as error:
            raise scope.source.refusal(offset)(error.message, error.budget or "size", error.limit) from None

    def _as_dfa(self, part: Part) -> Dfa:
        if isinstance(part, Dfa):
            return part
        if isinstance(part, Concat) and all(isinstance(p, Chars) and _is_single(p.charset) for p in part.parts):
            text = "".join(chr(p.charset[0][0]) for p in part.parts if isinstance(p, Chars))
            if len(text) > MOST_STATES:
                raise too_complex(MOST_STATES, "the text")
            return word_dfa(text)
        return search_dfa(Concat((START, part, END)))

    def _part(self, tree: Tree | Series | Option, scope: Scope) -> Part:
        check_time()
        check_time()
        match tree:
            case Choice(options=options):
                return self._any([self._part(option, scope) for option in options])
            case Option(series=series, condition=condition, offset=offset):
                if condition is not None:
                    scope.source.fail(offset, "%if stands in rules with a parameter, not in terminals")
                return self._all([self._part(one, scope) for one in series])
            case Series(items=items):
                return self._joined([self._part(item, scope) for item in items])
            case Many(body=body, low=low, high=high):
                return self._repeated(self._part(body, scope), low, high)
            case Complement(body=body):
                inner = self._as_dfa(self._part(body, scope))
                return complement(inner, 2 * len(inner) + 64)
            case Literal(text=text, any_case=any_case):
                return without_case(text) if any_case else Concat(tuple(Chars(charset.single(ord(c))) for c in text))
            case CharacterRange(first=first, last=last):
                return Chars(charset.normalise([(ord(first), ord(last))]))
            case Expression():
                return self._expression(tree, scope)
            case Pieces(chunks=chunks):
                return substring_dfa(chunks)
            case Name(name=name, parameter=parameter, offset=offset):
                if parameter is not None:
                    scope.source.fail(offset, "terminals have no parameters")
                return self.of_name(name, scope, offset)
            case _:
                what = {"Token": "a special token", "Json": "%json", "Reference": "another grammar", "Nested": "%lark"}
                scope.source.fail(
                    tree.offset,
                    f"{what[type(tree).__name__]} stands in rules, not in terminals",
                    "Write a rule (in lower case, without lazy, suffix, stop and max_chars) in place of the terminal.",
                )

    def of_name(self, name: str, scope: Scope, offset: int) -> Part:
        """What a terminal's name stands for.

        Raises:
            GrammarError: there is none of this name, or it refers to itself.
        """
        key = id(scope), name
        if key in self._parts:
            return self._parts[key]
        definition = scope.terminals.get(name)
        if definition is None:
            self.unknown(name, scope, offset)
        if key in self._open:
            scope.source.fail(
                definition.offset, f"the terminal {name} refers to itself", "Only rules may: use lower case."
            )
        self._open.add(key)
        self._parts[key] = self._part(definition.body, scope)
        self._open.remove(key)
        return self._parts[key]

    def unknown(self, name: str, scope: Scope, offset: int) -> NoReturn:
        """Raise GrammarError: no terminal has this name."""
        if name in scope.rules:
            scope.source.fail(
                offset,
                f"{name!r} is a rule, where only terminals can stand",
                "Terminals (upper-case names), and rules with lazy, suffix, stop or max_chars, are made of terminals.",
            )
        near = near_name(name, [*scope.rules, *scope.terminals])
        scope.source.fail(offset, f"{name!r} is not defined", f"The nearest name is {near!r}." if near else None)

    def _expression(self, tree: Expression, scope: Scope) -> Node:
        try:
            expression = parse_rust_regex(tree.source, tree.flags)
        except PatternError as error:
            scope.source.fail(tree.offset + 1 + error.position, f"the regular expression: {error.message}")
        if expression.lazy:
            self.warnings.append(
                f"laziness in the regular expression /{tree.source[:60]}/ has no effect: terminals are matched whole; "
                "write lazy in brackets after the name of a rule"
            )
        return expression.node

    def _any(self, parts: list[Part]) -> Part:
        if len(parts) == 1:
            return parts[0]
        nodes = [part for part in parts if not isinstance(part, Dfa)]
        if len(nodes) == len(parts):
            return Alternate(tuple(nodes))
        dfas = [part for part in parts if isinstance(part, Dfa)]
        if nodes:
            dfas.append(self._as_dfa(Alternate(tuple(nodes))))
        return alternation(dfas, _budget(dfas))

    def _all(self, parts: list[Part]) -> Part:
        if len(parts) == 1:
            return parts[0]
        total = self._as_dfa(parts[0])
        for part in parts[1:]:
            other = self._as_dfa(part)
            total = intersect(total, other, _budget([total, other]))
        return total

    def _joined(self, parts: list[Part]) -> Part:
        parts = [part for part in parts if part != Concat(())] or parts[:1]
        nodes = [part for part in parts if not isinstance(part, Dfa)]
        if len(nodes) == len(parts):
            return nodes[0] if len(nodes) == 1 else Concat(_flat(nodes))
        dfas = [self._as_dfa(part) for part in parts]
        return concatenation(dfas, _budget(dfas))

    def _repeated(self, part: Part, low: int, high: int | None) -> Part:
        if isinstance(part, Dfa):
            return repetition(part, low, high, _budget([part]))
        return part if part == Concat(()) else Repeat(part, low, high)


def _flat(nodes: list[Node]) -> tuple[Node, ...]:
    """The parts of the nodes, as long as they are few: those of terminals made of terminals double and double."""
    if sum(len(node.parts) for node in nodes if isinstance(node, Concat)) > MOST_STATES:
        return tuple(nodes)
    return tuple(inner for node in nodes for inner in (node.parts if isinstance(node, Concat) else (node,)))


def _is_single(characters: charset.CharSet) -> bool:
    return len(characters) == 1 and characters[0][0] == characters[0][1]


def _budget(dfas: list[Dfa]) -> int:
    """The states that what is made of some automata may have: those of any one, or more if the parts are large."""
    return max(MAX_STATES, 2 * sum(map(len, dfas)))
