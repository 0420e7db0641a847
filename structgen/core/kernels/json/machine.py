"""What engines call of the JSON machine: one function an operation, each on the context at address ``m``.

Nothing here checks its arguments; matchers and masks do. The layout stands in `structgen.core.kernels.json.layout`. Any
operation may return what it lacks (`layout.MISS` and above), and is called again once that is there.
"""

from structgen.core.kernels.json.layout import *
from structgen.core.kernels.loading import kernel

run = kernel("json")


def advance(m: int, block: int, start: int, end: int) -> int:
    """Advance a matcher by ``data[start:end]``: DEAD, or ALIVE."""
    return run(m, ADVANCE, block, start, end)


def accepting(m: int, block: int) -> int:
    """Whether the matcher's text may stop: DEAD, or ALIVE."""
    return run(m, ACCEPTING_NOW, block, 0, 0)


def fill(m: int, block: int, out: int, first: int) -> int:
    """The matcher's token bitmask into the row at address ``out``, from its configuration ``first`` on."""
    return run(m, FILL, block, out, first)


def step(m: int, block: int, token: int, out: int) -> int:
    """Advance a matcher by a token: DEAD, or ALIVE. Unless ``out`` is 0, `fill` behind it: what that lacks has
    `layout.FILLING` added, and the step is not undone."""
    return run(m, STEP, block, token, out)


def steps(m: int, jobs: int, first: int, last: int) -> int:
    """`step` of many matchers: the number of the job that lacks something, or ``last``."""
    return run(m, STEPS, jobs, first, last)


def fills(m: int, jobs: int, first: int, last: int) -> int:
    """`fill` of many matchers: the number of the job that lacks something, or ``last``."""
    return run(m, FILLS, jobs, first, last)


def trees(m: int, jobs: int, first: int) -> int:
    """`step` of matchers to each node of their trees of tokens, from the job ``first`` on: the number of the job that
    lacks something, or -1. Afterwards matchers stand at any node of their tree."""
    return run(m, TREES, jobs, first, 0)


def fill_row(m: int, state: int, string_state: int, number: bool, out: int) -> int:
    """The row of a pool state, see `structgen.core.kernels.json.bitmask_rows.fill_row`."""
    return run(m, FILL_DIGITS if number else FILL_ROW, state, string_state, out)


def next_bytes(m: int, block: int, out: int) -> int:
    """The 256 bits, at address ``out``, of the bytes that may come next."""
    return run(m, NEXT_BYTES, block, out, 0)
