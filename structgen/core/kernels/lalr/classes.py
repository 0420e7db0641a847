"""Classes of stacks: what terminals a stack takes so that some text completes it, known when it is made.

A class is the state on top and, for each of its items, the terminals before which it may be reduced in this stack
(what LR(1) items look ahead for). The class of a stack follows from that of the one below and the state on top.
"""

from structgen.core.kernels.interning import lacks_room, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.proofs import goto_of, item_of, row_words
from structgen.core.kernels.lalr.records import bit_words, intern, put
from structgen.core.kernels.lalr.tables import *


@internal
def _overlap(h, row, offset, n):
    """Whether ``n`` words of proofs have bits of those at a place of the heap."""
    for i in range(n):
        if proof_at(h, row + i) & word(h, offset + i):
            return True
    return False


@internal
def _class_of(h, n):
    """The class whose key is on the scratch."""
    words = bit_words(h)
    r = intern(h, CLASS, n, CLASS_FITS - 2 + words)
    if lacks_room(h) or word(h, r + CLASS_LIVE) != 0:
        return r
    state, expected = word(h, r + CLASS_FITS + words), r + CLASS_FITS + words + 1
    size, count, live = row_words(h, state), word(h, H_TERMINALS), NO
    for t in range(count):
        if action_at(h, state * count + t) != 0 and _overlap(h, out_from(h, state) + t * size, expected, size):
            offset, bit = r + CLASS_FITS + (t >> 6), 1 << (t & 63)
            set_word(h, offset, word(h, offset) | bit)
            # An indenter has said what it has to say of a line when its newline has been read.
            if following_at(h, state * words + (t >> 6)) & bit and t != word(h, H_INDENT) and t != word(h, H_DEDENT):
                live = YES
    set_word(h, r + CLASS_LIVE, live)
    return r


@internal
def first_class(h, state):
    """The class of the stack before all text: its one item is the whole text, before the end."""
    words, end = bit_words(h), word(h, H_END)
    put(h, 0, state)
    for i in range(row_words(h, state)):
        put(h, 1 + i, 1 << (end & 63) if i % words == end >> 6 else 0)
    return _class_of(h, 1 + row_words(h, state))


@internal
def _put_expected(h, n, below, origin):
    """Write from the ``n``-th word on the terminals before which a nonterminal may be reduced on a stack of a class."""
    words, count = bit_words(h), word(h, H_TERMINALS)
    state = word(h, below + CLASS_FITS + words)
    size, entry = row_words(h, state), goto_of(h, state, origin)
    bits = 0
    above = goto_at(h, state * word(h, H_NONTERMINALS) + goto_symbol(h, entry)) if entry >= 0 else 0
    for t in range(count):
        if (
            entry >= 0
            and (action_at(h, above * count + t) != 0 or above == word(h, H_END_STATE))
            and _overlap(h, values_from(h, entry) + t * size, below + CLASS_FITS + words + 1, size)
        ):
            bits |= 1 << (t & 63)
        if t & 63 == 63 or t + 1 == count:
            put(h, n + (t >> 6), bits)
            bits = 0


@internal
def class_above(h, below, state):
    """The class of a stack of a class with a state upon it."""
    put(h, 0, below)
    put(h, 1, state)
    memo = intern(h, ABOVE, 2, 1)
    value = word(h, memo + ABOVE_VALUE)
    if value != 0 or lacks_room(h):
        return value
    words = bit_words(h)
    top, first, n = word(h, below + CLASS_FITS + words), items_from(h, state), 1
    for i in range(first, items_from(h, state + 1)):
        if item_dot(h, i) > 1:
            j = item_of(h, top, item_origin(h, i), item_dot(h, i) - 1)
            for w in range(words):
                put(h, n + w, word(h, below + CLASS_FITS + words + 1 + j * words + w) if j >= 0 else 0)
        else:
            _put_expected(h, n, below, item_origin(h, i))
        n += words
    put(h, 0, state)
    value = _class_of(h, n)
    if not lacks_room(h):
        set_word(h, memo + ABOVE_VALUE, value)
    return value


@internal
def takes(h, group, terminal):
    """Whether a stack of a class takes a terminal, and some text completes it then."""
    return (word(h, group + CLASS_FITS + (terminal >> 6)) >> (terminal & 63)) & 1 != 0
