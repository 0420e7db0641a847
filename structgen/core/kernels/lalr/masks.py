"""Masks: walks over the vocabulary's trie."""

from structgen.core.kernels.bits import lowest_bit, set_bit, set_bits
from structgen.core.kernels.interning import allocate, half, lacks_room, set_half, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.lalr.advance import byte_step, character_after, result_of
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.lexer import step
from structgen.core.kernels.lalr.liveness import config_ends, is_alive, live_state
from structgen.core.kernels.lalr.stack_truncation import cut_config
from structgen.core.kernels.lalr.tables import *
from structgen.core.kernels.memory import address, clear_words, copy_words, size, within


@internal
def classes_inside(h):
    """For each node of the vocabulary's trie, into inside_at, the set of classes of the characters below it, with CUT
    if some token there is not of whole characters. Means nothing at nodes within a character."""
    count = word(h, H_TRIE_SIZE)
    set_level_at(h, 0, 0)
    deepest = 0
    for i in range(count):
        depth = trie_depth(h, i)
        deepest = max(deepest, depth)
        reached = character_after(h, level_at(h, depth), trie_byte(h, i))
        classes = CUT if reached == -1 or (reached > 0 and trie_token(h, i) >= 0) else 0
        if reached < -1:
            classes = 1 << ((-2 - reached) % CLASS_BITS)
        set_level_at(h, depth + 1, 0 if reached < -1 else reached)
        set_inside_at(h, i, classes)
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
def _leaves(h, config, folded):
    """Whether a character of some class with a place in folded sets changes a configuration."""
    m, count = folded, word(h, H_CLASSES)
    while m < count:
        if step(h, config, m) != config:
            return True
        m += CLASS_BITS
    return False


@internal
def _stays(h, config, classes):
    """Whether all characters of a set of classes leave a configuration as it is. Found out as far as is needed."""
    if classes & (word(h, config + CONFIG_MOVES) | CUT) != 0:
        return False
    remaining = classes & ~word(h, config + CONFIG_LOOPS)
    while remaining != 0:
        folded = lowest_bit(remaining)
        remaining ^= 1 << folded
        field = config + (CONFIG_MOVES if _leaves(h, config, folded) else CONFIG_LOOPS)
        if lacks_room(h):
            return False
        set_word(h, field, word(h, field) | 1 << folded)
        if field == config + CONFIG_MOVES:
            return False
    return True


@internal
def _set_tokens(h, bits, lo, hi):
    """Set the bits of the tokens at nodes ``lo`` to ``hi`` of the vocabulary's trie."""
    first = tokens_before(h, lo)
    count = tokens_before(h, hi) - first
    within(first, count, size(h, token_at))
    set_bits(bits, word(h, H_WIDTH), address(h, token_at) + 4 * first, count)


@internal
def _keep_open(h, i, depth):
    """List a node whose subtree depends on what lies below the cut, and the nodes that lead to it."""
    n = word(h, H_OPENS)
    for level in range(word(h, H_BUILT), depth):
        set_open_at(h, n, path_at(h, level) << 1)
        n += 1
    set_open_at(h, n, i << 1 | 1)
    set_word(h, H_OPENS, n + 1)
    set_word(h, H_BUILT, depth)


@internal
def _walk(h, i, end, bits, is_cut):
    """Set the bits of the tokens at nodes ``i`` to ``end`` after which the state of the level before is live."""
    while i < end:
        depth, subtree_end = trie_depth(h, i), trie_end(h, i)
        set_word(h, H_BUILT, min(word(h, H_BUILT), depth))
        after = byte_step(h, level_at(h, depth), trie_byte(h, i))
        if lacks_room(h):
            return
        noted = word(h, H_UNKNOWNS)
        live = live_state(h, after, is_cut) if after != DEAD else NO
        if live == UNKNOWN and word(h, H_UNKNOWNS) == noted:
            _keep_open(h, i, depth)
            live = NO
        if live == NO:
            i = subtree_end
            continue
        # What is not known is followed too, so that all of it is found in one walk.
        set_level_at(h, depth + 1, after)
        set_path_at(h, depth, i)
        is_whole = subtree_end - i > 1 and after >> STATE_BITS == 0 and _stays(h, after, inside_at(h, i))
        following = subtree_end if is_whole else i + 1
        _set_tokens(h, bits, i, following)
        i = following


