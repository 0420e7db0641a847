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

from structgen.compiled import CompiledGrammar
from structgen.composition.branch import Branch, local_key, state_key
from structgen.composition.last_bytes import byte_set
from structgen.grammar_machine.matcher import CfgMatcher

if TYPE_CHECKING:
    from structgen.composition.crossings import Crossings
    from structgen.composition.matcher import ComposedMatcher

Row = npt.NDArray[np.int32]
Bits = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]  # words of a row, and what is set in each


def fill(matcher: ComposedMatcher, branches: Sequence[Branch], bitmask: Row, index: int) -> None:
    """Write the mask of a set of branches into row ``index``; the first branch's matcher checks the arguments."""
    branches[0].matcher.fill_next_token_bitmask(bitmask, index)
    row = bitmask[index] if bitmask.ndim == 2 else bitmask
    crossing = _crossing(matcher, branches[0], row)
    if len(branches) > 1:
        own = np.empty_like(row)
        for branch in branches[1:]:
            branch.matcher.fill_next_token_bitmask(own)
            crossing = crossing + _crossing(matcher, branch, own)
            row |= own
    for words, bits in crossing:
        row[words] |= bits
    if any(branch.content is not None for branch in branches):  # end of sequence where the whole text may stop
        may_stop = matcher.is_accepting()
        for word, bit in matcher.grammar.end_bits:
            row[word] = row[word] | bit if may_stop else row[word] & ~bit


def _crossing(matcher: ComposedMatcher, branch: Branch, row: Row) -> tuple[Bits, ...]:
    """The tokens that leave the branch's text, remembered by its state; ``row`` is its own mask."""
    grammar = matcher.grammar
    if isinstance(branch.matcher, CfgMatcher):
        key: Hashable = branch.key()
        known: tuple[Bits, ...] | None = grammar.recall(key)
        if known is None:
            known = _find(matcher, branch, row)
            grammar.remember(key, known)
        return known
    key = local_key(branch.matcher)
    known = branch.memo.get(key)
    if known is None:
        known = _find(matcher, branch, row)
        if key is not None:
            branch.memo[key] = known
    return known


def _find(matcher: ComposedMatcher, branch: Branch, row: Row) -> tuple[Bits, ...]:
    grammar = matcher.grammar
    if branch.content is None:
        candidates = grammar.crossings.between(grammar.before, grammar.first)
    else:
        candidates = grammar.crossings.between(branch.content.last, _first_behind(matcher, branch))
    found: list[Bits] = []
    for i in _possible(matcher, branch, row, candidates):
        piece = candidates.pieces[i]
        if branch.matcher.accept_bytes(piece):
            fresh = matcher.exits(branch)
            branch.matcher.rollback(1)
            if fresh and len((bits := _continued(matcher, fresh, piece, candidates.rests[i]))[0]):
                found.append(bits)
    return tuple(found)


def _possible(matcher: ComposedMatcher, branch: Branch, row: Row, candidates: Crossings) -> list[int]:
    """Numbers of the pieces that the branch's own mask does not rule out."""
    gates = candidates.gates
    possible = _has(row, gates) | (gates < 0)
    if branch.content is not None and isinstance(branch.content.grammar, CompiledGrammar):
        letter = matcher.grammar.crossings.ids.get(b"A", -1)
        # Outside of strings JSON has no A: here is one, which ends with a quote, and only then the value can end.
        if letter >= 0 and row[letter >> 5] >> (letter & 31) & 1:
            possible &= candidates.quoted
    found: list[int] = np.flatnonzero(possible).tolist()
    return found


def _first_behind(matcher: ComposedMatcher, branch: Branch) -> int:
    """Bytes that can come behind an embedded text, as a set."""
    assert branch.after is not None
    key = "first", state_key(branch.after)
    first: int | None = matcher.grammar.recall(key)
    if first is None:
        behind = matcher.behind(branch.after)
        first = byte_set(byte for b in behind for byte in np.flatnonzero(b.matcher.next_bytes()).tolist())
        matcher.grammar.remember(key, first)
    return first


def _continued(
    matcher: ComposedMatcher, fresh: list[Branch], piece: bytes, rests: tuple[tuple[bytes, int], ...]
) -> Bits:
    """The tokens of a piece whose rests go on in ``fresh``, branches at their start."""
    grammar = matcher.grammar
    keys = frozenset((id(b.content), state_key(b.after if b.after is not None else b.matcher)) for b in fresh)
    key = piece, keys, fresh[0].content is None
    known: Bits | None = grammar.recall(key)
    if known is not None:
        return known
    row = np.zeros(-(-grammar.vocabulary.size // 32), np.int32)
    own = np.empty_like(row)
    first = np.zeros(256, np.bool_)
    for branch in fresh:
        branch.matcher.fill_next_token_bitmask(own)
        row |= own
        first |= branch.matcher.next_bytes()
    ids = np.array([grammar.crossings.ids.get(rest, -1) for rest, _ in rests], np.int64)
    tokens = []
    for (rest, token), whole in zip(rests, _has(row, ids).tolist(), strict=True):
        if whole or (first[rest[0]] and matcher.survives(fresh, rest)):
            tokens.append(token)
    known = _bits(tokens)
    grammar.remember(key, known)
    return known


def _has(row: Row, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which tokens (-1: none) a row has."""
    found: npt.NDArray[np.bool_] = (tokens >= 0) & (row[np.maximum(tokens, 0) >> 5] >> (tokens & 31) & 1).astype(
        np.bool_
    )
    return found


def _bits(tokens: Sequence[int]) -> Bits:
    """Tokens as words and bits, each word once."""
    ids = np.array(sorted(tokens), np.int64)
    words, first = np.unique(ids >> 5, return_index=True)
    if not tokens:
        return words, words.astype(np.int32)
    bits = np.bitwise_or.reduceat(np.left_shift(1, ids & 31), first)
    return words, bits.astype(np.uint32).view(np.int32)
