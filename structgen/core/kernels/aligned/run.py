"""The entry of the walks' kernel."""

from structgen.core.kernels.aligned.layout import *
from structgen.core.kernels.aligned.walks import next_uniform, refresh, walk
from structgen.core.kernels.jit import entry
from structgen.core.kernels.memory import float_matrix, hash_array


def _make(stamp):
    def run(m, operation, x, y, z):
        """Run an operation on the arguments at address ``m``; `structgen.core.kernels.aligned.calls` says which."""
        if operation == REFRESH:
            refresh(m, x)
        elif operation == WALK:
            walk(m, x & 1 != 0, x & 2 != 0, y)
        elif operation == UNIFORM:
            float_matrix(m, A_REAL)[0, 0] = next_uniform(hash_array(m, A_STATES), x)
        return stamp

    return run


run = entry(_make)
