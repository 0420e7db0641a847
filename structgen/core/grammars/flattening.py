"""Grammars in one piece: those that read terminals of others in the place of these terminals; and those without
recursion as automata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule
from structgen.core.regex.dfa import MAX_STATES, Dfa, empty, from_strings
from structgen.core.regex.joining import alternation, concatenation
from structgen.errors import TooComplexError


class HasNormalForm(Protocol):
    """What reads a terminal."""

    def normal_form(self) -> tuple[ContextFreeGrammar, Mapping[int, HasNormalForm]] | None:
        """See `structgen.core.engines.protocols.Grammar.normal_form`."""
        ...


def flattened(grammar: HasNormalForm) -> ContextFreeGrammar | None:
    """The grammar with what reads its terminals put in their place; None where something of it has no normal form.

    What is ignored becomes part of the rules.
    """
    form = grammar.normal_form()
    if form is None:
        return None
    outer, contents = with_ignored(form[0]), form[1]
    terminals, names, rules = list(outer.terminals), list(outer.nonterminals), list(outer.rules)
    captures, place_of = list(outer.captures), dict[int, int]()
    for number, content in contents.items():
        inner = flattened(content)
        if inner is None:
            return None
        base, first = len(names), len(terminals)
        terminals += inner.terminals
        names += inner.nonterminals
        rules += [replace(r, lhs=r.lhs + base, rhs=_shifted(r.rhs, base, first)) for r in inner.rules]
        captures += [(_shifted((symbol,), base, first)[0], name) for symbol, name in inner.captures]
        place_of[~number] = inner.start + base
    rules = [replace(r, rhs=tuple(place_of.get(symbol, symbol) for symbol in r.rhs)) for r in rules]
    captures = [(place_of.get(symbol, symbol), name) for symbol, name in captures]
    return ContextFreeGrammar(
        tuple(terminals), tuple(names), tuple(rules), outer.start, captures=tuple(dict.fromkeys(captures))
    )


def _shifted(symbols: Sequence[int], names: int, terminals: int) -> tuple[int, ...]:
    return tuple(symbol + names if symbol >= 0 else symbol - terminals for symbol in symbols)


def with_ignored(grammar: ContextFreeGrammar) -> ContextFreeGrammar:
    """The grammar with rules for what is ignored: before each terminal, and at the end."""
    if not grammar.ignored:
        return grammar
    ignored, start = len(grammar.nonterminals), len(grammar.nonterminals) + 1
    rules = [Rule(ignored, ()), *(Rule(ignored, (~t, ignored)) for t in dict.fromkeys(grammar.ignored))]
    for rule in grammar.rules:
        right = [part for symbol in rule.rhs for part in ((ignored, symbol) if symbol < 0 else (symbol,))]
        rules.append(Rule(rule.lhs, tuple(right), rule.place))
    rules.append(Rule(start, (grammar.start, ignored)))
    return ContextFreeGrammar(
        grammar.terminals, (*grammar.nonterminals, "ignored", "start"), tuple(rules), start, captures=grammar.captures
    )


def automaton_of(grammar: ContextFreeGrammar, max_states: int = MAX_STATES) -> Dfa | None:
    """The automaton of a flat grammar without recursion; None where there is some, or the automaton is too large."""
    bodies: dict[int, list[Rule]] = {number: [] for number in range(len(grammar.nonterminals))}
    for rule in grammar.rules:
        bodies[rule.lhs].append(rule)
    uses = {lhs: {s for rule in rules for s in rule.rhs if s >= 0} for lhs, rules in bodies.items()}
    try:
        order = list(TopologicalSorter(uses).static_order())
    except CycleError:
        return None
    of: dict[int, Dfa] = {~number: terminal.dfa for number, terminal in enumerate(grammar.terminals)}
    try:
        for lhs in order:
            options = [
                concatenation([of[s] for s in rule.rhs], max_states) if rule.rhs else from_strings([""])
                for rule in bodies[lhs]
                if not any(of[s].is_empty for s in rule.rhs)
            ]
            of[lhs] = options[0] if len(options) == 1 else alternation(options, max_states) if options else empty()
    except TooComplexError:
        return None
    return of[grammar.start]
