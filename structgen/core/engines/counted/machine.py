"""What grammars share that count characters over the same automaton and vocabulary: where tokens lead, and masks."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structgen.core.bounded_cache import BoundedCache
from structgen.core.engines.bitmask import packed
from structgen.core.engines.byte_sets import byte_set
from structgen.core.engines.counted.lengths import BITS, CharacterCounts
from structgen.core.vocabulary.vocabulary import Vocabulary

MASK_BYTES = 8 << 20
MOST_FOLLOWED, MOST_CLOSING, MOST_MACHINES = 8, 1 << 14, 6
Mask = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]
PREFERENCE = np.array(sorted(range(256), key=lambda byte: (not chr(byte).isalnum(), not 32 <= byte < 127, byte)))
"""Bytes in the order in which completions take them."""


class Followed(NamedTuple):
    """Where the tokens of a vocabulary lead from a state of an automaton, in groups.

    Attributes:
        states: int64[groups], the number of states where they lead nowhere.
        counts: int64[groups], the characters that begin in them.
        groups: int32[V], the group of each token.
    """

    states: Ids
    counts: Ids
    groups: npt.NDArray[np.int32]


class CountedMachine:
    """An automaton whose characters are counted, over a vocabulary. Nothing in it changes but what is kept.

    Far from both bounds a mask is that of the automaton. Where a token could matter to a bound, it is looked at where
    each leads, and how many characters it has.

    Attributes:
        lengths: the automaton, and what completes its states.
        table: its transitions, row by row.
        far: characters to a bound from which on no token can reach it.
    """

    def __init__(self, lengths: CharacterCounts, vocabulary: Vocabulary) -> None:
        self.lengths, self._vocabulary = lengths, vocabulary
        transitions = np.ascontiguousarray(lengths.dfa.transitions)
        self.table = transitions.reshape(-1).data
        self._dead = len(transitions)
        with_dead = np.where(transitions < 0, self._dead, transitions)
        self._transitions = np.append(with_dead, np.full((1, 256), self._dead, np.int32), axis=0).astype(np.int32)
        self._inside = np.append(lengths.inside, False)
        starts = vocabulary.token_offsets[:-1].astype(np.int64)
        self._starts, self._sizes = starts, np.diff(vocabulary.token_offsets).astype(np.int64)
        self._first_bytes = np.where(self._sizes > 0, np.append(vocabulary.token_bytes, 0)[starts], 0)
        begins = np.concatenate(([0], np.cumsum((vocabulary.token_bytes & 0xC0) != 0x80)))
        self.far = int(np.diff(begins[vocabulary.token_offsets]).max(initial=1)) + lengths.regular
        self._masks: BoundedCache[Hashable, Mask] = BoundedCache(MASK_BYTES, lambda mask: mask.nbytes)
        self._followed: BoundedCache[int, Followed] = BoundedCache(MOST_FOLLOWED)
        self._closing: BoundedCache[tuple[int, int], int] = BoundedCache(MOST_CLOSING)

    @property
    def memory_bytes(self) -> int:
        """Bytes of its tables, and of what is kept."""
        followed = len(self._followed) * 4 * self._vocabulary.size
        return self._transitions.nbytes + self._masks.memory_bytes + followed

    # --- masks ---
    def mask(self, state: int, least: int, most: int) -> Mask:
        """The tokens that may come next where so many characters must and may come; not to be changed.

        Args:
            state: of the automaton.
            least, most: `far` stands for that many and more.
        """
        key = state, least, most
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks.put(key, self._made(state, least, most))
        return mask

    def _made(self, state: int, least: int, most: int) -> Mask:
        states, counts, groups = self._follow(state)
        fits = states < self._dead
        fits[fits] = self.lengths.complete_all(states[fits], least - counts[fits], most - counts[fits])
        allowed = fits[groups]
        allowed[self._sizes == 0] = False
        allowed[list(self._vocabulary.eos_token_ids)] = not least and bool(self.lengths.dfa.accepting[state])
        return packed(allowed, -(-self._vocabulary.size // 32))

    def _follow(self, state: int) -> Followed:
        followed = self._followed.get(state)
        return followed or self._followed.put(state, self._grouped(state))

    def _grouped(self, state: int) -> Followed:
        """Most tokens lead from one state where they do from another: the first byte says which do not."""
        width = self.far + 1
        if state == 0:
            codes = np.zeros(self._vocabulary.size, np.int64)
            tokens = np.arange(self._vocabulary.size)
        else:
            common = self._follow(0)
            codes = (common.states * width + common.counts)[common.groups]
            other = self._transitions[state] != self._transitions[0]
            tokens = np.flatnonzero(other[self._first_bytes] | (self._inside[state] != self._inside[0]))
        states, counts = self._walk(state, tokens)
        codes[tokens] = states * width + counts
        distinct = np.flatnonzero(np.bincount(codes))
        numbers = np.zeros(int(distinct[-1]) + 1, np.int32)
        numbers[distinct] = np.arange(len(distinct), dtype=np.int32)
        return Followed(distinct // width, distinct % width, numbers[codes])

    def _walk(self, state: int, tokens: Ids) -> tuple[Ids, Ids]:
        """The states that tokens lead to, and the characters that begin in them."""
        starts, sizes = self._starts[tokens], self._sizes[tokens]
        states, counts = np.full(len(tokens), state, np.int64), np.zeros(len(tokens), np.int64)
        alive = np.flatnonzero(sizes)
        position = 0
        while len(alive):
            data = self._vocabulary.token_bytes[starts[alive] + position]
            before = states[alive]
            counts[alive] += ((data & 0xC0) != 0x80) & ~self._inside[before]
            after = states[alive] = self._transitions[before, data]
            position += 1
            alive = alive[(after < self._dead) & (sizes[alive] > position)]
        return states, counts

    # --- completions ---
    def closing_byte(self, state: int, left: int) -> int:
        """The byte with which a completion of so many characters goes on that has as many."""
        key = state, min(left, BITS)
        byte = self._closing.get(key)
        return self._closing.put(key, self._closing_byte(*key)) if byte is None else byte

    def _closing_byte(self, state: int, left: int) -> int:
        row = self.lengths.dfa.transitions[state]
        for byte in PREFERENCE[row[PREFERENCE] >= 0].tolist():
            after = left - (byte & 0xC0 != 0x80 and not self.lengths.inside[state])
            if self.lengths.complete(int(row[byte]), after, after):
                return int(byte)
        raise AssertionError(f"no completion of {left} characters from the state {state}")

    def completion(self, state: int, least: int) -> bytes:
        """A completion of the fewest characters, of so many at least."""
        left, text = self.lengths.fewest(state, least), bytearray()
        while left or not self.lengths.dfa.accepting[state]:
            byte = self.closing_byte(state, left)
            left -= byte & 0xC0 != 0x80 and not self.lengths.inside[state]
            state = self.table[256 * state + byte]
            text.append(byte)
        return bytes(text)

    @cached_property
    def last_bytes(self) -> int:
        """The bytes that texts end with, as a set."""
        table = self.lengths.dfa.transitions
        ends = (table >= 0) & self.lengths.dfa.accepting[table]
        return byte_set(np.flatnonzero(ends.any(axis=0)).tolist())

    @cached_property
    def needed_bytes(self) -> list[int]:
        """For each state a set of bytes of which every completion holds one: of one byte, the rarest there is."""
        table, accepting = self.lengths.dfa.transitions, self.lengths.dfa.accepting
        needed = [self.last_bytes] * len(accepting)
        counts = np.bincount(self._vocabulary.token_bytes, minlength=256)
        for byte in sorted(set(self.completion(0, 0)), key=lambda byte: -counts[byte]):
            others = np.delete(table, byte, axis=1)
            done = np.append(accepting, False)
            while (more := accepting | done[others].any(axis=1)).sum() > done.sum():
                done[:-1] = more
            for state in np.flatnonzero(~done[:-1]).tolist():
                needed[state] = 1 << byte
        return needed


@lru_cache(MOST_MACHINES)
def machine_of(lengths: CharacterCounts, vocabulary: Vocabulary) -> CountedMachine:
    """The machine of an automaton over a vocabulary; the last few are kept."""
    return CountedMachine(lengths, vocabulary)
