"""Advancing configurations by text, by tokens and by terminals of no text of their own."""

from structgen.core.kernels.cfg.buffers import intern, push, sort_unique
from structgen.core.kernels.cfg.continuations import push_item
from structgen.core.kernels.cfg.item_sets import goto, item_set_of, union
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.lexer import any_lex, step
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.cfg.walks import add_config
from structgen.core.kernels.interning import lacks_room, length, raise_flag, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import address, element_reader, size, within

_byte = element_reader(8, signed=False)


@internal
def _config_of(h, level):
    """The configurations of a level."""
    first = level * word(h, H_WIDTH_OF_LEVEL)
    start = word(h, H_CTOP)
    for j in range(first, first + count_at(h, level)):
        push(h, H_C, level_at(h, j) & CONFIG_MASK)
    sort_unique(h, H_C, start)
    configs = intern(h, CONFIGS, start, CONFIGS_KEY - 2)
    return RETRY if lacks_room(h) else configs


@internal
def advance(h, configs, data, count):
    """The configurations after ``count`` bytes at address ``data``; DEAD if there is none."""
    width = word(h, H_WIDTH_OF_LEVEL)
    n = length(h, configs)
    if n > width:
        raise_flag(h, LEVELS_FULL)
        return RETRY
    for i in range(n):
        set_level_at(h, i, word(h, configs + CONFIGS_KEY + i))
    set_count_at(h, 0, n)
    now = 0
    for offset in range(count):
        following, new_items = 1 - now, 0
        set_count_at(h, following, 0)
        for j in range(now * width, now * width + count_at(h, now)):
            config = level_at(h, j) & CONFIG_MASK
            d = step(h, config & K_MASK, _byte(data, offset))
            if d < 0:
                continue
            add_config(h, following, config >> K_BITS, d)
            classes = word(h, d + LEX_ACCEPTS)
            if classes != 0 and not lacks_room(h):
                items = goto(h, config >> K_BITS, classes)
                new_items = items if new_items == 0 else union(h, new_items, items)
        if lacks_room(h):
            return RETRY
        if new_items != 0:
            add_config(h, following, new_items, word(h, new_items + ITEMS_LEX))
        now = following
        if count_at(h, now) == 0:
            return DEAD
    return _config_of(h, now)


@internal
def initial(h, suffix):
    """The configurations before any text; also makes the records that all others refer to."""
    for item in range(2):
        start = word(h, H_CTOP)
        push(h, H_C, item)
        set_word(h, H_END + item, intern(h, CONT, start, CONT_KEY - 2))
    every = word(h, H_CTOP)
    for t in range(word(h, H_TERMINALS) + 1):
        push(h, H_C, t)
    classes = intern(h, CLASSES, every, 0)
    start = word(h, H_CTOP)
    push(h, H_C, -1)
    any_items = intern(h, ITEMS, start, ITEMS_KEY - 2)
    set_word(h, H_ANY, any_items)
    set_word(h, any_items + ITEMS_BUILT, 1)
    lex = any_lex(h, classes)
    start = word(h, H_CTOP)
    push_item(h, suffix, word(h, H_END))
    items = item_set_of(h, start)
    if lacks_room(h):
        return RETRY
    set_word(h, any_items + ITEMS_LEX, lex)
    set_count_at(h, 0, 0)
    add_config(h, 0, items, word(h, items + ITEMS_LEX))
    return _config_of(h, 0)


@internal
def after_terminal(h, configs, t):
    """The configurations after terminal ``t``, one of no text of its own, was read; DEAD if it cannot stand here."""
    start = word(h, H_CTOP)
    push(h, H_C, t)
    single, items = intern(h, CLASSES, start, 0), 0
    for i in range(length(h, configs)):
        config = word(h, configs + CONFIGS_KEY + i)
        r, d = config >> K_BITS, config & K_MASK
        for j in range(1, length(h, d)):
            if class_of(h, word(h, d + LEX_KEY + j)) == t and not lacks_room(h):
                following = goto(h, r, single)
                items = following if items == 0 else union(h, items, following)
    if lacks_room(h):
        return RETRY
    if items == 0:
        return DEAD
    set_count_at(h, 0, 0)
    add_config(h, 0, items, word(h, items + ITEMS_LEX))
    return _config_of(h, 0)


@internal
def ends_of(h, configs):
    """Whether the text may stop (1) and whether a terminal of no text of its own may begin (2)."""
    ends = 0
    for i in range(length(h, configs)):
        ends |= word(h, (word(h, configs + CONFIGS_KEY + i) & K_MASK) + LEX_ENDS)
    return ends


@internal
def accept(h, configs, token):
    """The configurations after a token; DEAD if there is none. The latest steps are remembered."""
    slot = 3 * ((configs ^ (configs >> 9) ^ (token << 3) ^ (token >> 7)) & (MOVES - 1))
    if move_at(h, slot) == configs and move_at(h, slot + 1) == token:
        return move_at(h, slot + 2)
    first = offset_of(h, token)
    count = offset_of(h, token + 1) - first
    within(first, count, size(h, byte_at))
    after = advance(h, configs, address(h, byte_at) + first, count) if count > 0 else DEAD
    if after != RETRY:
        set_move_at(h, slot, configs)
        set_move_at(h, slot + 1, token)
        set_move_at(h, slot + 2, after)
    return after
