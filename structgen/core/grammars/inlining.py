"""Grammars put in place of terminals of another: one grammar of the same language."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.dfa import Dfa, from_table
from structgen.core.regex.joining import alternation, concatenation, repetition
from structgen.errors import TooComplexError

MAX_STATES = 256
"""Ignored text is put into the automata of terminals where it adds no more states."""
Part = tuple[ContextFreeGrammar, Collection[int]]
"""A grammar, and its terminals whose texts other grammars read."""


def inlined(
    grammar: ContextFreeGrammar, parts: Mapping[int, Part], embedded: Collection[int] = ()
) -> tuple[ContextFreeGrammar, dict[int, int]]:
    """A grammar with other grammars' texts for some of its terminals. Linear in the size of all.

    What one of them ignores stays ignored there and nowhere else. A grammar that ignores text and has captures is no
    part: nothing would tell any more what is ignored around a capture.

    Args:
        grammar: the grammar around.
        parts: by terminal number; one that several terminals stand for is put in once.
        embedded: other terminals whose texts other grammars read.

    Returns:
        The grammar, in which its own symbols keep their numbers, and the number that terminal 0 of each part has now.
    """
    if any(part.ignored for part in (grammar, *(part for part, _ in parts.values()))):
        grammar = without_ignored(grammar, {*parts, *embedded})
    terminals, names, rules = list(grammar.terminals), list(grammar.nonterminals), list(grammar.rules)
    captures, starts = list(grammar.captures), dict[int, int]()
    places: dict[int, tuple[int, int]] = {}  # by the part's identity: its start, and its first terminal
    for t, (part, inside) in parts.items():
        if id(part) not in places:
            inner = without_ignored(part, inside)
            places[id(part)] = inner.start + len(names), len(terminals)
            for rule in inner.rules:
                rhs = tuple(_moved(s, len(names), len(terminals)) for s in rule.rhs)
                rules.append(replace(rule, lhs=rule.lhs + len(names), rhs=rhs))
            captures += [(_moved(s, len(names), len(terminals)), name) for s, name in inner.captures]
            names += inner.nonterminals
            terminals += inner.terminals
        starts[~t] = places[id(part)][0]
    whole = replace(
        grammar,
        terminals=tuple(terminals),
        nonterminals=tuple(names),
        rules=tuple(replace(r, rhs=tuple(starts.get(s, s) for s in r.rhs)) for r in rules),
        captures=tuple((starts.get(symbol, symbol), name) for symbol, name in captures),
    )
    return whole, {t: places[id(part)][1] for t, (part, _) in parts.items()}


def _moved(symbol: int, nonterminals: int, terminals: int) -> int:
    """A symbol after so many others."""
    return symbol + nonterminals if symbol >= 0 else symbol - terminals


def without_ignored(grammar: ContextFreeGrammar, embedded: Collection[int] = ()) -> ContextFreeGrammar:
    """A grammar of the same language that ignores nothing: its terminals and rules say where ignored text may be.

    It becomes the beginning of terminals, so that the machine reads both as one, as it does where it ignores text
    itself; and a nonterminal at the end and before terminals that others read.
    """
    terminals = list(grammar.terminals)
    ignored = [t for t in dict.fromkeys(grammar.ignored) if not terminals[t].dfa.is_empty]
    if not ignored:
        return replace(grammar, ignored=())
    size = len(grammar.nonterminals)
    names, gap = (*grammar.nonterminals, "start with ignored text", "ignored text"), size + 1
    rules = [Rule(size, (grammar.start, gap)), Rule(gap, ())]
    run = _run([terminals[t].dfa for t in ignored])
    if run is None:
        rules += [Rule(gap, (gap, ~t)) for t in ignored]
    else:
        rules.append(Rule(gap, (~len(terminals),)))
        terminals.append(Terminal("ignored text", run))
    after_gap = {*embedded}
    for t, terminal in enumerate(grammar.terminals):
        dfa = None if run is None or t in after_gap else _after(run, terminal.dfa)
        if dfa is None:
            after_gap.add(t)
        else:
            terminals[t] = replace(terminal, dfa=dfa)
    for rule in grammar.rules:
        rhs = tuple(part for symbol in rule.rhs for part in ((gap, symbol) if ~symbol in after_gap else (symbol,)))
        rules.append(replace(rule, rhs=rhs))
    return replace(grammar, terminals=tuple(terminals), nonterminals=names, rules=tuple(rules), start=size, ignored=())


def _run(dfas: list[Dfa]) -> Dfa | None:
    """One or more texts of some automata, one after the other; None if that takes too many states."""
    try:
        return repetition(alternation(dfas, MAX_STATES), 1, None, MAX_STATES)
    except TooComplexError:
        return None


def _after(run: Dfa, dfa: Dfa) -> Dfa | None:
    """The texts of an automaton, alone or after those of ``run``; None if that takes too many states."""
    if dfa.is_empty:
        return dfa
    ends = run.accepting.copy()
    ends[0] = True
    overlap = (run.transitions[ends] >= 0) & (dfa.transitions[0] >= 0)
    if overlap.any() or (run.transitions == 0).any():  # not told apart by one byte, or begun again inside of a run
        most = len(run) + len(dfa) + MAX_STATES
        try:
            return alternation([dfa, concatenation([run, dfa], most)], most)
        except TooComplexError:
            return None
    moved = np.where(dfa.transitions >= 0, dfa.transitions + np.int32(len(run)), np.int32(-1))
    table = np.concatenate([run.transitions, moved])
    table[np.flatnonzero(ends)] = np.maximum(run.transitions[ends], moved[0])
    return from_table(table, np.concatenate([np.zeros(len(run), np.uint8), dfa.accepting.view(np.uint8)]))
