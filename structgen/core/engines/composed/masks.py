"""Masks of composed states: each branch's own mask, and the tokens that cross from one text into another.

A crossing token is a piece that ends the first text and a rest that goes on behind it. Pieces are few, because an
embedded text ends with few bytes; those that the first text's own mask rules out are not tried. Rests that are tokens
themselves are looked up in the mask of what comes behind, others are read. What was found is remembered by state.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bit_rows import unpacked
from structgen.core.engines.byte_sets import EVERY_BYTE, byte_set
from structgen.core.engines.composed.branch import Branch
from structgen.core.engines.composed.crossings import has_tokens

if TYPE_CHECKING:
    from structgen.core.engines.composed.crossings import Crossings
    from structgen.core.engines.composed.matcher import ComposedMatcher

Row = npt.NDArray[np.int32]
Bits = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]  # words of a row, and what is set in each


def fill(matcher: ComposedMatcher, branches: Sequence[Branch], bitmask: Row, index: int) -> None:
    """Write the mask of a set of branches into row ``index`` of a bitmask that fits."""
    row = bitmask[index] if bitmask.ndim == 2 else bitmask
    if len(branches) == 1:
        branches[0].matcher.fill_next_token_bitmask(bitmask, index)
        own = [row]
    else:
        rows = matcher.grammar.scratch(len(branches))
        for i, branch in enumerate(branches):
            branch.matcher.fill_next_token_bitmask(rows, i)
        np.bitwise_or.reduce(rows[: len(branches)], axis=0, out=row)
        own = list(rows[: len(branches)])
    crossing = [
        bits
        for branch, part in zip(branches, own, strict=True)
        for bits in _crossing(matcher, branches, branch, part, row)
    ]
    for words, bits in crossing:
        row[words] |= bits
    if any(branch.content is not None for branch in branches):  # end of sequence where the whole text may stop
        may_stop = matcher.is_accepting()
        for word, bit in matcher.grammar.end_bits:
            row[word] = row[word] | bit if may_stop else row[word] & ~bit


def _crossing(
    matcher: ComposedMatcher, branches: Sequence[Branch], branch: Branch, own: Row, row: Row
) -> tuple[Bits, ...]:
    """The tokens that leave a branch's text, remembered by its state.

    Args:
        matcher: whose branches they are.
        branches: all of them.
        branch: the one.
        own: its own mask.
        row: the masks of all; where there are many places to cross at, only the tokens that it lacks are looked at.
    """
    grammar = matcher.grammar
    seen = branches if grammar.is_wide(branch) else (branch,)  # those that decide on what is found
    key, is_shared = _memo_key(branch, seen)
    if key is None:
        return _find(matcher, branch, own, row)
    known: tuple[Bits, ...] | None = grammar.recall(key) if is_shared else branch.recall(key)
    if known is None:
        known = _find(matcher, branch, own, row)
        if is_shared:
            grammar.remember(key, known)
        else:
            branch.remember(key, known)
    return known


def _memo_key(branch: Branch, seen: Sequence[Branch]) -> tuple[Hashable, bool]:
    """Under what to remember the crossings of a branch that some branches decide on, and whether for all matchers."""
    if branch.matcher.state_is_shared:
        keys = [b.key() for b in seen]
        if None not in keys:
            return (branch.key(), frozenset(keys)), True
    own = [b.own_key() for b in seen]
    return (None, False) if None in own else ((branch.own_key(), frozenset(own)), False)


def _find(matcher: ComposedMatcher, branch: Branch, own: Row, row: Row) -> tuple[Bits, ...]:
    grammar = matcher.grammar
    last, first = grammar.before, grammar.first
    if branch.content is not None:
        last, first = branch.content.last, _first_behind(matcher, branch)
    candidates = grammar.crossings.between(last, first)
    possible = _possible(branch, own, candidates)
    lacking = unpacked(row, grammar.vocabulary.size) if grammar.is_wide(branch) else None
    if lacking is not None:
        possible &= candidates.lack(possible, lacking)
    found: list[Bits] = []
    for i in np.flatnonzero(possible).tolist():
        piece = candidates.piece(i)
        if not branch.matcher.accept_bytes(piece):
            continue
        fresh = matcher.exits(branch)
        branch.matcher.rollback(1)
        if not fresh:
            continue
        if lacking is not None:
            bits = _continued(matcher, fresh, candidates.lacking(i, lacking))
        else:
            key = piece, first, frozenset(map(_start_key, fresh))
            bits = grammar.recall(key)
            if bits is None:
                bits = _continued(matcher, fresh, candidates.rests(i))
                grammar.remember(key, bits)
        if len(bits[0]):
            found.append(bits)
    return tuple(found)


def _start_key(branch: Branch) -> Hashable:
    """Equal for branches at their start with the same future."""
    return id(branch.content), (branch.after or branch.matcher).state_key()


def _possible(branch: Branch, row: Row, candidates: Crossings) -> npt.NDArray[np.bool_]:
    """The pieces that the branch's own mask does not rule out."""
    gates = candidates.gates
    possible = has_tokens(row, gates) | (gates < 0)
    if branch.content is not None and (needed := branch.matcher.bytes_to_stop()) != EVERY_BYTE:
        possible &= candidates.holding(needed)
    return possible


