"""Masks of pairs: of configurations with a state of an automaton over bytes that reads the same text.

Each set of configurations that a walk meets has a *row*: 256 numbers of rows after a byte (0: not known yet, -1: none),
and a set of the automaton's states, those with which some text completes both. The engine finds these sets
(`structgen.core.engines.cfg.pairs`): a walk asks for all that it lacks at once.
"""

from structgen.core.kernels.bits import set_bit
from structgen.core.kernels.cfg.advance import advance, ends_of
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import raise_flag, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import address, clear_words, size


@internal
def row_of(h, configs):
    """The row of configurations; RETRY where there is no room for another."""
    row = word(h, configs + CONFIGS_ROW)
    if row == 0:
        row = word(h, H_PAIRS)
        if row >= size(h, pair_configs):
            raise_flag(h, PAIRS_FULL)
            return RETRY
        set_word(h, H_PAIRS, row + 1)
        set_word(h, configs + CONFIGS_ROW, row)
        set_pair_configs(h, row, configs)
    return row


@internal
def _row_after(h, row, byte, depth):
    """The row after a byte, -1 for none, or RETRY with a flag; ``depth``: where the path may hold the byte."""
    following = pair_row(h, 256 * row + byte)
    if following != 0:
        return following
    set_path_at(h, depth, byte)
    configs = advance(h, pair_configs(h, row), address(h, path_at) + 8 * depth, 1)  # its low byte comes first
    if configs == RETRY:
        return RETRY
    following = -1
    if configs != DEAD:
        following = row_of(h, configs)
        if following == RETRY:
            return RETRY
    set_pair_row(h, 256 * row + byte, following)
    return following


@internal
def _is_live(h, row, q):
    """Whether a pair can be completed: 1, 0, or -1 where the engine is to find it."""
    liveness = pair_known(h, row)
    if liveness < 2:
        set_pair_known(h, row, 1)
        return -1
    return (pair_live(h, row * word(h, H_PAIR_WORDS) + (q >> 6)) >> (q & 63)) & 1


@internal
def fill_pairs(h, configs, q, out):
    """The mask of a pair into the row at address ``out``; UNMEASURED where sets of live states are lacking."""
    width, first = word(h, H_WIDTH), row_of(h, configs)
    if first == RETRY:
        return RETRY
    clear_words(out, width)
    lacking = False
    set_near_at(h, 0, (first << K_BITS) | q)
    i, end = 0, word(h, H_NODES)
    while i < end:
        node = trie_at(h, i)
        byte, depth, token, count = node & 255, (node >> 8) & DEPTH_MASK, node >> 43, (node >> 19) & SIZE_MASK
        pair = near_at(h, depth)
        after = pair_step(h, ((pair & K_MASK) << 8) + byte)
        row = -1
        if after >= 0:
            row = _row_after(h, pair >> K_BITS, byte, depth)
            if word(h, H_FLAG) != 0:
                return RETRY
        if row < 0:
            i += count
            continue
        set_near_at(h, depth + 1, (row << K_BITS) | after)
        if token != 0:
            live = _is_live(h, row, after)
            lacking |= live < 0
            token = token - 1 if live == 1 else -1
            while token >= 0:
                set_bit(out, width, token)
                token = next_same(h, token)
        i += 1
    if lacking:
        return UNMEASURED
    if ends_of(h, configs) & 1 and pair_ends(h, q):
        for j in range(word(h, H_EOSES)):
            set_bit(out, width, eos_at(h, j))
    return 1
