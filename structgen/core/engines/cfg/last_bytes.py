"""Which bytes texts of a context-free grammar can end with, and which can stand before an embedded text.

All are upper bounds: where one text goes over into another is only looked
for after such bytes, so a bound that is too wide costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from structgen.core.engines.byte_sets import byte_set
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule
from structgen.core.regex.dfa import Dfa


def last_bytes_of(source: ContextFreeGrammar, embedded: Mapping[int, int]) -> int:
    """Bytes that texts of a grammar can end with, given those of its embedded terminals. O(grammar)."""
    of_terminal = _terminal_bytes(source, embedded)
    for terminal, last in embedded.items():
        of_terminal[terminal] = last
    return _lasts(source, of_terminal)[source.start] | _ignored(source)


def bytes_before(source: ContextFreeGrammar, embedded: Collection[int]) -> int:
    """Last bytes of the terminals that can stand right before an embedded one, embedded ones aside. O(grammar)."""
    of_terminal = _terminal_bytes(source, embedded)
    lasts = _lasts(source, of_terminal)
    nullable = _nullable(source)
    before = [0] * len(source.nonterminals)
    reached_bytes = 0
    users: list[list[Rule]] = [[] for _ in source.nonterminals]
    for rule in source.rules:
        users[rule.lhs].append(rule)
    work = list(range(len(source.nonterminals)))
    while work:
        lhs = work.pop()
        for rule in users[lhs]:
            reached = before[lhs]
            for symbol in rule.rhs:
                if symbol < 0:
                    reached_bytes |= reached if ~symbol in embedded else 0
                    reached = of_terminal[~symbol]
                    continue
                if reached & ~before[symbol]:
                    before[symbol] |= reached
                    work.append(symbol)
                reached = lasts[symbol] | (reached if symbol in nullable else 0)
    return reached_bytes | _ignored(source)


def _terminal_bytes(source: ContextFreeGrammar, embedded: Collection[int]) -> list[int]:
    """Last bytes of each terminal; none of embedded ones, which outer text does not hold."""
    return [0 if t in embedded else _dfa_last_bytes(terminal.dfa) for t, terminal in enumerate(source.terminals)]


def _dfa_last_bytes(dfa: Dfa) -> int:
    into = (dfa.transitions >= 0) & dfa.accepting[dfa.transitions] if len(dfa) else np.zeros((1, 256), bool)
    return byte_set(np.flatnonzero(into.any(axis=0)).tolist())


def _ignored(source: ContextFreeGrammar) -> int:
    ignored_bytes = 0
    for t in source.ignored:
        ignored_bytes |= _dfa_last_bytes(source.terminals[t].dfa)
    return ignored_bytes


def _nullable(source: ContextFreeGrammar) -> set[int]:
    """Nonterminals that derive the empty text. O(grammar)."""
    missing = [len(rule.rhs) for rule in source.rules]
    uses: dict[int, list[int]] = {}
    for i, rule in enumerate(source.rules):
        for symbol in rule.rhs:
            uses.setdefault(symbol, []).append(i)
    nullable: set[int] = set()
    work = [rule.lhs for rule in source.rules if not rule.rhs]
    while work:
        lhs = work.pop()
        if lhs in nullable:
            continue
        nullable.add(lhs)
        for i in uses.get(lhs, ()):
            missing[i] -= 1
            if not missing[i]:
                work.append(source.rules[i].lhs)
    return nullable


def _lasts(source: ContextFreeGrammar, of_terminal: list[int]) -> list[int]:
    """Last bytes of each nonterminal, embedded terminals aside. O(grammar · changes of a set)."""
    nullable = _nullable(source)
    lasts = [0] * len(source.nonterminals)
    ends: list[list[int]] = [[] for _ in source.nonterminals]  # nonterminals that a nonterminal can end
    work: list[int] = []
    for rule in source.rules:
        for symbol in reversed(rule.rhs):
            if symbol >= 0:
                ends[symbol].append(rule.lhs)
                if symbol not in nullable:
                    break
            else:
                lasts[rule.lhs] |= of_terminal[~symbol]
                work.append(rule.lhs)
                break
    while work:
        symbol = work.pop()
        for lhs in ends[symbol]:
            if lasts[symbol] & ~lasts[lhs]:
                lasts[lhs] |= lasts[symbol]
                work.append(lhs)
    return lasts
