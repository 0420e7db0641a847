"""Rows: masks of lexical states, the same for every grammar."""

from structgen.kernels.jit import internal
from structgen.kernels.json.distinct import step
from structgen.kernels.json.emit import emit_subtree, or_row, ready, set_tokens
from structgen.kernels.json.layout import *
from structgen.kernels.json.structure import number_byte
from structgen.kernels.json.tables import (
    class_of,
    flags,
    kind,
    loop,
    node,
    pool,
    push,
    reg,
    restore_stack,
    save_stack,
    set_reg,
    set_stack,
    set_string,
    slice_kinds,
    stack,
    trie_field,
)
from structgen.kernels.memory import size


@internal
def _slice_of(m, state):
    """The largest slice whose tokens all stay inside the string from a pool state, or -1.

    Slices are in falling order of their tokens. One serves if its characters leave the state as it is, or (ASCII) lead
    to states that they leave as they are.
    """
    if flags(m, state) & PARTIAL:
        return -1
    for number in range(size(m, C_SLICES)):
        kinds = slice_kinds(m, number)
        if kinds & ~loop(m, state) == 0:
            return number
        serves = kinds & (1 << NON_ASCII_KIND) == 0
        byte = 0x20
        while serves and byte < 0x80:
            if kinds >> kind(m, byte) & 1:
                following = pool(m, state * 256 + byte)
                serves = following >= 0 and kinds & ~loop(m, following) == 0
            byte += 1
        if serves:
            return number
    return -1


@internal
def _stay(m, state, place, out):
    """Set the tokens that stay inside a string which stands at pool state ``state``, place BODY or ESCAPE.

    ``classes`` int32[N]: kinds of characters below each node. ``loops`` int32[pool]: kinds that
    leave a state as it is; a subtree of only these is set without being walked. A whole slice is copied from its row,
    and subtrees within it are skipped.
    """
    lo, hi = trie_field(m, 2 * TEXT), trie_field(m, 2 * TEXT + 1)
    within = 0  # kinds of the slice that was copied
    if place == BODY:
        number = _slice_of(m, state)
        if number >= 0:
            or_row(m, ROW_SLICES + number, out)
            within = slice_kinds(m, number)
    ready(m, out)
    set_string(m, STRING + place, 0, state)
    set_reg(m, FRAME, -1)
    set_reg(m, TOP, 0)
    save_stack(m, 0)
    i = lo
    while i < hi:
        level = 5 * node(m, i, NODE_DEPTH)
        if level + 10 > size(m, C_STACK):
            return FULL
        byte = node(m, i, NODE_BYTE)
        kinds = class_of(m, i)
        own = 1 << kind(m, byte)
        # The place of the top of scratch, unused here, tells whether the path so far lies within the slice.
        inside = within != 0 and (level == 0 or stack(m, level + 4) == 1) and own & ~within == 0
        if inside and kinds & ~within == 0:
            i = node(m, i, NODE_END)
            continue
        q = stack(m, level)
        if q == STRING and byte != 0x22 and byte != 0x5C and byte >= 0x20:
            following = pool(m, stack(m, level + 2) * 256 + byte)
            if following < 0:
                i = node(m, i, NODE_END)
                continue
            push(m, level + 5, STRING, 0, following, -1)
            set_stack(m, level + 9, 1 if inside else 0)
            if (kinds & ~loop(m, following)) == 0:
                emit_subtree(m, i, node(m, i, NODE_END), out)
                i = node(m, i, NODE_END)
                continue
        else:
            restore_stack(m, level)
            set_reg(m, FRAME, -1)
            set_reg(m, TOP, 0)
            status = step(m, byte, 0)
            if status >= MISS:
                return status
            if status == DEAD or reg(m, Q) < STRING:
                i = node(m, i, NODE_END)
                continue
            set_reg(m, TOP, 0)
            save_stack(m, level + 5)
        set_tokens(m, node(m, i, NODE_TOKEN), out)
        i += 1
    return ALIVE


@internal
def _digits(m, state, out):
    """Set the tokens that are wholly part of a number which stands at pool state ``state``."""
    lo, hi = trie_field(m, 2 * DIGITS + 0), trie_field(m, 2 * DIGITS + 1)
    set_stack(m, 0, state)
    i = lo
    while i < hi:
        level = node(m, i, NODE_DEPTH)
        status = number_byte(m, stack(m, level), node(m, i, NODE_BYTE))
        if status >= MISS:
            return status
        if status == DEAD:
            i = node(m, i, NODE_END)
            continue
        set_stack(m, level + 1, reg(m, B))
        set_tokens(m, node(m, i, NODE_TOKEN), out)
        i += 1
    return ALIVE


@internal
def fill_row(m, state, place, number, out):
    """The row of a pool state: tokens inside a number, or inside a string at place BODY or ESCAPE."""
    set_reg(m, FRESH, 1)
    set_reg(m, POSITION, reg(m, WRITTEN))
    if number:
        ready(m, out)
        return _digits(m, state, out)
    return _stay(m, state, place, out)
