"""Memory as kernels see it: tables of a context, arrays by their address, rows of bits, arithmetic that wraps.

Kernels get one address. A **context** is an int64 array: entry ``k`` of it is the address of a table and entry
``k + 1`` its length in elements. (Arrays as arguments cost 60 ns each per call and, between functions, minutes of
compile time; addresses cost neither.) **Arguments**, of the kernels that are plain functions of arrays, are an int64
array too: three words for each array, address, elements and columns (`core.kernels.calls` makes them), so that
they can be declared as tables (`core.kernels.tables`).

A **heap** is a context that is one array with what it is about: header, working words and records, all named by their
place in it.

With ``NUMBA_BOUNDSCHECK=1`` every access of a table or heap compares the index with its length and raises IndexError;
stretches of either that are worked on by address are checked once (`within`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic, models, register_model, typeof_impl

from structgen.core.kernels.jit import CHECKED, internal
from structgen.core.kernels.tables import ARGUMENT_WORDS, KernelTable, Writer

for_range, local_variable = cgutils.for_range, cgutils.alloca_once_value
"""What intrinsics elsewhere build loops and what changes in them with."""
_WORD = ir.IntType(64)


def _pointer(builder, address, index, bits):
    """LLVM pointer to element ``index`` of an array at ``address`` (as base and index, which loops vectorise)."""
    base = builder.inttoptr(address, ir.IntType(bits).as_pointer())
    return builder.gep(base, [index])


def _widened(builder, value, bits, signed):
    return value if bits == 64 else (builder.sext if signed else builder.zext)(value, _WORD)


# --- arrays by their address ---
def element_reader(bits: int, signed: bool = True) -> Callable[[int, int], int]:
    """A function ``(address, index)`` that reads an element of an array as int64, unchecked."""

    @intrinsic
    def read(typingctx, address, index):
        def codegen(context, builder, signature, args):
            return _widened(builder, builder.load(_pointer(builder, *args, bits)), bits, signed)

        return types.int64(types.int64, types.int64), codegen

    return read


def element_writer(bits: int) -> Callable[[int, int, int], None]:
    """A function ``(address, index, value)`` that writes an element of an array, given as int64, unchecked."""

    @intrinsic
    def write(typingctx, address, index, value):
        def codegen(context, builder, signature, args):
            value = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
            builder.store(value, _pointer(builder, args[0], args[1], bits))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return write


word, set_word = element_reader(64), element_writer(64)
mask_word, set_mask_word = element_reader(32, signed=False), element_writer(32)


@intrinsic
def try_lock(typingctx, address):
    """Take the lock that the word at an address is (0: free), if nobody has it: 1 or 0."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(builder, args[0], ir.Constant(_WORD, 0), 64)
        taken = builder.cmpxchg(pointer, ir.Constant(_WORD, 0), ir.Constant(_WORD, 1), "acquire", "monotonic")
        return builder.zext(builder.extract_value(taken, 1), _WORD)

    return types.int64(types.int64), codegen


