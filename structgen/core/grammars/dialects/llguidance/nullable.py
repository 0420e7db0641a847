"""Which nonterminals can be empty, and rules in which no symbol is sometimes empty and sometimes not."""

from __future__ import annotations

import itertools

from structgen.core.grammars.dialects.llguidance.draft import GrammarDraft
from structgen.core.grammars.normal_form import Place, Rule

MOST_NULLABLE = 8
"""Symbols of one rule that may be empty; rules with more are cut."""


def nullable_of(rules: list[Rule]) -> set[int]:
    """The nonterminals that have the empty text. O(symbols)."""
    return _derived(rules, from_terminals=False)


def without_endless(rules: list[Rule]) -> list[Rule]:
    """The rules that some text can be made by: conditions on parameters, and recursion without an end, leave
    nonterminals that have none. O(symbols)."""
    textual = _derived(rules, from_terminals=True)
    return [rule for rule in rules if all(symbol < 0 or symbol in textual for symbol in rule.rhs)]


def _derived(rules: list[Rule], *, from_terminals: bool) -> set[int]:
    """The nonterminals that have a derivation to nothing, or to terminals."""
    derived: set[int] = set()
    waiting: dict[int, list[int]] = {}  # rules, by a nonterminal of theirs that is not known to be nullable
    todo = list(range(len(rules)))
    while todo:
        number = todo.pop()
        rule = rules[number]
        if rule.lhs in derived:
            continue
        missing = next((s for s in rule.rhs if (s < 0 and not from_terminals) or (s >= 0 and s not in derived)), None)
        if missing is None:
            derived.add(rule.lhs)
            todo += waiting.pop(rule.lhs, [])
        elif missing >= 0:
            waiting.setdefault(missing, []).append(number)
    return derived


def cut_rules(draft: GrammarDraft) -> None:
    """Cut rules with many symbols that may be empty into short ones. O(symbols)."""
    nullable = nullable_of(draft.rules)
    rules, draft.rules = draft.rules, []
    for rule in rules:
        lhs, remaining, size = rule.lhs, rule.rhs, MOST_NULLABLE - 1
        if sum(symbol in nullable for symbol in remaining) > MOST_NULLABLE:
            while len(remaining) > MOST_NULLABLE:
                tail = draft.fresh(rule.lhs)
                draft.add(lhs, (*remaining[:size], tail), rule.position)
                lhs, remaining = tail, remaining[size:]
        draft.add(lhs, remaining, rule.position)


def with_empties_apart(draft: GrammarDraft, start: int) -> int:
    """Write each nonterminal that can be empty as one that is and one that is not; returns the one to start from."""
    cut_rules(draft)
    nullable = nullable_of(draft.rules)
    if not nullable:
        return start
    options: dict[int, set[tuple[int, ...]]] = {}
    for rule in draft.rules:
        options.setdefault(rule.lhs, set()).add(rule.rhs)
    full = {n: _only_terminal(options[n]) or draft.twin(n, "full") for n in sorted(nullable - _named(draft))}
    full |= {n: draft.twin(n, "full") for n in sorted(nullable & _named(draft))}
    none = {n: draft.twin(n, "none") for n in sorted(nullable)}
    rules, draft.rules = draft.rules, []
    for rule in rules:
        hidden = [i for i, symbol in enumerate(rule.rhs) if symbol in nullable]
        for choice in itertools.product((full, none), repeat=len(hidden)):
            of = dict(zip(hidden, choice, strict=True))
            rhs = [of[i][symbol] if i in of else symbol for i, symbol in enumerate(rule.rhs)]
            is_empty = len(hidden) == len(rhs) and full not in choice
            lhs = (none if is_empty else full).get(rule.lhs, rule.lhs)
            if lhs >= 0:
                draft.add(lhs, rhs, rule.position)
    if start not in nullable:
        return start
    first = draft.fresh(start)
    draft.add(first, (full[start],), Place())
    draft.add(first, (none[start],), Place())
    return first


def _named(draft: GrammarDraft) -> set[int]:
    """The nonterminals that something is said of."""
    return {number for number, _ in draft.captures} | draft.borders


def _only_terminal(options: set[tuple[int, ...]]) -> int:
    """The terminal that stands for itself or nothing, as a symbol; 0 if there is none."""
    solid = [rhs for rhs in options if rhs]
    return solid[0][0] if len(solid) == 1 and len(solid[0]) == 1 and solid[0][0] < 0 else 0
