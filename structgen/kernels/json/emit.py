"""Tokens into the row of a mask."""

from structgen.kernels.bits import clear_bit, set_bit
from structgen.kernels.jit import internal
from structgen.kernels.json.layout import *
from structgen.kernels.json.tables import block, limit, next_same, reg, set_logged, set_reg
from structgen.kernels.memory import (
    address,
    and_words,
    clear_words,
    copy_words,
    element_reader,
    element_writer,
    or_words,
    size,
    within,
)

_int, _set_word = element_reader(32), element_writer(64)


@internal
def set_token(m, token, out):
    """Allow a token."""
    set_bit(out, limit(m, L_WIDTH), token)
    place = reg(m, LOGGED)
    if place < size(m, C_LOG):
        set_logged(m, place, token)
    set_reg(m, LOGGED, place + 1)


@internal
def set_tokens(m, token, out):
    """Allow a token and all that spell the same."""
    if token >= 0:
        set_token(m, token, out)
        while limit(m, L_ALIKE) and next_same(m, token) >= 0:
            token = next_same(m, token)
            set_token(m, token, out)


@internal
def clear_tokens(m, token, out):
    """Forbid a token and all that spell the same."""
    width = limit(m, L_WIDTH)
    while token >= 0:
        clear_bit(out, width, token)
        token = next_same(m, token)


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
    place = reg(m, LOGGED_ROWS)
    if place < LOG_ROWS:
        set_logged(m, place, row)
    set_reg(m, LOGGED_ROWS, place + 1)
    source = row_address(m, row)
    if reg(m, FRESH):
        copy_words(source, out, width)
        set_reg(m, FRESH, 0)
    else:
        or_words(source, out, width)


@internal
def and_row(m, row, out):
    """Forbid the tokens that are not of a kept row."""
    set_reg(m, LOGGED, size(m, C_LOG) + 1)  # a mask that no list says
    and_words(row_address(m, row), out, limit(m, L_WIDTH))


@internal
def emit_subtree(m, lo, hi, out):
    """Allow all tokens of the trie's nodes lo..hi. (What the loop needs is looked up before it, not for each token.)"""
    width, nodes, log, room = limit(m, L_WIDTH), address(m, C_NODES), address(m, C_LOG), size(m, C_LOG)
    alike = address(m, C_NEXT_SAME) if limit(m, L_ALIKE) else 0
    within(4 * lo, 4 * (hi - lo), size(m, C_NODES))
    place = reg(m, LOGGED)
    for i in range(lo, hi):
        token = _int(nodes, 4 * i + NODE_TOKEN)
        while token >= 0:
            set_bit(out, width, token)
            if place < room:
                _set_word(log, place, token)
            place += 1
            token = _int(alike, token) if alike else -1
    set_reg(m, LOGGED, place)
