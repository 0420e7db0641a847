"""Tokens into the row of a mask."""

from structgen.core.kernels.bits import clear_bit, set_bit, set_bits
from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import (
    address,
    and_words,
    clear_words,
    copy_words,
    element_reader,
    element_writer,
    mask_word,
    or_words,
    size,
    within,
)

FEW_TOKENS = 8  # that it pays to look at, before a walk over their nodes
_int, _set_word = element_reader(32), element_writer(64)


@internal
def set_token(m, token, out):
    """Allow a token."""
    set_bit(out, limit(m, L_WIDTH), token)
    index = reg(m, LOGGED)
    if index < size(m, logged):
        set_logged(m, index, token)
    set_reg(m, LOGGED, index + 1)


@internal
def set_tokens(m, token, out):
    """Allow a token and all that spell the same."""
    if token >= 0:
        set_token(m, token, out)
        while limit(m, L_ALIKE) and next_same(m, token) >= 0:
            token = next_same(m, token)
            set_token(m, token, out)


@internal
def ready(m, out):
    """Make sure that the row holds a mask: a fresh one is cleared only where no row is copied over it."""
    if reg(m, FRESH):
        clear_words(out, limit(m, L_WIDTH))
        set_reg(m, FRESH, 0)


@internal
def row_address(m, row):
    """Where a kept row lies."""
    return block(m, row // BLOCK_ROWS) + 4 * (row % BLOCK_ROWS) * limit(m, L_WIDTH)


@internal
def or_row(m, row, out):
    """Allow the tokens of a kept row."""
    width = limit(m, L_WIDTH)
    index = reg(m, LOGGED_ROWS)
    if index < LOG_ROWS:
        set_logged(m, index, row)
    set_reg(m, LOGGED_ROWS, index + 1)
    source = row_address(m, row)
    if reg(m, FRESH):
        copy_words(source, out, width)
        set_reg(m, FRESH, 0)
    else:
        or_words(source, out, width)


@internal
def and_row(m, row, out):
    """Forbid the tokens that are not of a kept row."""
    set_reg(m, LOGGED, size(m, logged) + 1)  # a mask that no list says
    and_words(row_address(m, row), out, limit(m, L_WIDTH))


@internal
def emit_subtree(m, lo, hi, out):
    """Allow all tokens of the nodes lo..hi, which are of one trie."""
    first, last = order_start(m, lo), order_start(m, hi)
    within(first, last - first, size(m, order))
    ids, log, index = address(m, order) + 4 * first, address(m, logged), reg(m, LOGGED)
    for i in range(min(last - first, size(m, logged) - index)):
        _set_word(log, index + i, _int(ids, i))
    set_reg(m, LOGGED, index + last - first)
    set_bits(out, limit(m, L_WIDTH), ids, last - first)


@internal
def clear_subtree(m, lo, hi, out):
    """Forbid all tokens of the nodes lo..hi, which are of one trie."""
    first, last = order_start(m, lo), order_start(m, hi)
    within(first, last - first, size(m, order))
    ids, width = address(m, order) + 4 * first, limit(m, L_WIDTH)
    for i in range(last - first):
        clear_bit(out, width, _int(ids, i))


@internal
def has_subtree(m, lo, hi, row):
    """Whether a row has all tokens of the nodes lo..hi, which are of one trie and few; of many it says no."""
    first, last = order_start(m, lo), order_start(m, hi)
    if last - first > FEW_TOKENS:
        return False
    within(first, last - first, size(m, order))
    ids = address(m, order) + 4 * first
    for i in range(last - first):
        token = _int(ids, i)
        if not mask_word(row, token >> 5) >> (token & 31) & 1:
            return False
    return True
