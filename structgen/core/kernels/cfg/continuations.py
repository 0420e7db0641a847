"""Continuations: sets of items to resume when a nonterminal returns."""

from structgen.core.kernels.cfg.buffers import intern, push, sort_unique
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import lacks_room, length, set_word, word
from structgen.core.kernels.jit import internal


@internal
def _push_content(h, k):
    for i in range(length(h, k)):
        push(h, H_C, word(h, k + CONT_KEY + i))


@internal
def push_item(h, suffix, k):
    """Append an item to C, and what may follow it if its suffix may be empty."""
    if suffix != 0:
        push(h, H_C, (suffix << K_BITS) | k)
    if is_nullable(h, suffix):
        _push_content(h, k)


@internal
def predict(h, nonterminal, suffix, k):
    """Note in buffer A that the nonterminal is predicted, with ``suffix`` and then ``k`` after it."""
    node = word(h, H_ATOP)
    push(h, H_A, (suffix << K_BITS) | k)
    push(h, H_A, head_of(h, nonterminal))
    set_head_of(h, nonterminal, node)
    set_is_pending(h, scc_of(h, nonterminal), 1)


@internal
def plain_continuation(h, y):
    """The continuation of a nonterminal whose incoming items refer to finished continuations only."""
    node = head_of(h, y)
    start = word(h, H_CTOP)
    if a_at(h, node + 1) < 0 and a_at(h, node) >> K_BITS == 0:
        return a_at(h, node) & K_MASK
    first = node
    while node >= 0:
        push(h, H_C, a_at(h, node))
        node = a_at(h, node + 1)
    memo = intern(h, INCOMING, start, 1)
    value = word(h, memo + INCOMING_VALUE)
    if value != 0 and not lacks_room(h):
        return value
    node = first
    while node >= 0:
        push_item(h, a_at(h, node) >> K_BITS, a_at(h, node) & K_MASK)
        node = a_at(h, node + 1)
    sort_unique(h, H_C, start)
    value = intern(h, CONT, start, CONT_KEY - 2)
    if not lacks_room(h):
        set_word(h, memo + INCOMING_VALUE, value)
    return value
