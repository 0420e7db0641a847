"""The grammar machine as array code: rows, continuations, the lexer, masks; any context-free grammar, no positions.

One file, because numba's cache does not see edits to callees in other files. `structgen.grammar_machine` prepares the
static tables and checks arguments; nothing here does.

**Heap.** All that a grammar learns while texts are read lies in one int64 array, the heap: a header (``H_...``), then
records ``hash, kind << 40 | n, payload, n key words``. Records are interned by kind and key, so that equal contexts
are equal integers; an id is a record's offset. The heap may be moved between calls. If room is short, a flag is raised
(``H_FLAG``), nothing more is interned, and the operation returns RETRY, to be called again with more room.

**Grammar.** A suffix is an interned tail of a rule (``first`` symbol, ``next`` suffix, ``nullable``; 0 is the empty
one). An item ``suffix << 28 | k`` waits for a suffix and then returns to continuation ``k``.

- *Continuation* (CONT): the set of items to resume when a nonterminal returns, with the contents of the continuations
  behind nullable suffixes already in it. So right recursion keeps the same continuation. The continuations of one
  recursive component of the left-corner graph refer to each other and are interned together (GROUP). If a group is
  equal to one that it refers to, that one is used: left recursion and ambiguity then repeat their rows.
  INCOMING remembers what a set of items comes to.
- *Row* (ROW): a set of items, and what can be scanned from there, ``class << 48 | suffix << 28 | k``, sorted.
  ``goto(row, classes)`` is memoised (GOTO).
- *Lexer state* (LEX): positions in the automata of the terminals that are being read, and the row's terminal set while
  an ignored terminal may go on. 256 transitions: -1 none, -2 not known yet.
- *Configuration* (CONFIG): a sorted set of threads ``row << 28 | lexer state``.

Markers are items of the empty suffix: ``END_ITEM`` (the text may end) and ``OPEN_ITEM`` (below this the context was cut
off, anything may follow). Cutting (`_cut_row`) keeps no or one level of continuations, so that masks are found for all
rows that agree so far; tokens that reach below are kept as a trie and walked again with more of the row.

**Masks** (`_entry`): tokens within a wide lexer state are a row of bits that depends on that state only (`_unit`);
tokens that leave it lie in a small trie. The narrow rest of the lexer state walks the vocabulary. They lie in a second
heap, which may be emptied between calls (``H_EPOCH`` tells).
"""

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# --- header of the heap; a buffer is three words: address, top, capacity -----------
(
    H_TOP, H_CAP, H_FLAG, H_FRESH, H_HASH, H_HMASK, H_HCOUNT, H_SINK, H_END, H_OPEN, H_ANY, H_EPOCH,
    H_MASKS, H_MTOP, H_MCAP, H_A, H_ATOP, H_ACAP, H_B, H_BTOP, H_BCAP, H_C, H_CTOP, H_CCAP, H_E, H_ETOP, H_ECAP,
    H_LEVELS, H_WIDTH_OF_LEVEL, H_COUNT, H_DEFERRED, H_PATH, H_NEAR, H_BUILT,
    H_FIRST, H_NEXT, H_NULLABLE, H_EMPTY, H_SCC, H_LOOPS, H_CORNERS, H_CORNER, H_SCANS, H_SCAN, H_MEMBERS, H_MEMBER,
    H_HEADS, H_PENDING, H_SEGMENTS, H_CONT, H_COMPONENTS,
    H_EDGES, H_EDGE, H_CLASS, H_ACCEPTS, H_WIDE, H_STAYS, H_STARTS, H_START, H_IGNORED, H_IGNOREDS,
    H_TERMINALS, H_PSEUDO,
    H_TRIE, H_NODES, H_BELOW, H_ORDER, H_BEFORE, H_ROOT, H_SAME, H_DEPTH, H_OFFSETS, H_BYTES, H_WIDTH,
    H_EOS, H_EOSES, H_WALKED, H_LIMIT, H_MOVES,
) = range(79)  # fmt: skip
HEADER = 80
MOVES = 1 << 13  # slots of (configuration, token, configuration after), the latest that were asked for
SINK_WORDS = 256  # a record that is read, and never believed, once the flag is up

# --- kinds of records and their payloads, which stand at record + 2 -------------
ROW, CONT, GROUP, LEX, CLASSES, GOTO, MEMO, CONFIG, INCOMING = range(1, 10)
ROW_BUILT, ROW_LEX, ROW_OPEN, ROW_SCAN, ROW_SCANS, ROW_CUT, ROW_BARE, ROW_KEY = range(2, 10)
CONT_CUT, CONT_GROUP, CONT_MEMBER, CONT_KEY = 2, 3, 4, 5
GROUP_MEMBERS, GROUP_KEY = 2, 3
LEX_BUILT, LEX_ACCEPTS, LEX_ENDS, LEX_EPOCH, LEX_SPLIT, LEX_UNIT_EPOCH, LEX_UNIT, LEX_LOOPS, LEX_TABLE = range(2, 11)
LEX_KEY = LEX_TABLE + 128
CLASSES_KEY, GOTO_VALUE, GOTO_KEY, MEMO_EPOCH, MEMO_VALUE, MEMO_KEY = 2, 2, 3, 2, 3, 4
CONFIG_EPOCH, CONFIG_MASK, CONFIG_KEY, INCOMING_VALUE = 2, 3, 4, 2

# --- what lies in the mask heap --------------------------
SPLIT_BITS, SPLIT_REST, SPLIT_COUNT, SPLIT_UNITS = 0, 1, 2, 3  # row of bits or -1, narrow lexer state or 0, units
UNIT_BITS, UNIT_TRIE, UNIT_NODES, UNIT_SIZE = 0, 1, 2, 3
WHOLE = -1  # at the place of a configuration's mask: it lies as one row where the next word says
KEPT_AFTER = 6  # uses of a mask after which one row is made of its parts
ENTRY_PARENT, ENTRY_IDS, ENTRY_COUNT, ENTRY_TRIE, ENTRY_NODES, ENTRY_BITS, ENTRY_SIZE = 0, 1, 2, 3, 4, 5, 6

K_BITS = 28
K_MASK = (1 << K_BITS) - 1
ITEM_MASK = (1 << 48) - 1
LOCAL = 1 << 27  # in a group's key, a reference to the member of nonterminal (k & ~LOCAL)
END_ITEM, OPEN_ITEM = 0, 1
DEFERRED = 1 << 56
THREAD_MASK = DEFERRED - 1
DEPTH_MASK, SIZE_MASK = (1 << 11) - 1, (1 << 24) - 1
WIDE_NODES, UNCERTAIN_NODES = 1500, 1000
NON_ASCII, INVALID, KNOWN = 60, 61, 1 << 62  # of kinds of bytes
HASH_PRIME = 1099511628211

RETRY, DEAD = -1, 0
HEAP_FULL, HASH_FULL, SCRATCH_FULL, MASKS_FULL, LEVELS_FULL = 1, 2, 4, 8, 16

_internal = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")


def _pointer(builder, address, index, bits):
    base = builder.inttoptr(address, ir.IntType(bits).as_pointer())
    return builder.gep(base, [index])


def _reader(bits, signed=True):
    """A function ``(address, index)`` that reads an element of an array as int64."""

    @intrinsic
    def read(typingctx, address, index):
        def codegen(context, builder, signature, args):
            value = builder.load(_pointer(builder, args[0], args[1], bits))
            return value if bits == 64 else (builder.sext if signed else builder.zext)(value, ir.IntType(64))

        return types.int64(types.int64, types.int64), codegen

    return read


def _writer(bits):
    """A function ``(address, index, value)`` that writes an element of an array."""

    @intrinsic
    def write(typingctx, address, index, value):
        def codegen(context, builder, signature, args):
            value = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
            builder.store(value, _pointer(builder, args[0], args[1], bits))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return write


_byte, _int, _word = _reader(8, signed=False), _reader(32), _reader(64)
_set_int, _set_word = _writer(32), _writer(64)


