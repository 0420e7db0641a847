"""What grammars in GBNF and XGrammar's EBNF are read into: rules, each a tree as that of a regular expression."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NoReturn, TypeAlias

from structgen.core.grammars.limits import grammar_refusal
from structgen.core.grammars.normal_form import Place
from structgen.core.grammars.token_terminals import TokenPattern
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.ecma_ast import Alternate, Concat, Node, Repeat
from structgen.core.regions import Region
from structgen.errors import GrammarError, TooComplexError

MAX_LITERAL = 100_000
"""Characters of a literal or class."""
MAX_DEPTH = 80
"""Groups may be nested, and quantifiers follow each other, this deep."""


@dataclass(frozen=True)
class RuleUse:
    """A use of a rule."""

    name: str
    position: Place


@dataclass(frozen=True)
class TokenUse:
    """A special token, which is no text."""

    pattern: TokenPattern
    position: Place


@dataclass(frozen=True)
class AutomatonUse:
    """A text of an automaton, as macros make them."""

    dfa: Dfa


@dataclass(frozen=True)
class GivenUse:
    """A text that another grammar reads, which is given with this one."""

    name: str


EbnfTree: TypeAlias = Node | RuleUse | TokenUse | AutomatonUse | GivenUse
"""A syntax tree is that of regular expressions, with more kinds of leaves."""


@dataclass(frozen=True)
class EbnfRule:
    """A rule.

    Attributes:
        tree: what it may be.
        place: of its name.
        captures: the names under which its texts are captured, or how these are written.
        is_lazy: whether a text ends where it first can.
        max_chars: characters that its texts may have; None: any number.
    """

    tree: EbnfTree
    position: Place
    captures: tuple[str | Region, ...] = ()
    is_lazy: bool = False
    max_chars: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether a use of the rule is the same as its tree."""
        return not self.captures and not self.is_lazy and self.max_chars is None


@dataclass(frozen=True)
class EbnfText:
    """A grammar's text, and errors in it.

    Attributes:
        text: the text.
        names: special tokens that are meant where the text of a trigger holds their names.
    """

    text: str
    names: frozenset[str] = frozenset()

    def position(self, offset: int) -> Place:
        """Line and column of an offset."""
        line = bisect_right(self._lines, offset)
        return Place(line, offset - self._lines[line - 1] + 1)

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self.text.split("\n"))]

    def fail(self, message: str, offset: int, hint: str | None = None) -> NoReturn:
        """Raise GrammarError at an offset."""
        self.fail_at(message, self.position(offset), hint)

    def fail_at(self, message: str, position: Place, hint: str | None = None) -> NoReturn:
        """Raise GrammarError at a place."""
        raise GrammarError(message, line=position.line, column=position.column, source=self.text, hint=hint)

    def too_complex(self, error: TooComplexError, position: Place) -> Exception:
        """What an automaton refused, as an error at a place."""
        refuse = grammar_refusal(self.text, position.line, position.column)
        return refuse(error.message, error.budget or "size", error.limit)

    def check_depth(self, depth: int, offset: int) -> None:
        """Raise GrammarTooComplexError where groups or quantifiers are too deep."""
        if depth >= MAX_DEPTH:
            raise self._too_much("groups or quantifiers are nested too deeply", "depth", MAX_DEPTH, offset)

    def check_length(self, length: int, offset: int) -> None:
        """Raise GrammarTooComplexError where a literal or class is too long."""
        if length > MAX_LITERAL:
            raise self._too_much("a literal or class is too long", "characters", MAX_LITERAL, offset)

    def _too_much(self, message: str, budget: str, limit: int, offset: int) -> Exception:
        position = self.position(offset)
        return grammar_refusal(self.text, position.line, position.column)(message, budget, limit)


def rule_uses(tree: EbnfTree) -> list[RuleUse]:
    """The uses of rules in a tree."""
    if isinstance(tree, RuleUse):
        return [tree]
    if isinstance(tree, Concat):
        return [use for part in tree.parts for use in rule_uses(part)]
    if isinstance(tree, Alternate):
        return [use for part in tree.options for use in rule_uses(part)]
    return rule_uses(tree.body) if isinstance(tree, Repeat) else []


def reached_rules(rules: Mapping[str, EbnfRule], start: str) -> set[str]:
    """The rules that ``start`` uses, itself included."""
    reached, todo = {start}, [start]
    while todo:
        used = {use.name for use in rule_uses(rules[todo.pop()].tree)} - reached
        reached |= used
        todo += used
    return reached


def choice_of(options: list[EbnfTree]) -> EbnfTree:
    """One of some trees."""
    return options[0] if len(options) == 1 else Alternate(tuple(options))  # type: ignore[arg-type]


def sequence_of(parts: list[EbnfTree]) -> EbnfTree:
    """Trees one after the other."""
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))  # type: ignore[arg-type]


def repeat_of(body: EbnfTree, low: int, high: int | None) -> EbnfTree:
    """A tree several times."""
    return Repeat(body, low, high)  # type: ignore[arg-type]
