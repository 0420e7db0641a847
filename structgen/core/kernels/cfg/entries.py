"""Entries of the mask heap: the tokens of a configuration beyond its lexer state's row of bits."""

from structgen.core.kernels.bits import set_bit
from structgen.core.kernels.cfg.buffers import allocate_mask, pair, row_address
from structgen.core.kernels.cfg.context_truncation import cut_item_set
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.lexer_splits import split_of
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.cfg.walks import store_trie, walk_all, walk_part
from structgen.core.kernels.interning import lacks_room, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import clear_words


@internal
def _store_entry(h, parent, b, e):
    """The ids in buffer B and the trie in E from these places on as an entry of the mask heap."""
    count, nodes = word(h, H_BTOP) - b, word(h, H_ETOP) - e
    trie = store_trie(h, e)
    entry = allocate_mask(h, ENTRY_SIZE)
    width = word(h, H_WIDTH)
    as_bits = 4 * count > width
    ids = allocate_mask(h, (width + 1) >> 1 if as_bits else count)
    if not lacks_room(h):
        if as_bits:
            row = row_address(h, ids)
            clear_words(row, width)
            for i in range(count):
                set_bit(row, width, b_at(h, b + i))
        else:
            for i in range(count):
                set_mask_at(h, ids + i, b_at(h, b + i))
        set_mask_at(h, entry + ENTRY_PARENT, parent)
        set_mask_at(h, entry + ENTRY_IDS, ids)
        set_mask_at(h, entry + ENTRY_COUNT, count)
        set_mask_at(h, entry + ENTRY_TRIE, trie)
        set_mask_at(h, entry + ENTRY_NODES, nodes)
        set_mask_at(h, entry + ENTRY_BITS, 1 if as_bits else 0)
    set_word(h, H_BTOP, b)
    return entry


@internal
def _first_entry(h, r, d):
    """Tokens allowed in a configuration beyond the row of bits of its lexer state; -1 if too many are uncertain."""
    split = split_of(h, d)
    b, e = word(h, H_BTOP), word(h, H_ETOP)
    if lacks_room(h):
        return 0
    set_word(h, H_BUILT, 0)
    for i in range(mask_at(h, split + SPLIT_COUNT)):
        unit = mask_at(h, split + SPLIT_UNITS + 2 * i + 1)
        first = mask_at(h, unit + UNIT_TRIE)
        last = first + mask_at(h, unit + UNIT_NODES)
        set_word(h, H_BUILT, 0)
        walk_part(h, first, last, r, mask_at(h, split + SPLIT_UNITS + 2 * i))
    set_word(h, H_BUILT, 0)
    walk_all(h, r, mask_at(h, split + SPLIT_REMAINING))
    if word(h, H_LIMIT) < 0:
        set_word(h, H_BTOP, b)
        set_word(h, H_ETOP, e)
        return -1
    return _store_entry(h, 0, b, e)


@internal
def _refined(h, entry, r, d):
    """The entry of a configuration, given that of the same configuration with less context (0: none).

    What is known for certain there holds here too; its uncertain tokens are walked again.
    """
    memo = pair(h, MEMO, r, d, 2)
    if lacks_room(h):
        return 0
    if word(h, memo + MEMO_EPOCH) == word(h, H_EPOCH):
        return word(h, memo + MEMO_VALUE)
    if entry == 0:
        entry = _first_entry(h, r, d)
    elif mask_at(h, entry + ENTRY_NODES) > 0:
        b, e, trie = word(h, H_BTOP), word(h, H_ETOP), mask_at(h, entry + ENTRY_TRIE)
        set_word(h, H_BUILT, 0)
        walk_part(h, trie, trie + mask_at(h, entry + ENTRY_NODES), r, d)
        entry = _store_entry(h, entry, b, e)
    if not lacks_room(h):
        set_word(h, memo + MEMO_VALUE, entry)
        set_word(h, memo + MEMO_EPOCH, word(h, H_EPOCH))
    return entry


@internal
def entry_of(h, r, d):
    """The entry of the mask heap with the tokens allowed in a configuration beyond its lexer state's row of bits."""
    memo = pair(h, MEMO, r, d, 2)
    if not lacks_room(h) and word(h, memo + MEMO_EPOCH) == word(h, H_EPOCH):
        return word(h, memo + MEMO_VALUE)
    cut = cut_item_set(h, r, ITEMS_BARE)
    if lacks_room(h):
        return 0
    split_of(h, d)  # its own walks have no limit
    set_word(h, H_LIMIT, word(h, H_ETOP) + UNCERTAIN_NODES if cut != r else 0)
    entry = _refined(h, 0, cut, d)
    set_word(h, H_LIMIT, 0)
    if entry <= 0 or mask_at(h, entry + ENTRY_NODES) > 0:
        cut = cut_item_set(h, r, ITEMS_CUT) if not lacks_room(h) else r
        if not lacks_room(h):
            entry = _refined(h, max(entry, 0), cut, d)
    return _refined(h, entry, r, d) if not lacks_room(h) else 0
