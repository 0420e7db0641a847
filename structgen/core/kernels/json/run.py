"""The entry of the JSON machine's kernel: one, so that all is optimised and linked once."""

from structgen.core.kernels.jit import entry
from structgen.core.kernels.json.bitmask_rows import fill_row
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.masks import accepting, next_bytes
from structgen.core.kernels.json.matchers import enter, fills, is_stale, mask, read, step, steps, trees


def _make(stamp):
    """The entry, for a stamp of the sources."""

    def run(m, operation, x, y, z):
        """Run an operation on the context at address ``m``; `core.kernels.json.machine` says which and how."""
        if operation == STEPS:
            return steps(m, x, y, z)
        if operation == FILLS:
            return fills(m, x, y, z)
        if operation == TREES:
            return trees(m, x, y)
        if is_stale(m):
            return STALE
        if operation == STEP:
            return step(m, x, y, z)
        if operation == FILL:
            return mask(m, x, y, z)
        if operation == ADVANCE:
            return read(m, x, y, z)
        if operation == ACCEPTING_NOW:
            return ALIVE if accepting(m, enter(m, x)) else DEAD
        if operation == NEXT_BYTES:
            return next_bytes(m, enter(m, x), y)
        if operation == FILL_ROW or operation == FILL_DIGITS:
            return fill_row(m, x, y, operation == FILL_DIGITS, z)
        return stamp

    return run


run = entry(_make)