@intrinsic
def unlock(typingctx, address):
    """Give a lock back."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(builder, args[0], ir.Constant(_WORD, 0), 64)
        builder.store_atomic(ir.Constant(_WORD, 0), pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64), codegen


# --- tables of a context ---
class _TableType(types.Function):
    """What a `KernelTable` is in kernels: what reads it, and a place that is known."""

    def __init__(self, templates: Any, field: int) -> None:
        self.place = field
        super().__init__(templates)


register_model(_TableType)(models.OpaqueModel)


def _function_type(function: Any) -> types.Function:
    """The type of a function that was just made."""
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context._get_global_type(function)


_types: dict[int, types.Function] = {}  # of tables and writers that were met, by id: numbers may be the same


@typeof_impl.register(KernelTable)
def _table_type(table, _):
    if id(table) not in _types:
        _types[id(table)] = _TableType(_function_type(_reader(table)).templates, table)
    return _types[id(table)]


@typeof_impl.register(Writer)
def _writer_type(write, _):
    if id(write) not in _types:
        _types[id(write)] = _function_type(_writer(write.table))
    return _types[id(write)]


def _either(table):
    """The type of an argument that is a table or its place."""
    return table if isinstance(table, _TableType) else types.int64


def _place(value, table):
    """The place of a table, which is given as a number or as itself."""
    return ir.Constant(_WORD, int(table.place)) if isinstance(table, _TableType) else value


@intrinsic
def size(typingctx, m, table):
    """Length of a table."""

    def codegen(context, builder, signature, args):
        field = builder.add(_place(args[1], table), ir.Constant(_WORD, 1))
        return builder.load(_pointer(builder, args[0], field, 64))

    return types.int64(types.int64, _either(table)), codegen


@intrinsic
def address(typingctx, m, table):
    """Address of a table."""

    def codegen(context, builder, signature, args):
        return builder.load(_pointer(builder, args[0], _place(args[1], table), 64))

    return types.int64(types.int64, _either(table)), codegen


@intrinsic
def set_table(typingctx, m, table, address, length):
    """Let a table be ``length`` elements at an address."""

    def codegen(context, builder, signature, args):
        field = _place(args[1], table)
        builder.store(args[2], _pointer(builder, args[0], field, 64))
        builder.store(args[3], _pointer(builder, args[0], builder.add(field, ir.Constant(_WORD, 1)), 64))
        return context.get_dummy_value()

    return types.void(types.int64, _either(table), types.int64, types.int64), codegen


def _element(builder, context, table, index):
    address = builder.load(_pointer(builder, context, ir.Constant(_WORD, int(table)), 64))
    return _pointer(builder, address, index, 8 * table.dtype.itemsize)


def _reader(table):
    """A function ``(m, index)`` that reads an element of a table as int64."""
    bits, signed, field = 8 * table.dtype.itemsize, table.dtype.kind != "u", int(table)

    @intrinsic
    def read(typingctx, m, index):
        def codegen(context, builder, signature, args):
            return _widened(builder, builder.load(_element(builder, args[0], table, args[1])), bits, signed)

        return types.int64(types.int64, types.int64), codegen

    @internal
    def checked(m, index):
        if not 0 <= index < size(m, field):
            raise IndexError("kernel read out of bounds")
        return read(m, index)

    return checked if CHECKED else read


def _writer(table):
    """A function ``(m, index, value)`` that writes an element of a table, given as int64."""
    bits, field = 8 * table.dtype.itemsize, int(table)

    @intrinsic
    def write(typingctx, m, index, value):
        def codegen(context, builder, signature, args):
            value = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
            builder.store(value, _element(builder, args[0], table, args[1]))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    @internal
    def checked(m, index, value):
        if not 0 <= index < size(m, field):
            raise IndexError("kernel write out of bounds")
        write(m, index, value)

    return checked if CHECKED else write


# --- a table that is known only when the kernel runs ---
@internal
def within(first, count, length):
    """Where accesses are checked: raise IndexError unless ``count`` elements from ``first`` on lie in ``length``."""
    if CHECKED and not 0 <= first <= first + count <= length:
        raise IndexError("kernel access out of bounds")


@internal
def element(m, table, index):
    """An element of a table of int64."""
    within(index, 1, size(m, table))
    return word(address(m, table), index)


@internal
def set_element(m, table, index, value):
    """Write an element of a table of int64."""
    within(index, 1, size(m, table))
    set_word(address(m, table), index, value)


# --- heaps: the array at ``h`` itself, whose length in int64 stands at one of its own places ---
def heap_reader(length: int, bits: int, signed: bool = True) -> Callable[[int, int], int]:
    """A function ``(h, index)`` that reads an element of a heap as int64."""
    read, per_word = element_reader(bits, signed), 64 // bits
    if not CHECKED:
        return read

    @internal
    def checked(h, index):
        if not 0 <= index < per_word * word(h, length):
            raise IndexError("kernel read out of bounds")
        return read(h, index)

    return checked


def heap_writer(length: int, bits: int) -> Callable[[int, int, int], None]:
    """A function ``(h, index, value)`` that writes an element of a heap, given as int64."""
    write, per_word = element_writer(bits), 64 // bits
    if not CHECKED:
        return write

    @internal
    def checked(h, index, value):
        if not 0 <= index < per_word * word(h, length):
            raise IndexError("kernel write out of bounds")
        write(h, index, value)

    return checked


# --- arithmetic modulo 2**64 ---
def _wrapped(combine):
    """(Numba's own tells LLVM that it never overflows, and LLVM makes use of that.)"""

    @intrinsic
    def apply(typingctx, one, two):
        def codegen(context, builder, signature, args):
            return combine(builder, *args)

        return types.int64(types.int64, types.int64), codegen

    return apply


wrapped_add = _wrapped(lambda builder, one, two: builder.add(one, two))
wrapped_mul = _wrapped(lambda builder, one, two: builder.mul(one, two))


# --- rows of 32-bit words ---
def _bulk(combine):
    """A loop over two rows of words, eight at a time (rows are padded by their owner or end with single words)."""

    @intrinsic
    def apply(typingctx, source, target, width):
        def codegen(context, builder, signature, args):
            source, target, width = args
            whole = builder.and_(width, ir.Constant(_WORD, -8))
            wide, single = ir.VectorType(ir.IntType(32), 8), ir.IntType(32)
            for element, lanes, first, last in ((wide, 8, ir.Constant(_WORD, 0), whole), (single, 1, whole, width)):
                head, body, done = (builder.append_basic_block(name) for name in ("head", "body", "done"))
                before = builder.block
                builder.branch(head)
                builder.position_at_end(head)
                index = builder.phi(_WORD)
                index.add_incoming(first, before)
                builder.cbranch(builder.icmp_signed("<", index, last), body, done)
                builder.position_at_end(body)
                offset = builder.shl(index, ir.Constant(_WORD, 2))
                left = builder.inttoptr(builder.add(source, offset), element.as_pointer())
                right = builder.inttoptr(builder.add(target, offset), element.as_pointer())
                builder.store(combine(builder, builder.load(left, align=4), right), right, align=4)
                index.add_incoming(builder.add(index, ir.Constant(_WORD, lanes)), body)
                builder.branch(head)
                builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return apply


or_words = _bulk(lambda builder, value, target: builder.or_(value, builder.load(target, align=4)))
"""``(source, target, width)``: or a row of int32 words into another."""
and_words = _bulk(lambda builder, value, target: builder.and_(value, builder.load(target, align=4)))
"""``(source, target, width)``: and a row of int32 words into another."""


@intrinsic
def copy_words(typingctx, source, target, width):
    """Copy a row of ``width`` int32 words between addresses (memcpy: they do not overlap)."""

    def codegen(context, builder, signature, args):
        source, target = (builder.inttoptr(args[i], ir.IntType(8).as_pointer()) for i in (0, 1))
        cgutils.raw_memcpy(builder, target, source, args[2], 4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def clear_words(typingctx, target, width):
    """Set ``width`` int32 words to zero (memset: a loop would not know that it overlaps nothing)."""

    def codegen(context, builder, signature, args):
        count = builder.mul(args[1], ir.Constant(_WORD, 4))
        cgutils.memset(builder, builder.inttoptr(args[0], ir.IntType(8).as_pointer()), count, 0)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def prefetch(typingctx, address):
    """Ask for the cache line at an address that will be read."""

    def codegen(context, builder, signature, args):
        byte, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, int32, int32, int32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(function, [builder.inttoptr(args[0], byte), *(ir.Constant(int32, one) for one in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


# --- arguments: arrays of the kernels that are functions of arrays ---
def _view(dtype, dimensions):
    """(An intrinsic, as is what slices it: functions without numba's runtime may not return arrays of their own.)"""
    kind = types.Array(dtype, dimensions, "C")

    @intrinsic
    def view(typingctx, m, argument):
        def codegen(context, builder, signature, args):
            first = builder.mul(args[1], ir.Constant(_WORD, ARGUMENT_WORDS))
            pointer, size, columns = (
                builder.load(_pointer(builder, args[0], builder.add(first, ir.Constant(_WORD, i)), 64))
                for i in range(3)
            )
            made = context.make_array(kind)(context, builder)
            width = ir.Constant(_WORD, dtype.bitwidth // 8)
            shape, strides = [size], [width]
            if dimensions == 2:
                one = ir.Constant(_WORD, 1)
                rows = builder.udiv(size, builder.select(builder.icmp_signed("==", columns, one.type(0)), one, columns))
                shape, strides = [rows, columns], [builder.mul(columns, width), width]
            made.data = builder.inttoptr(pointer, made.data.type)
            made.shape, made.strides = cgutils.pack_array(builder, shape), cgutils.pack_array(builder, strides)
            made.itemsize, made.nitems = width, size
            made.meminfo, made.parent = made.meminfo.type(None), made.parent.type(None)
            return made._getvalue()

        return kind(types.int64, types.int64), codegen

    return view


def vector(dtype: Any) -> Callable[[int, int], Any]:
    """A function ``(m, argument)``: an argument as an array of one dimension and a numba dtype, whatever it has."""
    return _view(dtype, 1)


def matrix(dtype: Any) -> Callable[[int, int], Any]:
    """A function ``(m, argument)``: the two-dimensional array in C order that an argument is."""
    return _view(dtype, 2)


# Views of each dtype, in one and in two dimensions.
byte_array, int_array, word_array = vector(types.uint8), vector(types.int32), vector(types.int64)
hash_array = vector(types.uint64)
byte_matrix, int_matrix, word_matrix = matrix(types.uint8), matrix(types.int32), matrix(types.int64)
hash_matrix, float_matrix = matrix(types.uint64), matrix(types.float64)
float_array = vector(types.float64)
