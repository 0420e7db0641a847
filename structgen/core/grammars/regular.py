"""Regular languages as grammars, and small helpers on their automata."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import numpy as np

from structgen.core.grammars.normal_form import ContextFreeGrammar, Place, Rule, Terminal
from structgen.core.regex.dfa import MAX_STATES, Dfa, difference, empty, from_strings
from structgen.core.regex.dfa_cache import keeps_automata
from structgen.core.regex.joining import alternation, concatenation
from structgen.errors import TooComplexError


def regular_grammar(dfa: Dfa, name: str, source: str) -> ContextFreeGrammar:
    """The grammar of a regular language: one terminal, and the empty text if it is in the language."""
    rules = [Rule(0, (), Place())] if len(dfa) and dfa.accepting[0] else []
    solid = without_empty(dfa)
    if solid.is_empty:
        return ContextFreeGrammar((), (name,), tuple(rules), 0)
    rules.append(Rule(0, (~0,), Place()))
    return ContextFreeGrammar((Terminal(name.upper(), solid, source),), (name,), tuple(rules), 0)


def without_empty(dfa: Dfa) -> Dfa:
    """The language less the empty text."""
    if dfa.is_empty or not dfa.accepting[0]:
        return dfa
    return difference(dfa, from_strings([""]), 2 * len(dfa) + 16)


@keeps_automata
def word_dfa(text: str) -> Dfa:
    """The automaton of one text."""
    return chain(text.encode())


def chain(data: bytes) -> Dfa:
    """The automaton of some bytes: a chain of states, which is minimal as it stands."""
    transitions = np.full((len(data) + 1, 256), -1, np.int32)
    transitions[np.arange(len(data)), np.frombuffer(data, np.uint8)] = np.arange(1, len(data) + 1)
    accepting = np.zeros(len(data) + 1, np.bool_)
    accepting[-1] = True
    return Dfa(transitions, accepting)


def automaton_of(grammar: ContextFreeGrammar, max_states: int = MAX_STATES) -> Dfa | None:
    """The automaton of a grammar that ignores nothing and has no recursion; None of others, or if it is too large."""
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
