"""Grammars put in place of terminals of another: one grammar of the same language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from structgen.automata.dfa import Dfa
from structgen.automata.joining import alternation, repetition
from structgen.errors import TooComplexError
from structgen.grammar.normal_form import ContextFreeGrammar, Rule, Terminal

MAX_STATES = 256
"""Runs of ignored texts are one terminal where it has no more states."""


def inlined(
    grammar: ContextFreeGrammar, parts: Mapping[int, ContextFreeGrammar]
) -> tuple[ContextFreeGrammar, dict[int, int]]:
    """A grammar with other grammars' texts for some of its terminals. Linear in the size of all.

    What one of them ignores stays ignored there and nowhere else.

    Args:
        grammar: the grammar around.
        parts: by terminal number; one that several terminals stand for is put in once.

    Returns:
        The grammar, in which its own symbols keep their numbers, and the number that terminal 0 of each part has now.
    """
    if any(part.ignored for part in (grammar, *parts.values())):
        grammar = without_ignored(grammar)
    terminals, names, rules = list(grammar.terminals), list(grammar.nonterminals), list(grammar.rules)
    captures, starts = list(grammar.captures), dict[int, int]()
    places: dict[int, tuple[int, int]] = {}  # by the part's identity: its start, and its first terminal
    for t, part in parts.items():
        if id(part) not in places:
            own = without_ignored(part)
            places[id(part)] = own.start + len(names), len(terminals)
            rules += [
                replace(r, lhs=r.lhs + len(names), rhs=_moved(r.rhs, len(names), len(terminals))) for r in own.rules
            ]
            captures += [(_moved((s,), len(names), len(terminals))[0], name) for s, name in own.captures]
            names += own.nonterminals
            terminals += own.terminals
        starts[~t] = places[id(part)][0]
    found = replace(
        grammar,
        terminals=tuple(terminals),
        nonterminals=tuple(names),
        rules=tuple(replace(r, rhs=tuple(starts.get(s, s) for s in r.rhs)) for r in rules),
        captures=tuple((starts.get(symbol, symbol), name) for symbol, name in captures),
    )
    return found, {t: places[id(part)][1] for t, part in parts.items()}


def without_ignored(grammar: ContextFreeGrammar) -> ContextFreeGrammar:
    """A grammar of the same language that ignores nothing: its rules say where ignored text may be."""
    size, terminals = len(grammar.nonterminals), grammar.terminals
    ignored = [t for t in dict.fromkeys(grammar.ignored) if not terminals[t].dfa.is_empty]
    if not ignored:
        return replace(grammar, ignored=())
    names, gap = [*grammar.nonterminals, "start with ignored text", "ignored text"], size + 1
    rules = [Rule(size, (gap, grammar.start)), Rule(gap, ())]
    run = _runs([terminals[t].dfa for t in ignored])
    if run is not None:
        rules.append(Rule(gap, (~len(terminals),)))
        terminals += (Terminal("ignored text", run),)
    else:
        rules += [Rule(gap, (gap, ~t)) for t in ignored]
    words: dict[int, int] = {}  # terminals that are alternatives of one rule stay so, which the machine makes use of
    for rule in grammar.rules:
        if len(rule.rhs) == 1 and rule.rhs[0] < 0:
            if rule.lhs not in words:
                words[rule.lhs] = len(names)
                rules.append(Rule(rule.lhs, (len(names), gap)))
                names.append(f"{grammar.nonterminals[rule.lhs]} before ignored text")
            rules.append(replace(rule, lhs=words[rule.lhs]))
        else:
            rhs = tuple(part for symbol in rule.rhs for part in ((symbol, gap) if symbol < 0 else (symbol,)))
            rules.append(replace(rule, rhs=rhs))
    names_of_all = tuple(names)
    return replace(grammar, terminals=terminals, nonterminals=names_of_all, rules=tuple(rules), start=size, ignored=())


def _runs(dfas: list[Dfa]) -> Dfa | None:
    """One or more texts of some automata, one behind the other; None if that takes too many states."""
    try:
        return repetition(alternation(dfas, MAX_STATES), 1, None, MAX_STATES)
    except TooComplexError:
        return None


def _moved(symbols: tuple[int, ...], nonterminals: int, terminals: int) -> tuple[int, ...]:
    return tuple(s + nonterminals if s >= 0 else s - terminals for s in symbols)
