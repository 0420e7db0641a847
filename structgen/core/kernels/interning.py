"""Records in a heap, interned by kind and key: equal keys are equal integers. An id is a record's place in the heap.

The sink is a record that is read, and never believed, once the flag is up: it stands in for all that has no room.
Growth is the caller's (`structgen.core.kernels.heaps`): a larger heap, a larger hash table and `rehash`.
"""

from structgen.core.kernels.heap_layout import (
    H_CAP,
    H_FLAG,
    H_HASH,
    H_RECORDS,
    H_SINK,
    H_SLOTS,
    H_TOP,
    HASH_FULL,
    HASH_PRIME,
    HEAP_FULL,
    LENGTH_BITS,
    LENGTH_MASK,
    R_HASH,
    R_HEAD,
    R_PAYLOAD,
)
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import (
    address,
    element,
    heap_reader,
    heap_writer,
    set_element,
    size,
    within,
    wrapped_mul,
)
from structgen.core.kernels.memory import word as word_at

word, set_word = heap_reader(H_CAP, 64), heap_writer(H_CAP, 64)
half, set_half = heap_reader(H_CAP, 32), heap_writer(H_CAP, 32)  # an int32, of which a word holds two


@internal
def raise_flag(h, flag):
    """Say what there is too little of."""
    set_word(h, H_FLAG, word(h, H_FLAG) | flag)


@internal
def lacks_room(h):
    """Whether a flag is up: what was found since then may not be believed."""
    return word(h, H_FLAG) != 0


@internal
def allocate(h, count):
    """Room for ``count`` words; the sink if there is none."""
    top = word(h, H_TOP)
    if top + count > word(h, H_CAP):
        raise_flag(h, HEAP_FULL)
        return word(h, H_SINK)
    set_word(h, H_TOP, top + count)
    return top


@internal
def length(h, r):
    """Key words of a record."""
    return word(h, r + R_HEAD) & LENGTH_MASK


@internal
def hash_of(kind, key, n):
    """The hash of a record: its kind and the ``n`` words of its key at an address."""
    x = (kind << LENGTH_BITS) | n
    for i in range(n):
        x = wrapped_mul(x ^ word_at(key, i), HASH_PRIME)
        x ^= x >> 31
    return x


@internal
def first_slot(h, x):
    """Where the search for a record with a hash begins."""
    return (x ^ (x >> 17)) & (word(h, H_SLOTS) - 1)


@internal
def next_slot(h, slot):
    """The slot to look at when one is taken."""
    return (slot + 1) & (word(h, H_SLOTS) - 1)


@internal
def _is(h, r, x, head, key, n, payload):
    """Whether a record has a hash, a head and a key."""
    if word(h, r + R_HASH) != x or word(h, r + R_HEAD) != head:
        return False
    i, first = 0, r + R_PAYLOAD + payload
    while i < n and word(h, first + i) == word_at(key, i):
        i += 1
    return i == n


@internal
def _enter(h, r, slot):
    """Put a record into a free slot."""
    set_element(h, H_HASH, slot, r)
    set_word(h, H_RECORDS, word(h, H_RECORDS) + 1)


@internal
def intern_key(h, kind, table, start, n, payload, spare):
    """The record of a kind whose key is ``n`` words of a table from ``start`` on.

    A new one has ``payload`` zeros before its key and ``spare`` ones behind it. The sink, if there is no room for it.
    """
    if lacks_room(h):  # the key may lack words too
        return word(h, H_SINK)
    within(start, n, size(h, table))
    key, head = address(h, table) + 8 * start, (kind << LENGTH_BITS) | n
    x = hash_of(kind, key, n)
    slot = first_slot(h, x)
    r = element(h, H_HASH, slot)
    while r != 0:
        if _is(h, r, x, head, key, n, payload):
            return r
        slot = next_slot(h, slot)
        r = element(h, H_HASH, slot)
    if 4 * word(h, H_RECORDS) > 3 * word(h, H_SLOTS):
        raise_flag(h, HASH_FULL)
        return word(h, H_SINK)
    r = allocate(h, R_PAYLOAD + payload + n + spare)
    if r == word(h, H_SINK):
        return r
    set_word(h, r + R_HASH, x)
    set_word(h, r + R_HEAD, head)
    for i in range(payload):
        set_word(h, r + R_PAYLOAD + i, 0)
    first = r + R_PAYLOAD + payload
    for i in range(n):
        set_word(h, first + i, word_at(key, i))
    for i in range(n, n + spare):
        set_word(h, first + i, 0)
    _enter(h, r, slot)
    return r


@internal
def publish(h, kind, r, first, n):
    """Enter a record that was written in place, its key at word ``first`` of the heap, so that equal keys find it.

    Nothing equal may be interned yet.
    """
    within(first, n, word(h, H_CAP))
    x = hash_of(kind, h + 8 * first, n)
    set_word(h, r + R_HASH, x)
    _enter(h, r, _free_slot(h, x))


@internal
def _free_slot(h, x):
    """The slot for a new record with a hash."""
    slot = first_slot(h, x)
    while element(h, H_HASH, slot) != 0:
        slot = next_slot(h, slot)
    return slot


@internal
def rehash(h, old, count):
    """Enter the records of an old hash table, ``count`` slots at an address, into the present one, which is empty."""
    for i in range(count):
        r = word_at(old, i)
        if r != 0:
            set_element(h, H_HASH, _free_slot(h, word(h, r + R_HASH)), r)
    return 1