@internal
def _walk_open(h, config, first, count, bits, is_cut):
    """Walk the subtrees that a list in the heap names (int32; all, if there is none) from a configuration."""
    set_level_at(h, 0, config)
    set_word(h, H_BUILT, 0)
    set_word(h, H_OPENS, 0)
    if first == 0:
        _walk(h, 0, word(h, H_TRIE_SIZE), bits, is_cut)
        return
    for j in range(2 * first, 2 * first + count):
        i, depth = half(h, j) >> 1, trie_depth(h, half(h, j) >> 1)
        if half(h, j) & 1:
            _walk(h, i, trie_end(h, i), bits, is_cut)
        else:
            set_word(h, H_BUILT, min(word(h, H_BUILT), depth))
            set_path_at(h, depth, i)
            set_level_at(h, depth + 1, byte_step(h, level_at(h, depth), trie_byte(h, i)))
        if lacks_room(h):
            return


@internal
def _row_address(h, index):
    """The address of a row among the masks that were found."""
    width = word(h, H_WIDTH)
    within(width * index, width, size(h, mask_at))
    return address(h, mask_at) + 4 * width * index


@internal
def _keep_row(h, config, out):
    """Keep the row at address ``out`` as a configuration's, with the list of what is open."""
    if word(h, config + CONFIG_OPEN) == 0 and word(h, H_OPENS) > 0:  # else it is there since an earlier epoch
        n = word(h, H_OPENS)
        stored = allocate(h, (n + 1) >> 1)
        if lacks_room(h):
            return
        for j in range(n):
            set_half(h, 2 * stored + j, open_at(h, j))
        set_word(h, config + CONFIG_OPEN, stored)
        set_word(h, config + CONFIG_OPENS, n)
    index = word(h, H_MASK_COUNT)
    if index == word(h, H_MASK_CAP):  # forget all masks
        index = 0
        set_word(h, H_EPOCH, word(h, H_EPOCH) + 1)
    copy_words(out, _row_address(h, index), word(h, H_WIDTH))
    set_word(h, H_MASK_COUNT, index + 1)
    set_word(h, config + CONFIG_MASK, index)
    set_word(h, config + CONFIG_EPOCH, word(h, H_EPOCH))


@internal
def _is_kept(h, config):
    """Whether a configuration's row is kept."""
    return word(h, config + CONFIG_EPOCH) == word(h, H_EPOCH)


@internal
def _find_row(h, config, out):
    """The mask of a configuration, but for the end: first what holds of all stacks with the same top."""
    first = count = last = 0
    for level in range(3):
        current = config
        if level < 2:
            current = cut_config(h, config, FEW if level == 0 else MORE) if word(h, H_PROVED) != 0 else config
            if current == config:
                continue
        if lacks_room(h):
            return
        if current != last and (level == 0 or last == 0 or count > 0):
            if current != config and _is_kept(h, current):
                copy_words(_row_address(h, word(h, current + CONFIG_MASK)), out, word(h, H_WIDTH))
            else:
                _walk_open(h, current, first, count, out, current != config)
                if lacks_room(h) or word(h, H_UNKNOWNS) > 0:
                    return
                if current != config:
                    _keep_row(h, current, out)
            if current != config:
                first, count = word(h, current + CONFIG_OPEN), word(h, current + CONFIG_OPENS)
        last = current


@internal
def fill(h, state, out):
    """Write the mask of a state."""
    config, node = state & STATE_MASK, state >> STATE_BITS
    width = word(h, H_WIDTH)
    if node == 0 and _is_kept(h, config):
        copy_words(_row_address(h, word(h, config + CONFIG_MASK)), out, width)
        return 1
    clear_words(out, width)
    if node != 0:
        _walk_open(h, state, 0, 0, out, False)
        return result_of(h, 1)
    _find_row(h, config, out)
    if config_ends(h, config):
        for i in range(word(h, H_EOSES)):
            set_bit(out, width, eos_at(h, i))
    if not lacks_room(h) and word(h, H_UNKNOWNS) == 0:
        set_word(h, H_OPENS, 0)
        _keep_row(h, config, out)
    return result_of(h, 1)


@internal
def next_bytes(h, state, out):
    """Set bits, of the 256 at address ``out``, of the bytes that may come next."""
    for byte in range(256):
        after = byte_step(h, state, byte)
        if after != DEAD and is_alive(h, after):
            set_bit(out, 8, byte)
    return result_of(h, 1)
