"""Rows of bits at an address: bit t % 32 of int32 word t // 32. Whole rows: `copy_words` and its like in `memory`."""

from structgen.kernels.jit import internal
from structgen.kernels.memory import element_reader, mask_word, set_mask_word, within

_int = element_reader(32)


@internal
def set_bit(row, width, i):
    """Set bit ``i`` of a row of ``width`` int32 words."""
    within(i, 1, 32 * width)
    set_mask_word(row, i >> 5, mask_word(row, i >> 5) | (1 << (i & 31)))


@internal
def set_bits(row, width, ids, count):
    """Set the bits named by ``count`` int32 at address ``ids`` (which a loop over a table would look up each time)."""
    for i in range(count):
        set_bit(row, width, _int(ids, i))


@internal
def clear_bit(row, width, i):
    """Clear bit ``i`` of a row of ``width`` int32 words."""
    within(i, 1, 32 * width)
    set_mask_word(row, i >> 5, mask_word(row, i >> 5) & ~(1 << (i & 31)))
