"""Frames (open containers) and the search trees of the undeclared keys or finished items that they list."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import size, wrapped_mul


@internal
def load(m, pointer):
    """A word of a frame, in the arena or in scratch."""
    return scratch(m, pointer - SCRATCH) if pointer >= SCRATCH else arena(m, pointer)


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
    pointer = top + 1
    set_scratch(m, pointer + F_HEAD, record | (count << 32))
    set_scratch(m, pointer + F_PARENT, parent)
    if source >= 0:
        for w in range(F_DEPTH, words):
            set_scratch(m, pointer + w, load(m, source + w))
    else:
        set_scratch(m, pointer + F_DEPTH, depth(m, parent) + 1 if parent >= 0 else 1)
        set_scratch(m, pointer + F_BELOW, _hash_below(m, parent))
        if words > F_OTHERS:
            set_scratch(m, pointer + F_OTHERS, -1)
            for w in range(F_SEEN, words):
                set_scratch(m, pointer + w, 0)
    set_reg(m, TOP, top + words + 1)
    return pointer + SCRATCH


@internal
def depth(m, frame):
    """How many containers are open. (Behind it a search notes the last key that it has added, see `last_key_bit`.)"""
    return load(m, frame + F_DEPTH) & LOW32


@internal
def lookup(m, pointer, hashed):
    """The node with a hash in the tree whose root is at ``pointer``, or -1."""
    depth = 0
    if pointer >= 0 and hashed != HASH_START:
        set_reg(m, ASKED, 1)
    while pointer >= 0 and load(m, pointer + K_HASH) != hashed:
        pointer = load(m, pointer + K_LEFT + ((hashed >> depth) & 1))
        depth += 1
    return pointer


@internal
def _new_leaf(m, hashed, start):
    """A node without children in scratch (the caller has checked the room)."""
    pointer = reg(m, TOP) + 1
    set_scratch(m, pointer - 1, -1)
    set_scratch(m, pointer + K_LEFT, -1)
    set_scratch(m, pointer + K_LEFT + 1, -1)
    set_scratch(m, pointer + K_HASH, hashed)
    set_scratch(m, pointer + K_START, start)
    set_reg(m, TOP, pointer + K_SIZE)
    return pointer


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
