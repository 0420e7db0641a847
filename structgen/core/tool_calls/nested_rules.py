"""The grammar of arguments in which members and items are written one by one, too: `NestedArguments` patterns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from structgen.core.engines.json.members import ArrayCase, MemberValues, ObjectCase
from structgen.core.engines.json.value_graph.counted import numbers_of
from structgen.core.json_schema.formula.values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from structgen.core.json_schema.pointers import escape
from structgen.core.regex.dfa import Dfa, difference, from_strings, intersect
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.tool_calls.arguments import bounded_strings, check_states, impossible, members_of
from structgen.core.tool_calls.definitions import Tool
from structgen.core.tool_calls.grammar import BoundedStrings, GrammarBuilder
from structgen.core.tool_calls.member_rules import CaseRules
from structgen.core.tool_calls.patterns import KEY, SPELLED_KEY, VALUE, Forms, NestedArguments, Pattern, Quotes
from structgen.core.tool_calls.spelling import lost, spelled_strings, written_string
from structgen.core.tool_calls.values import lost_words, raw_strings
from structgen.errors import SchemaTooComplexError, TooComplexError, UnsupportedSchemaError
from structgen.options import JsonOptions

Symbols = tuple[int, ...]


class NestedRules:
    """The rules of a tool's arguments, and of all that is in them.

    Args:
        builder: collects the rules.
        pattern: how they are written.
        tool, options: whose arguments, and how they are read.
    """

    def __init__(self, builder: GrammarBuilder, pattern: NestedArguments, tool: Tool, options: JsonOptions) -> None:
        self.builder, self.pattern, self.options = builder, pattern, options
        self._tool = tool
        self.separator = builder.pieces(pattern.separator)
        self._states = 0
        self._objects: dict[tuple[MemberValues, bool], int] = {}
        self._arrays: dict[tuple[MemberValues, bool], int] = {}

    def symbols(self) -> Symbols:
        """The symbol of all arguments.

        Raises:
            UnsupportedSchemaError: a name, a listed string or a condition cannot be written in this format.
            UnsatisfiableSchemaError: no arguments can be.
            SchemaTooComplexError: too many places, or too large an automaton.
        """
        members = members_of(self._tool, self.options)
        start = self.builder.nonterminal(f"arguments of {self._tool.name}")
        if not self._members(start, members.cases, self.pattern.argument):
            hint = "Members that are only counted must be declared by name."
            raise impossible(self._tool, "none can be written in this format", self._tool.pointer, hint=hint)
        return (start,)

    def _members(self, symbol: int, cases: list[ObjectCase], forms: Forms) -> bool:
        """Add rules for the members of objects; whether any can be written."""
        written = False
        for case in cases:
            written |= CaseRules(_MemberRules(self, forms), case).build(self.builder, symbol)
        return written

    # --- values ---
    def filled(self, forms: Forms, key: str | Symbols | None, values: MemberValues, name: str) -> Symbols | None:
        """The symbol of a member or item; None if none of its values can be written."""
        texts = self._strings(forms, key, values) if values.kinds & STRING else []
        for pattern, value in [*self._scalars(forms, values), *self._containers(forms, values)]:
            texts.append(self._around(pattern, key, value))
        if not texts:
            return None
        symbol = self.builder.nonterminal(name)
        for text in texts:
            self.builder.rule(symbol, *text)
        return (symbol,)

    def _around(self, pattern: Pattern, key: str | Symbols | None, value: Symbols | BoundedStrings) -> Symbols:
        """A value with what stands around it."""
        pieces = [(key if piece in (KEY, SPELLED_KEY) else value if piece is VALUE else piece) for piece in pattern]
        return self.builder.pieces([piece for piece in pieces if piece is not None])

    def _scalars(self, forms: Forms, values: MemberValues) -> list[tuple[Pattern, Symbols]]:
        spelled = self.pattern.spelled
        texts: list[tuple[Pattern, Symbols]] = []
        for constant in values.constants:
            text_of = {None: spelled.null, True: spelled.true, False: spelled.false}
            texts.append((forms.scalar, self.builder.pieces([text_of[constant]])))
        if values.kinds & NUMBER:
            texts.append((forms.scalar, self.builder.embedded(("numbers", values.key), values.numbers)))
        return texts

    def _containers(self, forms: Forms, values: MemberValues) -> list[tuple[Pattern, Symbols]]:
        by_schema, kinds = self.pattern.by_schema, values.kinds
        texts: list[tuple[Pattern, Symbols]] = []
        if kinds & OBJECT and not (by_schema and kinds & ARRAY):
            texts.append((forms.object, (self._object(values, by_schema and bool(kinds & STRING)),)))
        if kinds & ARRAY:
            texts.append((forms.array, (self._array(values, by_schema and bool(kinds & STRING)),)))
        return texts

    # --- strings ---
    def _strings(self, forms: Forms, key: str | Symbols | None, values: MemberValues) -> list[Symbols]:
        """What a member or item that is a string may be written as."""
        try:
            texts = self._counted(forms, key, values)
        except TooComplexError:
            texts = None  # as automata, then
        try:
            if texts is None:
                texts = [self._around(forms.string, key, text) for text in self._string_values(forms, values)]
            return texts
        except TooComplexError as error:
            raise SchemaTooComplexError(
                f"{error.message}, as strings are spelled in this format",
                limit=self.options.max_automaton_states,
                budget="max_automaton_states",
                pointer=self.pointer(values),
            ) from None

    def _counted(self, forms: Forms, key: str | Symbols | None, values: MemberValues) -> list[Symbols] | None:
        """Strings with large bounds on their characters; None: they have none."""
        limit = self.options.max_automaton_states
        texts: list[Symbols] = []
        for quotes in self.pattern.spelled.strings or (None,):
            written = (
                self._raw_writing(forms, values)
                if quotes is None
                else partial(spelled_strings, quotes=quotes, max_states=limit)
            )
            parts = bounded_strings(values, written, escaped=quotes is not None and quotes.escaped)
            if parts is None:
                return None
            for part in parts:
                value = part if quotes is None else self.builder.pieces([quotes.mark, part, quotes.mark])
                texts.append(self._around(forms.string, key, value))
        return texts

    def _string_values(self, forms: Forms, values: MemberValues) -> list[Symbols]:
        """What a string may be written as, by automata."""
        quotes = self.pattern.spelled.strings
        if not quotes:
            raw = self._raw(forms, values)
            return [] if raw is None else [raw]
        if values.words is not None and (unwritable := lost(values.words, quotes)):
            raise self._unwritable(unwritable[0], "it holds what closes it", values)
        return [text for quote in quotes if (text := self.quoted(values.strings(), quote)) is not None]

    def quoted(self, strings: Dfa, quotes: Quotes) -> Symbols | None:
        """The symbols of strings in quotes; None: none can be written."""
        limit = self.options.max_automaton_states
        key = "spelled", strings.digest, quotes
        inside = self.builder.regular(key, partial(spelled_strings, strings, quotes, limit))
        return None if inside is None else self.builder.pieces([quotes.mark, inside, quotes.mark])

    def _raw(self, forms: Forms, values: MemberValues) -> Symbols | None:
        kinds, closing = self._raw_kinds(forms, values), self.pattern.closing
        if values.words is not None and (unwritable := lost_words(values.words, closing, kinds)):
            raise self._unwritable(unwritable[0], "it is read as something else", values)
        written = self._raw_writing(forms, values)
        return self.builder.regular(("raw", values.key, kinds, closing), lambda: written(values.strings()))

    def _raw_writing(self, forms: Forms, values: MemberValues) -> Callable[[Dfa], Dfa]:
        """How strings are written as they are."""
        kinds, limit = self._raw_kinds(forms, values), self.options.max_automaton_states
        return partial(raw_strings, closing=self.pattern.closing, kinds=kinds, max_states=limit)

    def _raw_kinds(self, forms: Forms, values: MemberValues) -> int:
        """The types that a string without quotes could be read as; 0 where strings are marked as such."""
        return values.kinds & (NULL | BOOLEAN | NUMBER | STRING) if forms.string == forms.scalar else 0

    def _unwritable(self, word: str, why: str, values: MemberValues) -> UnsupportedSchemaError:
        return UnsupportedSchemaError(
            f"the string {word!r} cannot be written as it is, because {why}",
            pointer=self.pointer(values),
            hint="Leave it out of the schema, or use a format that writes arguments as JSON.",
        )

    # --- objects and arrays ---
    def _object(self, values: MemberValues, solid: bool) -> int:
        """The nonterminal of the members of an object; ``solid``: one at least."""
        symbol = self._objects.get((values, solid))
        if symbol is None:
            symbol = self._objects[values, solid] = self.builder.nonterminal("members")
            cases = [replace(case, least=max(case.least, 1)) for case in values.objects] if solid else values.objects
            self._members(symbol, cases, self.pattern.member)
        return symbol

    def _array(self, values: MemberValues, solid: bool) -> int:
        """The nonterminal of the items of an array; ``solid``: one at least."""
        symbol = self._arrays.get((values, solid))
        if symbol is None:
            symbol = self._arrays[values, solid] = self.builder.nonterminal("items")
            for case in values.arrays:
                start = self.builder.nonterminal("first item")
                self.builder.rule(symbol, start)
                self._items(start, case, values, solid)
        return symbol

    def _items(self, start: int, case: ArrayCase, values: MemberValues, solid: bool) -> None:
        self._check_distinct(case, values)
        symbols = {(0, False): start}
        for state, begun in numbers_of(symbols):
            here = symbols[state, begun]
            if case.may_close(state) and (begun or not solid):
                self.builder.rule(here)
            for value, after in case.following(state):
                item = self.filled(self.pattern.item, None, value, "item")
                if item is not None:
                    following = symbols.get((after, True)) or self._start_of(symbols, after)
                    self.builder.rule(here, *(self.separator if begun else ()), *item, following)

    def _start_of(self, symbols: dict[tuple[int, bool], int], state: int) -> int:
        self.count_state()
        return symbols.setdefault((state, True), self.builder.nonterminal("items"))

    def _check_distinct(self, case: ArrayCase, values: MemberValues) -> None:
        alone = case.distinct and case.longest is not None and case.longest <= 1
        if case.distinct is not None and not alone and self.options.unsupported != "ignore":
            raise UnsupportedSchemaError(
                "items that must differ cannot be enforced in a format that writes them one by one",
                pointer=self.pointer(values),
                keyword="uniqueItems",
                hint="Leave out uniqueItems, or use a format that writes arguments as JSON.",
            )

    # --- names ---
    def name(self, forms: Forms, name: str) -> str | Symbols:
        """A name as it is spelled.

        Raises:
            UnsupportedSchemaError: it cannot be.
        """
        if SPELLED_KEY in forms.string:
            spelled = [written_string(name, quotes) for quotes in self.pattern.spelled.strings]
            return spelled[0] if len(spelled) == 1 else self.either([self.builder.pieces([text]) for text in spelled])
        if not re.fullmatch(self.pattern.names, name) or name in self.pattern.reserved:
            raise UnsupportedSchemaError(
                f"a parameter called {name!r} cannot be written in this format",
                pointer=self.place_of(name),
                hint="Rename it, or use a format that writes arguments as JSON.",
            )
        return name

    def names(self, forms: Forms, names: Dfa) -> Symbols | None:
        """Names that are not declared, as they are spelled; None: they cannot be."""
        if SPELLED_KEY in forms.string:
            spelled = [self.quoted(names, quotes) for quotes in self.pattern.spelled.strings]
            return self.either([symbols for symbols in spelled if symbols is not None])
        limit = self.options.max_automaton_states
        allowed = intersect(names, full_match_dfa(self.pattern.names), limit)
        allowed = difference(allowed, from_strings(self.pattern.reserved), limit)
        return self.builder.regular(("names", allowed.digest), lambda: allowed)

    def either(self, choices: list[Symbols]) -> Symbols:
        """One of some symbols."""
        if len(choices) == 1:
            return choices[0]
        symbol = self.builder.nonterminal("either")
        for symbols in choices:
            self.builder.rule(symbol, *symbols)
        return (symbol,)

    def place_of(self, name: str) -> str:
        """The JSON Pointer of an argument, or of all."""
        if name in (self._tool.parameters.get("properties") or ()):
            return f"{self._tool.pointer}/properties/{escape(name)}"
        return self._tool.pointer

    def pointer(self, values: MemberValues) -> str:
        """The JSON Pointer of what is said of a value."""
        return self._tool.pointer + (values.place or "")

    def count_state(self) -> None:
        """Raise SchemaTooComplexError if there are too many places."""
        self._states += 1
        check_states(self._states, self._tool, "orders, combinations and numbers of items")


@dataclass(frozen=True)
class _MemberRules:
    """How members of one object are written."""

    rules: NestedRules
    forms: Forms

    @property
    def any_order(self) -> bool:
        return self.rules.options.key_order == "any"

    @property
    def separator(self) -> Symbols:
        return self.rules.separator

    def count_state(self) -> None:
        self.rules.count_state()

    def argument(self, name: str, values: MemberValues) -> Symbols | None:
        return self.rules.filled(self.forms, self.rules.name(self.forms, name), values, f"member {name}")

    def other(self, names: Dfa, values: MemberValues) -> Symbols | None:
        if self.forms.string.count(KEY) > 1:  # no grammar says that a name that is not known stands there again
            return None
        spelled = self.rules.names(self.forms, names)
        return None if spelled is None else self.rules.filled(self.forms, spelled, values, "other member")
