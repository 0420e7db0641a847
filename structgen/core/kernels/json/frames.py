"""Frames (open containers) and the search trees of the undeclared keys or finished items that they list."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import size, wrapped_mul


@internal
def load(m, place):
    """A word of a frame, in the arena or in scratch."""
    return scratch(m, place - SCRATCH) if place >= SCRATCH else arena(m, place)


@internal
def has_list(m, record):
    """Whether frames of a record list hashes: of undeclared keys, or of distinct items."""
    return grammar(m, record + R_KIND) == R_OBJECT or grammar(m, record + A_UNIQUE) != 0


@internal
def frame_size(m, record):
    """Words of a frame without its forward link."""
    if grammar(m, record + R_KIND) == R_OBJECT:
        return 5 + grammar(m, record + O_WORDS)
    return 6 if grammar(m, record + A_UNIQUE) else 4


@internal
def _hash_below(m, frame):
    """A hash of what the frames from one on down say, by which stacks are told apart at their tops."""
    if frame < 0:
        return HASH_START
    record = load(m, frame) & LOW32
    hashed = wrapped_mul(load(m, frame + F_BELOW) ^ load(m, frame), HASH_PRIME)
    if has_list(m, record):
        for w in range(F_SEEN, frame_size(m, record)):
            hashed = wrapped_mul(hashed ^ (hashed >> 29) ^ load(m, frame + w), HASH_PRIME)
    return hashed ^ (hashed >> 31)


@internal
def new_frame(m, record, count, parent, source):
    """Append a frame to scratch: a copy of ``source``'s seen keys with a new count, or an empty one (source -1)."""
    words = frame_size(m, record)
    top = reg(m, TOP)
    if top + words + 1 > size(m, scratch):
        return -2
    set_scratch(m, top, -1)
    place = top + 1
    set_scratch(m, place + F_HEAD, record | (count << 32))
    set_scratch(m, place + F_PARENT, parent)
    if source >= 0:
        for w in range(F_DEPTH, words):
            set_scratch(m, place + w, load(m, source + w))
    else:
        set_scratch(m, place + F_DEPTH, depth(m, parent) + 1 if parent >= 0 else 1)
        set_scratch(m, place + F_BELOW, _hash_below(m, parent))
        if words > F_OTHERS:
            set_scratch(m, place + F_OTHERS, -1)
            for w in range(F_SEEN, words):
                set_scratch(m, place + w, 0)
    set_reg(m, TOP, top + words + 1)
    return place + SCRATCH


@internal
def depth(m, frame):
    """How many containers are open. (Behind it a search notes the last key that it has added, see `behind`.)"""
    return load(m, frame + F_DEPTH) & LOW32


@internal
def lookup(m, place, hashed):
    """The node with a hash in the tree whose root is at ``place``, or -1."""
    depth = 0
    if place >= 0 and hashed != HASH_START:
        set_reg(m, ASKED, 1)
    while place >= 0 and load(m, place + K_HASH) != hashed:
        place = load(m, place + K_LEFT + ((hashed >> depth) & 1))
        depth += 1
    return place


@internal
def _new_leaf(m, hashed, start):
    """A node without children in scratch (the caller has checked the room)."""
    place = reg(m, TOP) + 1
    set_scratch(m, place - 1, -1)
    set_scratch(m, place + K_LEFT, -1)
    set_scratch(m, place + K_LEFT + 1, -1)
    set_scratch(m, place + K_HASH, hashed)
    set_scratch(m, place + K_START, start)
    set_reg(m, TOP, place + K_SIZE)
    return place


@internal
def add_hash(m, frame, hashed, start):
    """Add a hash to the tree of a frame in scratch, where it is not yet. Whether there was room.

    The nodes on the way are copied: O(log n) for hashes, at most 64.
    """
    slot = frame - SCRATCH + F_OTHERS
    node = scratch(m, slot)
    depth = 0
    while True:
        if reg(m, TOP) + K_SIZE + 1 > size(m, scratch):
            return False
        if node < 0:
            set_scratch(m, slot, _new_leaf(m, hashed, start) + SCRATCH)
            return True
        copy = _new_leaf(m, load(m, node + K_HASH), load(m, node + K_START))
        set_scratch(m, copy + K_LEFT, load(m, node + K_LEFT))
        set_scratch(m, copy + K_LEFT + 1, load(m, node + K_LEFT + 1))
        set_scratch(m, slot, copy + SCRATCH)
        slot = copy + K_LEFT + ((hashed >> depth) & 1)
        node = scratch(m, slot)
        depth += 1
