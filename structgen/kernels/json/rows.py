"""Rows: masks of lexical states, the same for every grammar."""

from structgen.kernels.jit import internal
from structgen.kernels.json.distinct import step
from structgen.kernels.json.emit import and_row, emit_subtree, or_row, ready, set_tokens
from structgen.kernels.json.layout import *
from structgen.kernels.json.safety import safe_text, slice_within
from structgen.kernels.json.structure import number_byte
from structgen.kernels.json.tables import (
    class_of,
    limit,
    loop,
    node,
    own_kind,
    pool,
    push,
    reg,
    restore_stack,
    rise,
    safe,
    save_stack,
    set_reg,
    set_stack,
    set_string,
    slice_kinds,
    stack,
    trie_field,
)
from structgen.kernels.memory import size

# Nodes of a subtree for which it pays to find out what is safe, and how often a walk does so.
WORTH, MOST_SEARCHES = 64, 16


@internal
def _copy_slice(m, state, out):
    """Set the tokens of the slice that stays inside a string from a pool state. Its kinds and length; 0: none."""
    known = safe_text(m, state)
    number = slice_within(m, known & LOW32)
    if number < 0:
        return 0
    points = known >> 32
    or_row(m, ROW_SLICES + number, out)
    if points < limit(m, L_TEXT):
        and_row(m, ROW_LENGTHS + points, out)
    return slice_kinds(m, number) | points << 32


@internal
def _is_safe(m, i, state, searches):
    """Whether a state may go on with all that is below a node; and how many more states may be searched."""
    kinds = class_of(m, i)
    if kinds & ~loop(m, state) == 0:
        return True, searches
    known = safe(m, state)
    if known == 0 and searches > 0 and node(m, i, NODE_END) - i >= WORTH:
        known = safe_text(m, state)
        searches -= 1
    return kinds & ~known & LOW32 == 0 and rise(m, i) <= known >> 32, searches


@internal
def _stay(m, state, place, out):
    """Set the tokens that stay inside a string which stands at pool state ``state``, place BODY or ESCAPE.

    ``classes`` int32[N]: kinds of characters below each node, ``rises``: how many code points. A subtree that is safe
    where the walk stands (`safety`) is set without being walked. The slice that is safe from the start is copied from
    its row, and subtrees within it are skipped.
    """
    lo, hi = trie_field(m, 2 * TEXT), trie_field(m, 2 * TEXT + 1)
    copied = _copy_slice(m, state, out) if place == BODY else 0
    within, most = copied & LOW32, copied >> 32
    ready(m, out)
    set_string(m, STRING + place, 0, state)
    set_reg(m, FRAME, -1)
    set_reg(m, TOP, 0)
    save_stack(m, 0)
    searches = MOST_SEARCHES
    i = lo
    while i < hi:
        level = 5 * node(m, i, NODE_DEPTH)
        if level + 10 > size(m, C_STACK):
            return FULL
        byte = node(m, i, NODE_BYTE)
        # The place of the top of scratch, unused here: how many code points the path has within the slice, or -1.
        points = stack(m, level + 4)
        if points >= 0:
            points += byte & 0xC0 != 0x80
            if within >> own_kind(m, i) & 1 == 0:
                points = -1
            elif class_of(m, i) & ~within == 0 and points + rise(m, i) <= most:
                i = node(m, i, NODE_END)
                continue
        if stack(m, level) == STRING and byte != 0x22 and byte != 0x5C and byte >= 0x20:
            following = pool(m, stack(m, level + 2) * 256 + byte)
            if following < 0:
                i = node(m, i, NODE_END)
                continue
            push(m, level + 5, STRING, 0, following, -1)
            whole, searches = _is_safe(m, i, following, searches)
            if whole:
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
            save_stack(m, level + 5)
        set_stack(m, level + 9, points)
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
