"""What engines call of the JSON machine: one function an operation, each on the context at address ``m``.

Nothing here checks its arguments; matchers and masks do. The layout stands in `structgen.kernels.json.layout`.
"""

from structgen.kernels.json.layout import *
from structgen.kernels.loading import kernel

run = kernel("json")


def advance(m: int, count: int, start: int, end: int) -> int:
    """The configurations after ``data[start:end]``, see `structgen.kernels.json.threads.advance`."""
    return run(m, ADVANCE, count, start, end)


def accept(m: int, count: int, token: int, top: int) -> int:
    """The configurations after a token, settled if they fit, see `structgen.kernels.json.threads.accept`."""
    return run(m, ACCEPT, count, token, top)


def settle(m: int, top: int, count: int) -> int:
    """Move the frames of new configurations from scratch to the arena, which must have the room; its new top."""
    return run(m, SETTLE, top, count, 0)


def accepting(m: int, count: int) -> int:
    """Whether the text may stop after one of the ``count`` configurations in ``threads``: 0 or 1."""
    return run(m, ACCEPTING_NOW, count, 0, 0)


def fill(m: int, count: int, out: int, first: int) -> int:
    """The token bitmask of ``count`` configurations into the row at address ``out``, from ``first`` on."""
    return run(m, FILL, count, out, first)


def fill_row(m: int, state: int, place: int, number: bool, out: int) -> int:
    """The row of a pool state, see `structgen.kernels.json.rows.fill_row`."""
    return run(m, FILL_DIGITS if number else FILL_ROW, state, place, out)


def next_bytes(m: int, count: int, out: int) -> int:
    """The 256 bits, at address ``out``, of the bytes that may come next."""
    return run(m, NEXT_BYTES, count, out, 0)
