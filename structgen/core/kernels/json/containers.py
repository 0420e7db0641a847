"""Containers: whether they may close, and what their next item may be."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.existentials import unmet_existentials
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.items import is_pair
from structgen.core.kernels.json.keys import count_missing
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *


@internal
def can_close(m, frame):
    """Whether the innermost container may be closed now."""
    head = load(m, frame)
    record = head & LOW32
    count = head >> 32
    kind = grammar(m, record + R_KIND)
    if kind == R_ARRAY:
        if grammar(m, record + A_UNIQUE) == PAIRED and not is_pair(m, frame, reg(m, POSITION)):
            return False
        return count >= grammar(m, record + A_MIN)
    if kind == R_COUNTED:
        return grammar(m, record + T_CLOSES) != 0
    if unmet_existentials(m, record, frame):
        return False
    return count >= grammar(m, record + O_MIN) and count_missing(m, record, frame, -1) == 0


@internal
def item_choices(m, record):
    """How many choices there are for the next item (a plain array has one, which may be dead)."""
    return max(grammar(m, record + T_COUNT), 1) if grammar(m, record + R_KIND) == R_COUNTED else 1


@internal
def item_node(m, record, index, choice):
    """The node of the array's item ``index``, or -1 if there cannot be one."""
    if grammar(m, record + R_KIND) == R_COUNTED:
        if choice >= grammar(m, record + T_COUNT):
            return -1
        return grammar(m, grammar(m, record + T_CHOICES) + 2 * choice)
    most = grammar(m, record + A_MAX)
    if most >= 0 and index >= most:
        return -1
    if index < grammar(m, record + A_PREFIXES):
        return grammar(m, grammar(m, record + A_PREFIX) + index)
    return grammar(m, record + A_ITEMS)
