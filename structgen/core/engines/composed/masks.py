"""Masks of composed states: each configuration's own mask, and the tokens that cross from one text into another.

A crossing token is a piece that ends the first text and a rest that goes on after it. Pieces are few, because an
embedded text ends with few bytes; those that the first text's own mask rules out are not tried. Rests that are tokens
themselves are looked up in the mask of what comes after, others are read. What was found is remembered by state.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import unpacked
from structgen.core.engines.byte_sets import EVERY_BYTE, byte_set
from structgen.core.engines.composed.configuration import Configuration
from structgen.core.engines.composed.crossings import Crossings, has_tokens
from structgen.core.engines.composed.steps import ConfigurationSteps

Row = npt.NDArray[np.int32]
Bits = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]  # words of a row, and what is set in each


def fill(
    steps: ConfigurationSteps,
    configurations: Sequence[Configuration],
    text: bytes,
    may_stop: bool,
    bitmask: Row,
    index: int,
) -> None:
    """Write the mask of a set of configurations into row ``index`` of a bitmask that fits.

    Args:
        steps: how they go on.
        configurations: all that read the text so far.
        text: so far, where monitors are asked; else nothing.
        may_stop: whether the whole text may.
        bitmask: int32[rows, words] or int32[words], written.
        index: of the row.
    """
    row = bitmask[index] if bitmask.ndim == 2 else bitmask
    if len(configurations) == 1:
        configurations[0].matcher.fill_next_token_bitmask(bitmask, index)
        part_rows = [row]
    else:
        rows = steps.composition.scratch(len(configurations))
        for i, configuration in enumerate(configurations):
            configuration.matcher.fill_next_token_bitmask(rows, i)
        np.bitwise_or.reduce(rows[: len(configurations)], axis=0, out=row)
        part_rows = list(rows[: len(configurations)])
    crossing = [
        bits
        for configuration, part in zip(configurations, part_rows, strict=True)
        for bits in _crossing(steps, configurations, configuration, text, part, row)
    ]
    for words, bits in crossing:
        row[words] |= bits
    if any(
        configuration.content is not None for configuration in configurations
    ):  # end of sequence where the whole text may stop
        for word, bit in steps.composition.end_bits:
            row[word] = row[word] | bit if may_stop else row[word] & ~bit


def _crossing(
    steps: ConfigurationSteps,
    configurations: Sequence[Configuration],
    configuration: Configuration,
    text: bytes,
    mask: Row,
    row: Row,
) -> tuple[Bits, ...]:
    """The tokens that leave a configuration's text, remembered by its state.

    Args:
        steps: how they go on.
        configurations: all of them.
        configuration: the one.
        text: so far, where monitors are asked.
        mask: its own.
        row: the masks of all; where there are many places to cross at, only the tokens that it lacks are looked at.
    """
    grammar = steps.composition
    if grammar.is_monitored:  # what may begin at the crossing depends on the whole text
        return _find(steps, configuration, text, mask, row)
    seen = configurations if grammar.is_wide(configuration) else (configuration,)  # those that decide on what is found
    key, is_shared = _memo_key(configuration, seen)
    if key is None:
        return _find(steps, configuration, text, mask, row)
    bits: tuple[Bits, ...] | None = grammar.recall(key) if is_shared else configuration.recall(key)
    if bits is None:
        bits = _find(steps, configuration, text, mask, row)
        if is_shared:
            grammar.remember(key, bits)
        else:
            configuration.remember(key, bits)
    return bits


def _memo_key(configuration: Configuration, seen: Sequence[Configuration]) -> tuple[Hashable, bool]:
    """Under what to remember a configuration's crossings that some others decide on, and whether for all matchers."""
    if configuration.matcher.state_is_shared:
        keys = [b.key() for b in seen]
        if None not in keys:
            return (configuration.key(), frozenset(keys)), True
    own_keys = [b.own_key() for b in seen]
    return (None, False) if None in own_keys else ((configuration.own_key(), frozenset(own_keys)), False)