# --- rows of bits ------------------------------
@intrinsic
def _clear(typingctx, target, width):
    """Set ``width`` int32 to zero (memset: a loop would not know that it overlaps nothing)."""

    def codegen(context, builder, signature, args):
        size = builder.mul(args[1], ir.Constant(ir.IntType(64), 4))
        cgutils.memset(builder, builder.inttoptr(args[0], ir.IntType(8).as_pointer()), size, 0)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def _copy_bits(typingctx, source, target, width):
    """Copy ``width`` int32 (memcpy)."""

    def codegen(context, builder, signature, args):
        pointers = [builder.inttoptr(args[i], ir.IntType(8).as_pointer()) for i in (1, 0)]
        cgutils.raw_memcpy(builder, *pointers, args[2], 4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@_internal
def _or_bits(source, target, width):
    for i in range(width):
        _set_int(target, i, _int(target, i) | _int(source, i))


@_internal
def _set_bit(target, token):
    _set_int(target, token >> 5, _int(target, token >> 5) | (1 << (token & 31)))


# --- kinds of bytes ----------------------------
@_internal
def _kind(byte):
    """Sets of ASCII characters that automata seldom tell apart, as numbers below NON_ASCII."""
    if byte >= 128:
        return NON_ASCII
    if 48 <= byte < 58:
        return 0
    if 97 <= byte < 123:
        return 1 if byte < 103 else 2
    if 65 <= byte < 91:
        return 3 if byte < 71 else 4
    if byte < 32:
        return 5 if byte == 9 else 6 if byte == 10 else 7 if byte == 13 else 8
    if byte < 48:
        return byte - 32 + 9
    if byte < 65:
        return byte - 58 + 25
    return byte - 91 + 32 if byte < 97 else byte - 123 + 38


@_internal
def _next_expected(expected, byte):
    """Bytes of a UTF-8 character still to come, as ``count | lo << 8 | hi << 16`` (0: none, -1: not UTF-8)."""
    if expected < 0:
        return -1
    if expected > 0:
        if not (expected >> 8) & 255 <= byte <= expected >> 16:
            return -1
        more = (expected & 255) - 1
        return more | (0x80 << 8) | (0xBF << 16) if more > 0 else 0
    if byte < 0x80:
        return 0
    if byte < 0xC2 or byte > 0xF4:
        return -1
    lo = 0xA0 if byte == 0xE0 else 0x90 if byte == 0xF0 else 0x80
    hi = 0x9F if byte == 0xED else 0x8F if byte == 0xF4 else 0xBF
    return (1 + (byte >= 0xE0) + (byte >= 0xF0)) | (lo << 8) | (hi << 16)


@_internal
def _kinds_below(trie, size, out):
    """For each node of a trie the kinds of bytes below it, INVALID too if they or the node cut a character."""
    states, below = out + 8 * size, out + 8 * (size + DEPTH_MASK + 2)  # by depth
    for depth in range(DEPTH_MASK + 2):
        _set_word(states, depth, 0)
        _set_word(below, depth, 0)
    for i in range(size):
        node = _word(trie, i)
        depth, byte = (node >> 8) & DEPTH_MASK, node & 255
        expected = _next_expected(_word(states, depth), byte)
        _set_word(states, depth + 1, expected)
        own = 1 << (INVALID if expected < 0 else _kind(byte))
        _set_word(out, i, own | (KNOWN if expected > 0 else 0))
    for i in range(size - 1, -1, -1):
        depth = (_word(trie, i) >> 8) & DEPTH_MASK
        own, under = _word(out, i), _word(below, depth + 1)
        _set_word(below, depth + 1, 0)
        _set_word(below, depth, _word(below, depth) | (own & ~KNOWN) | under)
        _set_word(out, i, under | (1 << INVALID if own & (KNOWN | 1 << INVALID) else 0))
    return 1


# --- memory --------------------------------
@_internal
def _raise(h, flag):
    _set_word(h, H_FLAG, _word(h, H_FLAG) | flag)


@_internal
def _push(h, buffer, value):
    """Append to one of the buffers A, B, C, E."""
    top = _word(h, buffer + 1)
    if top >= _word(h, buffer + 2):
        _raise(h, SCRATCH_FULL)
        return
    _set_word(_word(h, buffer), top, value)
    _set_word(h, buffer + 1, top + 1)


@_internal
def _allocate(h, size):
    top = _word(h, H_TOP)
    if top + size > _word(h, H_CAP):
        _raise(h, HEAP_FULL)
        return _word(h, H_SINK)
    _set_word(h, H_TOP, top + size)
    return top


@_internal
def _allocate_mask(h, size):
    """Room in the mask heap; offset 0 (no record's) if there is none."""
    top = _word(h, H_MTOP)
    if top + size > _word(h, H_MCAP):
        _raise(h, MASKS_FULL)
        return 0
    _set_word(h, H_MTOP, top + size)
    return top


@_internal
def _hash(h, kind, start, n):
    c = _word(h, H_C)
    x = (kind << 40) + n
    for i in range(n):
        x = (x ^ _word(c, start + i)) * HASH_PRIME
        x ^= x >> 31
    return x


@_internal
def _intern(h, kind, start, payload):
    """The record of a kind whose key is the top of buffer C from ``start`` on; taken off the buffer.

    H_FRESH tells whether it is new; its payload is then zero.
    """
    n = _word(h, H_CTOP) - start
    _set_word(h, H_CTOP, start)
    _set_word(h, H_FRESH, 0)
    c, table, mask = _word(h, H_C), _word(h, H_HASH), _word(h, H_HMASK)
    x = _hash(h, kind, start, n)
    head = (kind << 40) | n
    slot = (x ^ (x >> 17)) & mask
    while True:
        r = _word(table, slot)
        if r == 0:
            break
        if _word(h, r) == x and _word(h, r + 1) == head:
            i = 0
            while i < n and _word(h, r + 2 + payload + i) == _word(c, start + i):
                i += 1
            if i == n:
                return r
        slot = (slot + 1) & mask
    if 4 * _word(h, H_HCOUNT) > 3 * mask:
        _raise(h, HASH_FULL)
    if _word(h, H_FLAG) != 0:
        return _word(h, H_SINK)
    r = _allocate(h, 2 + payload + n)
    if r == _word(h, H_SINK):
        return r
    _set_word(h, r, x)
    _set_word(h, r + 1, head)
    for i in range(payload):
        _set_word(h, r + 2 + i, 0)
    for i in range(n):
        _set_word(h, r + 2 + payload + i, _word(c, start + i))
    _set_word(table, slot, r)
    _set_word(h, H_HCOUNT, _word(h, H_HCOUNT) + 1)
    _set_word(h, H_FRESH, 1)
    return r


@_internal
def _length(h, r):
    """Key words of a record."""
    return _word(h, r + 1) & ((1 << 40) - 1)


@_internal
def _pair(h, kind, a, b, payload):
    start = _word(h, H_CTOP)
    _push(h, H_C, a)
    _push(h, H_C, b)
    return _intern(h, kind, start, payload)


@_internal
def _sort(base, lo, hi):
    """Sort words ``lo`` to ``hi`` (Shell's method)."""
    gap = 1
    while gap < (hi - lo) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(lo + gap, hi):
            value = _word(base, i)
            j = i
            while j >= lo + gap and _word(base, j - gap) > value:
                _set_word(base, j, _word(base, j - gap))
                j -= gap
            _set_word(base, j, value)
        gap //= 3


@_internal
def _sort_unique(h, buffer, start):
    """Sort the top of a buffer from ``start`` on and drop repetitions."""
    base, top = _word(h, buffer), _word(h, buffer + 1)
    _sort(base, start, top)
    n = start
    for i in range(start, top):
        if i == start or _word(base, i) != _word(base, n - 1):
            _set_word(base, n, _word(base, i))
            n += 1
    _set_word(h, buffer + 1, n)


# --- continuations -----------------------------
@_internal
def _push_content(h, k):
    for i in range(_length(h, k)):
        _push(h, H_C, _word(h, k + CONT_KEY + i))


@_internal
def _push_item(h, suffix, k):
    """Append an item to C, and what may follow it if its suffix may be empty."""
    if suffix != 0:
        _push(h, H_C, (suffix << K_BITS) | k)
    if _int(_word(h, H_NULLABLE), suffix):
        _push_content(h, k)


@_internal
def _incoming(h, nonterminal, suffix, k):
    """Note in buffer A that the nonterminal is predicted, with ``suffix`` and then ``k`` after it."""
    heads = _word(h, H_HEADS)
    node = _word(h, H_ATOP)
    _push(h, H_A, (suffix << K_BITS) | k)
    _push(h, H_A, _word(heads, nonterminal))
    _set_word(heads, nonterminal, node)
    _set_word(_word(h, H_PENDING), _int(_word(h, H_SCC), nonterminal), 1)


@_internal
def _plain_continuation(h, y):
    """The continuation of a nonterminal whose incoming items refer to finished continuations only."""
    a, node = _word(h, H_A), _word(_word(h, H_HEADS), y)
    start = _word(h, H_CTOP)
    if _word(a, node + 1) < 0 and _word(a, node) >> K_BITS == 0:
        return _word(a, node) & K_MASK
    first = node
    while node >= 0:
        _push(h, H_C, _word(a, node))
        node = _word(a, node + 1)
    memo = _intern(h, INCOMING, start, 1)
    value = _word(h, memo + INCOMING_VALUE)
    if value != 0 and _word(h, H_FLAG) == 0:
        return value
    node = first
    while node >= 0:
        _push_item(h, _word(a, node) >> K_BITS, _word(a, node) & K_MASK)
        node = _word(a, node + 1)
    _sort_unique(h, H_C, start)
    value = _intern(h, CONT, start, CONT_KEY - 2)
    if _word(h, H_FLAG) == 0:
        _set_word(h, memo + INCOMING_VALUE, value)
    return value


@_internal
def _segment(h, y):
    """Content of a member of a recursive component, references to members left open; kept on C."""
    a, node = _word(h, H_A), _word(_word(h, H_HEADS), y)
    segments = _word(h, H_SEGMENTS)
    start = _word(h, H_CTOP)
    while node >= 0:
        suffix, k = _word(a, node) >> K_BITS, _word(a, node) & K_MASK
        if k & LOCAL == 0:
            _push_item(h, suffix, k)
        elif suffix != 0:
            _push(h, H_C, _word(a, node))
        node = _word(a, node + 1)
    _sort_unique(h, H_C, start)
    _set_word(segments, 2 * y, start)
    _set_word(segments, 2 * y + 1, _word(h, H_CTOP) - start)


@_internal
def _fixpoint(h, lo, hi):
    """Add the content of members behind nullable suffixes to the members that refer to them."""
    a, c, segments = _word(h, H_A), _word(h, H_C), _word(h, H_SEGMENTS)
    changed = True
    while changed and _word(h, H_FLAG) == 0:
        changed = False
        for m in range(lo, hi):
            y = _int(_word(h, H_MEMBER), m)
            node = _word(_word(h, H_HEADS), y)
            while node >= 0:
                suffix, k = _word(a, node) >> K_BITS, _word(a, node) & K_MASK
                if k & LOCAL and _int(_word(h, H_NULLABLE), suffix) and k & ~LOCAL != y:
                    start = _word(h, H_CTOP)
                    for part in (y, k & ~LOCAL):
                        first = _word(segments, 2 * part)
                        for i in range(first, first + _word(segments, 2 * part + 1)):
                            _push(h, H_C, _word(c, i))
                    _sort_unique(h, H_C, start)
                    n = _word(h, H_CTOP) - start
                    if n > _word(segments, 2 * y + 1):
                        _set_word(segments, 2 * y, start)
                        _set_word(segments, 2 * y + 1, n)
                        changed = True
                    else:
                        _set_word(h, H_CTOP, start)
                node = _word(a, node + 1)


@_internal
def _member_of(h, g, y):
    """The continuation of nonterminal ``y`` in a group, or 0."""
    members = _word(h, g + GROUP_MEMBERS)
    for i in range(_word(h, members)):
        if _word(h, members + 1 + 2 * i) == y:
            return _word(h, members + 2 + 2 * i)
    return 0


@_internal
def _push_closed(h, g, first, n):
    """Append to C the items of a segment with its open references replaced by the members of a group."""
    c = _word(h, H_C)
    for i in range(first, first + n):
        item = _word(c, i)
        if item & LOCAL:
            item = (item & ~K_MASK) | _member_of(h, g, item & K_MASK & ~LOCAL)
        _push(h, H_C, item)


@_internal
def _same_group(h, g, lo, hi):
    """Whether a group solves the equations that the segments of the component's members are."""
    segments, count = _word(h, H_SEGMENTS), 0
    for m in range(lo, hi):
        y = _int(_word(h, H_MEMBER), m)
        if _word(_word(h, H_HEADS), y) < 0:
            continue
        count += 1
        if _member_of(h, g, y) == 0:
            return False
    if count != _word(h, _word(h, g + GROUP_MEMBERS)):
        return False
    for m in range(lo, hi):
        y = _int(_word(h, H_MEMBER), m)
        if _word(_word(h, H_HEADS), y) < 0:
            continue
        k = _member_of(h, g, y)
        start = _word(h, H_CTOP)
        _push_closed(h, g, _word(segments, 2 * y), _word(segments, 2 * y + 1))
        _sort_unique(h, H_C, start)
        n = _word(h, H_CTOP) - start
        _set_word(h, H_CTOP, start)
        if n != _length(h, k):
            return False
        for i in range(n):
            if _word(_word(h, H_C), start + i) != _word(h, k + CONT_KEY + i):
                return False
    return True


@_internal
def _reusable_group(h, scc, lo, hi):
    """A group that one of the members refers to and that is the same, or 0."""
    c, segments, last = _word(h, H_C), _word(h, H_SEGMENTS), 0
    for m in range(lo, hi):
        y = _int(_word(h, H_MEMBER), m)
        if _word(_word(h, H_HEADS), y) < 0:
            continue
        first = _word(segments, 2 * y)
        for i in range(first, first + _word(segments, 2 * y + 1)):
            item = _word(c, i)
            if item & LOCAL or item >> K_BITS == 0:
                continue
            g = _word(h, (item & K_MASK) + CONT_GROUP)
            if g != 0 and g != last and _word(h, g + GROUP_KEY) == scc:
                last = g
                if _same_group(h, g, lo, hi):
                    return g
    return 0


@_internal
def _publish(h, k, n):
    """Enter a continuation that was written in place into the hash table, so that equal content finds it."""
    start = _word(h, H_CTOP)
    for i in range(n):
        _push(h, H_C, _word(h, k + CONT_KEY + i))
    if _word(h, H_FLAG) != 0:
        return
    x = _hash(h, CONT, start, n)
    _set_word(h, H_CTOP, start)
    table, mask = _word(h, H_HASH), _word(h, H_HMASK)
    slot = (x ^ (x >> 17)) & mask
    while _word(table, slot) != 0:
        slot = (slot + 1) & mask
    _set_word(h, k, x)
    _set_word(table, slot, k)
    _set_word(h, H_HCOUNT, _word(h, H_HCOUNT) + 1)


@_internal
def _group(h, scc, lo, hi):
    """The group of the component's predicted members, whose contents are their segments."""
    c, segments, heads = _word(h, H_C), _word(h, H_SEGMENTS), _word(h, H_HEADS)
    start, count, words = _word(h, H_CTOP), 0, 0
    _push(h, H_C, scc)
    for m in range(lo, hi):
        y = _int(_word(h, H_MEMBER), m)
        if _word(heads, y) < 0:
            continue
        first, n = _word(segments, 2 * y), _word(segments, 2 * y + 1)
        _push(h, H_C, y)
        _push(h, H_C, n)
        for i in range(first, first + n):
            _push(h, H_C, _word(c, i))
        count += 1
        words += CONT_KEY + n
    g = _intern(h, GROUP, start, GROUP_KEY - 2)
    if _word(h, H_FLAG) != 0 or _word(h, g + GROUP_MEMBERS) != 0:
        return g
    place = _allocate(h, 1 + 2 * count + words)
    if _word(h, H_FLAG) != 0:
        return g
    _set_word(h, place, count)
    k, j = place + 1 + 2 * count, 0
    for m in range(lo, hi):
        y = _int(_word(h, H_MEMBER), m)
        if _word(heads, y) < 0:
            continue
        n = _word(segments, 2 * y + 1)
        _set_word(h, place + 1 + 2 * j, y)
        _set_word(h, place + 2 + 2 * j, k)
        _set_word(h, k + 1, (CONT << 40) | n)
        _set_word(h, k + CONT_CUT, 0)
        _set_word(h, k + CONT_GROUP, g)
        _set_word(h, k + CONT_MEMBER, y)
        k += CONT_KEY + n
        j += 1
    _set_word(h, g + GROUP_MEMBERS, place)
    for m in range(lo, hi):
        y = _int(_word(h, H_MEMBER), m)
        if _word(heads, y) < 0:
            continue
        k, start, n = _member_of(h, g, y), _word(h, H_CTOP), _word(segments, 2 * y + 1)
        _push_closed(h, g, _word(segments, 2 * y), n)
        for i in range(n):
            _set_word(h, k + CONT_KEY + i, _word(c, start + i))
        _set_word(h, H_CTOP, start)
        _sort(h, k + CONT_KEY, k + CONT_KEY + n)
        _publish(h, k, n)
    return g


@_internal
def _has_local(h, lo, hi):
    c, segments = _word(h, H_C), _word(h, H_SEGMENTS)
    for m in range(lo, hi):
        y = _int(_word(h, H_MEMBER), m)
        if _word(_word(h, H_HEADS), y) >= 0:
            first = _word(segments, 2 * y)
            for i in range(first, first + _word(segments, 2 * y + 1)):
                if _word(c, i) & LOCAL:
                    return True
    return False


@_internal
def _copy_segment(h, y):
    first = _word(_word(h, H_SEGMENTS), 2 * y)
    for i in range(first, first + _word(_word(h, H_SEGMENTS), 2 * y + 1)):
        _push(h, H_C, _word(_word(h, H_C), i))


@_internal
def _settle_members(h, scc, lo, hi):
    """Continuations of the members of a recursive component from their segments, into ``cont``."""
    heads, conts = _word(h, H_HEADS), _word(h, H_CONT)
    g = 0
    if _has_local(h, lo, hi):
        g = _reusable_group(h, scc, lo, hi)
        if g == 0:
            g = _group(h, scc, lo, hi)
    for m in range(lo, hi):
        y = _int(_word(h, H_MEMBER), m)
        if _word(heads, y) < 0 or _word(h, H_FLAG) != 0:
            continue
        if g != 0:
            _set_word(conts, y, _member_of(h, g, y))
        else:
            start = _word(h, H_CTOP)
            _copy_segment(h, y)
            _set_word(conts, y, _intern(h, CONT, start, CONT_KEY - 2))


@_internal
def _component(h, scc, lo, hi):
    """Continuations of the predicted nonterminals of one component of the left-corner graph."""
    heads, conts = _word(h, H_HEADS), _word(h, H_CONT)
    corner, corners = _word(h, H_CORNER), _word(h, H_CORNERS)
    if _int(_word(h, H_LOOPS), scc) == 0:
        y = _int(_word(h, H_MEMBER), lo)
        _set_word(conts, y, _plain_continuation(h, y))
        return
    for m in range(lo, hi):
        _set_word(conts, _int(_word(h, H_MEMBER), m), -1)
    changed = True
    while changed:  # predict within the component
        changed = False
        for m in range(lo, hi):
            y = _int(_word(h, H_MEMBER), m)
            if _word(heads, y) >= 0 and _word(conts, y) == -1:
                _set_word(conts, y, 0)
                changed = True
                for e in range(_int(corners, y), _int(corners, y + 1)):
                    z = _int(corner, 2 * e)
                    if _int(_word(h, H_SCC), z) == scc:
                        _incoming(h, z, _int(corner, 2 * e + 1), LOCAL | y)
    start = _word(h, H_CTOP)
    for m in range(lo, hi):
        y = _int(_word(h, H_MEMBER), m)
        if _word(heads, y) >= 0:
            _segment(h, y)
    _fixpoint(h, lo, hi)
    if _word(h, H_FLAG) == 0:
        _settle_members(h, scc, lo, hi)
    _set_word(h, H_CTOP, start)


# --- rows --------------------------------
@_internal
def _expand_item(h, suffix, k):
    """What an item scans (buffer B) and predicts."""
    while suffix != 0:
        symbol, after = _int(_word(h, H_FIRST), suffix), _int(_word(h, H_NEXT), suffix)
        if symbol < 0:
            _push(h, H_B, (~symbol << 48) | (after << K_BITS) | k)
            return
        _incoming(h, symbol, after, k)
        if not _int(_word(h, H_EMPTY), symbol):
            return
        suffix = after


@_internal
def _expand_component(h, scc):
    """What the predicted nonterminals of a component scan and predict, now that their continuations are known."""
    heads, conts = _word(h, H_HEADS), _word(h, H_CONT)
    corner, corners, scan, scans = _word(h, H_CORNER), _word(h, H_CORNERS), _word(h, H_SCAN), _word(h, H_SCANS)
    for m in range(_int(_word(h, H_MEMBERS), scc), _int(_word(h, H_MEMBERS), scc + 1)):
        y = _int(_word(h, H_MEMBER), m)
        if _word(heads, y) < 0:
            continue
        k = _word(conts, y)
        for e in range(_int(scans, y), _int(scans, y + 1)):
            _push(h, H_B, (_int(scan, 2 * e) << 48) | (_int(scan, 2 * e + 1) << K_BITS) | k)
        for e in range(_int(corners, y), _int(corners, y + 1)):
            if _int(_word(h, H_SCC), _int(corner, 2 * e)) != scc:
                _incoming(h, _int(corner, 2 * e), _int(corner, 2 * e + 1), k)


@_internal
def _close_row(h, r):
    """Prediction from a new row: its scan list and first lexer state."""
    a, b, n = _word(h, H_ATOP), _word(h, H_BTOP), _length(h, r)
    ends, is_open = 0, 0
    for i in range(n):
        item = _word(h, r + ROW_KEY + i)
        if item == END_ITEM:
            ends = 1
        elif item == OPEN_ITEM:
            is_open = 1
        else:
            _expand_item(h, item >> K_BITS, item & K_MASK)
    pending = _word(h, H_PENDING)
    for scc in range(_word(h, H_COMPONENTS)):
        if _word(pending, scc) == 0:
            continue
        lo, hi = _int(_word(h, H_MEMBERS), scc), _int(_word(h, H_MEMBERS), scc + 1)
        if _word(h, H_FLAG) == 0:
            _component(h, scc, lo, hi)
            _expand_component(h, scc)
        _set_word(pending, scc, 0)
        for m in range(lo, hi):
            _set_word(_word(h, H_HEADS), _int(_word(h, H_MEMBER), m), -1)
    _set_word(h, H_ATOP, a)
    _sort_unique(h, H_B, b)
    if _word(h, H_FLAG) == 0:
        _store_row(h, r, b, ends, is_open)
    _set_word(h, H_BTOP, b)


@_internal
def _store_row(h, r, b, ends, is_open):
    count, base, start = _word(h, H_BTOP) - b, _word(h, H_B), _word(h, H_CTOP)
    last = -1
    for i in range(b, b + count):
        if _word(base, i) >> 48 != last:
            last = _word(base, i) >> 48
            _push(h, H_C, last)
    if ends:
        _push(h, H_C, _word(h, H_TERMINALS))  # the end of the text as a terminal
    lex = _first_lex(h, _intern(h, CLASSES, start, 0))
    place = _allocate(h, count)
    if _word(h, H_FLAG) != 0:
        return
    for i in range(count):
        _set_word(h, place + i, _word(base, b + i))
    _set_word(h, r + ROW_SCAN, place)
    _set_word(h, r + ROW_SCANS, count)
    _set_word(h, r + ROW_LEX, lex)
    _set_word(h, r + ROW_OPEN, is_open)
    _set_word(h, r + ROW_BUILT, 1)


@_internal
def _row(h, start):
    """The row of the items on C from ``start`` on."""
    _sort_unique(h, H_C, start)
    r = _intern(h, ROW, start, ROW_KEY - 2)
    if _word(h, H_FLAG) == 0 and _word(h, r + ROW_BUILT) == 0:
        _close_row(h, r)
    return r


@_internal
def _goto(h, r, classes):
    """The row after one of a set of terminals was read."""
    if r == _word(h, H_ANY):
        return r
    memo = _pair(h, GOTO, r, classes, 1)
    value = _word(h, memo + GOTO_VALUE)
    if value != 0 and _word(h, H_FLAG) == 0:
        return value
    start, scans = _word(h, H_CTOP), _word(h, r + ROW_SCAN)
    end = scans + _word(h, r + ROW_SCANS)
    for i in range(_length(h, classes)):
        wanted = _word(h, classes + CLASSES_KEY + i)
        lo, hi = scans, end
        while lo < hi:
            middle = (lo + hi) >> 1
            if _word(h, middle) >> 48 < wanted:
                lo = middle + 1
            else:
                hi = middle
        while lo < end and _word(h, lo) >> 48 == wanted:
            _push_item(h, (_word(h, lo) & ITEM_MASK) >> K_BITS, _word(h, lo) & K_MASK)
            lo += 1
    value = _row(h, start)
    if _word(h, H_FLAG) == 0:
        _set_word(h, memo + GOTO_VALUE, value)
    return value


@_internal
def _union(h, a, b):
    """The row of the items of two rows."""
    if a == b:
        return a
    if a > b:
        a, b = b, a
    memo = _pair(h, GOTO, -a, b, 1)
    value = _word(h, memo + GOTO_VALUE)
    if value != 0 and _word(h, H_FLAG) == 0:
        return value
    start = _word(h, H_CTOP)
    for r in (a, b):
        for i in range(_length(h, r)):
            _push(h, H_C, _word(h, r + ROW_KEY + i))
    value = _row(h, start)
    if _word(h, H_FLAG) == 0:
        _set_word(h, memo + GOTO_VALUE, value)
    return value


# --- cutting contexts off ---------------------------
@_internal
def _cut_item(h, item, g):
    """An item of a continuation of group ``g`` with what lies outside replaced by the open continuation."""
    if item >> K_BITS == 0:
        return item
    k = item & K_MASK
    if g != 0 and _word(h, k + CONT_GROUP) == g:
        return (item & ~K_MASK) | LOCAL | _word(h, k + CONT_MEMBER)
    return (item & ~K_MASK) | _word(h, H_OPEN)


@_internal
def _cut(h, k):
    """The continuation with one level kept."""
    if k == _word(h, H_OPEN) or k == _word(h, H_END):
        return k
    if _word(h, k + CONT_CUT) != 0:
        return _word(h, k + CONT_CUT)
    g = _word(h, k + CONT_GROUP)
    if g == 0:
        start = _word(h, H_CTOP)
        for i in range(_length(h, k)):
            _push(h, H_C, _cut_item(h, _word(h, k + CONT_KEY + i), 0))
        _sort_unique(h, H_C, start)
        cut = _intern(h, CONT, start, CONT_KEY - 2)
        if _word(h, H_FLAG) == 0:
            _set_word(h, k + CONT_CUT, cut)
        return cut
    _cut_group(h, g)
    return _word(h, k + CONT_CUT)


@_internal
def _cut_group(h, g):
    """Cut all members of a group together. The working arrays of prediction are free here."""
    heads, segments = _word(h, H_HEADS), _word(h, H_SEGMENTS)
    scc, members = _word(h, g + GROUP_KEY), _word(h, g + GROUP_MEMBERS)
    lo, hi = _int(_word(h, H_MEMBERS), scc), _int(_word(h, H_MEMBERS), scc + 1)
    top, count = _word(h, H_CTOP), _word(h, members)
    for j in range(count):
        y, k, start = _word(h, members + 1 + 2 * j), _word(h, members + 2 + 2 * j), _word(h, H_CTOP)
        for i in range(_length(h, k)):
            _push(h, H_C, _cut_item(h, _word(h, k + CONT_KEY + i), g))
        _sort_unique(h, H_C, start)
        _set_word(segments, 2 * y, start)
        _set_word(segments, 2 * y + 1, _word(h, H_CTOP) - start)
        _set_word(heads, y, 0)
    if _word(h, H_FLAG) == 0:
        cut = _group(h, scc, lo, hi)
        if _word(h, H_FLAG) == 0:
            for j in range(count):
                y, k = _word(h, members + 1 + 2 * j), _word(h, members + 2 + 2 * j)
                _set_word(h, k + CONT_CUT, _member_of(h, cut, y))
    for j in range(count):
        _set_word(heads, _word(h, members + 1 + 2 * j), -1)
    _set_word(h, H_CTOP, top)


@_internal
def _cut_row(h, r, depth):
    """The row with ``depth`` levels of its continuations kept: ROW_CUT one, ROW_BARE none."""
    if r == _word(h, H_ANY):
        return r
    if _word(h, r + depth) != 0:
        return _word(h, r + depth)
    start = _word(h, H_CTOP)
    for i in range(_length(h, r)):
        item = _word(h, r + ROW_KEY + i)
        if item >> K_BITS != 0:
            k = _word(h, H_OPEN) if depth == ROW_BARE else _cut(h, item & K_MASK)
            item = (item & ~K_MASK) | k
        _push(h, H_C, item)
    cut = _row(h, start)
    if _word(h, H_FLAG) == 0:
        _set_word(h, r + depth, cut)
    return cut


# --- the lexer -------------------------------
@_internal
def _push_starts(h, classes):
    """Append to C where a lexeme may begin: the terminals of a set, and the ignored ones."""
    starts, start = _word(h, H_STARTS), _word(h, H_START)
    for i in range(_length(h, classes)):
        t = _word(h, classes + CLASSES_KEY + i)
        for j in range(_int(starts, t), _int(starts, t + 1)):
            _push(h, H_C, _int(start, j))
    for i in range(_word(h, H_IGNOREDS)):
        _push(h, H_C, _int(_word(h, H_IGNORED), i))


@_internal
def _join(h, a, b):
    """The lexer state of the positions of two that have the same terminal set."""
    if a == b:
        return a
    memo = _pair(h, GOTO, -a, b, 1)
    value = _word(h, memo + GOTO_VALUE)
    if value != 0 and _word(h, H_FLAG) == 0:
        return value
    start = _word(h, H_CTOP)
    _push(h, H_C, _word(h, a + LEX_KEY))
    for d in (a, b):
        for i in range(1, _length(h, d)):
            _push(h, H_C, _word(h, d + LEX_KEY + i))
    value = _lex(h, start)
    if _word(h, H_FLAG) == 0:
        _set_word(h, memo + GOTO_VALUE, value)
    return value


@_internal
def _any_lex(h, classes):
    """The first lexer state that goes on with any terminals after each terminal."""
    start = _word(h, H_CTOP)
    _push(h, H_C, -classes)
    _push_starts(h, classes)
    return _lex(h, start)


@_internal
def _first_lex(h, classes):
    start = _word(h, H_CTOP)
    _push(h, H_C, classes if _word(h, H_IGNOREDS) > 0 else 0)
    _push_starts(h, classes)
    return _lex(h, start)


@_internal
def _lex(h, start):
    """The lexer state whose terminal set (0: none) and positions lie on C from ``start`` on."""
    _sort_unique(h, H_C, start + 1)
    d = _intern(h, LEX, start, LEX_KEY - 2)
    if _word(h, H_FLAG) == 0 and _word(h, d + LEX_BUILT) == 0:
        _build_lex(h, d)
    return d


@_internal
def _build_lex(h, d):
    kinds, accepts, pseudo = _word(h, H_CLASS), _word(h, H_ACCEPTS), _word(h, H_PSEUDO)
    edges, edge = _word(h, H_EDGES), _word(h, H_EDGE)
    for i in range(128):
        _set_word(h, d + LEX_TABLE + i, -1)
    start, ends = _word(h, H_CTOP), 0
    for i in range(1, _length(h, d)):
        p = _word(h, d + LEX_KEY + i)
        for e in range(_int(edges, p), _int(edges, p + 1)):
            for byte in range(_int(edge, 3 * e), _int(edge, 3 * e + 1) + 1):
                _set_int(h, 2 * (d + LEX_TABLE) + byte, -2)
        if _int(accepts, p) and _int(kinds, p) >= 0 and _word(h, d + LEX_KEY) >= 0:
            if _int(kinds, p) >= pseudo:
                ends |= 1 if _int(kinds, p) == _word(h, H_TERMINALS) else 2
            else:
                _push(h, H_C, _int(kinds, p))
    classes = 0
    if _word(h, H_CTOP) > start:
        _sort_unique(h, H_C, start)
        classes = _intern(h, CLASSES, start, 0)
    if _word(h, H_FLAG) == 0:
        _set_word(h, d + LEX_ACCEPTS, classes)
        _set_word(h, d + LEX_ENDS, ends)
        _set_word(h, d + LEX_BUILT, 1)


@_internal
def _position_step(h, p, byte):
    """The position after a byte, or -1."""
    edges, edge = _word(h, H_EDGES), _word(h, H_EDGE)
    for e in range(_int(edges, p), _int(edges, p + 1)):
        if byte <= _int(edge, 3 * e + 1):
            return _int(edge, 3 * e + 2) if byte >= _int(edge, 3 * e) else -1
    return -1


@_internal
def _step_new(h, d, byte):
    """Find a transition of the lexer that is not known yet and has a target."""
    start, boundary, classes = _word(h, H_CTOP), 0, _word(h, d + LEX_KEY)
    _push(h, H_C, min(classes, 0))
    for i in range(1, _length(h, d)):
        q = _position_step(h, _word(h, d + LEX_KEY + i), byte)
        if q >= 0:
            _push(h, H_C, q)
            if _int(_word(h, H_CLASS), q) < 0:
                _set_word(_word(h, H_C), start, classes)
            if (_int(_word(h, H_CLASS), q) < 0 or classes < 0) and _int(_word(h, H_ACCEPTS), q):
                boundary = 1
    if boundary:
        _push_starts(h, abs(classes))
    target = _lex(h, start)
    if _word(h, H_FLAG) == 0:
        _set_int(h, 2 * (d + LEX_TABLE) + byte, target)
        return target
    return -1


@_internal
def _step(h, d, byte):
    """The lexer state after a byte, or -1."""
    target = _int(h, 2 * (d + LEX_TABLE) + byte)
    return target if target != -2 else _step_new(h, d, byte)


# --- walks over tries of tokens ---------------------------
@_internal
def _level_add(h, level, r, d):
    """Add a thread to those alive after ``level`` bytes of the path; False if it is there or there is no room."""
    width, n = _word(h, H_WIDTH_OF_LEVEL), _word(_word(h, H_COUNT), level)
    base, first, thread = _word(h, H_LEVELS), level * width, (r << K_BITS) | d
    for j in range(first, first + n):
        if _word(base, j) & THREAD_MASK == thread:
            return False
    if n >= width:
        _raise(h, LEVELS_FULL)
        return False
    if _word(h, d + LEX_ACCEPTS) != 0:
        thread |= DEFERRED
        _set_word(_word(h, H_DEFERRED), level, _word(_word(h, H_DEFERRED), level) + 1)
    _set_word(base, first + n, thread)
    _set_word(_word(h, H_COUNT), level, n + 1)
    return True


@_internal
def _carry(h, level, last, r, d):
    """Add a thread after ``level`` bytes of the path and follow the path to byte ``last``; whether it survives."""
    if not _level_add(h, level, r, d):
        return False
    path = _word(h, H_PATH)
    for i in range(level, last + 1):
        d = _step(h, d, _word(path, i))
        if d < 0 or not _level_add(h, i + 1, r, d):
            return False
    return True


@_internal
def _spawn(h, last):
    """Follow terminals that end on the path until a thread with a context survives byte ``last``; whether one does."""
    counts, deferred = _word(h, H_COUNT), _word(h, H_DEFERRED)
    base, width, any_row = _word(h, H_LEVELS), _word(h, H_WIDTH_OF_LEVEL), _word(h, H_ANY)
    for level in range(last + 1):
        j = 0
        while _word(deferred, level) > 0 and j < _word(counts, level):
            thread = _word(base, level * width + j)
            if thread & DEFERRED:
                thread &= THREAD_MASK
                _set_word(base, level * width + j, thread)
                _set_word(deferred, level, _word(deferred, level) - 1)
                following = _goto(h, thread >> K_BITS, _word(h, (thread & K_MASK) + LEX_ACCEPTS))
                if _word(h, H_FLAG) != 0:
                    return False
                alive = _carry(h, level, last, following, _word(h, following + ROW_LEX))
                if _word(h, following + ROW_OPEN):
                    _carry(h, level, last, any_row, _word(h, any_row + ROW_LEX))
                if alive:
                    return True
            j += 1
    return False


@_internal
def _follow(h, depth, byte):
    """Advance the threads at a depth by a byte: 2 some context lives, 1 only cut contexts do, 0 none."""
    counts, base, any_row = _word(h, H_COUNT), _word(h, H_LEVELS), _word(h, H_ANY)
    first = depth * _word(h, H_WIDTH_OF_LEVEL)
    _set_word(counts, depth + 1, 0)
    _set_word(_word(h, H_DEFERRED), depth + 1, 0)
    found = False
    for j in range(first, first + _word(counts, depth)):
        thread = _word(base, j) & THREAD_MASK
        d = _step(h, thread & K_MASK, byte)
        if d >= 0:
            _level_add(h, depth + 1, thread >> K_BITS, d)
            found |= thread >> K_BITS != any_row
    if found or _spawn(h, depth):
        return 2
    return 1 if _word(counts, depth + 1) > 0 else 0


@_internal
def _keep(h, depth, token):
    """Add a token at the current path to the trie in buffer E."""
    path, built = _word(h, H_PATH), _word(h, H_BUILT)
    for i in range(built, depth):
        _push(h, H_E, _word(path, i) | (i << 8))
    _push(h, H_E, _word(path, depth) | (depth << 8) | (token << 43))
    _set_word(h, H_BUILT, depth + 1)
    if 0 < _word(h, H_LIMIT) < _word(h, H_ETOP):
        _set_word(h, H_LIMIT, -1)  # too many: the walk is given up


@_internal
def _target_of_all(h, p, lo, hi):
    """Where all bytes of a range lead from a position, or -1."""
    edges, edge = _word(h, H_EDGES), _word(h, H_EDGE)
    for e in range(_int(edges, p), _int(edges, p + 1)):
        if lo <= _int(edge, 3 * e + 1):
            return _int(edge, 3 * e + 2) if _int(edge, 3 * e) <= lo and hi <= _int(edge, 3 * e + 1) else -1
    return -1


@_internal
def _stays_in_text(h, p):
    """Whether each character beyond ASCII leads from a position back to it."""
    for lead in range(0xC2, 0xF5):
        expected, q = _next_expected(0, lead), _target_of_all(h, p, lead, lead)
        lo, hi = (expected >> 8) & 255, expected >> 16
        for _ in range(expected & 255):
            q = _target_of_all(h, q, lo, hi) if q >= 0 else -1
            lo, hi = 0x80, 0xBF
        if q != p:
            return False
    return True


@_internal
def _stays(h, p):
    """The kinds of bytes (`_kind`) that leave a position of a terminal as it is."""
    known = _word(_word(h, H_STAYS), p)
    if known != 0:
        return known
    kinds = (1 << INVALID) - 1
    for byte in range(128):
        if _position_step(h, p, byte) != p:
            kinds &= ~(1 << _kind(byte))
    if not _stays_in_text(h, p):
        kinds &= ~(1 << NON_ASCII)
    _set_word(_word(h, H_STAYS), p, kinds | KNOWN)
    return kinds | KNOWN


@_internal
def _loops(h, d):
    """Kinds of bytes that one of the positions of a lexer state survives for ever."""
    known = _word(h, d + LEX_LOOPS)
    if known != 0:
        return known
    best, most = KNOWN, 0
    for i in range(1, _length(h, d)):
        kinds = _stays(h, _word(h, d + LEX_KEY + i))
        count, left = 0, kinds
        while left != 0:
            left &= left - 1
            count += 1
        if count > most:
            best, most = kinds, count
    if _word(h, H_FLAG) == 0:
        _set_word(h, d + LEX_LOOPS, best)
    return best


@_internal
def _whole_subtree(h, i, depth):
    """Whether all tokens below node ``i`` of the vocabulary's trie stay in a terminal of one of the threads there."""
    below, base = _word(_word(h, H_BELOW), i), _word(h, H_LEVELS)
    first = (depth + 1) * _word(h, H_WIDTH_OF_LEVEL)
    for j in range(first, first + _word(_word(h, H_COUNT), depth + 1)):
        thread = _word(base, j) & THREAD_MASK
        if thread >> K_BITS != _word(h, H_ANY) and below & ~_loops(h, thread & K_MASK) == 0:
            return True
    return False


@_internal
def _push_tokens(h, token):
    """A token and those with the same bytes to buffer B."""
    while token >= 0:
        _push(h, H_B, token)
        token = _int(_word(h, H_SAME), token)


@_internal
def _walk_nodes(h, base, i, end):
    """Walk nodes ``i`` to ``end`` of a trie: ids of tokens to buffer B, tokens of cut contexts to E."""
    path, order, before = _word(h, H_PATH), _word(h, H_ORDER), _word(h, H_BEFORE)
    whole = base == _word(h, H_TRIE)
    while i < end and _word(h, H_FLAG) == 0 and _word(h, H_LIMIT) >= 0:
        node = _word(base, i)
        byte, depth, token, size = node & 255, (node >> 8) & DEPTH_MASK, node >> 43, (node >> 19) & SIZE_MASK
        if _word(h, H_BUILT) > depth:
            _set_word(h, H_BUILT, depth)
        _set_word(path, depth, byte)
        _set_word(h, H_WALKED, _word(h, H_WALKED) + 1)
        found = _follow(h, depth, byte)
        if found == 2 and whole and size > 2 and _whole_subtree(h, i, depth):
            for j in range(_int(before, i), _int(before, i + size)):
                _push(h, H_B, _int(order, j))
        elif found > 0:
            if found == 2:
                _push_tokens(h, token - 1)
            elif token != 0:
                _keep(h, depth, token)
            i += 1
            continue
        i += size


@_internal
def _walk(h, base, lo, hi, r, d):
    """Walk a trie from one thread; ``base`` 0 is the whole vocabulary."""
    _set_word(_word(h, H_COUNT), 0, 0)
    _level_add(h, 0, r, d)
    # A terminal that ends just here has been followed already: its thread is one of its own.
    _set_word(_word(h, H_LEVELS), 0, _word(_word(h, H_LEVELS), 0) & THREAD_MASK)
    _set_word(_word(h, H_DEFERRED), 0, 0)
    if base != 0:
        _walk_nodes(h, base, lo, hi)
        return
    trie = _word(h, H_TRIE)
    for byte in range(256):
        if _int(h, 2 * (d + LEX_TABLE) + byte) != -1:
            node = _int(_word(h, H_ROOT), byte)
            if node >= 0:
                _walk_nodes(h, trie, node, node + ((_word(trie, node) >> 19) & SIZE_MASK))


@_internal
def _store_trie(h, start):
    """Move the trie in buffer E from ``start`` on to the mask heap with the sizes of its subtrees."""
    base, near, end = _word(h, H_E), _word(h, H_NEAR), _word(h, H_ETOP)
    if end == start:
        return 0
    place = _allocate_mask(h, end - start)
    for depth in range(_word(h, H_DEPTH) + 1):
        _set_word(near, depth, end)
    if _word(h, H_FLAG) == 0:
        for i in range(end - 1, start - 1, -1):
            node = _word(base, i)
            depth, after = (node >> 8) & DEPTH_MASK, end
            for j in range(depth + 1):
                after = min(after, _word(near, j))
            _set_word(near, depth, i)
            _set_word(_word(h, H_MASKS), place + i - start, node | ((after - i) << 19))
    _set_word(h, H_ETOP, start)
    return place


# --- masks --------------------------------
@_internal
def _count_live(h, p, i, limit):
    """Nodes of the vocabulary's trie that a terminal survives, below and with node ``i``, where it is at ``p``."""
    trie, states, live = _word(h, H_TRIE), _word(h, H_LEVELS), 1
    end = i + ((_word(trie, i) >> 19) & SIZE_MASK)
    _set_word(states, 0, p)
    i += 1
    while i < end and live <= limit:
        node = _word(trie, i)
        depth = (node >> 8) & DEPTH_MASK
        q = _position_step(h, _word(states, depth - 1), node & 255)
        if q < 0:
            i += (node >> 19) & SIZE_MASK
            continue
        _set_word(states, depth, q)
        live += 1
        i += 1
    return live


@_internal
def _wide(h, p):
    """Whether many tokens follow from a position of a terminal."""
    memo = _word(h, H_WIDE)
    if _int(memo, p) != 0:
        return _int(memo, p) == 2
    edges, edge, root, live = _word(h, H_EDGES), _word(h, H_EDGE), _word(h, H_ROOT), 0
    for e in range(_int(edges, p), _int(edges, p + 1)):
        for byte in range(_int(edge, 3 * e), _int(edge, 3 * e + 1) + 1):
            if live <= WIDE_NODES and _int(root, byte) >= 0:
                live += _count_live(h, _int(edge, 3 * e + 2), _int(root, byte), WIDE_NODES - live)
    _set_int(memo, p, 2 if live > WIDE_NODES else 1)
    return live > WIDE_NODES


@_internal
def _wide_class(h, t):
    for j in range(_int(_word(h, H_STARTS), t), _int(_word(h, H_STARTS), t + 1)):
        if _wide(h, _int(_word(h, H_START), j)):
            return True
    return False


@_internal
def _push_ignored(h, d):
    """Append to C the positions of a lexer state in ignored terminals."""
    for i in range(1, _length(h, d)):
        p = _word(h, d + LEX_KEY + i)
        if _int(_word(h, H_CLASS), p) < 0:
            _push(h, H_C, p)


@_internal
def _push_units(h, d):
    """Split a lexer state: wide units of it to buffer A; returns the narrow rest."""
    classes, rest = _word(h, d + LEX_KEY), 0
    if classes != 0:
        rest = _word(h, H_CTOP)
        for i in range(_length(h, classes)):
            t = _word(h, classes + CLASSES_KEY + i)
            if _wide_class(h, t):
                start = _word(h, H_CTOP)
                _push(h, H_C, t)
                single = _intern(h, CLASSES, start, 0)
                _push(h, H_C, single)
                _push_ignored(h, d)
                _push(h, H_A, _lex(h, start))
            else:
                _push(h, H_C, t)
        rest = _intern(h, CLASSES, rest, 0)
    first = _word(h, H_CTOP)
    _push(h, H_C, rest)
    for i in range(1, _length(h, d)):
        p = _word(h, d + LEX_KEY + i)
        if _int(_word(h, H_CLASS), p) >= 0 and _wide(h, p):
            start = _word(h, H_CTOP)
            _push(h, H_C, 0)
            _push(h, H_C, p)
            _push(h, H_A, _lex(h, start))
        else:
            _push(h, H_C, p)
    return _lex(h, first)


@_internal
def _any_upto(h, known, depth):
    """After each byte of the path up to ``depth``: the state of any terminals that follow one that ended on it."""
    selves, anys, path = _word(h, H_LEVELS), _word(h, H_NEAR), _word(h, H_PATH)
    first = _word(h, _word(h, H_ANY) + ROW_LEX)
    for level in range(known + 1, depth + 1):
        d = _word(anys, level - 1)
        if d >= 0:
            d = _step(h, d, _word(path, level - 1))
        own = _word(selves, level)
        if own >= 0 and _word(h, own + LEX_ACCEPTS) != 0:
            d = first if d < 0 else _join(h, d, first)
        _set_word(anys, level, d)


@_internal
def _walk_unit(h, d, bits):
    """Tokens within lexer state ``d`` to the row at address ``bits``; those that may leave it to the trie in E."""
    trie, below, path, same = _word(h, H_TRIE), _word(h, H_BELOW), _word(h, H_PATH), _word(h, H_SAME)
    order, before = _word(h, H_ORDER), _word(h, H_BEFORE)
    selves, anys = _word(h, H_LEVELS), _word(h, H_NEAR)  # states after each byte of the path; -1: none
    _set_word(selves, 0, d)
    _set_word(anys, 0, -1)
    i, known, end = 0, 0, _word(h, H_NODES)
    while i < end and _word(h, H_FLAG) == 0:
        node = _word(trie, i)
        byte, depth, token = node & 255, (node >> 8) & DEPTH_MASK, node >> 43
        size = (node >> 19) & SIZE_MASK
        _set_word(h, H_BUILT, min(_word(h, H_BUILT), depth))
        _set_word(path, depth, byte)
        known = min(known, depth)
        own = _word(selves, depth)
        if own >= 0:
            own = _step(h, own, byte)
        _set_word(selves, depth + 1, own)
        if own >= 0:
            if size > 1 and _word(below, i) & ~_loops(h, own) == 0:
                for j in range(_int(before, i), _int(before, i + size)):
                    _set_bit(bits, _int(order, j))
                i += size
                continue
            token -= 1
            while token >= 0:
                _set_bit(bits, token)
                token = _int(same, token)
            i += 1
            continue
        _any_upto(h, known, depth)
        known = depth
        following = _word(anys, depth)
        if following >= 0:
            following = _step(h, following, byte)
        if following < 0:
            i += size
            continue
        _set_word(anys, depth + 1, following)
        known = depth + 1
        if token != 0:
            _keep(h, depth, token)
        i += 1


@_internal
def _unit(h, d):
    """Tokens within a wide lexer state as a row of bits, and the trie of those that leave it; in the mask heap."""
    if _word(h, d + LEX_UNIT_EPOCH) == _word(h, H_EPOCH):
        return _word(h, d + LEX_UNIT)
    e, width = _word(h, H_ETOP), _word(h, H_WIDTH)
    place, bits = _allocate_mask(h, UNIT_SIZE), _allocate_mask(h, (width + 1) >> 1)
    if _word(h, H_FLAG) != 0:
        return 0
    masks = _word(h, H_MASKS)
    _clear(masks + 8 * bits, width)
    _set_word(h, H_BUILT, 0)
    _walk_unit(h, d, masks + 8 * bits)
    nodes = _word(h, H_ETOP) - e
    trie = _store_trie(h, e)
    if _word(h, H_FLAG) == 0:
        _set_word(masks, place + UNIT_BITS, bits)
        _set_word(masks, place + UNIT_TRIE, trie)
        _set_word(masks, place + UNIT_NODES, nodes)
        _set_word(h, d + LEX_UNIT, place)
        _set_word(h, d + LEX_UNIT_EPOCH, _word(h, H_EPOCH))
    return place


@_internal
def _split(h, d):
    """The wide units of a lexer state with their joint row of bits, and its narrow rest; in the mask heap."""
    if _word(h, d + LEX_EPOCH) == _word(h, H_EPOCH):
        return _word(h, d + LEX_SPLIT)
    a = _word(h, H_ATOP)
    rest = _push_units(h, d)
    count, width = _word(h, H_ATOP) - a, _word(h, H_WIDTH)
    place = _allocate_mask(h, SPLIT_UNITS + 2 * count)
    bits = -1
    for i in range(count):
        d_unit = _word(_word(h, H_A), a + i)
        unit = _unit(h, d_unit) if _word(h, H_FLAG) == 0 else 0
        if _word(h, H_FLAG) == 0:
            masks = _word(h, H_MASKS)
            _set_word(masks, place + SPLIT_UNITS + 2 * i, d_unit)
            _set_word(masks, place + SPLIT_UNITS + 2 * i + 1, unit)
            own = _word(masks, unit + UNIT_BITS)
            if i == 0:
                bits = own
            else:
                if i == 1:
                    bits = _allocate_mask(h, (width + 1) >> 1)
                    if _word(h, H_FLAG) == 0:
                        first = _word(masks, _word(masks, place + SPLIT_UNITS + 1) + UNIT_BITS)
                        _copy_bits(masks + 8 * first, masks + 8 * bits, width)
                if _word(h, H_FLAG) == 0:
                    _or_bits(masks + 8 * own, masks + 8 * bits, width)
    _set_word(h, H_ATOP, a)
    if _word(h, H_FLAG) == 0:
        masks = _word(h, H_MASKS)
        _set_word(masks, place + SPLIT_BITS, bits)
        _set_word(masks, place + SPLIT_REST, rest)
        _set_word(masks, place + SPLIT_COUNT, count)
        _set_word(h, d + LEX_SPLIT, place)
        _set_word(h, d + LEX_EPOCH, _word(h, H_EPOCH))
    return place


@_internal
def _store_entry(h, parent, b, e):
    """The ids in buffer B and the trie in E from these places on as an entry of the mask heap."""
    count, nodes = _word(h, H_BTOP) - b, _word(h, H_ETOP) - e
    trie = _store_trie(h, e)
    place = _allocate_mask(h, ENTRY_SIZE)
    width = _word(h, H_WIDTH)
    as_bits = 4 * count > width
    ids = _allocate_mask(h, (width + 1) >> 1 if as_bits else count)
    if _word(h, H_FLAG) == 0:
        masks, base = _word(h, H_MASKS), _word(h, H_B)
        if as_bits:
            _clear(masks + 8 * ids, width)
            for i in range(count):
                _set_bit(masks + 8 * ids, _word(base, b + i))
        else:
            for i in range(count):
                _set_word(masks, ids + i, _word(base, b + i))
        _set_word(masks, place + ENTRY_PARENT, parent)
        _set_word(masks, place + ENTRY_IDS, ids)
        _set_word(masks, place + ENTRY_COUNT, count)
        _set_word(masks, place + ENTRY_TRIE, trie)
        _set_word(masks, place + ENTRY_NODES, nodes)
        _set_word(masks, place + ENTRY_BITS, 1 if as_bits else 0)
    _set_word(h, H_BTOP, b)
    return place


@_internal
def _first_entry(h, r, d):
    """Tokens allowed in a thread beyond the row of bits of its lexer state; -1 if too many are uncertain."""
    split = _split(h, d)
    b, e = _word(h, H_BTOP), _word(h, H_ETOP)
    if _word(h, H_FLAG) != 0:
        return 0
    masks = _word(h, H_MASKS)
    _set_word(h, H_BUILT, 0)
    for i in range(_word(masks, split + SPLIT_COUNT)):
        unit = _word(masks, split + SPLIT_UNITS + 2 * i + 1)
        first = _word(masks, unit + UNIT_TRIE)
        last = first + _word(masks, unit + UNIT_NODES)
        _set_word(h, H_BUILT, 0)
        _walk(h, masks, first, last, r, _word(masks, split + SPLIT_UNITS + 2 * i))
    _set_word(h, H_BUILT, 0)
    _walk(h, 0, 0, 0, r, _word(masks, split + SPLIT_REST))
    if _word(h, H_LIMIT) < 0:
        _set_word(h, H_BTOP, b)
        _set_word(h, H_ETOP, e)
        return -1
    return _store_entry(h, 0, b, e)


@_internal
def _refined(h, known, r, d):
    """The entry of a thread, given that of the same thread with less context (0: none).

    What is known for certain there holds here too; its uncertain tokens are walked again.
    """
    memo = _pair(h, MEMO, r, d, 2)
    if _word(h, H_FLAG) != 0:
        return 0
    if _word(h, memo + MEMO_EPOCH) == _word(h, H_EPOCH):
        return _word(h, memo + MEMO_VALUE)
    masks = _word(h, H_MASKS)
    if known == 0:
        known = _first_entry(h, r, d)
    elif _word(masks, known + ENTRY_NODES) > 0:
        b, e, trie = _word(h, H_BTOP), _word(h, H_ETOP), _word(masks, known + ENTRY_TRIE)
        _set_word(h, H_BUILT, 0)
        _walk(h, masks, trie, trie + _word(masks, known + ENTRY_NODES), r, d)
        known = _store_entry(h, known, b, e)
    if _word(h, H_FLAG) == 0:
        _set_word(h, memo + MEMO_VALUE, known)
        _set_word(h, memo + MEMO_EPOCH, _word(h, H_EPOCH))
    return known


@_internal
def _entry(h, r, d):
    """The entry of the mask heap with the tokens allowed in a thread beyond its lexer state's row of bits."""
    memo = _pair(h, MEMO, r, d, 2)
    if _word(h, H_FLAG) == 0 and _word(h, memo + MEMO_EPOCH) == _word(h, H_EPOCH):
        return _word(h, memo + MEMO_VALUE)
    cut = _cut_row(h, r, ROW_BARE)
    if _word(h, H_FLAG) != 0:
        return 0
    _split(h, d)  # its own walks have no limit
    _set_word(h, H_LIMIT, _word(h, H_ETOP) + UNCERTAIN_NODES if cut != r else 0)
    known = _refined(h, 0, cut, d)
    _set_word(h, H_LIMIT, 0)
    if known <= 0 or _word(_word(h, H_MASKS), known + ENTRY_NODES) > 0:
        cut = _cut_row(h, r, ROW_CUT) if _word(h, H_FLAG) == 0 else r
        if _word(h, H_FLAG) == 0:
            known = _refined(h, max(known, 0), cut, d)
    return _refined(h, known, r, d) if _word(h, H_FLAG) == 0 else 0


@_internal
def _emit(h, out, bits, entry, fresh):
    """Or a thread's mask into the row at address ``out`` (write it, if ``fresh``); about how many words that takes."""
    masks, width, work = _word(h, H_MASKS), _word(h, H_WIDTH), _word(h, H_WIDTH)
    if bits >= 0:
        if fresh:
            _copy_bits(masks + 8 * bits, out, width)
        else:
            _or_bits(masks + 8 * bits, out, width)
    elif fresh:
        _clear(out, width)
    while entry != 0:
        ids = _word(masks, entry + ENTRY_IDS)
        if _word(masks, entry + ENTRY_BITS):
            _or_bits(masks + 8 * ids, out, width)
            work += width
        else:
            work += _word(masks, entry + ENTRY_COUNT)
            for i in range(ids, ids + _word(masks, entry + ENTRY_COUNT)):
                _set_bit(out, _word(masks, i))
        entry = _word(masks, entry + ENTRY_PARENT)
    return work


@_internal
def _find_mask(h, config):
    """The parts of a configuration's mask, in the mask heap: twice the uses, and 1 if the text may end, then for each
    thread its bits and entry; or, after some uses that were much work, WHOLE and the place of a row."""
    n = _length(h, config)
    place = _allocate_mask(h, 1 + 2 * n)
    ends = 0
    for i in range(n):
        thread = _word(h, config + CONFIG_KEY + i)
        d = thread & K_MASK
        split = _split(h, d)
        entry = _entry(h, thread >> K_BITS, d)
        if _word(h, H_FLAG) != 0:
            return RETRY
        masks = _word(h, H_MASKS)
        _set_word(masks, place + 1 + 2 * i, _word(masks, split + SPLIT_BITS))
        _set_word(masks, place + 2 + 2 * i, entry)
        ends |= _word(h, d + LEX_ENDS)
    _set_word(_word(h, H_MASKS), place, ends & 1)
    _set_word(h, config + CONFIG_MASK, place)
    _set_word(h, config + CONFIG_EPOCH, _word(h, H_EPOCH))
    return 1


@_internal
def _fill(h, config, out):
    """The mask of a configuration into the row at address ``out``."""
    if _word(h, config + CONFIG_EPOCH) != _word(h, H_EPOCH) and _find_mask(h, config) == RETRY:
        return RETRY
    masks, place, width = _word(h, H_MASKS), _word(h, config + CONFIG_MASK), _word(h, H_WIDTH)
    how, work = _word(masks, place), 0
    if how == WHOLE:
        _copy_bits(masks + 8 * _word(masks, place + 1), out, width)
        return 1
    for i in range(_length(h, config)):
        work += _emit(h, out, _word(masks, place + 1 + 2 * i), _word(masks, place + 2 + 2 * i), i == 0)
    if how & 1:
        for i in range(_word(h, H_EOSES)):
            _set_bit(out, _int(_word(h, H_EOS), i))
    if how >> 1 >= KEPT_AFTER and 2 * work > 3 * width:
        return _keep_whole(h, place, out)
    _set_word(masks, place, how + 2)
    return 1


@_internal
def _keep_whole(h, place, out):
    """Keep the row at address ``out`` as a mask whose parts are at ``place``."""
    width = _word(h, H_WIDTH)
    row = _allocate_mask(h, (width + 1) >> 1)
    if row == 0:
        return RETRY
    masks = _word(h, H_MASKS)
    _copy_bits(out, masks + 8 * row, width)
    _set_word(masks, place, WHOLE)
    _set_word(masks, place + 1, row)
    return 1


# --- advancing ------------------------------
@_internal
def _config(h, level):
    """The configuration of the threads of a level."""
    base, first = _word(h, H_LEVELS), level * _word(h, H_WIDTH_OF_LEVEL)
    start = _word(h, H_CTOP)
    for j in range(first, first + _word(_word(h, H_COUNT), level)):
        _push(h, H_C, _word(base, j) & THREAD_MASK)
    _sort_unique(h, H_C, start)
    config = _intern(h, CONFIG, start, CONFIG_KEY - 2)
    return RETRY if _word(h, H_FLAG) != 0 else config


@_internal
def _advance(h, config, data, size):
    """The configuration after ``size`` bytes at address ``data``; DEAD if there is none."""
    counts, base, width = _word(h, H_COUNT), _word(h, H_LEVELS), _word(h, H_WIDTH_OF_LEVEL)
    n = _length(h, config)
    if n > width:
        _raise(h, LEVELS_FULL)
        return RETRY
    for i in range(n):
        _set_word(base, i, _word(h, config + CONFIG_KEY + i))
    _set_word(counts, 0, n)
    now = 0
    for at in range(size):
        following, new_row = 1 - now, 0
        _set_word(counts, following, 0)
        for j in range(now * width, now * width + _word(counts, now)):
            thread = _word(base, j) & THREAD_MASK
            d = _step(h, thread & K_MASK, _byte(data, at))
            if d < 0:
                continue
            _level_add(h, following, thread >> K_BITS, d)
            classes = _word(h, d + LEX_ACCEPTS)
            if classes != 0 and _word(h, H_FLAG) == 0:
                row = _goto(h, thread >> K_BITS, classes)
                new_row = row if new_row == 0 else _union(h, new_row, row)
        if _word(h, H_FLAG) != 0:
            return RETRY
        if new_row != 0:
            _level_add(h, following, new_row, _word(h, new_row + ROW_LEX))
        now = following
        if _word(counts, now) == 0:
            return DEAD
    return _config(h, now)


@_internal
def _initial(h, suffix):
    """The configuration before any text; also makes the records that all others refer to."""
    for item in range(2):
        start = _word(h, H_CTOP)
        _push(h, H_C, item)
        _set_word(h, H_END + item, _intern(h, CONT, start, CONT_KEY - 2))
    every = _word(h, H_CTOP)
    for t in range(_word(h, H_TERMINALS) + 1):
        _push(h, H_C, t)
    classes = _intern(h, CLASSES, every, 0)
    start = _word(h, H_CTOP)
    _push(h, H_C, -1)
    any_row = _intern(h, ROW, start, ROW_KEY - 2)
    _set_word(h, H_ANY, any_row)
    _set_word(h, any_row + ROW_BUILT, 1)
    lex = _any_lex(h, classes)
    start = _word(h, H_CTOP)
    _push_item(h, suffix, _word(h, H_END))
    row = _row(h, start)
    if _word(h, H_FLAG) != 0:
        return RETRY
    _set_word(h, any_row + ROW_LEX, lex)
    _set_word(_word(h, H_COUNT), 0, 0)
    _level_add(h, 0, row, _word(h, row + ROW_LEX))
    return _config(h, 0)


@_internal
def _after(h, config, t):
    """The configuration after terminal ``t``, one of no text of its own, was read; DEAD if it cannot stand here."""
    start = _word(h, H_CTOP)
    _push(h, H_C, t)
    single, row = _intern(h, CLASSES, start, 0), 0
    for i in range(_length(h, config)):
        thread = _word(h, config + CONFIG_KEY + i)
        r, d = thread >> K_BITS, thread & K_MASK
        for j in range(1, _length(h, d)):
            if _int(_word(h, H_CLASS), _word(h, d + LEX_KEY + j)) == t and _word(h, H_FLAG) == 0:
                following = _goto(h, r, single)
                row = following if row == 0 else _union(h, row, following)
    if _word(h, H_FLAG) != 0:
        return RETRY
    if row == 0:
        return DEAD
    _set_word(_word(h, H_COUNT), 0, 0)
    _level_add(h, 0, row, _word(h, row + ROW_LEX))
    return _config(h, 0)


@_internal
def _ends(h, config):
    """Whether the text may stop (1) and whether a terminal of no text of its own may begin (2)."""
    ends = 0
    for i in range(_length(h, config)):
        ends |= _word(h, (_word(h, config + CONFIG_KEY + i) & K_MASK) + LEX_ENDS)
    return ends


@_internal
def _next_bytes(h, config, out):
    _clear(out, 8)
    for i in range(_length(h, config)):
        d = _word(h, config + CONFIG_KEY + i) & K_MASK
        for byte in range(256):
            if _int(h, 2 * (d + LEX_TABLE) + byte) != -1:
                _set_bit(out, byte)
    return 1


@_internal
def _rehash(h, old, size):
    """Enter the records of a smaller hash table into the present one, which is empty."""
    table, mask = _word(h, H_HASH), _word(h, H_HMASK)
    for i in range(size):
        r = _word(old, i)
        if r != 0:
            x = _word(h, r)
            slot = (x ^ (x >> 17)) & mask
            while _word(table, slot) != 0:
                slot = (slot + 1) & mask
            _set_word(table, slot, r)
    return 1


@_internal
def _read_automata(h, addresses, count):
    """Automata of terminals as positions and edges.

    ``addresses`` holds for each the address of its transitions, of its accepting flags, its states, its class. Buffer
    A gets ``class, accepting, edges before`` of each position, B the edges ``first byte, last byte, target``.
    """
    base = 0
    for i in range(count):
        table, accepting = _word(addresses, 4 * i), _word(addresses, 4 * i + 1)
        states, kind = _word(addresses, 4 * i + 2), _word(addresses, 4 * i + 3)
        for s in range(states):
            _push(h, H_A, kind)
            _push(h, H_A, _byte(accepting, s))
            _push(h, H_A, _word(h, H_BTOP) // 3)
            byte = 0
            while byte < 256:
                target = _int(table, 256 * s + byte)
                first = byte
                byte += 1
                while byte < 256 and _int(table, 256 * s + byte) == target:
                    byte += 1
                if target >= 0:
                    _push(h, H_B, first)
                    _push(h, H_B, byte - 1)
                    _push(h, H_B, base + target)
        base += states
    return RETRY if _word(h, H_FLAG) != 0 else base


# --- the entry point: one, because every entry point is linked and optimised with all that it calls ---
@_internal
def _accept(h, config, token):
    """The configuration after a token; DEAD if there is none. The latest steps are remembered."""
    slot = _word(h, H_MOVES) + 24 * ((config ^ (config >> 9) ^ (token << 3) ^ (token >> 7)) & (MOVES - 1))
    if _word(slot, 0) == config and _word(slot, 1) == token:
        return _word(slot, 2)
    first = _int(_word(h, H_OFFSETS), token)
    size = _int(_word(h, H_OFFSETS), token + 1) - first
    after = _advance(h, config, _word(h, H_BYTES) + first, size) if size > 0 else DEAD
    if after != RETRY:
        _set_word(slot, 0, config)
        _set_word(slot, 1, token)
        _set_word(slot, 2, after)
    return after


FILL, ACCEPT, ADVANCE, ENDS, NEXT_BYTES, INITIAL, AFTER, REHASH, READ_AUTOMATA, GOTO_ROW, KINDS_BELOW = range(11)


@njit(types.int64(types.int64, types.int64, types.int64, types.int64, types.int64), cache=True)
def run(root, operation, x, y, z):
    """Run an operation on the heap whose address stands at address ``root``.

    It holds the GIL: each call is atomic, which is what matchers that share a heap rely on.

    ======================  =====================================  ====================================
    operation               x, y, z                                result
    ======================  =====================================  ====================================
    FILL                    configuration, address of a mask row   1
    ACCEPT                  configuration, token                   configuration or DEAD
    ADVANCE                 configuration, address, bytes          configuration or DEAD
    ENDS                    configuration                          bits of `_ends`
    NEXT_BYTES              configuration, address of 256 bits     1
    INITIAL                 suffix of the start symbol             configuration
    AFTER                   configuration, terminal                configuration or DEAD
    REHASH                  address of the old table, its size     1
    READ_AUTOMATA           addresses, count                       positions
    GOTO_ROW                row, class                             row
    KINDS_BELOW             address of trie nodes, count, address  1
    ======================  =====================================  ====================================

    Any may return RETRY: ``H_FLAG`` tells what there was too little of.
    """
    h = _word(root, 0)
    if operation == FILL:
        return _fill(h, x, y)
    if operation == ACCEPT:
        return _accept(h, x, y)
    if operation == ADVANCE:
        return _advance(h, x, y, z)
    if operation == ENDS:
        return _ends(h, x)
    if operation == NEXT_BYTES:
        return _next_bytes(h, x, y)
    if operation == INITIAL:
        return _initial(h, x)
    if operation == AFTER:
        return _after(h, x, y)
    if operation == REHASH:
        return _rehash(h, x, y)
    if operation == GOTO_ROW:
        start = _word(h, H_CTOP)
        _push(h, H_C, y)
        row = _goto(h, x, _intern(h, CLASSES, start, 0))
        return RETRY if _word(h, H_FLAG) != 0 else row
    if operation == KINDS_BELOW:
        return _kinds_below(x, y, z)
    return _read_automata(h, x, y)


call = run.overloads[run.signatures[0]].entry_point
"""``run`` without numba's dispatcher: the arguments must be int."""
