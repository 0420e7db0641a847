"""Values and endings of ``suffix`` and ``stop``, told apart for captures."""

from __future__ import annotations

import numpy as np

from structgen.core.grammars.dialects.llguidance.draft import Ending, GrammarDraft
from structgen.core.grammars.normal_form import Place, Rule
from structgen.core.regex.dfa import Dfa, from_table, intersect
from structgen.core.regex.joining import concatenation, shortest_matches
from structgen.errors import TooComplexError

MAX_PAIRS = 1 << 22
"""States of a whole text times states of its ending."""


def with_endings(draft: GrammarDraft) -> None:
    """Write the terminals whose endings are captured as a value and an ending.

    Raises:
        GrammarError: they cannot be told apart.
    """
    used = {~symbol for rule in draft.rules for symbol in rule.rhs if symbol < 0}
    parts: dict[int, tuple[int, int]] = {}
    for terminal, ending in list(draft.endings.items()):
        if terminal in used:
            value, tail = ending.value, ending.tail
            if any(pair == (value, tail) for pair in parts.values()):  # another twin of the same rule
                value, tail = _copy(draft, value), _copy(draft, tail)
            _write(draft, terminal, ending, value, tail)
            parts[terminal] = value, tail
    if parts:
        draft.rules = [
            Rule(r.lhs, tuple(s for symbol in r.rhs for s in (parts.get(~symbol, (symbol,)))), r.position)
            for r in draft.rules
        ]


def _copy(draft: GrammarDraft, number: int) -> int:
    """Another nonterminal that is captured under the same names."""
    copy = draft.nonterminal(draft.nonterminals[number])
    draft.captures += [(copy, name) for captured, name in draft.captures if captured == number]
    return copy


def _write(draft: GrammarDraft, terminal: int, ending: Ending, value: int, tail: int) -> None:
    name, source, offset = draft.terminals[terminal].name, ending.source, ending.offset
    parts = split(draft.terminals[terminal].dfa, ending.body, ending.ending)
    if parts is None:
        source.fail(
            offset,
            f"what the rule {name!r} captures cannot be told apart from its ending",
            "Leave the capture out, or give an ending that no value ends with.",
        )
    for number, dfa in zip((value, tail), parts, strict=True):
        draft.add(number, draft.text(dfa, draft.nonterminals[number], source, offset, -1), Place())


def split(whole: Dfa, body: Dfa, ending: Dfa) -> tuple[Dfa, Dfa] | None:
    """Automata of values and endings that, one after the other, are exactly ``whole``; None if there are none.

    ``whole`` are texts of the body and an ending none of which begins with another one.
    """
    tail = shortest_matches(ending)
    if len(whole) * len(tail) > MAX_PAIRS:
        return None
    values = from_table(whole.transitions.copy(), _leads_to_end(whole, tail).astype(np.uint8))
    try:
        values = intersect(values, body, 2 * len(whole) + len(body) + 64)
        joined = concatenation([values, tail], 4 * len(whole) + 64)
    except TooComplexError:
        return None
    return (values, tail) if joined.digest == whole.digest else None


def _leads_to_end(whole: Dfa, tail: Dfa) -> np.ndarray:
    """bool[states of whole]: whether some text of ``tail`` leads from there to where ``whole`` ends."""
    alive = whole.accepting[:, None] & tail.accepting[None, :]
    while True:
        before = alive.sum()
        for state in range(len(tail) - 1, -1, -1):
            targets = tail.transitions[state]
            for target in np.unique(targets[targets >= 0]).tolist():
                after = whole.transitions[:, targets == target]
                alive[:, state] |= ((after >= 0) & alive[np.maximum(after, 0), target]).any(axis=1)
        if alive.sum() == before:
            return alive[:, 0]
