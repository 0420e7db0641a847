"""Working memory: the buffers A, B, C and E, room in the mask heap, and records whose key lies on buffer C."""

from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.interning import intern_key, lacks_room, raise_flag, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import address, set_element, size, within
from structgen.core.kernels.memory import set_word as set_word_at
from structgen.core.kernels.memory import word as word_at


@internal
def push(h, buffer, value):
    """Append to one of the buffers A, B, C, E."""
    top = word(h, buffer + TOP)
    if top >= word(h, buffer + CAPACITY):
        raise_flag(h, SCRATCH_FULL)
        return
    set_element(h, buffer, top, value)
    set_word(h, buffer + TOP, top + 1)


@internal
def allocate_mask(h, count):
    """Room in the mask heap; offset 0 (no record's) if there is none."""
    top = word(h, H_MTOP)
    if top + count > size(h, H_MASKS):
        raise_flag(h, MASKS_FULL)
        return 0
    set_word(h, H_MTOP, top + count)
    return top


@internal
def row_address(h, offset):
    """The address of a row of bits in the mask heap."""
    within(offset, (word(h, H_WIDTH) + 1) >> 1, size(h, H_MASKS))
    return address(h, H_MASKS) + 8 * offset


@internal
def intern(h, kind, start, payload):
    """The record of a kind whose key is the top of buffer C from ``start`` on; taken off the buffer."""
    n = word(h, H_CTOP) - start
    set_word(h, H_CTOP, start)
    return intern_key(h, kind, H_C, start, n, payload, 0)


@internal
def pair(h, kind, a, b, payload):
    """The record of a kind whose key are two words."""
    start = word(h, H_CTOP)
    push(h, H_C, a)
    push(h, H_C, b)
    return intern(h, kind, start, payload)


@internal
def sort_words(h, table, lo, hi):
    """Sort words ``lo`` to ``hi`` of a table (Shell's method)."""
    within(lo, hi - lo, size(h, table))
    base = address(h, table)
    gap = 1
    while gap < (hi - lo) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(lo + gap, hi):
            value = word_at(base, i)
            j = i
            while j >= lo + gap and word_at(base, j - gap) > value:
                set_word_at(base, j, word_at(base, j - gap))
                j -= gap
            set_word_at(base, j, value)
        gap //= 3


@internal
def sort_unique(h, buffer, start):
    """Sort the top of a buffer from ``start`` on and drop repetitions."""
    if lacks_room(h):  # ``start`` may lie behind the top
        return
    base, top = address(h, buffer), word(h, buffer + TOP)
    sort_words(h, buffer, start, top)
    n = start
    for i in range(start, top):
        if i == start or word_at(base, i) != word_at(base, n - 1):
            set_word_at(base, n, word_at(base, i))
            n += 1
    set_word(h, buffer + TOP, n)
