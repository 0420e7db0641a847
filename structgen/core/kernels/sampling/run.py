"""The entry of the sampling kernel."""

from structgen.core.kernels.jit import entry
from structgen.core.kernels.sampling.layout import *
from structgen.core.kernels.sampling.logits_rows import draw, gather
from structgen.core.kernels.sampling.masks import apply, few


def _make(stamp):
    def run(m, operation, x, y, z):
        """Run an operation on the arguments at address ``m``; `structgen.core.kernels.sampling.calls` says which."""
        if operation == FEW:
            return few(m, x, y, z)
        columns, kind = x & COLUMNS_MASK, (x >> KIND_SHIFT) & 3
        if operation == DRAW:
            draw(m, columns, y, kind, x & WITH_KEPT != 0)
        elif operation == GATHER:
            gather(m, columns, y, kind)
        elif operation == APPLY:
            apply(m, columns, y, kind, z)
        return stamp

    return run


run = entry(_make)
