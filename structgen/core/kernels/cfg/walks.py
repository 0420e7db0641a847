"""Walks over tries of tokens."""

from structgen.core.kernels.cfg.buffers import allocate_mask, push
from structgen.core.kernels.cfg.item_sets import goto
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.lexer import loops, step
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import half, lacks_room, raise_flag, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import element
from structgen.core.kernels.memory import size as table_size


@internal
def add_config(h, level, r, d):
    """Add a configuration to those alive after ``level`` bytes of the path; False if it is there or finds no room."""
    width, n = word(h, H_WIDTH_OF_LEVEL), count_at(h, level)
    first, config = level * width, (r << K_BITS) | d
    for j in range(first, first + n):
        if level_at(h, j) & CONFIG_MASK == config:
            return False
    if n >= width:
        raise_flag(h, LEVELS_FULL)
        return False
    if word(h, d + LEX_ACCEPTS) != 0:
        config |= DEFERRED
        set_deferred_at(h, level, deferred_at(h, level) + 1)
    set_level_at(h, first + n, config)
    set_count_at(h, level, n + 1)
    return True


@internal
def _carry(h, level, last, r, d):
    """Add a configuration after ``level`` bytes of the path, follow the path to byte ``last``; whether it survives."""
    if not add_config(h, level, r, d):
        return False
    for i in range(level, last + 1):
        d = step(h, d, path_at(h, i))
        if d < 0 or not add_config(h, i + 1, r, d):
            return False
    return True


@internal
def _spawn(h, last):
    """Follow terminals that end on the path until a configuration with a context survives; whether one does."""
    width, any_items = word(h, H_WIDTH_OF_LEVEL), word(h, H_ANY)
    for level in range(last + 1):
        j = 0
        while deferred_at(h, level) > 0 and j < count_at(h, level):
            config = level_at(h, level * width + j)
            if config & DEFERRED:
                config &= CONFIG_MASK
                set_level_at(h, level * width + j, config)
                set_deferred_at(h, level, deferred_at(h, level) - 1)
                following = goto(h, config >> K_BITS, word(h, (config & K_MASK) + LEX_ACCEPTS))
                if lacks_room(h):
                    return False
                alive = _carry(h, level, last, following, word(h, following + ITEMS_LEX))
                if word(h, following + ITEMS_OPEN):
                    _carry(h, level, last, any_items, word(h, any_items + ITEMS_LEX))
                if alive:
                    return True
            j += 1
    return False


@internal
def _follow(h, depth, byte):
    """Advance the configurations at a depth by a byte: 2 some context lives, 1 only cut contexts do, 0 none."""
    any_items = word(h, H_ANY)
    first = depth * word(h, H_WIDTH_OF_LEVEL)
    set_count_at(h, depth + 1, 0)
    set_deferred_at(h, depth + 1, 0)
    has_context = False
    for j in range(first, first + count_at(h, depth)):
        config = level_at(h, j) & CONFIG_MASK
        d = step(h, config & K_MASK, byte)
        if d >= 0:
            add_config(h, depth + 1, config >> K_BITS, d)
            has_context |= config >> K_BITS != any_items
    if has_context or _spawn(h, depth):
        return 2
    return 1 if count_at(h, depth + 1) > 0 else 0


@internal
def keep(h, depth, token):
    """Add a token at the current path to the trie in buffer E."""
    built = word(h, H_BUILT)
    for i in range(built, depth):
        push(h, H_E, path_at(h, i) | (i << 8))
    push(h, H_E, path_at(h, depth) | (depth << 8) | (token << 43))
    set_word(h, H_BUILT, depth + 1)
    if 0 < word(h, H_LIMIT) < word(h, H_ETOP):
        set_word(h, H_LIMIT, -1)  # too many: the walk is given up


@internal
def _is_whole(h, i, depth):
    """Whether all tokens below node ``i`` of the vocabulary's trie stay in a terminal of a configuration there."""
    below = kinds_at(h, i)
    first = (depth + 1) * word(h, H_WIDTH_OF_LEVEL)
    for j in range(first, first + count_at(h, depth + 1)):
        config = level_at(h, j) & CONFIG_MASK
        if config >> K_BITS != word(h, H_ANY) and below & ~loops(h, config & K_MASK) == 0:
            return True
    return False


