"""Walks over tries: which bytes may follow a configuration, so that most of a node's children need no step.

Noted once for each node of the path, and asked of each of its children. What is noted allows too much rather than too
little; the step decides.
"""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.escapes import table_inside_sequence
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.objects import others_admissible
from structgen.core.kernels.json.registers import node
from structgen.core.kernels.json.strings import texts_of
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import address, size
from structgen.core.kernels.sorted.masks import next_bytes

ANYTHING, FREE, LISTED, POOLED = range(4)
WORDS = 5  # of a node of the path: one of these, then the list as 256 bits, or a pool state


@internal
def is_free(m):
    """Whether any text may follow: inside a string or undeclared key without conditions, between characters."""
    q = reg(m, Q)
    if q == STRING:
        record = reg(m, A) & LOW32
        if (reg(m, B) & LOW32) != limit(m, L_UNIVERSAL):
            return False
        return record == 0 or (grammar(m, record + S_MAX) < 0 and grammar(m, record + S_DISTANCES) == 0)
    if q != KEY and q != OTHER_KEY:
        return False
    record = load(m, reg(m, FRAME)) & LOW32
    if grammar(m, record + O_OTHERS) != ONE_CLASS or grammar(m, record + O_NARROW) != 0:
        return False
    if q == OTHER_KEY:
        return (reg(m, A) & LOW32) == limit(m, L_UNIVERSAL)
    return others_admissible(m, record, reg(m, FRAME)) and not table_inside_sequence(
        m, grammar(m, record + O_ENTRIES), reg(m, B)
    )


@internal
def _list(m, offset, byte):
    """Add a byte to the list at a place."""
    word = offset + 1 + (byte >> 6)
    set_following(m, word, following(m, word) | (1 << (byte & 63)))


@internal
def _list_entries(m, offset, entries, value):
    """List what the entries of a table's range go on with, quote and backslash. O(bytes listed, times log entries)."""
    _list(m, offset, 0x22)
    _list(m, offset, 0x5C)
    index, last, depth = value & MASK20, (value >> 20) & MASK20, value >> 40
    if index < last and grammar(m, entries + E_SIZE * index + E_LENGTH) == depth:
        index += 1
    while index < last:
        byte = text(m, grammar(m, entries + E_SIZE * index + E_OFFSET) + depth)
        _list(m, offset, byte)
        end = last
        index += 1
        while index < end:
            middle = (index + end) >> 1
            if text(m, grammar(m, entries + E_SIZE * middle + E_OFFSET) + depth) <= byte:
                index = middle + 1
            else:
                end = middle


@internal
def _list_starts(m, offset, node):
    """List what a value of a node may begin with, and whitespace."""
    for byte in (0x20, 0x09, 0x0A, 0x0D):
        _list(m, offset, byte)
    if grammar(m, node + NODE_STRINGS + 1):
        _list(m, offset, 0x22)
    if grammar(m, node + NODE_OBJECTS + 1):
        _list(m, offset, 0x7B)
    if grammar(m, node + NODE_ARRAYS + 1):
        _list(m, offset, 0x5B)
    if grammar(m, node + NODE_NUMBERS + 1):
        _list(m, offset, 0x2D)
        for byte in range(0x30, 0x3A):
            _list(m, offset, byte)
    for byte in (0x6E, 0x74, 0x66):
        _list(m, offset, byte)


@internal
def note_following(m, level):
    """Note what may follow the configuration in the registers, which is that of a level of a walk."""
    offset, q = WORDS * level, reg(m, Q)
    kind = ANYTHING
    for i in range(1, WORDS):
        set_following(m, offset + i, 0)
    if is_free(m):
        kind = FREE
    elif q == STRING or q == OTHER_KEY:
        kind = POOLED
        set_following(m, offset + 1, reg(m, B if q == STRING else A) & LOW32)
    elif q == ENUM:
        kind = LISTED
        _list_entries(m, offset, grammar(m, (reg(m, A) & LOW32) + S_ENTRIES), reg(m, B))
    elif q == SORTED:
        kind = LISTED
        _list(m, offset, 0x22)
        _list(m, offset, 0x5C)
        next_bytes(texts_of(m), reg(m, B), address(m, following) + 8 * (offset + 1))
    elif q == VALUE:
        kind = LISTED
        _list_starts(m, offset, reg(m, A))
    elif q == KEY:
        record = load(m, reg(m, FRAME)) & LOW32
        if not others_admissible(m, record, reg(m, FRAME)):
            kind = LISTED
            _list_entries(m, offset, grammar(m, record + O_ENTRIES), reg(m, B))
    set_following(m, offset, kind)


@internal
def note_declared(m, level):
    """Note which bytes declared keys go on with, of a configuration in a key."""
    offset = WORDS * level
    for i in range(1, WORDS):
        set_following(m, offset + i, 0)
    set_following(m, offset, LISTED if reg(m, Q) == KEY else ANYTHING)
    if reg(m, Q) == KEY:
        _list_entries(m, offset, grammar(m, (load(m, reg(m, FRAME)) & LOW32) + O_ENTRIES), reg(m, B))


@internal
def declared_level(m, depth):
    """The level of a depth of a walk over declared keys, in which others are made."""
    return size(m, following) // (2 * WORDS) + depth


@internal
def may_follow(m, level, byte):
    """Whether a byte may come after what was noted of a level; if not, it leads nowhere."""
    offset = WORDS * level
    kind = following(m, offset)
    if kind == LISTED:
        return (following(m, offset + 1 + (byte >> 6)) >> (byte & 63)) & 1 != 0
    if kind == POOLED:
        return byte == 0x22 or byte == 0x5C or pool(m, following(m, offset + 1) * 256 + byte) >= 0
    return True


@internal
def follows_freely(m, level, i):
    """Whether all tokens below a trie's node, and its own, may come: text, where any may."""
    if following(m, WORDS * level) != FREE or class_of(m, i) >> NEVER_KIND != 0:
        return False
    byte = node(m, i, NODE_BYTE)
    return byte < 0x80 and kind(m, byte) != NEVER_KIND
