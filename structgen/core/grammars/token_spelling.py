"""What longer tokens spell of a grammar although some of their bytes are no tokens: exactly, by a product.

A text that stands after a token can be finished if its rest is a run of tokens. Runs of tokens are a regular language:
bytes that are tokens, and the longer tokens that have others. So the grammar's product with it has what can be written
(Bar-Hillel, Perles and Shamir 1961: a context-free language meets a regular one in a context-free one).

One thing is added. Where a token has ended, the rest is to be a run of tokens of its own: "a" may begin "ab", and then
there must be a "b". So each token has a **mark** after it, a byte that the grammar does not have; the product reads
it where a token may end, and begins a run there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.grammars.regular_product import ByteAutomaton, ProductBounds, ProductTooLarge, product_grammar
from structgen.core.kernels.automata import calls
from structgen.core.vocabulary.vocabulary import Vocabulary

Flags = npt.NDArray[np.bool_]

MOST_RUN_STATES = 4_096
"""Of the automaton of runs of tokens; more is given up."""
BOUNDS = ProductBounds(1 << 16, 1 << 15, 1 << 19)


class ByTokens(NamedTuple):
    """A grammar over marked tokens, and the mark."""

    grammar: ContextFreeGrammar
    mark: int


def bytes_inside_tokens(used: Flags, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Those of some bytes that are no tokens, but inside tokens that are made of these bytes."""
    inside = set[int]().union(*_longer(used, vocabulary))
    return tuple(sorted(inside.difference(_single(vocabulary))))


def bytes_of(grammar: ContextFreeGrammar) -> Flags:
    """The bytes of all terminals."""
    used = np.zeros(256, np.bool_)
    for terminal in grammar.terminals:
        used |= (terminal.dfa.transitions >= 0).any(axis=0)
    return used


def by_tokens(grammar: ContextFreeGrammar, vocabulary: Vocabulary) -> ByTokens | None:
    """The texts of a grammar that runs of tokens spell; none where that would take too much.

    Captures are left out.
    """
    used = bytes_of(grammar)
    free = np.flatnonzero(~used)
    if not len(free):
        return None
    mark = int(free[-1])
    try:
        runs = _runs(used, vocabulary)
        return ByTokens(product_grammar(replace(grammar, captures=()), runs, BOUNDS, mark), mark)
    except ProductTooLarge:
        return None


@lru_cache(8)
def marked(vocabulary: Vocabulary, mark: int) -> Vocabulary:
    """The vocabulary with a byte after each token; those that have this byte spell nothing."""
    tokens = [token + bytes([mark]) if token and mark not in token else b"" for token in vocabulary.tokens]
    special = set(vocabulary.special_token_ids) - vocabulary.named  # whose bytes are stand-ins
    return Vocabulary(tokens, eos_token_ids=vocabulary.eos_token_ids, special_token_ids=special)


def _single(vocabulary: Vocabulary) -> bytes:
    """The bytes that are tokens."""
    return bytes({token[0] for token in vocabulary.tokens if len(token) == 1})


def _longer(used: Flags, vocabulary: Vocabulary) -> set[bytes]:
    """The tokens of such bytes of which some are no tokens."""
    used_bytes, single = bytes(np.flatnonzero(used).tolist()), _single(vocabulary)
    return {
        token for token in vocabulary.tokens if not token.translate(None, used_bytes) and token.translate(None, single)
    }


# --- runs of tokens ---
def _runs(used: Flags, vocabulary: Vocabulary) -> ByteAutomaton:
    """The minimal automaton of the texts that are runs of tokens: subsets of the places inside longer tokens where a
    text may stand. It is in state 0 where a token has just ended. Raises ProductTooLarge."""
    longer, single = _longer(used, vocabulary), _single(vocabulary)
    inside = {token[:n] for token in longer for n in range(1, len(token))}
    following: dict[bytes, set[int]] = {}
    for token in longer:
        for n, byte in enumerate(token):
            following.setdefault(token[:n], set()).add(byte)
    alone = {byte for byte in single if used[byte]}
    start = frozenset([b""])
    numbers, states, tables = {start: 0}, [start], []
    for state in states:
        transitions = np.full(256, -1, np.int32)
        bytes_ = set().union(*(following.get(text, ()) for text in state)) | (alone if b"" in state else set())
        for byte in sorted(bytes_):
            texts = {text + bytes([byte]) for text in state}
            after = texts & inside
            if texts & longer or (b"" in state and byte in alone):
                after.add(b"")
            if after:
                target = frozenset(after)
                transitions[byte] = numbers.setdefault(target, len(states))
                if transitions[byte] == len(states):
                    states.append(target)
        tables.append(transitions)
        if len(states) > MOST_RUN_STATES:
            raise ProductTooLarge("states", MOST_RUN_STATES)
    table, flags = calls.minimise(np.array(tables), np.array([b"" in state for state in states], np.uint8))
    return ByteAutomaton(table, flags.astype(np.bool_))
