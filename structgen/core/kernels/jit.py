"""How functions become kernels: the decorators of everything below ``kernels/``, and the stamp that a cache sees.

A kernel is one entry ``run(m, operation, x, y, z)`` of five int64, returning int64; ``m`` is an address. What it calls
is marked `internal`: no wrapper, no specialisation for each literal argument, no runtime of numba (so no allocation),
division as machines do it. This module imports numba; `structgen.core.kernels.loading` does not, if an
object is at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.extending import register_jitable

from structgen.core.kernels.objects import is_checked, sources_hash

_OPTIONS = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
SIGNATURE = types.int64(types.int64, types.int64, types.int64, types.int64, types.int64)
CHECKED = is_checked()
# Numba's cache sees edits of the entry's own file only. It does see the values that an entry closes over: this one
# changes with every edit below ``kernels/`` and with the bounds checks.
STAMP = int(sources_hash()[:14], 16) | (1 << 60 if CHECKED else 0)

KEPT = True  # whether numba's cache keeps what it compiles; not where it only translates, see `core.kernels.build`

internal: Callable[..., Any] = register_jitable(**_OPTIONS)
"""A function that kernels call."""

inlined: Callable[..., Any] = njit(**_OPTIONS, inline="always")
"""The same, copied into its callers: for what is called per element and hands over many arrays."""


def entry(make: Callable[[int], Callable[[int, int, int, int, int], int]]) -> Any:
    """The compiled entry of a kernel. ``make(stamp)`` makes the function, which must mention ``stamp`` in its body."""
    return njit(SIGNATURE, cache=KEPT, nogil=True, _nrt=False, error_model="numpy")(make(STAMP))
