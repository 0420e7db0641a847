"""Regular languages as grammars, and small helpers on their automata."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structgen.automata.dfa import Dfa, from_table
from structgen.automata.dfa_cache import keeps_automata
from structgen.grammar.normal_form import ContextFreeGrammar, Place, Rule, Terminal


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
    table = np.concatenate([dfa.transitions[:1], dfa.transitions])  # another start, where no text ends
    table[table >= 0] += 1
    accepting = np.concatenate([[False], dfa.accepting])
    return from_table(table, accepting.astype(np.uint8))


@keeps_automata
def word_dfa(text: str) -> Dfa:
    """The automaton of one text: a chain of states, which is minimal as it stands."""
    data = text.encode()
    transitions = np.full((len(data) + 1, 256), -1, np.int32)
    transitions[np.arange(len(data)), np.frombuffer(data, np.uint8)] = np.arange(1, len(data) + 1)
    accepting = np.zeros(len(data) + 1, np.bool_)
    accepting[-1] = True
    return Dfa(transitions, accepting)


def runs(dfas: Sequence[Dfa], max_states: int) -> Dfa | None:
    """One or more texts of some automata, one behind the other; None if that takes too many states."""
    start = frozenset((i, 0) for i in range(len(dfas)))
    numbers, sets, rows, accepting = {start: 0}, [start], list[list[int]](), list[bool]()
    for at in sets:
        accepting.append(any(dfas[i].accepting[state] for i, state in at))
        moves = np.stack([dfas[i].transitions[state] for i, state in at])
        columns, of_byte = np.unique(moves, axis=1, return_inverse=True)
        following = []
        for column in columns.T.tolist():
            after = frozenset((i, state) for (i, _), state in zip(at, column, strict=True) if state >= 0)
            if any(dfas[i].accepting[state] for i, state in after):
                after |= start
            if after and after not in numbers:
                if len(sets) == max_states:
                    return None
                numbers[after] = len(sets)
                sets.append(after)
            following.append(numbers.get(after, -1))
        rows.append(np.array(following)[of_byte.reshape(-1)].tolist())
    return from_table(np.array(rows, np.int32), np.array(accepting, np.uint8))
