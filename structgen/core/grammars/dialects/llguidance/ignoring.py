"""What ``%ignore`` names, between the terminals of its own grammar and nowhere else, as rules.

The machine's own ignored terminals stand anywhere. Here they stand between two terminals of a text, not before its
first and not after its last one, and a grammar inside another has its own. So a terminal that is not the first one
of a text is itself or the ignored text and itself, and rules have a twin for where a text begins.
"""

from __future__ import annotations

from typing import Literal

from structgen.core.grammars.dialects.llguidance.draft import GrammarDraft
from structgen.core.grammars.dialects.llguidance.nullable import cut_rules, nullable_of
from structgen.core.grammars.dialects.llguidance.syntax import Scope
from structgen.core.grammars.dialects.llguidance.terminals import Terminals
from structgen.core.grammars.normal_form import Place, Rule, Terminal
from structgen.core.grammars.regular import without_empty
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.joining import alternation, repetition
from structgen.errors import TooComplexError

Variant = Literal["first", "none", "later"]


def skip_of(scope: Scope, terminals: Terminals) -> Dfa | None:
    """All that a grammar ignores in one place; None: nothing.

    Raises:
        GrammarError: what is ignored is no terminal.
    """
    if not scope.ignored:
        return None
    offset = scope.ignored[0].offset
    parts = [terminals.dfa(choice, scope, choice.offset) for choice in scope.ignored]
    try:
        ignored = without_empty(alternation(parts, 20_000))
        ignored = ignored if scope.ignored_once else repetition(ignored, 1, None, 20_000)
    except TooComplexError as error:
        raise scope.source.refusal(offset)(error.message, error.budget or "size", error.limit) from None
    return None if ignored.is_empty else ignored


def with_ignored(draft: GrammarDraft, start: int) -> int:
    """Write what is ignored into the rules of a draft; returns the nonterminal to start from."""
    if not draft.skips:
        return start
    cut_rules(draft)
    return _Twins(draft).write(start)


class _Twins:
    """Writes each rule anew for where it stands: "first" (a text begins with it), "later", or "none" (it is empty)."""

    def __init__(self, draft: GrammarDraft) -> None:
        self._draft = draft
        self._options: dict[int, list[Rule]] = {}
        for rule in draft.rules:
            self._options.setdefault(rule.lhs, []).append(rule)
        self._nullable = nullable_of(draft.rules)
        self._captured = {number for number, _ in draft.captures}
        self._skips = [
            ~draft.terminal(Terminal(f"IGNORED_{layer}", dfa, "%ignore"), -1, ("ignored", layer))
            for layer, dfa in enumerate(draft.skips)
        ]
        self._twins: dict[tuple[Variant, int], int] = {}
        self._todo: list[tuple[Variant, int]] = []
        self._after: dict[int, int] = {}

    def write(self, start: int) -> int:
        draft = self._draft
        draft.rules = []
        first = draft.nonterminal(f"{draft.nonterminals[start]}:text")
        draft.add(first, (self._first(start),), Place())
        if start in self._nullable:
            draft.add(first, (self._none(start),), Place())
        for variant, number in self._todo:  # which grows on the way
            for rule in self._options.get(number, ()):
                for rhs in self._forms(variant, rule.rhs):
                    draft.add(self._twins[variant, number], rhs, rule.position)
        draft.captures = [
            (twin, name)
            for number, name in draft.captures
            for twin in (self._twins.get(("first", number)), self._twins.get(("none", number)))
            if twin is not None
        ] + [(number, name) for number, name in draft.captures if number not in self._options]
        return first

    def _forms(self, variant: Variant, rhs: tuple[int, ...]) -> list[list[int]]:
        """What a right side becomes; for "first", one for each symbol that can be the first that is not empty."""
        if variant == "later":
            return [[self._later(symbol) for symbol in rhs]]
        if variant == "none":
            return [[self._none(symbol) for symbol in rhs]] if all(s in self._nullable for s in rhs) else []
        forms = []
        for i, symbol in enumerate(rhs):
            if symbol < 0 or symbol in self._options:
                before = [self._none(s) for s in rhs[:i]]
                forms.append([*before, self._first(symbol), *(self._later(s) for s in rhs[i + 1 :])])
            if symbol not in self._nullable:
                break
        return forms

    def _twin(self, variant: Variant, number: int) -> int:
        twin = self._twins.get((variant, number))
        if twin is None:
            name = self._draft.nonterminals[number]
            twin = self._twins[variant, number] = self._draft.nonterminal(f"{name}:{variant}")
            self._todo.append((variant, number))
        return twin

    def _first(self, symbol: int) -> int:
        return symbol if symbol < 0 else self._twin("first", symbol)

    def _none(self, symbol: int) -> int:
        return self._twin("none", symbol)

    def _later(self, symbol: int) -> int:
        """A symbol where it is not the first, with what may be ignored before it."""
        draft = self._draft
        if symbol < 0:
            layer = draft.layers[~symbol]
            return symbol if layer < 0 else self._skipping(symbol, layer)
        if symbol in draft.borders:
            return self._skipping(symbol, -1)
        if symbol in self._captured:  # what is ignored is no part of it
            return self._skipping(symbol, draft.capture_layers[symbol])
        return self._twin("later", symbol)

    def _skipping(self, symbol: int, layer: int) -> int:
        """A symbol's text, with what a layer ignores before it or without."""
        later = self._after.get(symbol)
        if later is None:
            draft = self._draft
            name = draft.terminals[~symbol].name if symbol < 0 else draft.nonterminals[symbol]
            later = self._after[symbol] = draft.nonterminal(f"{name}:later")
            first = self._first(symbol)
            draft.add(later, (first,), Place())
            if layer >= 0:
                draft.add(later, (self._skips[layer], first), Place())
            if symbol in self._nullable:
                draft.add(later, (self._none(symbol),), Place())
        return later
