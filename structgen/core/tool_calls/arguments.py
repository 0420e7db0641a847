"""The arguments of a tool: what its schema says of them, for formats that write them one by one and for others."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from structgen.core.engines.json.members import MemberValues, ObjectMembers
from structgen.core.grammars.named_tokens import split_names
from structgen.core.json_schema.formula.values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from structgen.core.json_schema.pointers import escape
from structgen.core.regex.dfa import Dfa, intersect
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.tool_calls.definitions import Tool, placed
from structgen.core.tool_calls.grammar import BoundedStrings, GrammarBuilder, is_counted
from structgen.core.tool_calls.member_rules import CaseRules
from structgen.core.tool_calls.patterns import KEY, TYPE, VALUE, Marker, Parameters, Pattern, name_expression
from structgen.core.tool_calls.values import lost_words, raw_strings
from structgen.errors import (
    SchemaError,
    SchemaTooComplexError,
    TooComplexError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from structgen.options import JsonOptions

MAX_STATES = 5_000
"""Places between the parameters of a tool, one for each set of those before it that makes a difference."""


@dataclass(frozen=True)
class Kinds:
    """The types (bits) that arguments can have: of those that are declared, by name, and of others (0: none)."""

    named: dict[str, int]
    others: int

    def of(self, name: str) -> int:
        """The types of an argument; 0 if there is none of that name."""
        return self.named.get(name, self.others)


def check_states(states: int, tool: Tool, what: str) -> None:
    """Raise SchemaTooComplexError if the arguments of a tool have more than ``MAX_STATES`` possible ``what``."""
    if states > MAX_STATES:
        raise SchemaTooComplexError(
            f"the arguments of the tool {tool.name!r} have more than {MAX_STATES:,} possible {what}",
            limit=MAX_STATES,
            pointer=tool.pointer,
        )


@lru_cache(512)
def members_of(tool: Tool, options: JsonOptions) -> ObjectMembers:
    """What the schema of a tool says of its arguments.

    Raises:
        SchemaError: it cannot be used; the pointer leads into the list of tools.
    """
    with placed(tool.pointer):
        return ObjectMembers(tool.parameters, options)


def check_possible(tool: Tool, options: JsonOptions) -> None:
    """Refuse a tool that cannot be used.

    Raises:
        UnsatisfiableSchemaError: it has no possible arguments; the message names it.
        SchemaError: see `members_of`; the message names the tool, too.
    """
    try:
        members_of(tool, options)
    except UnsatisfiableSchemaError as error:
        raise impossible(tool, error.message, error.pointer, error.keyword, error.hint) from None
    except SchemaError as error:
        error.name_owner(f"the tool {tool.name!r}")
        raise


def impossible(
    tool: Tool, why: str, pointer: str, keyword: str | None = None, hint: str | None = None
) -> UnsatisfiableSchemaError:
    """The error for a tool without possible arguments."""
    return UnsatisfiableSchemaError(
        f"the tool {tool.name!r} has no possible arguments: {why}",
        pointer=pointer,
        keyword=keyword,
        hint=f'{hint or "Relax conditions that exclude each other."} on_impossible="skip" goes on without the tool.',
    )


@lru_cache(512)
def kinds_of(tool: Tool, options: JsonOptions) -> Kinds:
    """The types of a tool's arguments.

    They are those that any case allows: which case it is, is not known where an argument is read.
    """
    members = members_of(tool, options)
    named = dict.fromkeys(members.names, 0)
    others = 0
    for case in members.cases:
        for name, choices in case.members.items():
            for values, _ in choices:
                named[name] |= values.kinds
        for _, choices in case.others:
            for values, _ in choices:
                others |= values.kinds
    return Kinds(named, others)


class ArgumentRules:
    """The rules of a tool's arguments, one by one.

    How they follow each other is in `CaseRules`.

    Attributes:
        separator: nothing stands between arguments.

    Args:
        builder: collects the rules.
        pattern: how an argument is written.
        tool, options: whose arguments, and how they are read.
        names: special tokens that are meant where strings that the schema lists hold their names.
    """

    separator: tuple[int, ...] = ()

    def __init__(
        self,
        builder: GrammarBuilder,
        pattern: Parameters,
        tool: Tool,
        options: JsonOptions,
        names: frozenset[str] = frozenset(),
    ) -> None:
        self._builder, self._pattern, self._tool, self._options = builder, pattern, tool, options
        self._names = names
        self._kinds = kinds_of(tool, options)
        self._states = 0

    def symbols(self) -> tuple[int, ...]:
        """The symbol of all arguments.

        Raises:
            UnsupportedSchemaError: a name or a listed string cannot be written in this format.
            UnsatisfiableSchemaError: no arguments can.
            SchemaTooComplexError: too many places, or too large an automaton.
        """
        members = members_of(self._tool, self._options)
        for name in members.names:
            self._check_name(name)
        start = self._builder.nonterminal(f"arguments of {self._tool.name}")
        written = False
        for case in members.cases:
            written |= CaseRules(self, case).build(self._builder, start)
        if not written:
            hint = "Members that are only counted must be declared by name."
            raise impossible(self._tool, "none can be written in this format", self._tool.pointer, hint=hint)
        return (start,)

    def value(self, name: str) -> tuple[int, ...]:
        """The symbol of the value of one argument alone, which must be there.

        Raises:
            SchemaError: as `symbols`.
        """
        cases = members_of(self._tool, self._options).cases
        options = [
            result
            for case in cases
            for values, _ in case.members.get(name, ())
            if (result := self.argument(name, values))
        ]
        if not options:
            raise impossible(self._tool, "none can be written in this format", self._tool.pointer)
        symbol = self._builder.nonterminal("value")
        for option in options:
            self._builder.rule(symbol, *option)
        return (symbol,)

    # --- one argument ---
    def argument(self, name: str, values: MemberValues) -> tuple[int, ...] | None:
        """The symbols of an argument; None if none of its values can be written."""
        return self._argument(name, self._kinds.of(name), values)

    def other(self, names: Dfa, values: MemberValues) -> tuple[int, ...] | None:
        """The symbols of an argument with one of these names; None if it cannot be written."""
        allowed = intersect(names, full_match_dfa(name_expression(self._pattern)), self._options.max_automaton_states)
        name = self._builder.regular(("names", allowed.digest), lambda: allowed)
        return None if name is None else self._argument(name, self._kinds.others, values)

    def _argument(self, name: str | tuple[int, ...], kinds: int, values: MemberValues) -> tuple[int, ...] | None:
        pattern = self._pattern
        texts: list[tuple[int, ...]] = []
        if values.kinds & STRING:
            texts += self._string(values, 0 if pattern.distinguishes_strings else kinds, name)
        for other, others in _by_type(pattern.other, values.kinds & ~STRING):
            texts.append(self._filled(other, name, self._json(values, others)))
        if not texts:
            return None
        symbol = self._builder.nonterminal(f"argument {name}")
        for text in texts:
            self._builder.rule(symbol, *text)
        return (symbol,)

    def _filled(
        self, pattern: Pattern, name: str | tuple[int, ...], value: tuple[int, ...] | BoundedStrings
    ) -> tuple[int, ...]:
        filled = [name if piece is KEY else value if piece is VALUE else piece for piece in pattern]
        return self._builder.pieces(filled)

    def _json(self, values: MemberValues, kinds: int) -> tuple[int, ...]:
        """The symbol of values of some types, which are no strings."""
        closing, is_searched = self._pattern.closing, self._pattern.is_searched
        without = (closing, *self._pattern.excluded) if is_searched and closing else self._pattern.excluded
        content = partial(values.json, kinds=kinds, without=without)
        return self._builder.embedded(("json", values.key, kinds, without), content)

    def _string(self, values: MemberValues, kinds: int, name: str | tuple[int, ...]) -> list[tuple[int, ...]]:
        """The symbols of an argument that is a string, one for each way of writing it."""
        closing, misread, pattern = self._pattern.closing, self._pattern.misread, self._pattern.string
        if values.words is not None and (lost := lost_words(values.words, closing, kinds, misread)):
            why = "holds what closes it" if closing in lost[0] else "reads as something else that the schema allows"
            raise UnsupportedSchemaError(
                f"the string {lost[0]!r} cannot be written as it is, because it {why}",
                pointer=self._place(name, values),
                hint="Leave it out of the schema, or use a format that writes arguments as JSON.",
            )
        if values.words is not None and _hold(values.words, self._names):
            return [self._filled(pattern, name, self._words(values.words))]
        limit = self._options.max_automaton_states
        written = partial(
            raw_strings,
            closing=closing,
            kinds=kinds,
            max_states=limit,
            excluded=self._pattern.excluded,
            misread=misread,
        )
        try:
            if (counted := bounded_strings(values, written)) is not None:
                return [self._filled(pattern, name, strings) for strings in counted]
        except TooComplexError:
            pass  # as automata, then
        try:
            key = "string", values.key, kinds, self._pattern.excluded
            symbols = self._builder.regular(key, lambda: written(values.strings()))
        except TooComplexError as error:
            raise SchemaTooComplexError(
                f"{error.message}, so that strings do not hold {closing!r}",
                limit=limit,
                budget="max_automaton_states" if error.limit >= limit else None,
                pointer=self._place(name, values),
            ) from None
        return [] if symbols is None else [self._filled(pattern, name, symbols)]

    def _words(self, words: tuple[str, ...]) -> tuple[int, ...]:
        """The symbol of listed strings, in which names are tokens."""
        symbol = self._builder.nonterminal("words")
        for word in words:
            pieces = [Marker(p) if p in self._names else p for p in split_names(word, self._names)]
            if not any(text in word for text in self._pattern.excluded):
                self._builder.rule(symbol, *self._builder.pieces(pieces))
        return (symbol,)

    def _place(self, name: str | tuple[int, ...], values: MemberValues) -> str:
        if isinstance(name, str) and name in (self._tool.parameters.get("properties") or ()):
            return f"{self._tool.pointer}/properties/{escape(name)}"
        return self._tool.pointer + (values.place or "")

    # --- names ---
    def _check_name(self, name: str) -> None:
        if not re.fullmatch(name_expression(self._pattern), name):
            raise UnsupportedSchemaError(
                f"a parameter called {name!r} cannot be written in this format",
                pointer=f"{self._tool.pointer}/properties/{escape(name)}",
                hint="Rename it, or use a format that writes arguments as JSON.",
            )

    def count_state(self) -> None:
        """Raise SchemaTooComplexError if there are too many places."""
        self._states += 1
        what = "orders and combinations (members in any order, or many that depend on others)"
        check_states(self._states, self._tool, what)

    @property
    def any_order(self) -> bool:
        """Whether arguments may stand in any order."""
        return self._options.key_order == "any"


def bounded_strings(
    values: MemberValues, written: Callable[[Dfa], Dfa], *, escaped: bool = False
) -> list[BoundedStrings] | None:
    """Strings of values whose bounds on characters are counted, as they are written; None: they have no such bounds.

    Args:
        values: some are strings.
        written: how texts without bounds are written.
        escaped: see `BoundedStrings`.

    Raises:
        TooComplexError: what they are written as is too large.
    """
    parts = values.string_parts()
    if not any(is_counted(least, most) for _, least, most in parts):
        return None
    bounded = [BoundedStrings(written(texts), least, most, escaped) for texts, least, most in parts]
    return [strings for strings in bounded if not strings.texts.is_empty]


def _hold(words: tuple[str, ...], names: frozenset[str]) -> bool:
    """Whether some words hold names."""
    return bool(names) and any(piece in names for word in words for piece in split_names(word, names))


def _by_type(pattern: Pattern, kinds: int) -> list[tuple[Pattern, int]]:
    """A pattern with types in place of ``TYPE``, with the types (bits) that each is for."""
    if not kinds:
        return []
    if TYPE not in pattern:
        return [(pattern, kinds)]
    return [(typed(pattern, kind), kind) for kind in TYPE_NAMES if kinds & kind]


def typed(pattern: Pattern, kind: int) -> Pattern:
    """A pattern with the name of a type (a bit) in place of ``TYPE``."""
    return tuple(TYPE_NAMES[kind] if piece is TYPE else piece for piece in pattern)


TYPE_NAMES = {NUMBER: "number", BOOLEAN: "boolean", NULL: "null", OBJECT: "object", ARRAY: "array"}
