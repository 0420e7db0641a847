"""What completes the items of a parser's states, whatever lies below them: saturation of a pushdown system.

A *row* of a state has for each of its items (`items_from`) a set of terminals: those before which it can be reduced.
proof_at holds the rows

- of each state and terminal (`out_from`): what can be completed if that terminal comes next; behind the last
  terminal's row, if any comes that may be written there (`following_at`);
- of each state, nonterminal that may be reduced on it (`values_from`) and terminal: what can be completed, of the
  state's own items, once that nonterminal has been reduced on it and the terminal comes next.
"""

from structgen.core.kernels.bits import lowest_bit
from structgen.core.kernels.interning import word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.records import bit_words
from structgen.core.kernels.lalr.tables import *


@internal
def row_words(h, state):
    """Words of a state's rows."""
    return (items_from(h, state + 1) - items_from(h, state)) * bit_words(h)


@internal
def item_of(h, state, origin, dot):
    """The place of an item among those of a state, -1 if it is none."""
    first = items_from(h, state)
    for i in range(first, items_from(h, state + 1)):
        if item_origin(h, i) == origin and item_dot(h, i) == dot:
            return i - first
    return -1


@internal
def goto_of(h, state, symbol):
    """The place of a nonterminal that may be reduced on a state among all such, -1 if it is none."""
    lo, hi = gotos_from(h, state), gotos_from(h, state + 1)
    end = hi
    while lo < hi:
        middle = (lo + hi) >> 1
        if goto_symbol(h, middle) < symbol:
            lo = middle + 1
        else:
            hi = middle
    return lo if lo < end and goto_symbol(h, lo) == symbol else -1


@internal
def _add(h, target, source, n):
    """Or ``n`` words into others; whether that changes them."""
    changed = False
    for i in range(n):
        before = proof_at(h, target + i)
        after = before | proof_at(h, source + i)
        if after != before:
            set_proof_at(h, target + i, after)
            changed = True
    return changed


@internal
def _add_from(h, state, target, above, source):
    """Add to a row of a state what a row of a state right above it comes to; whether that changes it."""
    words, size, changed = bit_words(h), row_words(h, state), False
    first = items_from(h, above)
    for i in range(items_from(h, above + 1) - first):
        origin, dot, offset = item_origin(h, first + i), item_dot(h, first + i), source + i * words
        if dot > 1:
            j = item_of(h, state, origin, dot - 1)
            if j >= 0:
                changed |= _add(h, target + j * words, offset, words)
            continue
        reduced = goto_of(h, state, origin)
        for w in range(words if reduced >= 0 else 0):
            remaining = proof_at(h, offset + w)
            while remaining != 0:
                bit = lowest_bit(remaining)
                remaining ^= 1 << bit
                changed |= _add(h, target, values_from(h, reduced) + (64 * w + bit) * size, size)
    return changed


@internal
def _settle_reductions(h, state):
    """The rows of what may be reduced on a state."""
    count, size = word(h, H_TERMINALS), row_words(h, state)
    again = True
    while again:
        again = False
        for e in range(gotos_from(h, state), gotos_from(h, state + 1)):
            above = goto_at(h, state * word(h, H_NONTERMINALS) + goto_symbol(h, e))
            row_size = row_words(h, above)
            for t in range(count if row_size > 0 else 0):
                if action_at(h, above * count + t) != 0 or above == word(h, H_END_STATE):
                    again |= _add_from(h, state, values_from(h, e) + t * size, above, out_from(h, above) + t * row_size)


@internal
def _settle(h, state):
    """The rows of a state, from those of the states above it; whether they are new."""
    count, words, size, row_begin = word(h, H_TERMINALS), bit_words(h), row_words(h, state), out_from(h, state)
    _settle_reductions(h, state)
    changed = False
    for t in range(count):
        action, target = action_at(h, state * count + t), row_begin + t * size
        if action == 0:
            continue
        if action & 1 == 0:
            above = (action >> 1) - 1
            changed |= _add_from(h, state, target, above, out_from(h, above) + count * row_words(h, above))
        else:
            rule = (action >> 1) - 1
            if rule_size(h, rule) > 0:
                offset = target + item_of(h, state, rule_origin(h, rule), rule_size(h, rule)) * words + (t >> 6)
                after = proof_at(h, offset) | 1 << (t & 63)
                changed |= after != proof_at(h, offset)
                set_proof_at(h, offset, after)
            else:
                reduced = goto_of(h, state, rule_origin(h, rule))
                if reduced >= 0:
                    changed |= _add(h, target, values_from(h, reduced) + t * size, size)
        if (following_at(h, state * words + (t >> 6)) >> (t & 63)) & 1:
            changed |= _add(h, row_begin + count * size, target, size)
    return changed


@internal
def prove(h):
    """Find all rows: those of a state anew whenever one above it has changed.

    The scratch holds a queue of states, and behind it which of them wait; `unknown_at` and `level_at`, for each state,
    those that may lie below it.
    """
    states, end = word(h, H_STATES), word(h, H_END_STATE)
    offset = out_from(h, end) + word(h, H_END) * row_words(h, end)
    offset += item_of(h, end, word(h, H_NONTERMINALS), 2) * bit_words(h) + (word(h, H_END) >> 6)
    set_proof_at(h, offset, 1 << (word(h, H_END) & 63))
    for i in range(states):
        set_scratch_at(h, i, states - 1 - i)
        set_scratch_at(h, states + i, 1)
    first, left = 0, states
    while left > 0:
        state = scratch_at(h, first)
        first = first + 1 if first + 1 < states else 0
        left -= 1
        set_scratch_at(h, states + state, 0)
        if row_words(h, state) == 0 or not _settle(h, state):
            continue
        for i in range(unknown_at(h, state), unknown_at(h, state + 1)):
            below = level_at(h, i)
            if scratch_at(h, states + below) == 0:
                set_scratch_at(h, states + below, 1)
                last = first + left
                set_scratch_at(h, last if last < states else last - states, below)
                left += 1
    return 1
