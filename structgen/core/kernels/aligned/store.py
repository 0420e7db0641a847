"""The store's fields as functions ``(m, index)``: what is in one array of records lies apart by its size."""

from numba import types
from numba.extending import intrinsic

from structgen.core.kernels.aligned.layout import *
from structgen.core.kernels.jit import CHECKED, internal
from structgen.core.kernels.memory import word
from structgen.core.kernels.tables import ARGUMENT_WORDS


def _place(context, builder, dtype, args):
    """LLVM pointer to an element of a field, given its address, the records' size and the index."""
    address, stride, index = args
    item_address = builder.add(address, builder.mul(stride, index))
    return builder.inttoptr(item_address, context.get_value_type(types.CPointer(dtype)))


def _read_at(dtype):
    @intrinsic
    def read(typingctx, address, stride, index):
        def codegen(context, builder, signature, args):
            return context.cast(builder, builder.load(_place(context, builder, dtype, args)), dtype, result_type)

        return result_type(types.int64, types.int64, types.int64), codegen

    result_type = types.float64 if dtype is types.float64 else types.int64
    return read


def _write_at(dtype):
    given = types.float64 if dtype is types.float64 else types.int64

    @intrinsic
    def write(typingctx, address, stride, index, value):
        def codegen(context, builder, signature, args):
            value = context.cast(builder, args[3], given, dtype)
            builder.store(value, _place(context, builder, dtype, args[:3]))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, given), codegen

    return write


@internal
def _stride(m, argument, index):
    """How far records lie apart."""
    if CHECKED and not 0 <= index < word(m, ARGUMENT_WORDS * argument + 1):
        raise IndexError("kernel access out of bounds")
    return word(m, ARGUMENT_WORDS * argument + 2)


def _reader(argument, dtype):
    read = _read_at(dtype)

    @internal
    def field(m, index):
        return read(word(m, ARGUMENT_WORDS * argument), _stride(m, argument, index), index)

    return field


def _writer(argument, dtype):
    write = _write_at(dtype)

    @internal
    def set_field(m, index, value):
        write(word(m, ARGUMENT_WORDS * argument), _stride(m, argument, index), index, value)

    return set_field


node_parent = _reader(A_PARENT, types.int32)
node_start = _reader(A_START, types.int64)
node_count = _reader(A_COUNT, types.int32)
node_high, set_node_high = _reader(A_HIGH, types.float64), _writer(A_HIGH, types.float64)
node_low, set_node_low = _reader(A_LOW, types.float64), _writer(A_LOW, types.float64)
node_mass = _reader(A_MASS, types.float64)
set_node_used = _writer(A_USED, types.int64)
edge_logp = _reader(A_LOGP, types.float64)
edge_child = _reader(A_CHILD, types.int32)
