"""Advancing states by bytes."""

from structgen.core.kernels.interning import lacks_room, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.lexer import step
from structgen.core.kernels.lalr.liveness import is_alive, live_config, note
from structgen.core.kernels.lalr.tables import *
from structgen.core.kernels.memory import element_reader

_byte = element_reader(8, signed=False)


@internal
def character_after(h, node, byte):
    """One byte on in the UTF-8 tree from a node (0: between characters): the node after it, -1 if it is not UTF-8, or
    the class of the character that it completes, as ``-2 - class``."""
    if node == 0:
        if byte < 128:
            return -2 - ascii_class(h, byte)
        return lead_node(h, byte - 128) + 1 or -1
    if node < 0 or byte & 0xC0 != 0x80:
        return -1
    child = child_at(h, (node - 1) * 64 + (byte & 63))
    if child < 0:
        return -1
    return -2 - child if is_leaf(h, node - 1) != 0 else child + 1


@internal
def byte_step(h, state, byte):
    """The state after a byte, DEAD if there is none; its liveness is not looked at."""
    config, character = state & STATE_MASK, character_after(h, state >> STATE_BITS, byte)
    if character == -1:
        return DEAD
    return step(h, config, -2 - character) if character < -1 else config | (character << STATE_BITS)


@internal
def result_of(h, value):
    """A result, or what must be done before it can be had."""
    if lacks_room(h):
        return RETRY
    return UNKNOWN if word(h, H_UNKNOWNS) > 0 else value


@internal
def advance(h, state, data, count):
    """The live state after ``count`` bytes at address ``data``, or DEAD: as in masks, all on the way must live."""
    for i in range(count):
        state = byte_step(h, state, _byte(data, i))
        live = DEAD
        if state != DEAD:
            live = YES if state >> STATE_BITS != 0 else live_config(h, state)
        if live == DEAD or live == NO:
            set_word(h, H_UNKNOWNS, 0)
            return result_of(h, DEAD)
        if live == UNKNOWN:
            note(h, state)
    return result_of(h, state if state >> STATE_BITS == 0 or is_alive(h, state) else DEAD)
