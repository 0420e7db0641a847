"""Rows of bits at an address: bit t % 32 of int32 word t // 32. Whole rows: `copy_words` and its like in `memory`."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import element_reader, mask_word, set_mask_word, within

_int = element_reader(32)


@intrinsic
def count_bits(typingctx, word):
    """How many bits of an int64 are set."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.int64), codegen


@intrinsic
def lowest_bit(typingctx, word):
    """The place of the lowest bit of an int64 that is set; of one that is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


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
