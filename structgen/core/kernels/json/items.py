"""Distinct items: the finished items of an array, and whether one more is new among them."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.frames import add_hash, load, lookup
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.json.values_equal import equal_values
from structgen.core.kernels.json.values_hash import hash_value, mixed


@internal
def is_distinct(m, record):
    """Whether a record is an array of distinct items."""
    return grammar(m, record + R_KIND) != R_OBJECT and grammar(m, record + A_UNIQUE) == DISTINCT


@internal
def _find_item(m, frame, start, limit):
    """(whether an array has an item equal to the value from ``start`` to ``limit``, the hash to add that with).

    Different values with one hash are told apart by their texts; the later one goes under a hash of its hash.
    """
    root = load(m, frame + F_OTHERS)
    hashed = hash_value(m, start, limit)
    if reg(m, TOO_DEEP):
        return False, hashed
    while True:
        node = lookup(m, root, hashed)
        if node < 0:
            return False, hashed
        if equal_values(m, load(m, node + K_START), start, limit) or reg(m, TOO_DEEP):
            return True, hashed
        hashed = mixed(hashed, 1)


@internal
def add_item(m, frame, start, limit):
    """Add a finished item to the set of a frame in scratch. Whether there was room."""
    _, hashed = _find_item(m, frame, start, limit)
    return add_hash(m, frame, hashed, start)


@internal
def is_pair(m, frame, limit):
    """Whether the item that ends before ``limit`` is equal to one before it."""
    if load(m, frame + F_OTHERS) < 0:
        return False
    present, _ = _find_item(m, frame, load(m, frame + F_START), limit)
    return present


@internal
def is_fresh(m, frame, limit):
    """Whether a value that ends before ``limit`` differs from the items before it, if it is an item that has to."""
    if frame < 0 or not is_distinct(m, load(m, frame) & LOW32):
        return True
    return not is_pair(m, frame, limit)
