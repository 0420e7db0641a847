"""Rows: masks of lexical states, the same for every grammar."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.distinct import step
from structgen.core.kernels.json.emit import and_row, emit_subtree, or_row, ready, set_tokens
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.registers import node, push, restore_stack, save_stack, set_string
from structgen.core.kernels.json.string_slices import safe_text, safest_text, slice_within
from structgen.core.kernels.json.structure import number_byte
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import address, element_reader, set_word, size, within, word

_int = element_reader(32)

# Nodes of a subtree for which it pays to find out what is safe, and how often a walk does so.
WORTH, MOST_SEARCHES = 64, 16


@internal
def _copy_slice(m, safe_kinds, out):
    """Set the tokens of the slice that is text which `safety` knows to be safe. Its kinds; 0: there is none."""
    number = slice_within(m, safe_kinds & LOW32)
    if number < 0:
        return 0
    or_row(m, ROW_SLICES + number, out)
    if safe_kinds >> 32 < limit(m, L_TEXT):
        and_row(m, ROW_LENGTHS + (safe_kinds >> 32), out)
    return slice_kinds(m, number)


@internal
def _goes_on(m, i, state, searches):
    """Whether a state may go on with all that is below a node; and how many states may still be searched.

    ``classes`` int32[N]: kinds of characters below each node, ``rises``: how many code points.
    """
    kinds = class_of(m, i)
    if kinds & ~loop(m, state) == 0:
        return True, searches
    safe_kinds = safe(m, state)
    if safe_kinds == 0 and searches > 0 and node(m, i, NODE_END) - i >= WORTH:
        safe_kinds = safe_text(m, state)
        searches -= 1
    return kinds & ~safe_kinds & LOW32 == 0 and rise(m, i) <= safe_kinds >> 32, searches


@internal
def _stay_escaped(m, first, hi, out, searches):
    """Set the tokens of the nodes first..hi that stay inside the string in ``regs``, escapes among them.

    (Status, how many states may still be searched.) Subtrees of text that is safe where the walk stands are set whole.
    """
    base = node(m, first, NODE_DEPTH)
    bottom = size(m, stack) // 2
    set_reg(m, TOP, 0)
    save_stack(m, bottom)
    i = first
    while i < hi:
        level = bottom + 5 * (node(m, i, NODE_DEPTH) - base)
        if level + 10 > size(m, stack):
            return FULL, searches
        byte = node(m, i, NODE_BYTE)
        if stack(m, level) == STRING and byte != 0x22 and byte != 0x5C and byte >= 0x20:
            following = pool(m, stack(m, level + 2) * 256 + byte)
            if following < 0:
                i = node(m, i, NODE_END)
                continue
            push(m, level + 5, STRING, 0, following, -1)
            whole, searches = _goes_on(m, i, following, searches)
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
                return status, searches
            if status == DEAD or reg(m, Q) < STRING:
                i = node(m, i, NODE_END)
                continue
            save_stack(m, level + 5)
        set_tokens(m, node(m, i, NODE_TOKEN), out)
        i += 1
    return ALIVE, searches


@internal
def _stay(m, state, out):
    """Set the tokens that stay inside a string which stands at pool state ``state``, place BODY.

    Of the path to a node there are two words a level: pool state (times 256), and the kinds of its characters with
    their number above `LOW32`. Nodes that may be entered lie in runs, whose tokens are set together. A subtree that is
    safe from the start, or where the walk stands (`safety`), goes on with the run, and is not walked. A slice of what
    is safe from the start is copied from its row, and subtrees within it are in no run.
    """
    hi = trie_field(m, 2 * TEXT + 1)
    safe_kinds = safest_text(m, state)
    unsafe, most = ~safe_kinds & LOW32, safe_kinds >> 32
    outside = ~_copy_slice(m, safe_kinds, out) & LOW32
    ready(m, out)
    nodes, states, following = address(m, plain_node), address(m, stack), address(m, pool)
    set_stack(m, 0, 256 * state)
    set_stack(m, 1, 0)
    searches = MOST_SEARCHES
    i = run = trie_field(m, 2 * TEXT)
    while i < hi:
        within(i, 1, size(m, plain_node))
        packed = word(nodes, i)
        byte, level = packed & 255, 2 * (packed >> PLAIN_DEPTH & DEPTH_MASK)
        end = packed >> PLAIN_END & END_MASK
        if level + 4 > size(m, stack) // 2:
            return FULL
        transition = word(states, level) + byte
        within(transition, 1, size(m, pool))
        reached = _int(following, transition)
        if packed < 0 or reached < 0:
            emit_subtree(m, run, i, out)
            if byte == BACKSLASH:
                set_string(m, STRING + BODY, 0, transition >> 8)
                set_reg(m, FRAME, -1)
                status, searches = _stay_escaped(m, i, end, out, searches)
                if status >= MISS:
                    return status
            i = run = end
            continue
        path = (word(states, level + 1) | 1 << own_kind(m, i)) + (0 if byte & 0xC0 == 0x80 else 1 << 32)
        set_word(states, level + 2, 256 * reached)
        set_word(states, level + 3, path)
        below = class_of(m, i)
        i += 1
        if below == 0:  # a leaf
            continue
        if (path | below) & unsafe == 0 and (path >> 32) + rise(m, i - 1) <= most:
            if (path | below) & outside == 0:
                emit_subtree(m, run, i - 1, out)
                run = end
            i = end
            continue
        whole, searches = _goes_on(m, i - 1, reached, searches)
        if whole:
            i = end
    emit_subtree(m, run, hi, out)
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
def fill_row(m, state, string_state, number, out):
    """The row of a pool state: tokens inside a number, or inside a string at place BODY or ESCAPE."""
    set_reg(m, FRESH, 1)
    set_reg(m, POSITION, reg(m, WRITTEN))
    if number:
        ready(m, out)
        return _digits(m, state, out)
    if string_state == BODY:
        return _stay(m, state, out)
    ready(m, out)
    set_string(m, STRING + string_state, 0, state)
    set_reg(m, FRAME, -1)
    status, _ = _stay_escaped(m, trie_field(m, 2 * TEXT), trie_field(m, 2 * TEXT + 1), out, MOST_SEARCHES)
    return status
