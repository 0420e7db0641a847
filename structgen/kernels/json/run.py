"""The entry of the JSON machine's kernel: one, so that all is optimised and linked once."""

from structgen.kernels.jit import entry
from structgen.kernels.json.layout import *
from structgen.kernels.json.masks import accepting, fill, next_bytes
from structgen.kernels.json.rows import fill_row
from structgen.kernels.json.threads import accept, advance, settle


def _make(stamp):
    """The entry, for a stamp of the sources."""

    def run(m, operation, x, y, z):
        """Run an operation on the context at address ``m``; `structgen.kernels.json.machine` says which and how."""
        if operation == FILL:
            return fill(m, x, y, z)
        if operation == ACCEPT:
            return accept(m, x, y, z)
        if operation == ADVANCE:
            return advance(m, x, y, z)
        if operation == ACCEPTING_NOW:
            return 1 if accepting(m, x) else 0
        if operation == SETTLE:
            return settle(m, x, y)
        if operation == NEXT_BYTES:
            return next_bytes(m, x, y)
        if operation == FILL_ROW or operation == FILL_DIGITS:
            return fill_row(m, x, y, operation == FILL_DIGITS, z)
        return stamp

    return run


run = entry(_make)
