"""Masks: walks over the vocabulary's trie."""

from structgen.kernels.bits import set_bit
from structgen.kernels.interning import lacks_room, set_word, word
from structgen.kernels.jit import internal
from structgen.kernels.lalr.advance import byte_step, character_after, result_of
from structgen.kernels.lalr.layout import *
from structgen.kernels.lalr.lexer import step
from structgen.kernels.lalr.liveness import config_ends, is_alive
from structgen.kernels.lalr.tables import (
    eos_at,
    inside_at,
    level_at,
    next_same,
    set_inside_at,
    set_level_at,
    trie_byte,
    trie_depth,
    trie_end,
    trie_token,
)
from structgen.kernels.memory import address, clear_words, copy_words, element_reader, size, within

_int = element_reader(32)


@internal
def classes_inside(h):
    """For each node of the vocabulary's trie, into H_INSIDE, the set of classes of the characters below it, with CUT
    if some token there is not of whole characters. Means nothing at nodes within a character."""
    count = word(h, H_TRIE_SIZE)
    set_level_at(h, 0, 0)
    deepest = 0
    for i in range(count):
        depth = trie_depth(h, i)
        deepest = max(deepest, depth)
        found = character_after(h, level_at(h, depth), trie_byte(h, i))
        own = CUT if found == -1 or (found > 0 and trie_token(h, i) >= 0) else 0
        if found < -1:
            own = 1 << ((-2 - found) % CLASS_BITS)
        set_level_at(h, depth + 1, 0 if found < -1 else found)
        set_inside_at(h, i, own)
    for depth in range(deepest + 2):
        set_level_at(h, depth, 0)
    for i in range(count - 1, -1, -1):  # the level below a node holds what its children found
        depth = trie_depth(h, i)
        below = level_at(h, depth + 1)
        set_level_at(h, depth + 1, 0)
        set_level_at(h, depth, level_at(h, depth) | inside_at(h, i) | below)
        set_inside_at(h, i, below)
    return 1


@internal
def _loops(h, config):
    """The classes of characters that leave a configuration as it is, and KNOWN."""
    known = word(h, config + CONFIG_LOOPS)
    if known != 0:
        return known
    others = 0
    for m in range(word(h, H_CLASSES)):
        if step(h, config, m) != config:
            others |= 1 << (m % CLASS_BITS)
    known = (((1 << CLASS_BITS) - 1) & ~others) | KNOWN
    if lacks_room(h):
        return KNOWN
    set_word(h, config + CONFIG_LOOPS, known)
    return known


@internal
def _set_tokens(h, bits, lo, hi):
    """Set the bits of the tokens at nodes ``lo`` to ``hi`` of the vocabulary's trie."""
    width, tokens = word(h, H_WIDTH), address(h, H_TRIE_TOKEN)
    within(lo, hi - lo, size(h, H_TRIE_TOKEN))
    for i in range(lo, hi):
        token = _int(tokens, i)  # most nodes of a subtree have one: nothing is looked up for each
        while token >= 0:
            set_bit(bits, width, token)
            token = next_same(h, token)


@internal
def _walk(h, state, bits):
    """Set the bits of all tokens after which a state is live."""
    set_level_at(h, 0, state)
    count = word(h, H_TRIE_SIZE)
    i = 0
    while i < count:
        depth, end = trie_depth(h, i), trie_end(h, i)
        after = byte_step(h, level_at(h, depth), trie_byte(h, i))
        if lacks_room(h):
            return
        noted = word(h, H_UNKNOWNS)
        if after == DEAD or not (is_alive(h, after) or word(h, H_UNKNOWNS) > noted):
            i = end  # what is not known is followed too, so that all of it is found in one walk
            continue
        set_level_at(h, depth + 1, after)
        is_whole = end - i >= SUBTREE and after >> STATE_BITS == 0 and inside_at(h, i) & ~_loops(h, after) == 0
        following = end if is_whole else i + 1
        _set_tokens(h, bits, i, following)
        i = following


@internal
def _row_address(h, place):
    """The address of a row among the masks that were found."""
    width = word(h, H_WIDTH)
    within(width * place, width, size(h, H_MASKS))
    return address(h, H_MASKS) + 4 * width * place


@internal
def fill(h, state, out):
    """Write the mask of a state."""
    config, node = state & STATE_MASK, state >> STATE_BITS
    width = word(h, H_WIDTH)
    if node == 0 and word(h, config + CONFIG_EPOCH) == word(h, H_EPOCH):
        copy_words(_row_address(h, word(h, config + CONFIG_MASK)), out, width)
        return 1
    clear_words(out, width)
    _walk(h, state, out)
    if node == 0 and config_ends(h, config):
        for i in range(word(h, H_EOSES)):
            set_bit(out, width, eos_at(h, i))
    if node == 0 and not lacks_room(h) and word(h, H_UNKNOWNS) == 0:
        place = word(h, H_MASK_COUNT)
        if place == word(h, H_MASK_CAP):  # forget all masks
            place = 0
            set_word(h, H_EPOCH, word(h, H_EPOCH) + 1)
        copy_words(out, _row_address(h, place), width)
        set_word(h, H_MASK_COUNT, place + 1)
        set_word(h, config + CONFIG_MASK, place)
        set_word(h, config + CONFIG_EPOCH, word(h, H_EPOCH))
    return result_of(h, 1)


@internal
def next_bytes(h, state, out):
    """Set bits, of the 256 at address ``out``, of the bytes that may come next."""
    for byte in range(256):
        after = byte_step(h, state, byte)
        if after != DEAD and is_alive(h, after):
            set_bit(out, 8, byte)
    return result_of(h, 1)
