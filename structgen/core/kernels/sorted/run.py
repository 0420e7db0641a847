"""The entry of the kernel of sorted texts."""

from structgen.core.kernels.jit import entry
from structgen.core.kernels.memory import address
from structgen.core.kernels.sorted.ends import points_of, shortest_end
from structgen.core.kernels.sorted.intervals import interval_end
from structgen.core.kernels.sorted.layout import *
from structgen.core.kernels.sorted.masks import advance, depth_of, entry_of, fill, next_bytes, stops
from structgen.core.kernels.sorted.suffixes import suffix_induce, suffix_kinds, suffix_ranks
from structgen.core.kernels.sorted.tables import token_byte, token_start


def _make(stamp):
    def run(m, operation, x, y, z):
        """Run an operation on the tables at address ``m``; `structgen.core.kernels.sorted.machine` says which."""
        if operation == FILL:
            return fill(m, x, y)
        if operation == ACCEPT:
            begin = token_start(m, y)
            count = token_start(m, y + 1) - begin
            return advance(m, x, address(m, token_byte) + begin, count) if count else DEAD
        if operation == ADVANCE:
            return advance(m, x, y, z)
        if operation == ENDS:
            return 1 if stops(m, x) else 0
        if operation == NEXT_BYTES:
            next_bytes(m, x, y)
        elif operation == INTERVAL:
            return interval_end(m, entry_of(x), depth_of(x))
        elif operation == SHORTEST:
            first, depth = entry_of(x), depth_of(x)
            shortest_end(m, first, interval_end(m, first, depth), depth, points_of(m, first, depth), y)
        elif operation == SUFFIX_KINDS:
            return suffix_kinds(m, x)
        elif operation == SUFFIX_INDUCE:
            suffix_induce(m, x)
        elif operation == SUFFIX_RANKS:
            return suffix_ranks(m)
        return stamp

    return run


run = entry(_make)
