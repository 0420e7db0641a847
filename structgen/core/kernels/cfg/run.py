"""The entry of the grammar machine's kernel: one, so that all is optimised and linked once."""

from structgen.core.kernels.cfg.advance import accept, advance, after_terminal, ends_of, initial
from structgen.core.kernels.cfg.automata import read_automata
from structgen.core.kernels.cfg.buffers import intern, push
from structgen.core.kernels.cfg.completion_lengths import bound_of
from structgen.core.kernels.cfg.item_sets import goto
from structgen.core.kernels.cfg.kinds import kind_of, kinds_below
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.masks import fill, next_bytes
from structgen.core.kernels.cfg.paired import fill_pairs, row_of
from structgen.core.kernels.interning import lacks_room, rehash, word
from structgen.core.kernels.jit import entry, internal
from structgen.core.kernels.memory import word as word_at


@internal
def _goto_items(h, items, kind):
    """The items after a terminal of one class."""
    start = word(h, H_CTOP)
    push(h, H_C, kind)
    after = goto(h, items, intern(h, CLASSES, start, 0))
    return RETRY if lacks_room(h) else after


def _make(stamp):
    def run(root, operation, x, y, z):
        """Run an operation on the heap whose address stands at ``root`` (`structgen.core.kernels.cfg.machine`)."""
        h = word_at(root, 0)
        if operation == FILL:
            return fill(h, x, y)
        if operation == ACCEPT:
            return accept(h, x, y)
        if operation == ADVANCE:
            return advance(h, x, y, z)
        if operation == ENDS:
            return ends_of(h, x)
        if operation == NEXT_BYTES:
            return next_bytes(h, x, y)
        if operation == BOUND:
            return bound_of(h, x)
        if operation == INITIAL:
            return initial(h, x)
        if operation == AFTER:
            return after_terminal(h, x, y)
        if operation == REHASH:
            return rehash(h, x, y)
        if operation == GOTO_ITEMS:
            return _goto_items(h, x, y)
        if operation == KINDS_BELOW:
            return kinds_below(x, y, z)
        if operation == KIND_OF:
            return kind_of(x)
        if operation == FILL_PAIRS:
            return fill_pairs(h, x, y, z)
        if operation == ROW_OF:
            return row_of(h, x)
        if operation == READ_AUTOMATA:
            return read_automata(h, x, y)
        return stamp

    return run


run = entry(_make)