def _first_behind(matcher: ComposedMatcher, branch: Branch) -> int:
    """Bytes that can come behind an embedded text, as a set."""
    assert branch.after is not None
    key = "first", branch.after.state_key()
    first: int | None = matcher.grammar.recall(key)
    if first is None:
        behind = matcher.behind(branch.after)
        first = byte_set(byte for b in behind for byte in np.flatnonzero(b.matcher.next_bytes()).tolist())
        matcher.grammar.remember(key, first)
    return first


def _continued(matcher: ComposedMatcher, fresh: list[Branch], rests: tuple[tuple[bytes, int], ...]) -> Bits:
    """The tokens of a piece whose rests go on in ``fresh``, branches at their start."""
    grammar = matcher.grammar
    row = np.zeros(-(-grammar.vocabulary.size // 32), np.int32)
    own = np.empty_like(row)
    first = np.zeros(256, np.bool_)
    for branch in fresh:
        branch.matcher.fill_next_token_bitmask(own)
        row |= own
        first |= branch.matcher.next_bytes()
    ids = np.array([grammar.crossings.ids.get(rest, -1) for rest, _ in rests], np.int64)
    whole = has_tokens(row, ids).tolist()
    tokens = [token for (_, token), is_allowed in zip(rests, whole, strict=True) if is_allowed]
    unsure = [pair for pair, is_allowed in zip(rests, whole, strict=True) if not is_allowed and first[pair[0][0]]]
    reader = BranchAutomaton(matcher, fresh) if len(unsure) > MANY else None
    for rest, token in unsure:
        if matcher.survives(fresh, rest) if reader is None else reader.survives(rest):
            tokens.append(token)
    return _bits(tokens)


MANY = 64
"""More rests than this are read by an automaton that is made on the way."""


class BranchAutomaton:
    """The automaton of what follows some branches, made as far as texts are read: equal states are met again."""

    def __init__(self, matcher: ComposedMatcher, branches: Sequence[Branch]) -> None:
        self._matcher = matcher.grammar.matcher()  # apart, for its counts
        self._states: list[Sequence[Branch]] = [branches]
        self._following: list[dict[int, int]] = [{}]
        self._numbers: dict[Hashable, int] = {}

    def survives(self, data: bytes) -> bool:
        """Whether some branch takes the text."""
        state = 0
        for byte in data:
            following = self._following[state].get(byte)
            state = self._step(state, byte) if following is None else following
            if state < 0:
                return False
        return True

    def _step(self, state: int, byte: int) -> int:
        found = self._matcher.advance([branch.copy() for branch in self._states[state]], bytes([byte]))
        number = -1
        if found:
            keys = [branch.key() for branch in found]
            number = len(self._states)
            if None not in keys:
                number = self._numbers.setdefault(frozenset(keys), number)
            if number == len(self._states):
                self._states.append(found)
                self._following.append({})
        self._following[state][byte] = number
        return number


def _bits(tokens: Sequence[int]) -> Bits:
    """Tokens as words and bits, each word once."""
    ids = np.array(sorted(tokens), np.int64)
    words, first = np.unique(ids >> 5, return_index=True)
    if not tokens:
        return words, words.astype(np.int32)
    bits = np.bitwise_or.reduceat(np.left_shift(1, ids & 31), first)
    return words, bits.astype(np.uint32).view(np.int32)