def _find(
    steps: ConfigurationSteps, configuration: Configuration, text: bytes, mask: Row, row: Row
) -> tuple[Bits, ...]:
    grammar = steps.composition
    last, first = grammar.before, grammar.first
    if configuration.content is not None:
        last, first = configuration.content.last, _first_after(steps, configuration)
    candidates = grammar.crossings.between(last, first)
    possible = _possible(configuration, mask, candidates)
    lacking = unpacked(row, grammar.vocabulary.size) if grammar.is_wide(configuration) else None
    if lacking is not None:
        possible &= candidates.lack(possible, lacking)
    crossing_bits: list[Bits] = []
    for i in np.flatnonzero(possible).tolist():
        piece = candidates.piece(i)
        if not configuration.matcher.accept_bytes(piece):
            continue
        fresh = steps.exits(configuration, text + piece)
        configuration.matcher.rollback(1)
        if not fresh:
            continue
        if lacking is not None:
            bits = _continued(steps, fresh, candidates.lacking(i, lacking), text + piece)
        elif grammar.is_monitored:
            bits = _continued(steps, fresh, candidates.remainders(i), text + piece)
        else:
            key = piece, first, frozenset(map(_start_key, fresh))
            bits = grammar.recall(key)
            if bits is None:
                bits = _continued(steps, fresh, candidates.remainders(i), b"")
                grammar.remember(key, bits)
        if len(bits[0]):
            crossing_bits.append(bits)
    return tuple(crossing_bits)


def _start_key(configuration: Configuration) -> Hashable:
    """Equal for configurations at their start with the same future."""
    return configuration.content and configuration.content.key, (
        configuration.after or configuration.matcher
    ).state_key()


def _possible(configuration: Configuration, row: Row, candidates: Crossings) -> npt.NDArray[np.bool_]:
    """The pieces that the configuration's own mask does not rule out."""
    gates = candidates.gates
    possible = has_tokens(row, gates) | (gates < 0)
    if configuration.content is not None and (needed := configuration.matcher.bytes_to_stop()) != EVERY_BYTE:
        possible &= candidates.holding(needed)
    return possible


def _first_after(steps: ConfigurationSteps, configuration: Configuration) -> int:
    """Bytes that can come after an embedded text, as a set."""
    assert configuration.after is not None
    key = "first", configuration.after.state_key()
    first: int | None = steps.composition.recall(key)
    if first is None:
        first = byte_set(np.flatnonzero(configuration.after.next_bytes()).tolist())
        for terminal in configuration.after.embedded_here():
            first |= steps.composition.contents[terminal].first
        steps.composition.remember(key, first)
    return first


def _continued(
    steps: ConfigurationSteps, fresh: list[Configuration], remainders: tuple[tuple[bytes, int], ...], text: bytes
) -> Bits:
    """The tokens of a piece whose rests go on in ``fresh``, configurations at their start, after ``text``."""
    grammar = steps.composition
    row = np.zeros(-(-grammar.vocabulary.size // 32), np.int32)
    continued = np.empty_like(row)
    first = np.zeros(256, np.bool_)
    for configuration in fresh:
        configuration.matcher.fill_next_token_bitmask(continued)
        row |= continued
        first |= configuration.matcher.next_bytes()
    ids = np.array([grammar.crossings.ids.get(remaining, -1) for remaining, _ in remainders], np.int64)
    whole = has_tokens(row, ids).tolist()
    tokens = [token for (_, token), is_allowed in zip(remainders, whole, strict=True) if is_allowed]
    unsure = [pair for pair, is_allowed in zip(remainders, whole, strict=True) if not is_allowed and first[pair[0][0]]]
    reader = None if grammar.is_monitored or len(unsure) <= MANY else ConfigurationAutomaton(steps, fresh)
    for remaining, token in unsure:
        if steps.survives(fresh, remaining, text) if reader is None else reader.survives(remaining):
            tokens.append(token)
    return _bits(tokens)


MANY = 64
"""More rests than this are read by an automaton that is made on the way."""


class ConfigurationAutomaton:
    """The automaton of what follows some configurations, made as far as texts are read: equal states are met again."""

    def __init__(self, steps: ConfigurationSteps, configurations: Sequence[Configuration]) -> None:
        self._steps = ConfigurationSteps(steps.composition, None)  # apart, for its counts
        self._states: list[Sequence[Configuration]] = [configurations]
        self._following: list[dict[int, int]] = [{}]
        self._numbers: dict[Hashable, int] = {}

    def survives(self, data: bytes) -> bool:
        """Whether some configuration takes the text."""
        state = 0
        for byte in data:
            following = self._following[state].get(byte)
            state = self._step(state, byte) if following is None else following
            if state < 0:
                return False
        return True

    def _step(self, state: int, byte: int) -> int:
        successors = self._steps.advance([configuration.copy() for configuration in self._states[state]], bytes([byte]))
        number = -1
        if successors:
            keys = [configuration.key() for configuration in successors]
            number = len(self._states)
            if None not in keys:
                number = self._numbers.setdefault(frozenset(keys), number)
            if number == len(self._states):
                self._states.append(successors)
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
