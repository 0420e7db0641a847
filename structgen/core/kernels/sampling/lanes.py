"""Some tokens at a time: masked logits, sums of exponentials, and what is stored where a token is forbidden.

Loops over explicit vectors, so that every processor of a platform gives the same bits: a wider one only takes fewer
instructions. Addresses are those of whole words of a bitmask (32 tokens); who calls sees to the end of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import for_range, local_variable
from structgen.core.kernels.sampling.layout import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, LANES, WORD

_I64, _I32, _I16 = ir.IntType(64), ir.IntType(32), ir.IntType(16)
_FLOAT, _DOUBLE = ir.FloatType(), ir.DoubleType()
_FLOATS, _DOUBLES, _INTS = (ir.VectorType(kind, LANES) for kind in (_FLOAT, _DOUBLE, _I32))
# 2**f for f in [-0.5, 0.5], relative error below 1e-7, and exactly 1 at 0 (a weighted least-squares fit).
_EXP2 = (0.00132647269, 0.00967151266, 0.0555073374, 0.240222421, 0.693146978, 1.0)
_ELEMENTS: dict[int, Any] = {FLOAT32: _FLOAT, FLOAT16: _I16, BFLOAT16: _I16, FLOAT64: _DOUBLE}
_BITS: dict[int, Any] = {FLOAT32: _I32, FLOAT16: _I16, BFLOAT16: _I16, FLOAT64: _I64}
# Minus infinity, by the width of elements in bits; of 16 bits there are two kinds.
MINUS_INFINITY = {FLOAT32: 0xFF800000, FLOAT16: 0xFC00, BFLOAT16: 0xFF80, FLOAT64: 0xFFF0000000000000}


def _every(kind: Any, value: float | int) -> Any:
    """The same constant in all lanes."""
    return ir.Constant(kind, [value] * LANES)


def _splat(builder: Any, kind: Any, value: Any) -> Any:
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), ir.Constant(_INTS, [0] * LANES))


def _pointer(builder: Any, address: Any, index: Any, element: Any, kind: Any) -> Any:
    """A pointer to lanes of ``kind`` from element ``index`` of an array on."""
    pointer = builder.gep(builder.inttoptr(address, element.as_pointer()), [index])
    return builder.bitcast(pointer, kind.as_pointer())


def by_kind(made: dict[int, Callable[..., Any]]) -> Callable[..., Any]:
    """A function ``(kind, ...)``: that of the kind of logits."""
    float32, float16, bfloat16, float64 = (made[kind] for kind in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64))

    @internal
    def chosen(kind, *arguments):
        if kind == FLOAT32:
            return float32(*arguments)
        if kind == BFLOAT16:
            return bfloat16(*arguments)
        if kind == FLOAT16:
            return float16(*arguments)
        return float64(*arguments)

    return chosen


def _group(builder: Any, word: Any, group: int) -> Any:
    """The first token of a group of a word."""
    return builder.add(builder.mul(word, ir.Constant(_I64, WORD)), ir.Constant(_I64, LANES * group))


def _load(builder: Any, kind: int, address: Any, index: Any) -> Any:
    """Logits as floats."""
    element = _ELEMENTS[kind]
    align = {_FLOAT: 4, _DOUBLE: 8, _I16: 2}[element]
    lanes = ir.VectorType(element, LANES)
    value = builder.load(_pointer(builder, address, index, element, lanes), align=align)
    if kind == FLOAT32:
        return value
    if kind == FLOAT64:
        return builder.fptrunc(value, _FLOATS)
    bits = builder.zext(value, _INTS)
    if kind == BFLOAT16:
        return builder.bitcast(builder.shl(bits, _every(_INTS, 16)), _FLOATS)
    # Half: exponent and fraction moved into place, the exponent made up for by a factor (subnormals come right).
    shifted = builder.shl(builder.and_(bits, _every(_INTS, 0x7FFF)), _every(_INTS, 13))
    number = builder.fmul(builder.bitcast(shifted, _FLOATS), _every(_FLOATS, 2.0**112))
    special = builder.icmp_unsigned(">=", builder.and_(bits, _every(_INTS, 0x7FFF)), _every(_INTS, 0x7C00))
    exponent = builder.select(special, _every(_INTS, 0x7F800000), _every(_INTS, 0))
    sign = builder.shl(builder.and_(bits, _every(_INTS, 0x8000)), _every(_INTS, 16))
    whole = builder.or_(builder.or_(builder.bitcast(number, _INTS), exponent), sign)
    return builder.bitcast(whole, _FLOATS)


def _allowed(builder: Any, word: Any, group: int) -> Any:
    """Which of a group of tokens a word allows."""
    bits = ir.Constant(_INTS, [1 << (LANES * group + lane) for lane in range(LANES)])
    return builder.icmp_unsigned("!=", builder.and_(_splat(builder, _INTS, word), bits), _every(_INTS, 0))


def _masked_block(kind: int) -> Callable[[int, int, int, int], float]:
    @intrinsic
    def masked_block(typingctx, logits, masks, words, out):
        """Write ``words`` words of tokens to float32 at ``out``, -inf where they are not allowed. The highest (-inf of
        none), NaN aside."""

        def codegen(context, builder, signature, args):
            logits, masks, words, out = args
            highest = local_variable(builder, _every(_FLOATS, -math.inf))
            with for_range(builder, words) as loop:
                word = builder.load(_pointer(builder, masks, loop.index, _I32, _I32), align=4)
                for group in range(WORD // LANES):
                    index = _group(builder, loop.index, group)
                    value = _load(builder, kind, logits, index)
                    value = builder.select(_allowed(builder, word, group), value, _every(_FLOATS, -math.inf))
                    builder.store(value, _pointer(builder, out, index, _FLOAT, _FLOATS), align=4)
                    above = builder.fcmp_ordered(">", value, builder.load(highest))
                    builder.store(builder.select(above, value, builder.load(highest)), highest)
            return _highest_lane(builder, builder.load(highest))

        return types.float64(types.int64, types.int64, types.int64, types.int64), codegen

    return masked_block


def _highest_lane(builder: Any, highest: Any) -> Any:
    best = builder.extract_element(highest, ir.Constant(_I32, 0))
    for lane in range(1, LANES):
        value = builder.extract_element(highest, ir.Constant(_I32, lane))
        best = builder.select(builder.fcmp_ordered(">", value, best), value, best)
    return builder.fpext(best, _DOUBLE)


masked_block = by_kind({kind: _masked_block(kind) for kind in _ELEMENTS})
"""``(kind, logits, masks, words, out)``: addresses, and how many words."""


def _exp(builder: Any, value: Any, highest: Any, scale: Any) -> Any:
    """exp((value - highest) · scale) of lanes that are not above ``highest``; 0 from -87 on, NaN of NaN."""
    power = builder.fmul(builder.fsub(value, highest), scale)
    least, shift = _every(_FLOATS, -127.0), _every(_FLOATS, 1.5 * 2**23)
    power = builder.select(builder.fcmp_ordered("<", power, least), least, power)
    shifted = builder.fadd(power, shift)  # the nearest integer in the lowest bits
    remainder = builder.fsub(power, builder.fsub(shifted, shift))
    result = _every(_FLOATS, _EXP2[0])
    for coefficient in _EXP2[1:]:
        result = builder.fadd(builder.fmul(result, remainder), _every(_FLOATS, coefficient))
    exponent = builder.shl(builder.add(builder.bitcast(shifted, _INTS), _every(_INTS, 127)), _every(_INTS, 23))
    return builder.fmul(result, builder.bitcast(exponent, _FLOATS))


def _lanes_of(builder: Any, highest: Any, scale: Any) -> tuple[Any, Any]:
    """The highest value and the scale to powers of two in all lanes."""
    to_two = builder.fmul(scale, ir.Constant(_DOUBLE, math.log2(math.e)))
    return tuple(_splat(builder, _FLOATS, builder.fptrunc(one, _FLOAT)) for one in (highest, to_two))


@intrinsic
def exp_sum(typingctx, values, words, highest, scale):
    """Σ exp((x - highest) · scale) over ``words`` words of float32 at ``values``; ``highest`` is finite, none above."""

    def codegen(context, builder, signature, args):
        values, words, highest, scale = args
        highest, scale = _lanes_of(builder, highest, scale)
        total = local_variable(builder, _every(_DOUBLES, 0.0))
        with for_range(builder, words) as loop:
            parts = []
            for group in range(WORD // LANES):
                index = _group(builder, loop.index, group)
                value = builder.load(_pointer(builder, values, index, _FLOAT, _FLOATS), align=4)
                parts.append(_exp(builder, value, highest, scale))
            while len(parts) > 1:
                parts = [builder.fadd(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
            builder.store(builder.fadd(builder.load(total), builder.fpext(parts[0], _DOUBLES)), total)
        lanes = builder.load(total)
        result = builder.extract_element(lanes, ir.Constant(_I32, 0))
        for lane in range(1, LANES):
            result = builder.fadd(result, builder.extract_element(lanes, ir.Constant(_I32, lane)))
        return result

    return types.float64(types.int64, types.int64, types.float64, types.float64), codegen


@intrinsic
def exp_each(typingctx, values, words, highest, scale, out):
    """exp((x - highest) · scale) of ``words`` words of float32 at ``values``, to float32 at ``out``."""

    def codegen(context, builder, signature, args):
        values, words, highest, scale, out = args
        highest, scale = _lanes_of(builder, highest, scale)
        with for_range(builder, builder.mul(words, ir.Constant(_I64, WORD // LANES))) as loop:
            index = builder.mul(loop.index, ir.Constant(_I64, LANES))
            value = builder.load(_pointer(builder, values, index, _FLOAT, _FLOATS), align=4)
            weight = _exp(builder, value, highest, scale)
            builder.store(weight, _pointer(builder, out, index, _FLOAT, _FLOATS), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64, types.float64, types.int64), codegen


def _choose(kind: int) -> Callable[[int, int, int, int], None]:
    element = _BITS[kind]
    lanes = ir.VectorType(element, LANES)
    align = element.width // 8

    @intrinsic
    def choose(typingctx, target, source, masks, words):
        """Write ``words`` words of logits, -inf for the tokens that are not allowed; the target may be the source."""

        def codegen(context, builder, signature, args):
            target, source, masks, words = args
            nothing = ir.Constant(lanes, [MINUS_INFINITY[kind]] * LANES)
            with for_range(builder, words) as loop:
                word = builder.load(_pointer(builder, masks, loop.index, _I32, _I32), align=4)
                for group in range(WORD // LANES):
                    index = _group(builder, loop.index, group)
                    given = builder.load(_pointer(builder, source, index, element, lanes), align=align)
                    kept = builder.select(_allowed(builder, word, group), given, nothing)
                    builder.store(kept, _pointer(builder, target, index, element, lanes), align=align)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64), codegen

    return choose


def _forbid_all(kind: int) -> Callable[[int, int], None]:
    element = _BITS[kind]
    lanes = ir.VectorType(element, LANES)

    @intrinsic
    def forbid_all(typingctx, target, words):
        """Write -inf over ``words`` words of tokens."""

        def codegen(context, builder, signature, args):
            target, words = args
            nothing = ir.Constant(lanes, [MINUS_INFINITY[kind]] * LANES)
            with for_range(builder, words) as loop:
                for group in range(WORD // LANES):
                    pointer = _pointer(builder, target, _group(builder, loop.index, group), element, lanes)
                    builder.store(nothing, pointer, align=element.width // 8)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return forbid_all


def _is_forbidden(kind: int) -> Callable[[int, int], bool]:
    element = _BITS[kind]

    @intrinsic
    def is_forbidden(typingctx, logits, token):
        """Whether the logit of a token is -inf."""

        def codegen(context, builder, signature, args):
            bits = builder.load(_pointer(builder, *args, element, element))
            return builder.icmp_unsigned("==", bits, ir.Constant(element, MINUS_INFINITY[kind]))

        return types.boolean(types.int64, types.int64), codegen

    return is_forbidden


def _copy_one(kind: int) -> Callable[[int, int, int], None]:
    element = _BITS[kind]

    @intrinsic
    def copy_one(typingctx, target, source, token):
        """Copy the logit of one token."""

        def codegen(context, builder, signature, args):
            target, source, token = args
            value = builder.load(_pointer(builder, source, token, element, element))
            builder.store(value, _pointer(builder, target, token, element, element))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return copy_one


def _forbid_one(kind: int) -> Callable[[int, int], None]:
    element = _BITS[kind]

    @intrinsic
    def forbid_one(typingctx, logits, token):
        """Write -inf over one token."""

        def codegen(context, builder, signature, args):
            builder.store(ir.Constant(element, MINUS_INFINITY[kind]), _pointer(builder, *args, element, element))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return forbid_one


def _prefetch_one(kind: int) -> Callable[[int, int], None]:
    element = _BITS[kind]

    @intrinsic
    def prefetch_one(typingctx, logits, token):
        """Ask for the cache line of a token that will be written."""

        def codegen(context, builder, signature, args):
            byte = ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
            function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            pointer = builder.bitcast(_pointer(builder, *args, element, element), byte)
            builder.call(function, [pointer, *(ir.Constant(_I32, one) for one in (1, 3, 1))])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return prefetch_one


prefetch_one = by_kind({kind: _prefetch_one(kind) for kind in _ELEMENTS})
"""``(kind, logits, token)``: an address, and a token."""
forbid_one = by_kind({kind: _forbid_one(kind) for kind in _ELEMENTS})
"""``(kind, logits, token)``: an address, and a token."""
forbid_all = by_kind({kind: _forbid_all(kind) for kind in _ELEMENTS})
"""``(kind, target, words)``: an address, and how many words."""
choose = by_kind({kind: _choose(kind) for kind in _ELEMENTS})
"""``(kind, target, source, masks, words)``: addresses, and how many words."""
copy_one = by_kind({kind: _copy_one(kind) for kind in _ELEMENTS})
"""``(kind, target, source, token)``: addresses, and a token."""
is_forbidden = by_kind({kind: _is_forbidden(kind) for kind in _ELEMENTS})
"""``(kind, logits, token)``: an address, and a token."""


@intrinsic
def float_at(typingctx, address, index):
    """``(address, index)``: an element of an array of float32 as float64, unchecked."""

    def codegen(context, builder, signature, args):
        return builder.fpext(builder.load(_pointer(builder, *args, _FLOAT, _FLOAT)), _DOUBLE)

    return types.float64(types.int64, types.int64), codegen


@intrinsic
def float_bits(typingctx, value):
    """The bits of a float64 as float32, zero-extended."""

    def codegen(context, builder, signature, args):
        return builder.zext(builder.bitcast(builder.fptrunc(args[0], _FLOAT), _I32), _I64)

    return types.int64(types.float64), codegen
