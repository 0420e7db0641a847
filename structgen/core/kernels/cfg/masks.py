"""Masks of configurations: their parts put together into a row."""

from structgen.core.kernels.bits import set_bit
from structgen.core.kernels.cfg.buffers import allocate_mask, row_address
from structgen.core.kernels.cfg.entries import entry_of
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.lexer_splits import split_of
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import half, lacks_room, length, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import clear_words, copy_words, or_words


@internal
def _emit(h, out, bits, entry, fresh):
    """Or a configuration's mask into the row at ``out`` (write it, if ``fresh``); about how many words that takes."""
    width = word(h, H_WIDTH)
    work = width
    if bits >= 0:
        if fresh:
            copy_words(row_address(h, bits), out, width)
        else:
            or_words(row_address(h, bits), out, width)
    elif fresh:
        clear_words(out, width)
    while entry != 0:
        ids = mask_at(h, entry + ENTRY_IDS)
        if mask_at(h, entry + ENTRY_BITS):
            or_words(row_address(h, ids), out, width)
            work += width
        else:
            work += mask_at(h, entry + ENTRY_COUNT)
            for i in range(ids, ids + mask_at(h, entry + ENTRY_COUNT)):
                set_bit(out, width, mask_at(h, i))
        entry = mask_at(h, entry + ENTRY_PARENT)
    return work


@internal
def _find_mask(h, configs):
    """The parts of a mask, in the mask heap: twice the uses, and 1 if the text may end, then for each configuration its
    bits and entry; or, after some uses that were much work, WHOLE and the place of a row."""
    n = length(h, configs)
    record = allocate_mask(h, 1 + 2 * n)
    ends = 0
    for i in range(n):
        config = word(h, configs + CONFIGS_KEY + i)
        d = config & K_MASK
        split = split_of(h, d)
        entry = entry_of(h, config >> K_BITS, d)
        if lacks_room(h):
            return RETRY
        set_mask_at(h, record + 1 + 2 * i, mask_at(h, split + SPLIT_BITS))
        set_mask_at(h, record + 2 + 2 * i, entry)
        ends |= word(h, d + LEX_ENDS)
    set_mask_at(h, record, ends & 1)
    set_word(h, configs + CONFIGS_MASK, record)
    set_word(h, configs + CONFIGS_EPOCH, word(h, H_EPOCH))
    return 1


@internal
def fill(h, configs, out):
    """The mask of configurations into the row at address ``out``."""
    if word(h, configs + CONFIGS_EPOCH) != word(h, H_EPOCH) and _find_mask(h, configs) == RETRY:
        return RETRY
    record, width = word(h, configs + CONFIGS_MASK), word(h, H_WIDTH)
    how, work = mask_at(h, record), 0
    if how == WHOLE:
        copy_words(row_address(h, mask_at(h, record + 1)), out, width)
        return 1
    for i in range(length(h, configs)):
        work += _emit(h, out, mask_at(h, record + 1 + 2 * i), mask_at(h, record + 2 + 2 * i), i == 0)
    if how & 1:
        for i in range(word(h, H_EOSES)):
            set_bit(out, width, eos_at(h, i))
    if how >> 1 >= KEPT_AFTER and 2 * work > 3 * width:
        return _keep_whole(h, record, out)
    set_mask_at(h, record, how + 2)
    return 1


@internal
def _keep_whole(h, record, out):
    """Keep the row at address ``out`` as a mask whose parts are at ``record``."""
    width = word(h, H_WIDTH)
    row = allocate_mask(h, (width + 1) >> 1)
    if row == 0:
        return RETRY
    copy_words(out, row_address(h, row), width)
    set_mask_at(h, record, WHOLE)
    set_mask_at(h, record + 1, row)
    return 1


@internal
def next_bytes(h, configs, out):
    """Write the 256 bits, at address ``out``, of the bytes that may come next."""
    clear_words(out, 8)
    for i in range(length(h, configs)):
        d = word(h, configs + CONFIGS_KEY + i) & K_MASK
        for byte in range(256):
            if half(h, 2 * (d + LEX_TABLE) + byte) != -1:
                set_bit(out, 8, byte)
    return 1
