"""Intervals of entries: those that begin with what was written, and with one byte more."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import size
from structgen.core.kernels.sorted.layout import *
from structgen.core.kernels.sorted.tables import bound, setting, start_of, text


@internal
def byte_at(m, offset):
    """A byte of the text; outside of it, as in a damaged file, what ends a document."""
    return text(m, offset) if 0 <= offset < size(m, text) else END


@internal
def byte_of(m, entry, depth):
    """Byte ``depth`` of an entry; ENDED, below all bytes, where a name has ended."""
    offset = start_of(m, entry) + depth
    if setting(m, S_KIND) == NAMES and offset >= start_of(m, entry + 1):
        return ENDED
    return byte_at(m, offset)


@internal
def _begin_alike(m, one, other, depth):
    """Whether two entries have the same first bytes."""
    for i in range(depth):
        byte = byte_of(m, one, i)
        if byte < 0 or byte == END or byte != byte_of(m, other, i):
            return False
    return True


@internal
def interval_end(m, entry, depth):
    """Behind the last entry that begins as this one, the first that does. Galloping: O(bytes × log entries)."""
    last = setting(m, S_ENTRIES)
    if depth == 0:
        return last
    if entry < 0 or entry >= last:
        return entry
    alike, step = entry, 1
    while alike + step < last and _begin_alike(m, entry, alike + step, depth):
        alike += step
        step *= 2
    last = min(alike + step, last)
    while last - alike > 1:
        middle = (alike + last) >> 1
        if _begin_alike(m, entry, middle, depth):
            alike = middle
        else:
            last = middle
    return last


@internal
def first_from(m, entry, last, depth, byte):
    """The first of the entries from ``entry`` to ``last`` whose byte at a depth is at least ``byte``; ``last``: none.

    They agree in the bytes before it. Galloping, so that what is near costs little.
    """
    if entry >= last or byte_of(m, entry, depth) >= byte:
        return entry
    below, step = entry, 1
    while below + step < last and byte_of(m, below + step, depth) < byte:
        below += step
        step *= 2
    last = min(below + step, last)
    while last - below > 1:
        middle = (below + last) >> 1
        if byte_of(m, middle, depth) < byte:
            below = middle
        else:
            last = middle
    return last


@internal
def narrowed(m, entry, last, depth, byte):
    """(first, end) of those entries of an interval that go on with a byte; equal: there are none."""
    if byte >= END:
        return entry, entry
    if depth == 0:
        entries = setting(m, S_ENTRIES)
        first = min(max(bound(m, byte), 0), entries)
        end = min(max(bound(m, byte + 1), first), entries)
        return first, end
    first = first_from(m, entry, last, depth, byte)
    return first, first_from(m, first, last, depth, byte + 1)


@internal
def after_alike(m, entry, last, depth, count):
    """Behind the entries of an interval that go on with the same ``count`` bytes as this one, its first."""
    for i in range(count):
        if last <= entry + 1:
            break
        byte = byte_of(m, entry, depth + i)
        last = first_from(m, entry, last, depth + i, byte + 1)
    return max(last, entry + 1)