@internal
def _push_tokens(h, token):
    """A token and those with the same bytes, or the tokens of a group, to buffer B; -1: none."""
    group = token - table_size(h, next_same)
    if group >= 0:
        for i in range(group_from(h, group), group_from(h, group + 1)):
            push(h, H_B, group_at(h, i))
        return
    while token >= 0:
        push(h, H_B, token)
        token = next_same(h, token)


@internal
def _follow_single(h, depth, r, d):
    """Make a configuration the only one after ``depth + 1`` bytes of the path; whether no terminal ends there."""
    ends = word(h, d + LEX_ACCEPTS) != 0
    config = (r << K_BITS) | d
    set_level_at(h, (depth + 1) * word(h, H_WIDTH_OF_LEVEL), config | DEFERRED if ends else config)
    set_count_at(h, depth + 1, 1)
    set_deferred_at(h, depth + 1, 1 if ends else 0)
    return not ends


@internal
def _walk_nodes(h, table, i, end):
    """Walk nodes ``i`` to ``end`` of a trie in a table: ids of tokens to buffer B, tokens of cut contexts to E.

    Most nodes are below others with one configuration and no terminal that has ended: one step of the lexer.
    """
    whole, width, any_items = table == H_TRIE, word(h, H_WIDTH_OF_LEVEL), word(h, H_ANY)
    walked = 0
    single = 0 if count_at(h, 0) == 1 else -1  # up to this depth there is one configuration, and no terminal has ended
    while i < end and not lacks_room(h) and word(h, H_LIMIT) >= 0:
        node = element(h, table, i)
        byte, depth, token, size = node & 255, (node >> 8) & DEPTH_MASK, node >> 43, (node >> 19) & SIZE_MASK
        walked += 1
        single = min(single, depth)
        config = level_at(h, depth * width)
        alone = single == depth and config >> K_BITS != any_items
        d = step(h, config & K_MASK, byte) if alone else 0
        if d < 0:
            i += size
            continue
        if word(h, H_BUILT) > depth:
            set_word(h, H_BUILT, depth)
        set_path_at(h, depth, byte)
        outcome = 2
        if not alone:
            outcome = _follow(h, depth, byte)
        elif _follow_single(h, depth, config >> K_BITS, d):
            single = depth + 1
        if outcome == 2 and whole and size > 2 and _is_whole(h, i, depth):
            for j in range(tokens_before(h, i), tokens_before(h, i + size)):
                push(h, H_B, token_at(h, j))
        elif outcome > 0:
            if outcome == 2:
                _push_tokens(h, token - 1)
            elif token != 0:
                keep(h, depth, token)
            i += 1
            continue
        i += size
    set_word(h, H_WALKED, word(h, H_WALKED) + walked)


@internal
def _begin(h, r, d):
    """Make a configuration the only one before all bytes of the path; no terminal has ended on it."""
    set_count_at(h, 0, 0)
    add_config(h, 0, r, d)
    # A terminal that ends just here has been followed already: its configuration is one of its own.
    set_level_at(h, 0, level_at(h, 0) & CONFIG_MASK)
    set_deferred_at(h, 0, 0)


@internal
def walk_part(h, lo, hi, r, d):
    """Walk a trie that lies in the mask heap from one configuration."""
    _begin(h, r, d)
    _walk_nodes(h, H_MASKS, lo, hi)


@internal
def walk_all(h, r, d):
    """Walk the vocabulary from one configuration."""
    _begin(h, r, d)
    for byte in range(256):
        if half(h, 2 * (d + LEX_TABLE) + byte) != -1:
            node = root_of(h, byte)
            if node >= 0:
                _walk_nodes(h, H_TRIE, node, node + ((trie_at(h, node) >> 19) & SIZE_MASK))


@internal
def store_trie(h, start):
    """Move the trie in buffer E from ``start`` on to the mask heap with the sizes of its subtrees."""
    end = word(h, H_ETOP)
    if end == start:
        return 0
    stored = allocate_mask(h, end - start)
    for depth in range(word(h, H_DEPTH) + 1):
        set_near_at(h, depth, end)
    if not lacks_room(h):
        for i in range(end - 1, start - 1, -1):
            node = e_at(h, i)
            depth, after = (node >> 8) & DEPTH_MASK, end
            for j in range(depth + 1):
                after = min(after, near_at(h, j))
            set_near_at(h, depth, i)
            set_mask_at(h, stored + i - start, node | ((after - i) << 19))
    set_word(h, H_ETOP, start)
    return stored
