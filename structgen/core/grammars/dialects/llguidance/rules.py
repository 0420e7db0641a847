"""Rules as llguidance writes them: from syntax tree to the normal form, still without what is ignored and lazy."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from structgen.core.grammars.dialects.llguidance.draft import Ending, GrammarDraft
from structgen.core.grammars.dialects.llguidance.ignoring import skip_of
from structgen.core.grammars.dialects.llguidance.syntax import (
    Choice,
    Definition,
    Json,
    Literal,
    Many,
    Name,
    Nested,
    Option,
    Reference,
    Scope,
    Series,
    Token,
    Tree,
)
from structgen.core.grammars.dialects.llguidance.terminals import Terminals
from structgen.core.grammars.lark_reader import MANY_WORDS
from structgen.core.grammars.limits import MAX_STATES
from structgen.core.grammars.token_terminals import token_pattern
from structgen.core.regex import charset
from structgen.core.regex.dfa import Dfa, from_strings, intersect
from structgen.core.regex.ecma_ast import END, START, Chars, Concat, Repeat
from structgen.core.regex.joining import concatenation, shortest_matches
from structgen.core.regex.pattern import search_dfa
from structgen.core.regions import Region
from structgen.errors import ConstraintError, TooComplexError

MAX_INSTANCES = 20_000
"""Rules, those with a parameter counted once for each value that it gets."""


class Instance(NamedTuple):
    """A rule of a grammar, for one value of its parameter (0 where it has none)."""

    scope: int
    name: str
    value: int


@dataclass(frozen=True)
class _Here:
    """Where something stands: the grammar, the parameter's value (None: there is none), the rule's number."""

    scope: Scope
    value: int | None
    number: int


class RuleWriter:
    """Writes the rules that are reached.

    Args:
        grammars: other grammars by name, as texts that were read.
        outside: names of grammars that are read by other engines.
    """

    def __init__(self, grammars: Mapping[str, Scope], outside: Collection[str]) -> None:
        self._grammars = grammars
        self._outside = outside
        self._terminals = Terminals()
        self._instances: dict[Instance, int] = {}
        self._order: list[Instance] = []
        self._scopes: dict[int, tuple[Scope, int]] = {}  # and its layer
        self.draft = GrammarDraft()

    @property
    def warnings(self) -> list[str]:
        """What should be said about the grammar."""
        return self._terminals.warnings

    def write(self, scope: Scope, start: str) -> None:
        """Write what a rule of a grammar reaches; its nonterminal is 0.

        Raises:
            GrammarError, GrammarTooComplexError: something in it is not legal, not supported, or too large.
        """
        self._start_of(scope, start, None)
        for instance in self._order:  # which grows on the way
            self._write_instance(instance, self._instances[instance])

    def used(self, scope: Scope) -> set[str]:
        """The names of a grammar's rules that were reached."""
        return {instance.name for instance in self._instances if instance.scope == id(scope)}

    def _start_of(self, scope: Scope, start: str, user: tuple[Scope, int] | None) -> int:
        """The nonterminal of a grammar's first rule, where ``user`` (a grammar, an offset) refers to it."""
        if start not in scope.rules:
            source, offset = (user[0].source, user[1]) if user else (scope.source, 0)
            listed = f"; the rules are {', '.join(sorted(scope.rules)[:20])}" if scope.rules else ""
            source.fail(offset, f"there is no rule {start!r} to start from{listed}")
        definition = scope.rules[start]
        if definition.has_parameter:
            scope.source.fail(definition.offset, f"the first rule, {start!r}, gets no parameter")
        return self._instance(scope, definition, 0, definition.offset)

    def _layer(self, scope: Scope) -> int:
        """Which grammar's ignored terminals stand between those of this one; −1: none. Equal ones are one."""
        if id(scope) not in self._scopes:
            skip = skip_of(scope, self._terminals)
            digests = [dfa.digest for dfa in self.draft.skips]
            layer = -1
            if skip is not None:
                if skip.digest not in digests:
                    self.draft.skips.append(skip)
                    digests.append(skip.digest)
                layer = digests.index(skip.digest)
            self._scopes[id(scope)] = scope, layer
        return self._scopes[id(scope)][1]

    def _instance(self, scope: Scope, definition: Definition, value: int, offset: int) -> int:
        self._layer(scope)
        key = Instance(id(scope), definition.name, value)
        number = self._instances.get(key)
        if number is None:
            if len(self._instances) >= MAX_INSTANCES:
                raise scope.source.refusal(offset)("its parameters make too many rules", "rules", MAX_INSTANCES)
            name = f"{definition.name}::{value}" if definition.has_parameter else definition.name
            number = self._instances[key] = self.draft.nonterminal(name)
            self._order.append(key)
            capture = definition.attributes.capture
            if capture is not None and definition.attributes.ending is None:
                self.draft.capture(number, capture, self._layer(scope))
            if definition.attributes.region is not None:
                self.draft.capture(number, definition.attributes.region, self._layer(scope))
        return number

    def _write_instance(self, instance: Instance, number: int) -> None:
        scope, _ = self._scopes[instance.scope]
        definition = scope.rules[instance.name]
        here = _Here(scope, instance.value if definition.has_parameter else None, number)
        if definition.attributes.as_terminal:
            self._write_terminal(definition, here)
        else:
            self._write_options(number, definition.body, here)

    def note(self, scope: Scope, name: str, region: str | Region) -> None:
        """Note how the texts of a grammar's rule are written."""
        for instance, number in self._instances.items():
            if instance.scope == id(scope) and instance.name == name:
                self.draft.capture(number, region, self._layer(scope))

    # --- rules that are terminals ---
    def _write_terminal(self, definition: Definition, here: _Here) -> None:
        """A rule with ``lazy``, ``suffix``, ``stop`` or ``max_chars``."""
        scope, attributes, draft = here.scope, definition.attributes, self.draft
        position = scope.source.position(definition.offset)
        try:
            body = self._terminals.dfa(definition.body, scope, definition.offset)
            if attributes.max_chars is not None:
                bound = Concat((START, Repeat(Chars(charset.ANY), 0, attributes.max_chars), END))
                body = intersect(body, search_dfa(bound, MAX_STATES), MAX_STATES)
            whole = body
            if attributes.ending is not None:
                ending = self._terminals.dfa(attributes.ending, scope, attributes.ending.offset)
                whole = shortest_matches(concatenation([body, ending], max(2 * (len(body) + len(ending)), 20_000)))
            elif attributes.lazy:
                whole = shortest_matches(body)
        except TooComplexError as error:
            raise scope.source.refusal(definition.offset)(error.message, error.budget or "size", error.limit) from None
        symbols = draft.text(whole, definition.name, scope.source, definition.offset, self._layer(scope))
        if whole is not body or attributes.lazy:
            # A terminal of its own: what it shares its texts with need not be lazy.
            symbols = [~self._lazy(~s, here.number) if s < 0 else s for s in symbols]
        draft.add(here.number, symbols, position)
        if attributes.ending is not None and (attributes.capture is not None or attributes.stop_capture is not None):
            self._write_ending(definition, here, body, ending, symbols)

    def _lazy(self, number: int, rule: int) -> int:
        """The lazy twin of a terminal, that of a rule."""
        draft = self.draft
        twin = draft.terminal(draft.terminals[number], draft.layers[number], ("lazy", rule))
        draft.lazy.add(twin)
        return twin

    def _write_ending(self, definition: Definition, here: _Here, body: Dfa, ending: Dfa, symbols: list[int]) -> None:
        """Note that a rule's value and its ending are captured, each for itself."""
        draft, attributes = self.draft, definition.attributes
        value, tail = draft.nonterminal(f"{definition.name}.value"), draft.nonterminal(f"{definition.name}.ending")
        for number, name in ((value, attributes.capture), (tail, attributes.stop_capture)):
            if name is not None:
                draft.capture(number, name, -1)
        for symbol in symbols:
            if symbol < 0:
                draft.endings[~symbol] = Ending(body, ending, value, tail, here.scope.source, definition.offset)

    # --- options and series ---
    def _write_options(self, number: int, choice: Choice, here: _Here) -> None:
        draft, source = self.draft, here.scope.source
        words = {word for option in choice.options if (word := _word(option)) is not None}
        if len(words) < MANY_WORDS:
            words = set()
        else:
            try:
                dfa = from_strings(words, MAX_STATES)
            except TooComplexError as error:
                raise source.refusal(choice.offset)(error.message, error.budget or "size", error.limit) from None
            name = f"{draft.nonterminals[number]}:words"
            draft.add(
                number,
                draft.text(dfa, name, source, choice.offset, self._layer(here.scope)),
                source.position(choice.offset),
            )
        for option in choice.options:
            if _word(option) in words or not self._allowed(option, here):
                continue
            if len(option.series) > 1:
                source.fail(
                    option.series[1].offset,
                    "& joins terminals, and this is a rule",
                    "Give the expression a name in upper case, and use that in the rule.",
                )
            draft.add(number, self._series(option.series[0], here), source.position(option.offset))

    def _allowed(self, option: Option, here: _Here) -> bool:
        if option.condition is None:
            return True
        if option.condition.of_own and here.value is None:
            here.scope.source.fail(option.offset, "%if asks for the parameter of a rule that has none")
        return option.condition.holds(here.value or 0)

    def _series(self, series: Series, here: _Here) -> list[int]:
        symbols: list[int] = []
        written = ""  # by the rule before, which stops with it
        for item in series.items:
            if written and isinstance(item, Literal) and not item.any_case and item.text.startswith(written):
                item = item._replace(text=item.text.removeprefix(written))
            symbols += self._symbols(item, here)
            written = self._stop_of(item, here.scope)
        return symbols

    def _stop_of(self, item: Tree, scope: Scope) -> str:
        """The text of ``stop`` of the rule that an item names; nothing if it is no such rule."""
        if not isinstance(item, Name) or item.name not in scope.rules:
            return ""
        attributes = scope.rules[item.name].attributes
        ending = attributes.ending
        return ending.text if attributes.is_stop and isinstance(ending, Literal) and not ending.any_case else ""

    def _symbols(self, item: Tree, here: _Here) -> list[int]:
        draft, source = self.draft, here.scope.source
        match item:
            case Name() if item.name in here.scope.rules:
                return [self._reference(item, here)]
            case Choice(options=options, offset=offset):
                if len(options) == 1 and len(options[0].series) == 1 and options[0].condition is None:
                    return self._series(options[0].series[0], here)
                inner = draft.fresh(here.number)
                self._write_options(inner, item, here)
                return [inner]
            case Many(body=body, low=low, high=high, offset=offset):
                return draft.repeated(here.number, self._symbols(body, here), low, high, source.position(offset))
            case Token(source=text, offset=offset):
                try:
                    pattern = token_pattern(text)
                except ConstraintError as error:
                    source.fail(offset, str(error))
                return [~draft.outside(text, text, source.position(offset), self._layer(here.scope), pattern, text)]
            case Json(schema=schema, offset=offset):
                number = draft.outside(f"JSON_{len(draft.embedded)}", "%json", source.position(offset), -1)
                draft.embedded[number] = schema
                return [~number]
            case Nested(scope=scope, offset=offset):
                return [self._nested(scope, here, offset)]
            case Reference(name=name, offset=offset):
                return [self._other(name, here, offset)]
            case _:
                if isinstance(item, Name) and item.name not in here.scope.terminals:
                    self._terminals.unknown(item.name, here.scope, item.offset)
                dfa = self._terminals.dfa(item, here.scope, item.offset)
                return draft.text(dfa, _name_of(item, draft), source, item.offset, self._layer(here.scope))

    def _reference(self, item: Name, here: _Here) -> int:
        definition = here.scope.rules[item.name]
        fail = here.scope.source.fail
        if definition.has_parameter and item.parameter is None:
            fail(item.offset, f"the rule {item.name!r} needs a parameter, as in {item.name}::0")
        if item.parameter is None:
            return self._instance(here.scope, definition, 0, item.offset)
        if not definition.has_parameter:
            fail(
                item.offset,
                f"the rule {item.name!r} has no parameter",
                f"Begin it with {item.name}::_ if it needs one.",
            )
        if item.parameter.of_own and here.value is None:
            fail(item.offset, "this asks for the parameter of a rule that has none", "Give a number.")
        return self._instance(here.scope, definition, item.parameter.value(here.value or 0), item.offset)

    def _nested(self, scope: Scope, here: _Here, offset: int) -> int:
        """The start of a grammar inside another."""
        start = self._start_of(scope, "start", (here.scope, offset))
        if self._layer(scope) == self._layer(here.scope):
            return start
        draft = self.draft  # what is ignored around it does not stand before its first terminal
        border = draft.fresh(here.number)
        draft.add(border, (start,), here.scope.source.position(offset))
        draft.borders.add(border)
        return border

    def _other(self, name: str, here: _Here, offset: int) -> int:
        if name in self._grammars:
            return self._nested(self._grammars[name], here, offset)
        if name in self._outside:
            number = self.draft.outside(f"@{name}", f"@{name}", here.scope.source.position(offset), -1, key=name)
            self.draft.references[number] = name
            return ~number
        listed = ", ".join(sorted([*self._grammars, *self._outside])) or "none"
        here.scope.source.fail(
            offset, f"there is no grammar {name!r}", f"Give it in grammars={{...}}; there are: {listed}."
        )


def _word(option: Option) -> str | None:
    """The text of an option that is one word; None of others."""
    if option.condition is not None or len(option.series) != 1 or len(option.series[0].items) != 1:
        return None
    (item,) = option.series[0].items
    return item.text if isinstance(item, Literal) and item.text and not item.any_case else None


def _name_of(item: Tree, draft: GrammarDraft) -> str:
    """What a terminal is called."""
    if isinstance(item, Name):
        return item.name
    if isinstance(item, Literal):
        return item.text.upper() if item.text.isalnum() else f"TEXT_{len(draft.terminals)}"
    return f"TERMINAL_{len(draft.terminals)}"
