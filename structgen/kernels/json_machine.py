"""The JSON machine as array code: one byte step, the advance over a token, the walk over a trie of tokens.

This file is longer than its neighbours because numba's cache does not see edits to callees in other files: a kernel
and all that it calls stand together, the layout constants included (`structgen.machine.tables` writes what is read
here). Nothing here checks its arguments; `structgen.matcher` and `structgen.masks` do.

**Configuration** ``(q, a, b, f)``, four int64: lexical state, two registers, innermost open frame (-1: none). A
matcher holds a set of configurations ("threads"): a value with several alternatives splits at its first byte, and each
thread is sound and live by itself, so that the set's mask is the union of its members' masks.

==============  ==============================  ===========================  =====================================
q               a                               b                            expects
==============  ==============================  ===========================  =====================================
VALUE           node                            whitespace run               a value
AFTER                                           whitespace run               ``,`` or the closing bracket, or the end
OBJECT_FIRST                                    whitespace run               a key or ``}``
KEY_NEXT                                        whitespace run               a key
COLON           node of the member              whitespace run               ``:``
ARRAY_FIRST                                     whitespace run               a value or ``]``
LITERAL         0 null, 1 true, 2 false         bytes read                   the rest of the literal
NUMBER                                          pool state                   more of the number, or what may follow
PAD             node | target q << 40           spaces to come               spaces (indentation)
NEWLINE         node | target q << 40           spaces after it              a newline (indentation)
CLOSE                                                                        the closing bracket (indentation)
STRING + s      string record | acc << 32       pool state | length << 32    value with a DFA and length bounds
ENUM + s        string record | acc << 32       lo | hi << 20 | depth << 40  one of the strings lo..hi of a table
KEY + s         acc << 32                       lo | hi << 20 | depth << 40  a key, still a prefix of declared ones
OTHER_KEY + s   pool state | acc << 32          hash of the decoded key      an undeclared key
==============  ==============================  ===========================  =====================================

s is the place inside an escape (BODY, ESCAPE, HEX, LOW_...), acc the hexadecimal digits read and, shifted by 16, the
ten bits of a high surrogate. Keys and strings are compared decoded: as the UTF-8 of what the text stands for.

**Frames** are immutable and append-only: ``[forward] record | count << 32, parent, depth, others, seen...``. Offsets
from ``SCRATCH`` on lie in the scratch array (a walk's own frames), others in the arena. ``others`` is the root of a
digital search tree ``[forward] left, right, hash, start`` of the undeclared keys seen (a node's child is chosen by the
bit of the hash at its depth; adding copies the path). ``forward`` serves the copy from scratch to arena. Arrays have
the first three fields; where items must be distinct, ``others`` is the tree of the finished items, with the place in
the text where each starts, and the field behind it is the place where the current item starts.

**Counted arrays** (``contains``, some item that must differ) are automata: each state is a record of its own with
choices (node of the next item, state after it), and the machine splits at the comma. **Obligations** of an object
(some member, which the schema does not name, must satisfy a condition) are bits behind the keys seen: a member's key
has choices (node, bits that it meets), and the machine splits at the quote that ends it.

**Distinct items**: the text so far lies in a buffer; a finished item is hashed from its text (`_hash_value`), and
where hashes agree the texts are compared (`_equal_values`). Whether an item that was begun can become a new one is a
question of counting: if it can still become more values (`_values_here`, `_endless_frame`) than there are items, it
can, by the pigeonhole principle. Else its values are few, and they are listed until one is new (`_finds_fresh`).
Where two items must be equal instead, the array cannot close before, and goes on as a plain one after.

**Pool** rows are DFA states over bytes, shared by all grammars of a vocabulary: ``pool[state * 256 + byte]`` is the
next state or -1, ``flags[state]`` says accepting, lazy (not filled yet), inside a UTF-8 sequence.
"""

from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic

# --- lexical states ---
VALUE, AFTER, OBJECT_FIRST, KEY_NEXT, COLON, ARRAY_FIRST, LITERAL, NUMBER, PAD, NEWLINE, CLOSE = range(11)
STRING, ENUM, KEY, OTHER_KEY = 16, 32, 48, 64
BODY, ESCAPE, HEX, LOW_BACKSLASH, LOW_U, LOW_HEX = 0, 1, 2, 6, 7, 8  # HEX and LOW_HEX take four places each

# --- header of the grammar array ---
H_WHITESPACE, H_RUN, H_INDENT, H_ESCAPES, H_ORDER, H_UNIQUE, H_SIZE = 0, 1, 2, 3, 4, 5, 8
COMPACT, SINGLE, ANY, INDENT = 0, 1, 2, 3

# --- value node: flags, then (offset, count) of the list of alternatives per kind ---
NODE_FLAGS, NODE_STRINGS, NODE_NUMBERS, NODE_OBJECTS, NODE_ARRAYS, NODE_SIZE = 0, 1, 3, 5, 7, 9
NULL_FLAG, TRUE_FLAG, FALSE_FLAG, ENDLESS_FLAG = 1, 2, 4, 8  # the last: more values than could ever be written
VALUES_SHIFT, MAX_VALUES = 4, 1 << 20  # above the flags: how many values there are at least

# --- string record; record 0 (the header) stands for "no bounds" ---
S_KIND, S_START, S_MIN, S_MAX, S_DISTANCES, S_ENTRIES, S_COUNT, S_SIZE = 0, 1, 2, 3, 4, 5, 6, 7
S_DFA, S_ENUM = 0, 1
# distance table: first pool state, row length, period, slack (-1: none), then rows: least accepted length >= k still to
# come, or -1. Slack: how much more than k that may be, in any state but the start.
D_BASE, D_ROW, D_PERIOD, D_SLACK, D_TABLE = 0, 1, 2, 3, 4

# --- entry of a sorted table of strings: declared keys, enumerated values ---
E_OFFSET, E_LENGTH, E_CHILD, E_BIT, E_SIZE = 0, 1, 2, 3, 4

# --- frame records ---
R_KIND, R_OBJECT, R_ARRAY, R_COUNTED = 0, 0, 1, 2
O_ENTRIES, O_COUNT, O_WORDS, O_REQUIRED, O_MIN, O_MAX = 1, 2, 3, 4, 5, 6
O_OTHERS, O_START, O_CHILD, O_DEPENDENT, O_DEPENDENTS, O_NARROW, O_DUTIES, O_CLASSES, O_COUNTS = (
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
)
# O_DUTIES: set of the obligations. If there are any, E_CHILD and O_CHILD (and its classes) are places of choices:
# their number, then (node, bits) each; O_CLASSES is the number of classes, O_COUNTS (0: one class) a table of how many
# words each class has from each state of the automaton on, at most ENDLESS_WORDS.
ENDLESS_WORDS = 1 << 30
NO_OTHERS, ONE_CLASS, CLASSES = 0, 1, 2
A_PREFIX, A_PREFIXES, A_REST, A_MIN, A_MAX, A_UNIQUE, A_PAIRED, A_SIZE = 1, 2, 3, 4, 5, 6, 7, 8
DISTINCT, PAIRED = 1, 2  # A_UNIQUE: items must differ; two must be equal, after which the record is A_PAIRED
# counted arrays: whether it may close, endlessly many completions, choices (node, record after it), A_UNIQUE
T_CLOSES, T_ENDLESS, T_COUNT, T_CHOICES = 1, 2, 3, 4

# --- pool flags ---
ACCEPTING, LAZY, PARTIAL = 1, 2, 4
NON_ASCII_KIND, NEVER_KIND = 26, 27  # of `structgen.kernels.characters`
# --- memory: a context is an int64 array; entry k of it is the address of an array and entry k + 1 its length ---
# Arrays as arguments cost 60 ns each per call and, between kernels, minutes of compile time; addresses cost neither.
# `structgen.masks.context.Context` builds one and keeps the arrays alive. Lengths are checked at every access when
# numba's bounds check is on (then compile into a fresh cache folder).
(
    C_GRAMMAR, C_WORDS, C_TEXTS, C_POOL, C_FLAGS, C_PAYLOAD, C_WORDS_LEFT, C_ARENA, C_SCRATCH, C_STACK, C_OWN, C_SEARCH,
    C_REGS, C_START, C_CROSS, C_SLOTS, C_ROWS, C_LIMITS, C_NODES, C_TRIES, C_NEXT_SAME, C_GROUPS, C_MEMBERS,
    C_TOKEN_BYTES, C_CLASSES, C_LOOPS, C_THREADS, C_RESULT, C_DATA, C_SPARE, C_OFFSETS, C_ENDS, C_KINDS, C_SLICES,
    C_WRITTEN, C_PROBE, C_NESTING, C_COUNTS, C_SYMBOLS,
) = range(0, 78, 2)  # fmt: skip
CONTEXT_SIZE = 78
_CHECKED = bool(config.BOUNDSCHECK)
# Internal functions are never called from Python; without wrappers they compile in two thirds of the time.
_internal = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")


def _pointer(builder, address, index, bits):
    """LLVM pointer to element ``index`` of an array at ``address`` (as base and index, which loops vectorise)."""
    base = builder.inttoptr(address, ir.IntType(bits).as_pointer())
    return builder.gep(base, [index])


def _element(builder, context, table, index, bits):
    """LLVM pointer to element ``index`` of the array in place ``table`` of the context."""
    address = builder.load(_pointer(builder, context, ir.Constant(ir.IntType(64), table), 64))
    return _pointer(builder, address, index, bits)


def _unchecked_reader(table, bits, signed):
    @intrinsic
    def read(typingctx, m, index):
        def codegen(context, builder, signature, args):
            value = builder.load(_element(builder, args[0], table, args[1], bits))
            return value if bits == 64 else (builder.sext if signed else builder.zext)(value, ir.IntType(64))

        return types.int64(types.int64, types.int64), codegen

    return read


def _unchecked_writer(table, bits):
    @intrinsic
    def write(typingctx, m, index, value):
        def codegen(context, builder, signature, args):
            value = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
            builder.store(value, _element(builder, args[0], table, args[1], bits))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return write


def _reader(table, bits, signed=True):
    """A function ``(m, index)`` that reads an element of a table as int64."""
    read = _unchecked_reader(table, bits, signed)
    if not _CHECKED:
        return read

    @_internal
    def checked(m, index):
        if not 0 <= index < _size(m, table):
            raise IndexError("kernel read out of bounds")
        return read(m, index)

    return checked


def _writer(table, bits=64):
    """A function ``(m, index, value)`` that writes an element of a table, given as int64."""
    write = _unchecked_writer(table, bits)
    if not _CHECKED:
        return write

    @_internal
    def checked(m, index, value):
        if not 0 <= index < _size(m, table):
            raise IndexError("kernel write out of bounds")
        write(m, index, value)

    return checked


@intrinsic
def _size(typingctx, m, table):
    """Length of a table."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        offset = builder.mul(builder.add(args[1], ir.Constant(word, 1)), ir.Constant(word, 8))
        return builder.load(builder.inttoptr(builder.add(args[0], offset), word.as_pointer()))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _address(typingctx, m, table):
    """Address of a table."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        offset = builder.mul(args[1], ir.Constant(word, 8))
        return builder.load(builder.inttoptr(builder.add(args[0], offset), word.as_pointer()))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _mask_word(typingctx, row, index):
    """Word ``index`` of the mask row at an address, as int64."""

    def codegen(context, builder, signature, args):
        return builder.zext(builder.load(_pointer(builder, args[0], args[1], 32)), ir.IntType(64))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _set_mask_word(typingctx, row, index, value):
    def codegen(context, builder, signature, args):
        builder.store(builder.trunc(args[2], ir.IntType(32)), _pointer(builder, args[0], args[1], 32))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def _wrapped(combine):
    """Arithmetic modulo 2**64. (Numba's own tells LLVM that it never overflows, and LLVM makes use of that.)"""

    @intrinsic
    def apply(typingctx, one, two):
        def codegen(context, builder, signature, args):
            return combine(builder, *args)

        return types.int64(types.int64, types.int64), codegen

    return apply


_wrapped_add = _wrapped(lambda builder, one, two: builder.add(one, two))
_wrapped_mul = _wrapped(lambda builder, one, two: builder.mul(one, two))


def _bulk(combine):
    """A loop over two rows of words, eight at a time (rows are padded by their owner or end with single words)."""

    @intrinsic
    def apply(typingctx, source, target, width):
        def codegen(context, builder, signature, args):
            source, target, width = args
            wide = ir.VectorType(ir.IntType(32), 8)
            for kind, lanes in (("wide", 8), ("single", 1)):
                element = wide if lanes == 8 else ir.IntType(32)
                bits = ir.IntType(64)
                whole = builder.and_(width, ir.Constant(bits, -8))
                first = ir.Constant(bits, 0) if lanes == 8 else whole
                last = whole if lanes == 8 else width
                head = builder.append_basic_block(kind + ".head")
                body = builder.append_basic_block(kind + ".body")
                done = builder.append_basic_block(kind + ".done")
                before = builder.block
                builder.branch(head)
                builder.position_at_end(head)
                index = builder.phi(bits)
                index.add_incoming(first, before)
                builder.cbranch(builder.icmp_signed("<", index, last), body, done)
                builder.position_at_end(body)
                offset = builder.shl(index, ir.Constant(bits, 2))
                left = builder.inttoptr(builder.add(source, offset), element.as_pointer())
                right = builder.inttoptr(builder.add(target, offset), element.as_pointer())
                value = combine(builder, builder.load(left, align=4), right)
                builder.store(value, right, align=4)
                index.add_incoming(builder.add(index, ir.Constant(bits, lanes)), body)
                builder.branch(head)
                builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return apply


_copy_words = _bulk(lambda builder, value, target: value)
_or_words = _bulk(lambda builder, value, target: builder.or_(value, builder.load(target, align=4)))
_and_words = _bulk(lambda builder, value, target: builder.and_(value, builder.load(target, align=4)))


_grammar = _reader(C_GRAMMAR, 32)
_word = _reader(C_WORDS, 64)
_text = _reader(C_TEXTS, 8, signed=False)
_pool = _reader(C_POOL, 32)
_flags = _reader(C_FLAGS, 32)
_payload = _reader(C_PAYLOAD, 32)
_words_left = _reader(C_WORDS_LEFT, 32)
_limit = _reader(C_LIMITS, 64)
_next_same = _reader(C_NEXT_SAME, 32)
_group = _reader(C_GROUPS, 32)
_token_byte = _reader(C_TOKEN_BYTES, 8, signed=False)
_class = _reader(C_CLASSES, 32)
_loop = _reader(C_LOOPS, 32)
_thread = _reader(C_THREADS, 64)
_data = _reader(C_DATA, 8, signed=False)
_offset = _reader(C_OFFSETS, 32)
_end_token = _reader(C_ENDS, 32)
_kind = _reader(C_KINDS, 32)
_slice = _reader(C_SLICES, 32)
_slot_of = _reader(C_SLOTS, 32)
_node_field = _reader(C_NODES, 32)
_member_field = _reader(C_MEMBERS, 32)
_trie_field = _reader(C_TRIES, 64)
_arena, _set_arena = _reader(C_ARENA, 64), _writer(C_ARENA)
_scratch, _set_scratch = _reader(C_SCRATCH, 64), _writer(C_SCRATCH)
_stack, _set_stack = _reader(C_STACK, 64), _writer(C_STACK)
_reg, _set_reg = _reader(C_REGS, 64), _writer(C_REGS)
_result, _set_result = _reader(C_RESULT, 64), _writer(C_RESULT)
_own, _set_own = _reader(C_OWN, 64), _writer(C_OWN)
_search, _set_search = _reader(C_SEARCH, 64), _writer(C_SEARCH)
_start, _set_start = _reader(C_START, 64), _writer(C_START)
_cross, _set_cross = _reader(C_CROSS, 64), _writer(C_CROSS)
_written, _set_written = _reader(C_WRITTEN, 8, signed=False), _writer(C_WRITTEN, 8)
_probe, _set_probe = _reader(C_PROBE, 64), _writer(C_PROBE)
_nesting, _set_nesting = _reader(C_NESTING, 64), _writer(C_NESTING)
_count_of = _reader(C_COUNTS, 32)
_symbols = _reader(C_SYMBOLS, 32)


@_internal
def _set_bit(m, out, token):
    _set_mask_word(out, token >> 5, _mask_word(out, token >> 5) | (1 << (token & 31)))


@_internal
def _clear_bit(m, out, token):
    _set_mask_word(out, token >> 5, _mask_word(out, token >> 5) & ~(1 << (token & 31)))


def _saver(write):
    """A function that copies the configuration and the top of scratch out of the registers."""

    @_internal
    def save(m, index):
        for i in range(5):
            write(m, index + i, _reg(m, i))

    return save


def _restorer(read):
    @_internal
    def restore(m, index):
        for i in range(5):
            _set_reg(m, i, read(m, index + i))

    return restore


_save_stack, _restore_stack = _saver(_set_stack), _restorer(_stack)
_save_own, _restore_own = _saver(_set_own), _restorer(_own)
_save_start, _restore_start = _saver(_set_start), _restorer(_start)
_save_cross, _restore_cross = _saver(_set_cross), _restorer(_cross)
_save_probe, _restore_probe = _saver(_set_probe), _restorer(_probe)


@_internal
def _node(m, node, field):
    return _node_field(m, 4 * node + field)


@_internal
def _set_string(m, q, a, b):
    _set_reg(m, 0, q)
    _set_reg(m, 1, a)
    _set_reg(m, 2, b)


@_internal
def _push(m, index, q, a, b, f):
    _set_stack(m, index, q)
    _set_stack(m, index + 1, a)
    _set_stack(m, index + 2, b)
    _set_stack(m, index + 3, f)


@_internal
def _thread_to_regs(m, t):
    for i in range(4):
        _set_reg(m, i, _thread(m, 4 * t + i))


# --- frames ---
F_HEAD, F_PARENT, F_DEPTH, F_OTHERS, F_SEEN = 0, 1, 2, 3, 4
F_START = 4  # of an array of distinct items
SCRATCH = 1 << 40
SEEN_BITS = 62  # bits of a seen word in use: int64 without its sign, and without overflow in shifts

# --- registers of a step: the configuration in and out, then: top of scratch, alternatives,
# pool state missing, whether the mask row is still to be cleared, place in the text of the byte read, length of the
# text before this call, searches given up for want of steps, whether a search for a new item is under way (which adds
# members in one order only), whether values are nested too deep for `nesting`, or words
# for `search`, the configuration whose mask is not done ---------
TOP, ALTERNATIVES, MISSING, FRESH, POSITION, WRITTEN, GIVEN_UP, SEARCHING, TOO_DEEP, RESUME, REGISTERS = (
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
)
# --- results of a step ---
DEAD, ALIVE, MISS, FULL = 0, 1, 2, 3
MISS_ROW = 4  # the mask row of pool state _reg(m, MISSING) at place _reg(m, ALTERNATIVES) is to be computed
MISS_COUNT = 5  # how many values go on from pool state _reg(m, MISSING) is to be computed

LOW32 = (1 << 32) - 1
MASK20 = (1 << 20) - 1
HASH_START = 1469598103934665603  # FNV-1a, 64 bit; a collision would refuse a legal key, with probability 2**-64
HASH_PRIME = 1099511628211


# --- frames ---
@_internal
def _load(m, place):
    return _scratch(m, place - SCRATCH) if place >= SCRATCH else _arena(m, place)


@_internal
def _has_list(m, record):
    """Whether frames of a record list hashes: of undeclared keys, or of distinct items."""
    return _grammar(m, record + R_KIND) == R_OBJECT or _grammar(m, record + A_UNIQUE) != 0


@_internal
def _frame_size(m, record):
    """Words of a frame without its forward link."""
    if _grammar(m, record + R_KIND) == R_OBJECT:
        return 4 + _grammar(m, record + O_WORDS)
    return 5 if _grammar(m, record + A_UNIQUE) else 3


@_internal
def _new_frame(m, record, count, parent, source):
    """Append a frame to scratch: a copy of ``source``'s seen keys with a new count, or an empty one (source -1)."""
    size = _frame_size(m, record)
    top = _reg(m, TOP)
    if top + size + 1 > _size(m, C_SCRATCH):
        return -2
    _set_scratch(m, top, -1)
    place = top + 1
    _set_scratch(m, place + F_HEAD, record | (count << 32))
    _set_scratch(m, place + F_PARENT, parent)
    if source >= 0:
        for w in range(F_DEPTH, size):
            _set_scratch(m, place + w, _load(m, source + w))
    else:
        _set_scratch(m, place + F_DEPTH, _depth(m, parent) + 1 if parent >= 0 else 1)
        if size > F_OTHERS:
            _set_scratch(m, place + F_OTHERS, -1)
            for w in range(F_SEEN, size):
                _set_scratch(m, place + w, 0)
    _set_reg(m, TOP, top + size + 1)
    return place + SCRATCH


@_internal
def _depth(m, frame):
    """How many containers are open. (Behind it a search notes the last key that it has added, see `_behind`.)"""
    return _load(m, frame + F_DEPTH) & LOW32


# --- frames: the set of undeclared keys, or of finished items ---
K_LEFT, K_HASH, K_START, K_SIZE = 0, 2, 3, 4


@_internal
def _lookup(m, place, hashed):
    """The node with a hash in the tree whose root is at ``place``, or -1."""
    depth = 0
    while place >= 0 and _load(m, place + K_HASH) != hashed:
        place = _load(m, place + K_LEFT + ((hashed >> depth) & 1))
        depth += 1
    return place


@_internal
def _new_leaf(m, hashed, start):
    """A node without children in scratch (the caller has checked the room)."""
    place = _reg(m, TOP) + 1
    _set_scratch(m, place - 1, -1)
    _set_scratch(m, place + K_LEFT, -1)
    _set_scratch(m, place + K_LEFT + 1, -1)
    _set_scratch(m, place + K_HASH, hashed)
    _set_scratch(m, place + K_START, start)
    _set_reg(m, TOP, place + K_SIZE)
    return place


@_internal
def _add_hash(m, frame, hashed, start):
    """Add a hash to the tree of a frame in scratch, where it is not yet. Whether there was room.

    The nodes on the way are copied: O(log n) for hashes, at most 64.
    """
    slot = frame - SCRATCH + F_OTHERS
    node = _scratch(m, slot)
    depth = 0
    while True:
        if _reg(m, TOP) + K_SIZE + 1 > _size(m, C_SCRATCH):
            return False
        if node < 0:
            _set_scratch(m, slot, _new_leaf(m, hashed, start) + SCRATCH)
            return True
        copy = _new_leaf(m, _load(m, node + K_HASH), _load(m, node + K_START))
        _set_scratch(m, copy + K_LEFT, _load(m, node + K_LEFT))
        _set_scratch(m, copy + K_LEFT + 1, _load(m, node + K_LEFT + 1))
        _set_scratch(m, slot, copy + SCRATCH)
        slot = copy + K_LEFT + ((hashed >> depth) & 1)
        node = _scratch(m, slot)
        depth += 1


# --- objects: which keys may still come ---
@_internal
def _seen(m, frame, bit):
    return (_load(m, frame + F_SEEN + bit // SEEN_BITS) >> (bit % SEEN_BITS)) & 1


@_internal
def _missing_word(m, record, frame, extra, w):
    """Word w of the required keys (dependents included) that are not seen, if key ``extra`` (-1: none) were added."""
    need = _word(m, _grammar(m, record + O_REQUIRED) + w)
    first = _grammar(m, record + O_DEPENDENT)
    for d in range(_grammar(m, record + O_DEPENDENTS)):
        bit = _grammar(m, first + 2 * d)
        if bit == extra or _seen(m, frame, bit):
            need |= _word(m, _grammar(m, first + 2 * d + 1) + w)
    have = _load(m, frame + F_SEEN + w)
    if extra >= 0 and extra // SEEN_BITS == w:
        have |= 1 << (extra % SEEN_BITS)
    return need & ~have


@_internal
def _key_words(m, record):
    """Seen words of keys; one for the obligations, if there are any, follows."""
    return _grammar(m, record + O_WORDS) - (1 if _grammar(m, record + O_DUTIES) else 0)


@_internal
def _missing(m, record, frame, extra):
    """How many required keys are not seen, if key ``extra`` were added."""
    count = 0
    for w in range(_key_words(m, record)):
        left = _missing_word(m, record, frame, extra, w)
        while left:
            left &= left - 1
            count += 1
    return count


@_internal
def _has_missing_below(m, record, frame, bit):
    """Whether a required key earlier than ``bit`` (itself counted as present) is not seen."""
    for w in range(bit // SEEN_BITS + 1):
        left = _missing_word(m, record, frame, bit, w)
        if w == bit // SEEN_BITS:
            left &= (1 << (bit % SEEN_BITS)) - 1
        if left:
            return True
    return False


@_internal
def _is_ordered(m):
    """Whether members may be added in one order only: by the options, or because a search tries each set once."""
    return _grammar(m, H_ORDER) != 0 or _reg(m, SEARCHING) != 0


ALL_DECLARED = 1 << 30  # noted by a search that has added an undeclared key, after which no declared one may come


@_internal
def _behind(m, record, frame):
    """Where members come in one order: the key bit that the next declared key must be behind."""
    last = -1
    if _grammar(m, H_ORDER) != 0:
        last = ALL_DECLARED if _load(m, frame + F_OTHERS) >= 0 else _last_seen(m, record, frame)
    return max(last, (_load(m, frame + F_DEPTH) >> 32) - 1)


@_internal
def _last_seen(m, record, frame):
    """The highest key bit seen, or -1."""
    for back in range(_key_words(m, record)):
        w = _key_words(m, record) - 1 - back
        have = _load(m, frame + F_SEEN + w)
        if have:
            bit = -1
            while have:
                have >>= 1
                bit += 1
            return w * SEEN_BITS + bit
    return -1


@_internal
def _needs_skipped(m, record, frame, key, bit):
    """Whether key ``key`` requires one that is earlier than ``bit`` and not seen (declared order)."""
    first = _grammar(m, record + O_DEPENDENT)
    for d in range(_grammar(m, record + O_DEPENDENTS)):
        if _grammar(m, first + 2 * d) == key:
            for w in range(bit // SEEN_BITS + 1):
                skipped = _word(m, _grammar(m, first + 2 * d + 1) + w) & ~_load(m, frame + F_SEEN + w)
                if w == bit // SEEN_BITS:
                    skipped &= (1 << (bit % SEEN_BITS)) - 1
                if skipped:
                    return True
    return False


# --- objects: obligations ---
@_internal
def _duties(m, record, frame):
    """The obligations that no member has met yet."""
    duties = _grammar(m, record + O_DUTIES)
    if duties == 0:
        return 0
    return duties & ~_load(m, frame + F_SEEN + _grammar(m, record + O_WORDS) - 1)


@_internal
def _met_by(m, choices, duty, number):
    """The bits of the ``number``-th of the choices that meet ``duty``, or 0."""
    for c in range(_grammar(m, choices)):
        bits = _grammar(m, choices + 2 + 2 * c)
        if bits & duty:
            if number == 0:
                return bits
            number -= 1
    return 0


@_internal
def _class_choices(m, record, number):
    """The choices of class ``number`` (from 0) of undeclared keys."""
    child = _grammar(m, record + O_CHILD)
    return _grammar(m, child + 1 + number) if _grammar(m, record + O_OTHERS) == CLASSES else child


@_internal
def _room(m, record, frame, extra, count):
    """How many members more may come than have to, if the object had ``count`` members and the key ``extra``."""
    most = _grammar(m, record + O_MAX)
    return 1 << 30 if most < 0 else most - count - _missing(m, record, frame, extra)


@_internal
def _source_bits(m, record, frame, source, duty, number, late, after, taken):
    """What the ``number``-th choice for ``duty`` of a declared key (or of a class of others behind these) meets."""
    declared = _grammar(m, record + O_COUNT)
    if source >= declared:
        return _met_by(m, _class_choices(m, record, source - declared), duty, number)
    entry = _grammar(m, record + O_ENTRIES) + E_SIZE * source
    bit = _grammar(m, entry + E_BIT)
    choices = _grammar(m, entry + E_CHILD)
    if late or choices < 0 or source == taken or bit <= after or _seen(m, frame, bit):
        return 0
    return _met_by(m, choices, duty, number)


@_internal
def _source_cost(m, record, frame, source):
    """How much of the room for members that are not required a member takes."""
    if source >= _grammar(m, record + O_COUNT):
        return 1
    bit = _grammar(m, _grammar(m, record + O_ENTRIES) + E_SIZE * source + E_BIT)
    return 1 - ((_missing_word(m, record, frame, -1, bit // SEEN_BITS) >> (bit % SEEN_BITS)) & 1)


@_internal
def _on_path(m, depth, source):
    """Whether a shallower level of the search has chosen the source."""
    for level in range(depth):
        if _nesting(m, 4 * level + 2) == source:
            return True
    return False


@_internal
def _coverable(m, record, frame, unmet, room, late, after, taken):
    """Whether members still to come can meet the obligations ``unmet``, with ``room`` for those not required.

    ``late``: declared keys cannot come any more; else those behind bit ``after`` can, but for the entry ``taken``.
    Depth first; a level of the search is (unmet, room, source, its next choice). Each level meets one obligation more,
    and a record has only a few (`structgen.machine.duties.MAX_DUTIES`).
    """
    if room < 0:
        return False
    if unmet == 0:
        return True
    declared = _grammar(m, record + O_COUNT)
    sources = declared
    if _grammar(m, record + O_OTHERS) != NO_OTHERS:
        sources += _grammar(m, record + O_CLASSES)
    depth = 0
    _set_nesting(m, 0, unmet)
    _set_nesting(m, 1, room)
    _set_nesting(m, 2, 0)
    _set_nesting(m, 3, 0)
    while depth >= 0:
        unmet, room = _nesting(m, 4 * depth), _nesting(m, 4 * depth + 1)
        source, number = _nesting(m, 4 * depth + 2), _nesting(m, 4 * depth + 3)
        if source >= sources:
            depth -= 1
            continue
        bits = _source_bits(m, record, frame, source, unmet & -unmet, number, late, after, taken)
        if bits == 0 or (source < declared and _on_path(m, depth, source)):
            _set_nesting(m, 4 * depth + 2, source + 1)
            _set_nesting(m, 4 * depth + 3, 0)
            continue
        _set_nesting(m, 4 * depth + 3, number + 1)
        left = room - _source_cost(m, record, frame, source)
        if left < 0:
            continue
        if unmet & ~bits == 0:
            return True
        depth += 1
        _set_nesting(m, 4 * depth, unmet & ~bits)
        _set_nesting(m, 4 * depth + 1, left)
        _set_nesting(m, 4 * depth + 2, 0)
        _set_nesting(m, 4 * depth + 3, 0)
    return False


@_internal
def _choice_alive(m, record, frame, bits, room, late, after, taken):
    """Whether a member that meets ``bits`` is worth choosing and leaves obligations that can be met."""
    unmet = _duties(m, record, frame)
    if bits and bits & unmet == 0:
        return False
    return _coverable(m, record, frame, unmet & ~bits, room, late, after, taken)


@_internal
def _declared_alive(m, record, frame, entry, c):
    """`_choice_alive` for choice ``c`` of a declared key."""
    bit = _grammar(m, entry + E_BIT)
    count = (_load(m, frame) >> 32) + 1
    bits = _grammar(m, _grammar(m, entry + E_CHILD) + 2 + 2 * c)
    room = _room(m, record, frame, bit, count)
    ordered = _is_ordered(m)
    late = ordered and _behind(m, record, frame) >= ALL_DECLARED
    number = (entry - _grammar(m, record + O_ENTRIES)) // E_SIZE
    return _choice_alive(m, record, frame, bits, room, late, bit if ordered else -1, number)


@_internal
def _entry_alive(m, record, frame, entry):
    """Whether some choice of a declared key leaves obligations that can be met."""
    if _grammar(m, record + O_DUTIES) == 0:
        return True
    for c in range(_grammar(m, _grammar(m, entry + E_CHILD))):
        if _declared_alive(m, record, frame, entry, c):
            return True
    return False


@_internal
def _other_alive(m, record, frame, bits):
    """`_choice_alive` for an undeclared key that meets ``bits``."""
    room = _room(m, record, frame, -1, (_load(m, frame) >> 32) + 1)
    return _choice_alive(m, record, frame, bits, room, _is_ordered(m), -1, -1)


@_internal
def _class_alive(m, record, frame, number):
    """Whether some key of a class leaves obligations that can be met."""
    choices = _class_choices(m, record, number)
    for c in range(_grammar(m, choices)):
        if _other_alive(m, record, frame, _grammar(m, choices + 2 + 2 * c)):
            return True
    return False


@_internal
def _others_alive(m, record, frame):
    """Whether some undeclared key leaves obligations that can be met."""
    if _grammar(m, record + O_DUTIES) == 0:
        return True
    for number in range(_grammar(m, record + O_CLASSES)):
        if _class_alive(m, record, frame, number):
            return True
    return False


@_internal
def _all_classes_alive(m, record, frame):
    for number in range(_grammar(m, record + O_CLASSES)):
        if not _class_alive(m, record, frame, number):
            return False
    return True


@_internal
def _live_words(m, record, frame, state):
    """How many undeclared keys go on from a state of their automaton and leave obligations that can be met."""
    classes = _grammar(m, record + O_CLASSES)
    place = _grammar(m, record + O_COUNTS) + (state - _grammar(m, record + O_START)) * classes
    total = 0
    for number in range(classes):
        words = _grammar(m, place + number)
        if words and _class_alive(m, record, frame, number):
            total = min(total + words, ENDLESS_WORDS)
    return total


@_internal
def _admissible(m, record, frame, entry):
    """Whether the declared key of ``entry`` may be added to the object now, so that it can still be completed."""
    bit = _grammar(m, entry + E_BIT)
    if _grammar(m, entry + E_CHILD) < 0 or _seen(m, frame, bit) or not _entry_alive(m, record, frame, entry):
        return False
    count = _load(m, frame) >> 32
    most = _grammar(m, record + O_MAX)
    if most >= 0 and count + 1 + _missing(m, record, frame, bit) > most:
        return False
    if not _is_ordered(m):
        return True
    if _behind(m, record, frame) >= bit:
        return False
    if _has_missing_below(m, record, frame, bit):
        return False
    least = _grammar(m, record + O_MIN)
    if least > count + 1 and _grammar(m, record + O_OTHERS) == NO_OTHERS:
        later = 0
        for e in range(_grammar(m, record + O_COUNT)):
            other = _grammar(m, record + O_ENTRIES) + E_SIZE * e
            if _grammar(m, other + E_CHILD) >= 0 and _grammar(m, other + E_BIT) > bit:
                if not _needs_skipped(m, record, frame, _grammar(m, other + E_BIT), bit):
                    later += 1
        return count + 1 + later >= least
    return True


@_internal
def _undeclared_count(m, record, frame):
    """How many undeclared keys the object has."""
    count = _load(m, frame) >> 32
    for w in range(_key_words(m, record)):
        have = _load(m, frame + F_SEEN + w)
        while have:
            have &= have - 1
            count -= 1
    return count


@_internal
def _words_remain(m, record, frame):
    """Whether the object does not yet have every undeclared key there is."""
    left = _words_left(m, _grammar(m, record + O_START))
    return left < 0 or left > _undeclared_count(m, record, frame)


@_internal
def _others_admissible(m, record, frame):
    """Whether one more undeclared key may be added to the object now."""
    if _grammar(m, record + O_OTHERS) == NO_OTHERS:
        return False
    if _grammar(m, record + O_NARROW) and not _words_remain(m, record, frame):
        return False
    if not _others_alive(m, record, frame):
        return False
    most = _grammar(m, record + O_MAX)
    ordered = _is_ordered(m)
    if most < 0 and not ordered:
        return True
    missing = _missing(m, record, frame, -1)
    if ordered and missing > 0:
        return False
    return most < 0 or (_load(m, frame) >> 32) + 1 + missing <= most


@_internal
def _any_admissible(m, record, frame, lo, hi):
    for e in range(lo, hi):
        if _admissible(m, record, frame, _grammar(m, record + O_ENTRIES) + E_SIZE * e):
            return True
    return False


@_internal
def _can_add(m, record, frame):
    """Whether the object can take one more member."""
    if _others_admissible(m, record, frame):
        return True
    return _any_admissible(m, record, frame, 0, _grammar(m, record + O_COUNT))


@_internal
def _can_close(m, frame):
    """Whether the innermost container may be closed now."""
    head = _load(m, frame)
    record = head & LOW32
    count = head >> 32
    kind = _grammar(m, record + R_KIND)
    if kind == R_ARRAY:
        if _grammar(m, record + A_UNIQUE) == PAIRED and not _is_pair(m, frame, _reg(m, POSITION)):
            return False
        return count >= _grammar(m, record + A_MIN)
    if kind == R_COUNTED:
        return _grammar(m, record + T_CLOSES) != 0
    if _duties(m, record, frame):
        return False
    return count >= _grammar(m, record + O_MIN) and _missing(m, record, frame, -1) == 0


@_internal
def _item_choices(m, record):
    """How many choices there are for the next item (a plain array has one, which may be dead)."""
    return max(_grammar(m, record + T_COUNT), 1) if _grammar(m, record + R_KIND) == R_COUNTED else 1


@_internal
def _item_node(m, record, index, choice):
    """The node of the array's item ``index``, or -1 if there cannot be one."""
    if _grammar(m, record + R_KIND) == R_COUNTED:
        if choice >= _grammar(m, record + T_COUNT):
            return -1
        return _grammar(m, _grammar(m, record + T_CHOICES) + 2 * choice)
    most = _grammar(m, record + A_MAX)
    if most >= 0 and index >= most:
        return -1
    if index < _grammar(m, record + A_PREFIXES):
        return _grammar(m, _grammar(m, record + A_PREFIX) + index)
    return _grammar(m, record + A_REST)


# --- decoded bytes of strings and keys ---
@_internal
def _string_alive(m, record, state, length):
    """Whether a value string in pool state ``state`` with ``length`` code points can be completed."""
    if record == 0:
        return True
    most = _grammar(m, record + S_MAX)
    if most >= 0 and length > most:
        return False
    table = _grammar(m, record + S_DISTANCES)
    if table == 0:
        return True
    row = _grammar(m, table + D_ROW)
    period = _grammar(m, table + D_PERIOD)
    wanted = max(_grammar(m, record + S_MIN) - length, 0)
    shift = max(0, wanted - (row - period)) // period * period
    least = _grammar(m, table + D_TABLE + (state - _grammar(m, table + D_BASE)) * row + wanted - shift)
    return least >= 0 and (most < 0 or length + least + shift <= most)


@_internal
def _feed_string(m, record, value, byte):
    """The register b after one decoded byte, or -1."""
    state = _pool(m, (value & LOW32) * 256 + byte)
    if state < 0:
        return -1
    length = value >> 32
    if record != 0 and (byte & 0xC0) != 0x80:
        most = _grammar(m, record + S_MAX)
        if most >= 0 or length < _grammar(m, record + S_MIN):
            length += 1
    if not _string_alive(m, record, state, length):
        return -1
    return state | (length << 32)


@_internal
def _narrow(m, entries, value, byte):
    """The range of table entries after one decoded byte, or -1: binary search at the current depth."""
    lo = value & MASK20
    hi = (value >> 20) & MASK20
    depth = value >> 40
    if lo < hi and _grammar(m, entries + E_SIZE * lo + E_LENGTH) == depth:
        lo += 1
    start, end = lo, hi
    while start < end:
        middle = (start + end) >> 1
        if _text(m, _grammar(m, entries + E_SIZE * middle + E_OFFSET) + depth) < byte:
            start = middle + 1
        else:
            end = middle
    first = start
    end = hi
    while start < end:
        middle = (start + end) >> 1
        if _text(m, _grammar(m, entries + E_SIZE * middle + E_OFFSET) + depth) <= byte:
            start = middle + 1
        else:
            end = middle
    if first == start:
        return -1
    return first | (start << 20) | ((depth + 1) << 40)


@_internal
def _hash_byte(value, byte):
    return _wrapped_mul(value ^ byte, HASH_PRIME)


@_internal
def _replay(m, record, value):
    """(pool state, hash) of an undeclared key that spells what the key range has matched so far; state -1: none."""
    entry = _grammar(m, record + O_ENTRIES) + E_SIZE * (value & MASK20)
    offset = _grammar(m, entry + E_OFFSET)
    state = _grammar(m, record + O_START)
    hashed = HASH_START
    for i in range(value >> 40):
        byte = _text(m, offset + i)
        state = _pool(m, state * 256 + byte)
        if state < 0:
            return state, hashed
        hashed = _hash_byte(hashed, byte)
    return state, hashed


@_internal
def _is_duplicate(m, frame, hashed):
    """Whether the undeclared key with this hash is in the object already."""
    return _lookup(m, _load(m, frame + F_OTHERS), hashed) >= 0


@_internal
def _unused_word(m, record, frame, state, hashed):
    """Whether an undeclared key not yet in the object starts with what was read.

    ``words_left[state]`` is the number of words from there (-1: no bound). Only where it is no more than the keys that
    the object has, the words are enumerated, depth first.
    """
    counted = _grammar(m, record + O_COUNTS) != 0
    left = ENDLESS_WORDS
    if counted:
        left = _live_words(m, record, frame, state)
    elif _grammar(m, record + O_NARROW) and _words_left(m, state) >= 0:
        left = _words_left(m, state)
    if left == 0 or left == ENDLESS_WORDS:
        return left != 0
    if left > _undeclared_count(m, record, frame):
        return True
    _set_search(m, 0, state)
    _set_search(m, 1, hashed)
    depth = 2
    while depth > 0:
        depth -= 2
        current = _search(m, depth)
        value = _search(m, depth + 1)
        if _flags(m, current) & ACCEPTING and not _is_duplicate(m, frame, value):
            if not counted or _class_alive(m, record, frame, _payload(m, current) - 1):
                return True
        for byte in range(256):
            following = _pool(m, current * 256 + byte)
            if following >= 0 and not (counted and _live_words(m, record, frame, following) == 0):
                if depth + 2 > _size(m, C_SEARCH):
                    _set_reg(m, TOO_DEEP, 1)
                    return False
                _set_search(m, depth, following)
                _set_search(m, depth + 1, _hash_byte(value, byte))
                depth += 2
    return False


@_internal
def _feed_key(m, byte):
    """One decoded byte of a key that so far is a prefix of declared ones; may turn into an undeclared key."""
    frame = _reg(m, 3)
    record = _load(m, frame) & LOW32
    value = _narrow(m, _grammar(m, record + O_ENTRIES), _reg(m, 2), byte)
    if value >= 0 and _any_admissible(m, record, frame, value & MASK20, (value >> 20) & MASK20):
        _set_reg(m, 2, value)
        return True
    if not _others_admissible(m, record, frame):
        return False
    state, hashed = _replay(m, record, _reg(m, 2))
    if state < 0:
        return False
    state = _pool(m, state * 256 + byte)
    hashed = _hash_byte(hashed, byte)
    if state < 0 or not _unused_word(m, record, frame, state, hashed):
        return False
    if value >= 0:  # still a prefix of a declared key, but only an undeclared one can come of it
        _set_reg(m, 2, value)
        return True
    _set_reg(m, 0, OTHER_KEY + (_reg(m, 0) - KEY))
    _set_reg(m, 1, state | (_reg(m, 1) >> 32 << 32))
    _set_reg(m, 2, hashed)
    return True


@_internal
def _feed(m, byte):
    """Feed one decoded byte (of the UTF-8 of the string) to the string or key in ``regs``. False: dead."""
    mode = _reg(m, 0) & ~15
    if mode == STRING:
        value = _feed_string(m, _reg(m, 1) & LOW32, _reg(m, 2), byte)
        if value < 0:
            return False
        _set_reg(m, 2, value)
        return True
    if mode == ENUM:
        value = _narrow(m, _grammar(m, (_reg(m, 1) & LOW32) + S_ENTRIES), _reg(m, 2), byte)
        if value < 0:
            return False
        _set_reg(m, 2, value)
        return True
    if mode == KEY:
        return _feed_key(m, byte)
    state = _pool(m, (_reg(m, 1) & LOW32) * 256 + byte)
    if state < 0:
        return False
    hashed = _hash_byte(_reg(m, 2), byte)
    record = _load(m, _reg(m, 3)) & LOW32
    if not _unused_word(m, record, _reg(m, 3), state, hashed):
        return False
    _set_reg(m, 1, state | (_reg(m, 1) >> 32 << 32))
    _set_reg(m, 2, hashed)
    return True


@_internal
def _feed_code_point(m, point):
    """Feed one code point as UTF-8 (RFC 3629)."""
    if point < 0x80:
        return _feed(m, point)
    if point < 0x800:
        lead, tail = 0xC0 | (point >> 6), 1
    elif point < 0x10000:
        lead, tail = 0xE0 | (point >> 12), 2
    else:
        lead, tail = 0xF0 | (point >> 18), 3
    if not _feed(m, lead):
        return False
    for i in range(tail):
        byte = 0x80 | ((point >> (6 * (tail - 1 - i))) & 0x3F)
        if not _feed(m, byte):
            return False
    return True


# --- escapes ---
@_internal
def _inside_sequence(m):
    """Whether the string is between the bytes of one UTF-8 sequence, where no escape may stand."""
    mode = _reg(m, 0) & ~15
    if mode == STRING:
        return (_flags(m, _reg(m, 2) & LOW32) & PARTIAL) != 0
    if mode == OTHER_KEY:
        return (_flags(m, _reg(m, 1) & LOW32) & PARTIAL) != 0
    return False  # tables: checked by the caller, who knows the entries


@_internal
def _table_inside_sequence(m, entries, value):
    """The same for a table range: the next byte of its entries (all alike in this) is a continuation byte."""
    hi = (value >> 20) & MASK20
    depth = value >> 40
    if hi == 0 or depth == 0:
        return False
    entry = entries + E_SIZE * (hi - 1)
    if _grammar(m, entry + E_LENGTH) <= depth:
        return False
    return (_text(m, _grammar(m, entry + E_OFFSET) + depth) & 0xC0) == 0x80


@_internal
def _points_alive(m, first, last):
    """Whether some code point in first..last may come next. Leaves ``regs`` as they were."""
    q, a, b = _reg(m, 0), _reg(m, 1), _reg(m, 2)
    alive = False
    for point in range(first, last + 1):
        if 0xD800 <= point <= 0xDFFF:
            continue
        alive = _feed_code_point(m, point)
        _set_string(m, q, a, b)
        if alive:
            break
    return alive


@_internal
def _decode(m, place):
    """The code point whose UTF-8 starts at ``place``."""
    byte = _text(m, place)
    if byte < 0x80:
        return byte
    if byte < 0xE0:
        return ((byte & 0x1F) << 6) | (_text(m, place + 1) & 0x3F)
    if byte < 0xF0:
        return ((byte & 0x0F) << 12) | ((_text(m, place + 1) & 0x3F) << 6) | (_text(m, place + 2) & 0x3F)
    return (
        ((byte & 0x07) << 18)
        | ((_text(m, place + 1) & 0x3F) << 12)
        | ((_text(m, place + 2) & 0x3F) << 6)
        | (_text(m, place + 3) & 0x3F)
    )


@_internal
def _table_points_alive(m, record, entries, first, last):
    """Whether a live entry of the range continues with a code point in first..last."""
    value = _reg(m, 2)
    depth = value >> 40
    for e in range(value & MASK20, (value >> 20) & MASK20):
        entry = entries + E_SIZE * e
        if _grammar(m, entry + E_LENGTH) > depth:
            point = _decode(m, _grammar(m, entry + E_OFFSET) + depth)
            if first <= point <= last and (record < 0 or _admissible(m, record, _reg(m, 3), entry)):
                return True
    return False


@_internal
def _range_alive(m, first, last):
    """`_points_alive` by the cheapest route of each mode."""
    mode = _reg(m, 0) & ~15
    if mode == ENUM:
        entries = _grammar(m, (_reg(m, 1) & LOW32) + S_ENTRIES)
        return _table_points_alive(m, -1, entries, first, last)
    if mode == KEY:
        record = _load(m, _reg(m, 3)) & LOW32
        if _table_points_alive(m, record, _grammar(m, record + O_ENTRIES), first, last):
            return True
        if not _others_admissible(m, record, _reg(m, 3)):
            return False
        if _grammar(m, record + O_OTHERS) == ONE_CLASS and _grammar(m, record + O_NARROW) == 0:
            return not (first >= 0xD800 and last <= 0xDFFF)
    return _points_alive(m, first, last)


@_internal
def _escape_alive(m):
    """Whether a backslash may come: outside a UTF-8 sequence, with a live character that an escape may spell."""
    mode = _reg(m, 0) & ~15
    if mode == STRING or mode == OTHER_KEY:
        if _inside_sequence(m):
            return False
    else:
        record = _load(m, _reg(m, 3)) & LOW32 if mode == KEY else _reg(m, 1) & LOW32
        entries = _grammar(m, record + O_ENTRIES) if mode == KEY else _grammar(m, record + S_ENTRIES)
        if _table_inside_sequence(m, entries, _reg(m, 2)):
            return False
    if _grammar(m, H_ESCAPES) == 0:
        return _must_escape_alive(m, 0, 0x5C)
    q, a, b = _reg(m, 0), _reg(m, 1), _reg(m, 2)
    alive = False
    for byte in range(0xF5):  # first bytes of UTF-8 sequences; each live one leads to a live code point
        if byte < 0x80 or byte >= 0xC2:
            alive = _feed(m, byte)
            _set_string(m, q, a, b)
            if alive:
                break
    return alive


@_internal
def _must_escape_alive(m, first, last):
    """Whether a character in first..last that must be escaped (control, quote, backslash) may come next."""
    if first <= 0x1F and _range_alive(m, first, min(last, 0x1F)):
        return True
    for point in (0x22, 0x5C):
        if first <= point <= last and _range_alive(m, point, point):
            return True
    return False


@_internal
def _hex_value(byte):
    if 0x30 <= byte <= 0x39:
        return byte - 0x30
    lower = byte | 0x20
    if 0x61 <= lower <= 0x66:
        return lower - 0x57
    return -1


@_internal
def _units_alive(m, first, last):
    """Whether some UTF-16 unit in first..last (a whole character or a high surrogate) may be spelled next."""
    if _grammar(m, H_ESCAPES) == 0:
        return _must_escape_alive(m, first, last)
    if _range_alive(m, first, last):
        return True
    high_first, high_last = max(first, 0xD800), min(last, 0xDBFF)
    if high_first > high_last:
        return False
    low_point = 0x10000 + ((high_first - 0xD800) << 10)
    high_point = 0x10000 + ((high_last - 0xD800) << 10) + 0x3FF
    return _range_alive(m, low_point, high_point)


@_internal
def _hex_step(m, byte):
    """A hexadecimal digit of ``\\uXXXX`` (first or only unit)."""
    digit = _hex_value(byte)
    if digit < 0:
        return DEAD
    read = (_reg(m, 0) & 15) - HEX + 1
    unit = ((_reg(m, 1) >> 32) << 4) | digit
    base = _reg(m, 0) & ~15
    register = _reg(m, 1) & LOW32
    _set_reg(m, 0, base)
    _set_reg(m, 1, register)
    if read < 4:
        first = unit << (4 * (4 - read))
        last = first + (1 << (4 * (4 - read))) - 1
        if not _units_alive(m, first, last):
            return DEAD
        _set_reg(m, 0, base + HEX + read)
        _set_reg(m, 1, register | (unit << 32))
        return ALIVE
    if not _units_alive(m, unit, unit):
        return DEAD
    if 0xD800 <= unit <= 0xDBFF:
        _set_reg(m, 0, base + LOW_BACKSLASH)
        _set_reg(m, 1, register | ((unit - 0xD800) << 48))
        return ALIVE
    _feed_code_point(m, unit)
    return ALIVE


@_internal
def _low_hex_step(m, byte):
    """A hexadecimal digit of the low surrogate that must follow a high one."""
    digit = _hex_value(byte)
    if digit < 0:
        return DEAD
    read = (_reg(m, 0) & 15) - LOW_HEX + 1
    high = _reg(m, 1) >> 48
    unit = (((_reg(m, 1) >> 32) & 0xFFFF) << 4) | digit
    base = _reg(m, 0) & ~15
    register = _reg(m, 1) & LOW32
    first = unit << (4 * (4 - read))
    last = first + (1 << (4 * (4 - read))) - 1
    first, last = max(first, 0xDC00), min(last, 0xDFFF)
    if first > last:
        return DEAD
    _set_reg(m, 0, base)
    _set_reg(m, 1, register)
    plane = 0x10000 + (high << 10) - 0xDC00
    if not _range_alive(m, plane + first, plane + last):
        return DEAD
    if read < 4:
        _set_reg(m, 0, base + LOW_HEX + read)
        _set_reg(m, 1, register | (unit << 32) | (high << 48))
        return ALIVE
    _feed_code_point(m, plane + unit)
    return ALIVE


@_internal
def _simple_escape(m, byte):
    """The character that backslash and ``byte`` stand for, or -1 (RFC 8259, section 7)."""
    if byte == 0x22 or byte == 0x5C:
        return byte
    if byte == 0x2F and _grammar(m, H_ESCAPES):
        return byte
    if byte == 0x6E:
        return 0x0A
    if byte == 0x74:
        return 0x09
    if byte == 0x72:
        return 0x0D
    if byte == 0x62:
        return 0x08
    if byte == 0x66:
        return 0x0C
    return -1


# --- distinct items: the hash of a finished value's text ---
STRING_TAG, NUMBER_TAG, OBJECT_TAG, ARRAY_TAG, WORD_TAG = 3, 5, 7, 11, 13
MAX_SCALE = 1 << 60  # of exponents; larger ones are as good as each other
GOLDEN = -7046029254386353131


@_internal
def _finalised(value):
    """The finaliser of SplitMix64: one to one, and each bit of the result depends on all of the value."""
    value = _wrapped_mul(value ^ ((value >> 30) & 0x3FFFFFFFF), -4658895280553007687)
    value = _wrapped_mul(value ^ ((value >> 27) & 0x1FFFFFFFFF), -7723592293110705685)
    return value ^ ((value >> 31) & 0x1FFFFFFFF)


@_internal
def _mixed(one, two):
    """A hash of two numbers, in their order."""
    return _finalised(_wrapped_add(_finalised(_wrapped_add(one, GOLDEN)), two))


@_internal
def _hash_point(value, point):
    """Feed the UTF-8 of a code point to a hash."""
    if point < 0x80:
        return _hash_byte(value, point)
    if point < 0x800:
        return _hash_byte(_hash_byte(value, 0xC0 | (point >> 6)), 0x80 | (point & 0x3F))
    if point < 0x10000:
        value = _hash_byte(_hash_byte(value, 0xE0 | (point >> 12)), 0x80 | ((point >> 6) & 0x3F))
        return _hash_byte(value, 0x80 | (point & 0x3F))
    value = _hash_byte(_hash_byte(value, 0xF0 | (point >> 18)), 0x80 | ((point >> 12) & 0x3F))
    return _hash_byte(_hash_byte(value, 0x80 | ((point >> 6) & 0x3F)), 0x80 | (point & 0x3F))


@_internal
def _written_unit(m, place):
    """The UTF-16 unit of four hexadecimal digits in the text."""
    unit = 0
    for i in range(4):
        unit = (unit << 4) | _hex_value(_written(m, place + i))
    return unit


@_internal
def _hash_string(m, place):
    """(hash of what a string stands for, place behind it); ``place`` is behind the opening quote."""
    value = HASH_START
    while True:
        byte = _written(m, place)
        place += 1
        if byte == 0x22:
            return value, place
        if byte != 0x5C:
            value = _hash_byte(value, byte)
            continue
        byte = _written(m, place)
        place += 1
        if byte != 0x75:
            point = _simple_escape(m, byte)
            value = _hash_byte(value, 0x2F if point < 0 else point)
            continue
        point = _written_unit(m, place)
        place += 4
        if 0xD800 <= point <= 0xDBFF:
            point = 0x10000 + ((point - 0xD800) << 10) + _written_unit(m, place + 2) - 0xDC00
            place += 6
        value = _hash_point(value, point)


@_internal
def _number_parts(m, place, limit):
    """(sign, place of the first significant digit, how many there are, power of ten of the last, place behind)."""
    sign = 0
    if _written(m, place) == 0x2D:
        sign = 1
        place += 1
    first, digits, zeros, scale, fraction = place, 0, 0, 0, False
    while place < limit:
        byte = _written(m, place)
        if byte == 0x2E:
            fraction = True
        elif 0x30 <= byte <= 0x39:
            if fraction:
                scale -= 1
            if byte != 0x30:
                if digits == 0:
                    first = place
                    zeros = 0
                digits += zeros + 1
                zeros = 0
            else:
                zeros += 1
        else:
            break
        place += 1
    scale += zeros
    if place < limit and (_written(m, place) | 0x20) == 0x65:
        place += 1
        negative = _written(m, place) == 0x2D
        if negative or _written(m, place) == 0x2B:
            place += 1
        exponent = 0
        while place < limit and 0x30 <= _written(m, place) <= 0x39:
            exponent = min(exponent * 10 + _written(m, place) - 0x30, MAX_SCALE)
            place += 1
        scale += -exponent if negative else exponent
    if digits == 0:
        return 0, first, 0, 0, place
    return sign, first, digits, scale, place


@_internal
def _hash_number(m, place, limit):
    """(hash of a number's value, place behind it): its sign, significant digits and power of ten."""
    sign, place, digits, scale, behind = _number_parts(m, place, limit)
    value = _mixed(_mixed(NUMBER_TAG, sign), scale)
    while digits > 0:
        byte = _written(m, place)
        if byte != 0x2E:
            value = _hash_byte(value, byte)
            digits -= 1
        place += 1
    return _finalised(value), behind


@_internal
def _skip_blank(m, place):
    while _written(m, place) <= 0x20:
        place += 1
    return place


@_internal
def _hash_scalar(m, place, limit):
    """(hash, place behind) of a string, number or literal."""
    byte = _written(m, place)
    if byte == 0x22:
        value, place = _hash_string(m, place + 1)
        return _mixed(STRING_TAG, value), place
    if byte == 0x2D or 0x30 <= byte <= 0x39:
        return _hash_number(m, place, limit)
    return _mixed(WORD_TAG, byte), place + (5 if byte == 0x66 else 4)


@_internal
def _hash_value(m, place, limit):
    """The hash of the JSON value in the text from ``place``, which ends before ``limit``: equal for equal values.

    ``nesting`` holds (hash so far, hash of the key) of each open container. Objects add up their members, since their
    order does not matter. Where it is too small, ``regs[TOO_DEEP]`` is set.
    """
    depth = 0
    room = _size(m, C_NESTING) // 3
    while True:
        place = _skip_blank(m, place)
        byte = _written(m, place)
        if byte == 0x7B or byte == 0x5B:
            if depth == room:
                _set_reg(m, TOO_DEEP, 1)
                return 0
            _set_nesting(m, 3 * depth, OBJECT_TAG if byte == 0x7B else ARRAY_TAG)
            _set_nesting(m, 3 * depth + 1, 0)
            _set_nesting(m, 3 * depth + 2, byte)
            depth += 1
            place = _skip_blank(m, place + 1)
            if _written(m, place) != byte + 2:
                if byte == 0x7B:
                    key, place = _hash_string(m, place + 1)
                    _set_nesting(m, 3 * depth - 2, key)
                    place = _skip_blank(m, place) + 1
                continue
            depth -= 1
            value = _mixed(byte, _nesting(m, 3 * depth))
            place += 1
        else:
            value, place = _hash_scalar(m, place, limit)
        while depth > 0:
            opened = _nesting(m, 3 * depth - 1)
            total = _nesting(m, 3 * depth - 3)
            if opened == 0x7B:
                total = _wrapped_add(total, _mixed(_nesting(m, 3 * depth - 2), value))
            else:
                total = _mixed(total, value)
            _set_nesting(m, 3 * depth - 3, total)
            place = _skip_blank(m, place)
            byte = _written(m, place)
            place += 1
            if byte == 0x2C:
                if opened == 0x7B:
                    place = _skip_blank(m, place)
                    key, place = _hash_string(m, place + 1)
                    _set_nesting(m, 3 * depth - 2, key)
                    place = _skip_blank(m, place) + 1
                break
            depth -= 1
            value = _mixed(opened, total)
        else:
            return value


# --- distinct items: whether two finished values are equal ---
@_internal
def _written_point(m, place):
    """(code point of a string's text at ``place``, place behind it); the point is -1 at the closing quote."""
    byte = _written(m, place)
    if byte == 0x22:
        return -1, place + 1
    if byte < 0x80 and byte != 0x5C:
        return byte, place + 1
    if byte != 0x5C:
        tail = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        point = byte & (0x3F >> tail)
        for i in range(tail):
            point = (point << 6) | (_written(m, place + 1 + i) & 0x3F)
        return point, place + 1 + tail
    byte = _written(m, place + 1)
    if byte != 0x75:
        point = _simple_escape(m, byte)
        return 0x2F if point < 0 else point, place + 2
    point = _written_unit(m, place + 2)
    if 0xD800 <= point <= 0xDBFF:
        return 0x10000 + ((point - 0xD800) << 10) + _written_unit(m, place + 8) - 0xDC00, place + 12
    return point, place + 6


@_internal
def _equal_strings(m, one, two):
    """Whether two strings, from behind their opening quotes on, stand for the same."""
    while True:
        first, one = _written_point(m, one)
        second, two = _written_point(m, two)
        if first != second or first < 0:
            return first == second


@_internal
def _equal_numbers(m, one, two, limit):
    sign, one, digits, scale, _ = _number_parts(m, one, limit)
    other_sign, two, other_digits, other_scale, _ = _number_parts(m, two, limit)
    if sign != other_sign or digits != other_digits or scale != other_scale:
        return False
    while digits > 0:
        if _written(m, one) == 0x2E:
            one += 1
        if _written(m, two) == 0x2E:
            two += 1
        if _written(m, one) != _written(m, two):
            return False
        one, two, digits = one + 1, two + 1, digits - 1
    return True


@_internal
def _equal_scalars(m, one, two, limit):
    """Whether two strings, numbers or literals are equal."""
    first, second = _written(m, one), _written(m, two)
    if first == 0x22 or second == 0x22:
        return first == second and _equal_strings(m, one + 1, two + 1)
    if first == 0x2D or 0x30 <= first <= 0x39:
        return (second == 0x2D or 0x30 <= second <= 0x39) and _equal_numbers(m, one, two, limit)
    return first == second


@_internal
def _skip_string(m, place):
    """The place behind a string, from behind its opening quote on."""
    while _written(m, place) != 0x22:
        place += 2 if _written(m, place) == 0x5C else 1
    return place + 1


@_internal
def _is_scalar_byte(byte):
    """Whether a byte can stand in a number or literal."""
    return 0x30 <= byte <= 0x39 or 0x61 <= byte <= 0x7A or byte == 0x45 or byte == 0x2B or byte == 0x2D or byte == 0x2E


@_internal
def _skip_value(m, place, limit):
    """The place behind the value that starts at ``place``."""
    depth = 0
    while True:
        byte = _written(m, place)
        if byte == 0x22:
            place = _skip_string(m, place + 1)
        elif _is_scalar_byte(byte):
            while place < limit and _is_scalar_byte(_written(m, place)):
                place += 1
        else:
            if byte == 0x7B or byte == 0x5B:
                depth += 1
            elif byte == 0x7D or byte == 0x5D:
                depth -= 1
            place += 1
        if depth == 0:
            return place


@_internal
def _next_part(m, place):
    """The place of the next item or member, from behind the opening bracket or the part before on; -1: none."""
    place = _skip_blank(m, place)
    byte = _written(m, place)
    if byte == 0x7D or byte == 0x5D:
        return -1
    return _skip_blank(m, place + 1) if byte == 0x2C else place


@_internal
def _member_value(m, place):
    """The place of a member's value."""
    return _skip_blank(m, _skip_blank(m, _skip_string(m, place + 1)) + 1)


@_internal
def _find_member(m, place, key, limit):
    """The place of the value that an object, from behind its bracket on, has for the key at ``key``; -1: none."""
    place = _next_part(m, place)
    while place >= 0:
        value = _member_value(m, place)
        if _equal_strings(m, place + 1, key + 1):
            return value
        place = _next_part(m, _skip_value(m, value, limit))
    return -1


@_internal
def _count_parts(m, place, limit):
    """How many members or items a container has, from behind its bracket on."""
    is_object = _written(m, place - 1) == 0x7B
    count = 0
    place = _next_part(m, place)
    while place >= 0:
        count += 1
        place = _next_part(m, _skip_value(m, _member_value(m, place) if is_object else place, limit))
    return count


@_internal
def _equal_values(m, one, two, limit):
    """Whether two finished values in the text are equal: numbers by value, strings decoded, members in any order.

    ``nesting`` holds, of each open container, the places in it of both and how many parts are left. Where it is too
    small, ``regs[TOO_DEEP]`` is set.
    """
    depth = 0
    one, two = _skip_blank(m, one), _skip_blank(m, two)
    while True:
        byte = _written(m, one)
        if byte == 0x7B or byte == 0x5B:
            if _written(m, two) != byte:
                return False
            left = _count_parts(m, one + 1, limit)
            if left != _count_parts(m, two + 1, limit):
                return False
            if 4 * depth + 4 > _size(m, C_NESTING):
                _set_reg(m, TOO_DEEP, 1)
                return False
            _set_nesting(m, 4 * depth, one + 1)
            _set_nesting(m, 4 * depth + 1, two + 1)
            _set_nesting(m, 4 * depth + 2, left)
            _set_nesting(m, 4 * depth + 3, byte)
            depth += 1
        elif not _equal_scalars(m, one, two, limit):
            return False
        while depth > 0 and _nesting(m, 4 * depth - 2) == 0:
            depth -= 1
        if depth == 0:
            return True
        level = 4 * depth - 4
        _set_nesting(m, level + 2, _nesting(m, level + 2) - 1)
        one, two = _next_part(m, _nesting(m, level)), _nesting(m, level + 1)
        if _nesting(m, level + 3) == 0x7B:
            two = _find_member(m, two, one, limit)
            if two < 0:
                return False
            one = _member_value(m, one)
        else:
            two = _next_part(m, two)
            _set_nesting(m, level + 1, _skip_value(m, two, limit))
        _set_nesting(m, level, _skip_value(m, one, limit))


@_internal
def _is_distinct(m, record):
    """Whether a record is an array of distinct items."""
    return _grammar(m, record + R_KIND) != R_OBJECT and _grammar(m, record + A_UNIQUE) == DISTINCT


@_internal
def _find_item(m, frame, start, limit):
    """(whether an array has an item equal to the value from ``start`` to ``limit``, the hash to add that with).

    Different values with one hash are told apart by their texts; the later one goes under a hash of its hash.
    """
    root = _load(m, frame + F_OTHERS)
    hashed = _hash_value(m, start, limit)
    if _reg(m, TOO_DEEP):
        return False, hashed
    while True:
        node = _lookup(m, root, hashed)
        if node < 0:
            return False, hashed
        if _equal_values(m, _load(m, node + K_START), start, limit) or _reg(m, TOO_DEEP):
            return True, hashed
        hashed = _mixed(hashed, 1)


@_internal
def _add_item(m, frame, start, limit):
    """Add a finished item to the set of a frame in scratch. Whether there was room."""
    _, hashed = _find_item(m, frame, start, limit)
    return _add_hash(m, frame, hashed, start)


@_internal
def _is_pair(m, frame, limit):
    """Whether the item that ends before ``limit`` is equal to one before it."""
    if _load(m, frame + F_OTHERS) < 0:
        return False
    found, _ = _find_item(m, frame, _load(m, frame + F_START), limit)
    return found


@_internal
def _is_fresh(m, frame, limit):
    """Whether a value that ends before ``limit`` differs from the items before it, if it is an item that has to."""
    if frame < 0 or not _is_distinct(m, _load(m, frame) & LOW32):
        return True
    return not _is_pair(m, frame, limit)


# --- ends of strings and keys ---
@_internal
def _value_done(m):
    if _grammar(m, H_UNIQUE) and not _is_fresh(m, _reg(m, 3), _reg(m, POSITION) + 1):
        return DEAD
    _set_reg(m, 0, AFTER)
    _set_reg(m, 1, 0)
    _set_reg(m, 2, 0 if _grammar(m, H_WHITESPACE) == ANY else 1)
    return ALIVE


@_internal
def _key_done(m, frame, child):
    _set_reg(m, 0, COLON)
    _set_reg(m, 1, child)
    _set_reg(m, 2, 0 if _grammar(m, H_WHITESPACE) == ANY else 1)
    _set_reg(m, 3, frame)
    return ALIVE


@_internal
def _close_declared_key(m, record, entry, alt):
    frame = _reg(m, 3)
    child, bits = _grammar(m, entry + E_CHILD), 0
    if _grammar(m, record + O_DUTIES):
        choices = child
        _set_reg(m, ALTERNATIVES, _grammar(m, choices))
        if alt >= _grammar(m, choices) or not _declared_alive(m, record, frame, entry, alt):
            return DEAD
        child, bits = _grammar(m, choices + 1 + 2 * alt), _grammar(m, choices + 2 + 2 * alt)
    count = (_load(m, frame) >> 32) + 1
    parent = _load(m, frame + F_PARENT)
    new = _new_frame(m, record, count, parent, frame)
    if new < 0:
        return FULL
    bit = _grammar(m, entry + E_BIT)
    word = new - SCRATCH + F_SEEN + bit // SEEN_BITS
    _set_scratch(m, word, _scratch(m, word) | 1 << (bit % SEEN_BITS))
    _meet(m, record, new, bits)
    _note_order(m, new, bit)
    return _key_done(m, new, child)


@_internal
def _note_order(m, frame, bit):
    """In a search, note in a frame in scratch which key was added last."""
    if _reg(m, SEARCHING):
        _set_scratch(m, frame - SCRATCH + F_DEPTH, _depth(m, frame) | ((bit + 1) << 32))


@_internal
def _meet(m, record, frame, bits):
    """Note in a frame in scratch that obligations are met."""
    if bits:
        word = frame - SCRATCH + F_SEEN + _grammar(m, record + O_WORDS) - 1
        _set_scratch(m, word, _scratch(m, word) | bits)


@_internal
def _close_other_key(m, record, state, hashed, alt):
    frame = _reg(m, 3)
    if not _flags(m, state) & ACCEPTING or _is_duplicate(m, frame, hashed):
        return DEAD
    child, bits = _grammar(m, record + O_CHILD), 0
    if _grammar(m, record + O_OTHERS) == CLASSES:
        child = _grammar(m, child + _payload(m, state))
    if _grammar(m, record + O_DUTIES):
        choices = child
        _set_reg(m, ALTERNATIVES, _grammar(m, choices))
        if alt >= _grammar(m, choices):
            return DEAD
        child, bits = _grammar(m, choices + 1 + 2 * alt), _grammar(m, choices + 2 + 2 * alt)
        if not _other_alive(m, record, frame, bits):
            return DEAD
    count = (_load(m, frame) >> 32) + 1
    parent = _load(m, frame + F_PARENT)
    new = _new_frame(m, record, count, parent, frame)
    if new < 0 or not _add_hash(m, new, hashed, 0):
        return FULL
    _meet(m, record, new, bits)
    _note_order(m, new, ALL_DECLARED)
    return _key_done(m, new, child)


@_internal
def _quote(m, alt):
    """The closing quote of a string or key, which may be met in several ways."""
    mode = _reg(m, 0) & ~15
    if mode == STRING:
        record = _reg(m, 1) & LOW32
        if not _flags(m, _reg(m, 2) & LOW32) & ACCEPTING:
            return DEAD
        if record != 0 and (_reg(m, 2) >> 32) < _grammar(m, record + S_MIN):
            return DEAD
        return _value_done(m)
    if mode == ENUM:
        entry = _grammar(m, (_reg(m, 1) & LOW32) + S_ENTRIES) + E_SIZE * (_reg(m, 2) & MASK20)
        if _grammar(m, entry + E_LENGTH) != _reg(m, 2) >> 40:
            return DEAD
        return _value_done(m)
    record = _load(m, _reg(m, 3)) & LOW32
    if mode == OTHER_KEY:
        return _close_other_key(m, record, _reg(m, 1) & LOW32, _reg(m, 2), alt)
    lo = _reg(m, 2) & MASK20
    if lo < (_reg(m, 2) >> 20) & MASK20:
        entry = _grammar(m, record + O_ENTRIES) + E_SIZE * lo
        if _grammar(m, entry + E_LENGTH) == _reg(m, 2) >> 40:
            if not _admissible(m, record, _reg(m, 3), entry):
                return DEAD
            return _close_declared_key(m, record, entry, alt)
    if not _others_admissible(m, record, _reg(m, 3)):
        return DEAD
    state, hashed = _replay(m, record, _reg(m, 2))
    if state < 0:
        return DEAD
    return _close_other_key(m, record, state, hashed, alt)


@_internal
def _string_step(m, byte, alt):
    """One byte inside a string or key."""
    place = _reg(m, 0) & 15
    if place == BODY:
        if byte == 0x22:
            return _quote(m, alt)
        if byte == 0x5C:
            if not _escape_alive(m):
                return DEAD
            _set_reg(m, 0, _reg(m, 0) + ESCAPE)
            return ALIVE
        if byte < 0x20:
            return DEAD
        return ALIVE if _feed(m, byte) else DEAD
    if place == ESCAPE:
        if byte == 0x75:
            _set_reg(m, 0, _reg(m, 0) + HEX - ESCAPE)
            return ALIVE
        point = _simple_escape(m, byte)
        _set_reg(m, 0, _reg(m, 0) - ESCAPE)
        if point < 0:
            return DEAD
        return ALIVE if _feed(m, point) else DEAD
    if place < LOW_BACKSLASH:
        return _hex_step(m, byte)
    if place == LOW_BACKSLASH:
        _set_reg(m, 0, _reg(m, 0) + 1)
        return ALIVE if byte == 0x5C else DEAD
    if place == LOW_U:
        _set_reg(m, 0, _reg(m, 0) + 1)
        return ALIVE if byte == 0x75 else DEAD
    return _low_hex_step(m, byte)


# --- structure ---
@_internal
def _literal_byte(literal, position):
    """Byte ``position`` of null, true, false; 0 past the end."""
    if literal == 0:
        return (0x6E, 0x75, 0x6C, 0x6C, 0)[position]
    if literal == 1:
        return (0x74, 0x72, 0x75, 0x65, 0)[position]
    return (0x66, 0x61, 0x6C, 0x73, 0x65, 0)[position]


@_internal
def _whitespace(m, byte):
    """Take a whitespace byte in a structural state, if the options allow it here."""
    mode = _grammar(m, H_WHITESPACE)
    if mode == SINGLE:
        if byte != 0x20 or _reg(m, 2) != 0:
            return DEAD
        _set_reg(m, 2, 1)
        return ALIVE
    if mode != ANY:
        return DEAD
    if _grammar(m, H_RUN) >= 0:
        if _reg(m, 2) >= _grammar(m, H_RUN):
            return DEAD
        _set_reg(m, 2, _reg(m, 2) + 1)
    return ALIVE


@_internal
def _start_value(m, node, byte, alt):
    """The first byte of a value of ``node``; alternative ``alt`` of the kind that the byte begins."""
    if byte == 0x22:
        _set_reg(m, ALTERNATIVES, _grammar(m, node + NODE_STRINGS + 1))
        if alt >= _reg(m, ALTERNATIVES):
            return DEAD
        record = _grammar(m, _grammar(m, node + NODE_STRINGS) + alt)
        _set_reg(m, 1, record)
        if _grammar(m, record + S_KIND) == S_ENUM:
            _set_reg(m, 0, ENUM)
            _set_reg(m, 2, _grammar(m, record + S_COUNT) << 20)
        else:
            _set_reg(m, 0, STRING)
            _set_reg(m, 2, _grammar(m, record + S_START))
        return ALIVE
    if byte == 0x7B or byte == 0x5B:
        kind = NODE_OBJECTS if byte == 0x7B else NODE_ARRAYS
        _set_reg(m, ALTERNATIVES, _grammar(m, node + kind + 1))
        if alt >= _reg(m, ALTERNATIVES):
            return DEAD
        record = _grammar(m, _grammar(m, node + kind) + alt)
        frame = _new_frame(m, record, 0, _reg(m, 3), -1)
        if frame < 0:
            return FULL
        if kind == NODE_ARRAYS and _grammar(m, record + A_UNIQUE):
            _set_scratch(m, frame - SCRATCH + F_START, _reg(m, POSITION) + 1)
        _set_reg(m, 0, OBJECT_FIRST if byte == 0x7B else ARRAY_FIRST)
        _set_reg(m, 1, 0)
        _set_reg(m, 2, 0 if _grammar(m, H_WHITESPACE) == ANY else 1)
        _set_reg(m, 3, frame)
        return ALIVE
    if byte == 0x2D or 0x30 <= byte <= 0x39:
        _set_reg(m, ALTERNATIVES, _grammar(m, node + NODE_NUMBERS + 1))
        if alt >= _reg(m, ALTERNATIVES):
            return DEAD
        return _number_byte(m, _grammar(m, _grammar(m, node + NODE_NUMBERS) + alt), byte)
    literal = 0 if byte == 0x6E else 1 if byte == 0x74 else 2 if byte == 0x66 else -1
    if literal < 0 or not (_grammar(m, node + NODE_FLAGS) >> literal) & 1:
        return DEAD
    _set_reg(m, 0, LITERAL)
    _set_reg(m, 1, literal)
    _set_reg(m, 2, 1)
    return ALIVE


@_internal
def _number_byte(m, state, byte):
    if _flags(m, state) & LAZY:
        _set_reg(m, MISSING, state)
        return MISS
    following = _pool(m, state * 256 + byte)
    if following < 0:
        return DEAD
    _set_reg(m, 0, NUMBER)
    _set_reg(m, 1, 0)
    _set_reg(m, 2, following)
    return ALIVE


@_internal
def _pad(m, target, node, spaces):
    """Expect ``spaces`` spaces, then state ``target``."""
    if spaces == 0:
        _set_reg(m, 0, target)
        _set_reg(m, 1, node)
        _set_reg(m, 2, 1)
    else:
        _set_reg(m, 0, PAD)
        _set_reg(m, 1, node | (target << 40))
        _set_reg(m, 2, spaces)
    return ALIVE


@_internal
def _separated(m, target, node):
    """After a comma: the whitespace that the options ask for, then ``target``."""
    if _grammar(m, H_WHITESPACE) == INDENT:
        _set_reg(m, 0, NEWLINE)
        _set_reg(m, 1, node | (target << 40))
        _set_reg(m, 2, _grammar(m, H_INDENT) * _depth(m, _reg(m, 3)))
    else:
        _set_reg(m, 0, target)
        _set_reg(m, 1, node)
        _set_reg(m, 2, 0 if _grammar(m, H_WHITESPACE) != COMPACT else 1)
    return ALIVE


@_internal
def _close_container(m):
    _set_reg(m, 3, _load(m, _reg(m, 3) + F_PARENT))
    return _value_done(m)


@_internal
def _start_key(m, record):
    _set_reg(m, 0, KEY)
    _set_reg(m, 1, 0)
    _set_reg(m, 2, _grammar(m, record + O_COUNT) << 20)
    return ALIVE


@_internal
def _next_item(m, record, count, choice):
    """The frame of the array with one more item begun, or -2 (scratch is full)."""
    frame = _reg(m, 3)
    after, number = record, count + 1
    if _grammar(m, record + R_KIND) == R_COUNTED:
        after = _grammar(m, _grammar(m, record + T_CHOICES) + 2 * choice + 1)
        number = count + 1 if _grammar(m, record + A_UNIQUE) else 0  # else equal states would not be the same
    elif _grammar(m, record + A_UNIQUE) == PAIRED and count > 0 and _is_pair(m, frame, _reg(m, POSITION)):
        after = _grammar(m, record + A_PAIRED)
    return _new_frame(m, after, number, _load(m, frame + F_PARENT), frame)


@_internal
def _first_step(m, byte, alt):
    """A byte right after an opening bracket."""
    frame = _reg(m, 3)
    head = _load(m, frame)
    record = head & LOW32
    is_object = _reg(m, 0) == OBJECT_FIRST
    if byte == (0x7D if is_object else 0x5D):
        if not _can_close(m, frame):
            return DEAD
        return _close_container(m)
    indent = _grammar(m, H_WHITESPACE) == INDENT
    if is_object:
        if byte != (0x0A if indent else 0x22) or not _can_add(m, record, frame):
            return DEAD
        if indent:
            return _pad(m, KEY_NEXT, 0, _grammar(m, H_INDENT) * _depth(m, frame))
        return _start_key(m, record)
    node = _item_node(m, record, 0, 0)  # the first states of counted arrays have one choice each
    if node < 0 or (indent and byte != 0x0A):
        return DEAD
    new = _next_item(m, record, 0, 0)
    if new < 0:
        return FULL
    _set_reg(m, 3, new)
    if indent:
        return _pad(m, VALUE, node, _grammar(m, H_INDENT) * _depth(m, frame))
    return _start_value(m, node, byte, alt)


@_internal
def _after_step(m, byte, alt):
    """A byte after a finished value inside a container."""
    frame = _reg(m, 3)
    if frame < 0:
        return DEAD
    head = _load(m, frame)
    record = head & LOW32
    count = head >> 32
    is_object = _grammar(m, record + R_KIND) == R_OBJECT
    indent = _grammar(m, H_WHITESPACE) == INDENT
    if byte == 0x2C:
        if is_object:
            if not _can_add(m, record, frame):
                return DEAD
            return _separated(m, KEY_NEXT, 0)
        _set_reg(m, ALTERNATIVES, _item_choices(m, record))
        node = _item_node(m, record, count, alt)
        if node < 0:
            return DEAD
        new = _next_item(m, record, count, alt)
        if new < 0:
            return FULL
        if _grammar(m, record + A_UNIQUE) and _has_list(m, _load(m, new) & LOW32):
            if not _add_item(m, new, _load(m, frame + F_START), _reg(m, POSITION)):
                return FULL
            _set_scratch(m, new - SCRATCH + F_START, _reg(m, POSITION) + 1)
        _set_reg(m, 3, new)
        return _separated(m, VALUE, node)
    closing = _reg(m, 0) == CLOSE or not indent
    if closing and byte == (0x7D if is_object else 0x5D):
        if not _can_close(m, frame):
            return DEAD
        return _close_container(m)
    if indent and byte == 0x0A and _reg(m, 0) == AFTER and _can_close(m, frame):
        return _pad(m, CLOSE, 0, _grammar(m, H_INDENT) * (_depth(m, frame) - 1))
    return DEAD


@_internal
def _structure_step(m, byte, alt):
    """One byte outside strings and keys."""
    q = _reg(m, 0)
    if q == NUMBER:
        status = _number_byte(m, _reg(m, 2), byte)
        if status != DEAD or not _flags(m, _reg(m, 2)) & ACCEPTING:
            return status
        if _value_done(m) == DEAD:
            return DEAD
        q = AFTER
    elif q == LITERAL:
        if byte != _literal_byte(_reg(m, 1), _reg(m, 2)):
            return DEAD
        _set_reg(m, 2, _reg(m, 2) + 1)
        if _literal_byte(_reg(m, 1), _reg(m, 2)) == 0:
            return _value_done(m)
        return ALIVE
    elif q == PAD:
        if byte != 0x20:
            return DEAD
        return _pad(m, _reg(m, 1) >> 40, _reg(m, 1) & ((1 << 40) - 1), _reg(m, 2) - 1)
    elif q == NEWLINE:
        if byte != 0x0A:
            return DEAD
        return _pad(m, _reg(m, 1) >> 40, _reg(m, 1) & ((1 << 40) - 1), _reg(m, 2))
    if (byte == 0x20 or byte == 0x0A or byte == 0x0D or byte == 0x09) and _grammar(m, H_WHITESPACE) != INDENT:
        return _whitespace(m, byte)
    if q == VALUE:
        return _start_value(m, _reg(m, 1), byte, alt)
    if q == AFTER or q == CLOSE:
        if q == CLOSE and byte == 0x2C:
            return DEAD
        return _after_step(m, byte, alt)
    if q == COLON:
        if byte != 0x3A:
            return DEAD
        if _grammar(m, H_WHITESPACE) == INDENT:
            return _pad(m, VALUE, _reg(m, 1), 1)
        _set_reg(m, 0, VALUE)
        _set_reg(m, 2, 0 if _grammar(m, H_WHITESPACE) != COMPACT else 1)
        return ALIVE
    if q == KEY_NEXT:
        if byte != 0x22:
            return DEAD
        return _start_key(m, _load(m, _reg(m, 3)) & LOW32)
    return _first_step(m, byte, alt)


@_internal
def _plain_step(m, byte, alt):
    """`_step`, but that what it leads to may have only completions that repeat an item."""
    _set_reg(m, ALTERNATIVES, 1)
    if _reg(m, 0) >= STRING:
        return _string_step(m, byte, alt)
    return _structure_step(m, byte, alt)


# --- distinct items: whether one that was begun can become a new one ---
MAX_PROBES = 1 << 18  # steps of one search
MANY = MAX_VALUES  # as good as endlessly many values; one more: and so it is after whatever may come
SHORT_WORDS = 16  # code points of the words that the second count of a state of strings is of
HEX_DIGITS = tuple(b"0123456789abcdef")
ESCAPES = tuple(b'"\\/bfnrtu')
MUST_ESCAPES = tuple(b'"\\u')
STRUCTURE_BYTES = tuple(b'}]:"tfn0123456789-[{,\n .e+')
FIRST_NUMBER_BYTE = 23  # of the bytes above: what only numbers hold
OTHER_SYMBOLS = 16  # bits of what a number may go on with: the low four of the byte; this more if it is no digit
LETTER_U, BACKSLASH = 0x75, 0x5C


@_internal
def _count_values(m, state, kind):
    """How many values go on from a pool state; 0 if that is still to be computed, then ``regs[MISSING]`` names it."""
    count = _count_of(m, 2 * state + kind)
    if count == 0:
        _set_reg(m, MISSING, state)
    return count


@_internal
def _strings_here(m, record, value):
    """How many values a string can still become, at least. 0: to be computed."""
    if record == 0:
        return MANY
    state, length = value & LOW32, value >> 32
    least, most = _grammar(m, record + S_MIN), _grammar(m, record + S_MAX)
    if _grammar(m, record + S_DISTANCES) == 0 and state == _limit(m, L_UNIVERSAL):
        return MANY if most < 0 or most > length else 1
    if most < 0 and length >= least:
        return _count_values(m, state, 0)
    if length >= least and most - length >= SHORT_WORDS:
        return _count_values(m, state, 1)
    return 1


@_internal
def _values_here(m):
    """How many values that which is being written can still become, at least. 0: to be computed (`MISS_COUNT`)."""
    q = _reg(m, 0)
    if q == VALUE or q == COLON:
        return max(1, _grammar(m, _reg(m, 1) + NODE_FLAGS) >> VALUES_SHIFT)
    if q == PAD or q == NEWLINE:
        node = _reg(m, 1) & ((1 << 40) - 1)
        return max(1, _grammar(m, node + NODE_FLAGS) >> VALUES_SHIFT) if _reg(m, 1) >> 40 == VALUE else 1
    if q == NUMBER:
        return _count_values(m, _reg(m, 2), 0)
    mode = q & ~15
    if mode == STRING and q & 15 == BODY:
        return _strings_here(m, _reg(m, 1) & LOW32, _reg(m, 2))
    if mode == ENUM and q & 15 == BODY:
        return ((_reg(m, 2) >> 20) & MASK20) - (_reg(m, 2) & MASK20)
    if mode == OTHER_KEY:
        record = _load(m, _reg(m, 3)) & LOW32
        return MANY if _grammar(m, record + O_NARROW) == 0 and _grammar(m, record + O_COUNTS) == 0 else 1
    return 1


@_internal
def _endless_frame(m, frame):
    """Whether an open container can go on in endlessly many ways, whatever value is being written in it."""
    head = _load(m, frame)
    record, count = head & LOW32, head >> 32
    kind = _grammar(m, record + R_KIND)
    if kind == R_COUNTED:
        return _grammar(m, record + T_ENDLESS) != 0
    if kind == R_ARRAY:
        node = _item_node(m, record, count, 0)
        if node < 0:
            return False
        if _grammar(m, record + A_MAX) < 0 and not _is_distinct(m, record) and _grammar(m, record + A_REST) >= 0:
            return True
        return (_grammar(m, node + NODE_FLAGS) & ENDLESS_FLAG) != 0
    most = _grammar(m, record + O_MAX)
    if most >= 0 and count + 2 + _missing(m, record, frame, -1) > most:
        return False
    if _grammar(m, record + O_OTHERS) != NO_OTHERS and _grammar(m, record + O_NARROW) == 0:
        return most < 0 or _grammar(m, record + O_DUTIES) == 0
    if _grammar(m, record + O_DUTIES):
        return False
    for e in range(_grammar(m, record + O_COUNT)):
        entry = _grammar(m, record + O_ENTRIES) + E_SIZE * e
        child = _grammar(m, entry + E_CHILD)
        if child >= 0 and _grammar(m, child + NODE_FLAGS) & ENDLESS_FLAG and _admissible(m, record, frame, entry):
            return True
    return False


@_internal
def _outnumbered(m, last):
    """The outermost array of distinct items whose open item may have no more values left than there are items.

    Its frame, at most the frame ``last``; -1: none; -2: a count is to be computed. Of an item in an item, the values
    that the inner array has already are taken off. What shows that the outermost item can become new shows it of those
    within.
    """
    frame, found, count = _reg(m, 3), -1, 0
    closing = _reg(m, 0) == CLOSE or (_reg(m, 0) == PAD and _reg(m, 1) >> 40 == CLOSE)  # only the bracket may come
    is_open = _reg(m, 0) != AFTER and not closing and _reg(m, 0) != ARRAY_FIRST
    while frame >= 0:
        head = _load(m, frame)
        used = (head >> 32) - 1
        if is_open and used > 0 and _is_distinct(m, head & LOW32):
            if count == 0:
                count = _values_here(m)
                if count == 0:
                    return -2
            if count <= used:
                found, count = frame, 1
            elif count < MANY:
                count -= used
        if count < MANY and not closing and _endless_frame(m, frame):
            count = MANY
        closing = False
        if frame == last:
            break
        is_open = True
        frame = _load(m, frame + F_PARENT)
    return found


@_internal
def _distinct_alive(m):
    """Whether, in every array of distinct items that is open, the item begun can become one that is not there yet."""
    if _reg(m, 3) < 0:
        return ALIVE
    none = -1
    frame = _outnumbered(m, none)
    if frame == -2:
        return MISS_COUNT
    return ALIVE if frame == -1 else _finds_fresh(m, frame)


@_internal
def _item_ended(m, frame):
    """Whether the configuration stands behind a finished, new item of an array's frame."""
    if _reg(m, 3) != frame:
        return False
    q = _reg(m, 0)
    if q == AFTER:
        return True
    if q != NUMBER or not _flags(m, _reg(m, 2)) & ACCEPTING:
        return False
    return _is_fresh(m, frame, _reg(m, POSITION))


@_internal
def _finds_fresh(m, frame):
    """List the values that the open item of an array's frame can become until one is new. Leaves ``regs`` as they were.

    ALIVE if there is one. Where the steps run out it is DEAD too, which narrows the mask and is counted.
    """
    place, alternatives = _reg(m, POSITION), _reg(m, ALTERNATIVES)
    _save_probe(m, 0)
    found = _probe_items(m, frame, place)
    _set_reg(m, SEARCHING, 0)
    if found < MISS:
        _restore_probe(m, 0)
        _set_reg(m, POSITION, place)
        _set_reg(m, ALTERNATIVES, alternatives)
    return found


@_internal
def _can_feed(m, byte):
    """Whether a raw byte may come in a string, enumeration or undeclared key; of declared keys the step tells."""
    mode = _reg(m, 0) & ~15
    if mode == STRING:
        return _pool(m, (_reg(m, 2) & LOW32) * 256 + byte) >= 0
    if mode == ENUM:
        return _narrow(m, _grammar(m, (_reg(m, 1) & LOW32) + S_ENTRIES), _reg(m, 2), byte) >= 0
    if mode == OTHER_KEY:
        return _pool(m, (_reg(m, 1) & LOW32) * 256 + byte) >= 0
    return True


@_internal
def _body_candidate(m, at):
    """(byte to try in a string or key outside escapes, number of the next) from the ``at``-th on; byte -1: none."""
    if at == 0:
        return 0x22, 1
    byte = max(at, 0x20)
    while byte < 256:
        if byte != 0x22 and (byte == BACKSLASH or _can_feed(m, byte)):
            return byte, byte + 1
        byte += 1
    return -1, at


@_internal
def _escape_candidate(place, at, begun):
    """The same inside an escape: of what must be escaped, or any that was ``begun`` before."""
    if place == LOW_BACKSLASH or place == LOW_U:
        return -1 if at else (BACKSLASH if place == LOW_BACKSLASH else LETTER_U), 1
    if place == ESCAPE:
        if begun:
            return ESCAPES[at] if at < len(ESCAPES) else -1, at + 1
        return MUST_ESCAPES[at] if at < len(MUST_ESCAPES) else -1, at + 1
    most = 16
    if not begun and place < HEX + 3:
        most = 2 if place == HEX + 2 else 1
    return HEX_DIGITS[at] if at < most else -1, at + 1


@_internal
def _structure_candidate(m, at):
    """The same outside strings. Blanks come only where options prescribe them, and a number goes on in one spelling."""
    q = _reg(m, 0)
    if q == LITERAL:
        return -1 if at else _literal_byte(_reg(m, 1), _reg(m, 2)), 1
    while at < len(STRUCTURE_BYTES):
        byte = STRUCTURE_BYTES[at]
        at += 1
        if byte == 0x20:
            fits = q == PAD
        elif byte == 0x0A:
            fits = _grammar(m, H_WHITESPACE) == INDENT
        elif q == NUMBER and (at > FIRST_NUMBER_BYTE or byte == 0x2D or 0x30 <= byte <= 0x39):
            bit = (byte & 15) + (0 if 0x30 <= byte <= 0x39 else OTHER_SYMBOLS)
            fits = (_symbols(m, _reg(m, 2)) >> bit) & 1 != 0
        else:
            fits = at <= FIRST_NUMBER_BYTE
        if fits:
            return byte, at
    return -1, at


@_internal
def _candidate(m, at, begun):
    """(byte to try next, number of the one behind it) from the ``at``-th on; byte -1: none is left."""
    if _reg(m, 0) < STRING:
        return _structure_candidate(m, at)
    place = _reg(m, 0) & 15
    return _body_candidate(m, at) if place == BODY else _escape_candidate(place, at, begun & IN_ESCAPE != 0)


IN_KEY, IN_ESCAPE = 1, 2


@_internal
def _still_begun(m, begun):
    """Which of the key (`IN_KEY`) and the escape (`IN_ESCAPE`) in which a search began it has not left yet."""
    mode = _reg(m, 0) & ~15
    if mode != KEY and mode != OTHER_KEY:
        begun &= ~IN_KEY
    if _reg(m, 0) < STRING or _reg(m, 0) & 15 == BODY:
        begun &= ~IN_ESCAPE
    return begun


@_internal
def _probe_items(m, frame, place):
    """Depth first over the values that the item can become: ALIVE, DEAD, or what a step asks for.

    A branch with more values than there are items holds a new one (`_outnumbered`), so that only such are followed that
    have few, and these have an end. Each value is met in few spellings: members in one order, no blanks, no escapes
    that need not be, one spelling of each number (`structgen.machine.number_values`). A level of ``probe`` is the
    configuration, the next candidate, its next alternative, and whether this is in what was begun before.
    """
    _set_probe(m, 5, 0)
    _set_probe(m, 6, 0)
    _set_probe(m, 7, IN_KEY | IN_ESCAPE)
    steps, depth = 0, 0
    while depth >= 0:
        level = 8 * depth
        _restore_probe(m, level)
        _set_reg(m, POSITION, place + 1 + depth)
        at, alt = _probe(m, level + 5), _probe(m, level + 6)
        begun = _still_begun(m, _probe(m, level + 7))
        _set_reg(m, SEARCHING, 0 if begun & IN_KEY else 1)
        if _reg(m, TOO_DEEP):
            return FULL
        if at == 0 and alt == 0 and depth > 0:
            if _item_ended(m, frame):
                return ALIVE
            few = _outnumbered(m, frame)
            if few < 0:
                return ALIVE if few == -1 else MISS_COUNT
        byte, following = _candidate(m, at, begun)
        if byte < 0:
            depth -= 1
            continue
        steps += 1
        if steps > MAX_PROBES:
            _set_reg(m, GIVEN_UP, _reg(m, GIVEN_UP) + 1)
            return DEAD
        if place + depth + 3 > _size(m, C_WRITTEN) or level + 16 > _size(m, C_PROBE):
            return FULL
        _set_written(m, place + 1 + depth, byte)
        status = _plain_step(m, byte, alt)
        if status >= MISS:
            return status
        more = alt + 1 < _reg(m, ALTERNATIVES)
        _set_probe(m, level + 5, at if more else following)
        _set_probe(m, level + 6, alt + 1 if more else 0)
        if status == ALIVE:
            depth += 1
            _save_probe(m, 8 * depth)
            _set_probe(m, 8 * depth + 5, 0)
            _set_probe(m, 8 * depth + 6, 0)
            _set_probe(m, 8 * depth + 7, begun)
    return DEAD


@_internal
def _step(m, byte, alt):
    """One byte from the configuration in ``regs``, by alternative ``alt`` where it has several.

    Sets ``regs[ALTERNATIVES]`` (also when this one is dead). The result is DEAD, ALIVE, MISS (the pool row named in
    ``regs[MISSING]`` is to be filled) or FULL (scratch is too small).
    """
    if _grammar(m, H_UNIQUE) == 0:
        status = _plain_step(m, byte, alt)
    else:
        if _reg(m, POSITION) + 2 > _size(m, C_WRITTEN):
            return FULL
        _set_written(m, _reg(m, POSITION), byte)
        status = _plain_step(m, byte, alt)
        if status == ALIVE:
            status = _distinct_alive(m)
    if _reg(m, TOO_DEEP):
        return FULL
    return status


# --- sets of configurations ---
@_internal
def _same_others(m, one, two):
    """Whether two trees hold the same in the same places. (What was added in one order is; others may look different.)

    ``search`` holds the pairs of nodes still to compare.
    """
    _set_search(m, 0, one)
    _set_search(m, 1, two)
    depth = 2
    while depth > 0:
        depth -= 2
        one, two = _search(m, depth), _search(m, depth + 1)
        if one == two:
            continue
        if one < 0 or two < 0 or depth + 4 > _size(m, C_SEARCH):
            return False
        if _load(m, one + K_HASH) != _load(m, two + K_HASH) or _load(m, one + K_START) != _load(m, two + K_START):
            return False
        for side in range(2):
            _set_search(m, depth + 2 * side, _load(m, one + K_LEFT + side))
            _set_search(m, depth + 2 * side + 1, _load(m, two + K_LEFT + side))
        depth += 4
    return True


@_internal
def _same_frames(m, one, two):
    """Whether two stacks say the same, wherever they lie."""
    while one != two:
        if one < 0 or two < 0 or _load(m, one) != _load(m, two):
            return False
        record = _load(m, one) & LOW32
        if _has_list(m, record):
            for w in range(F_SEEN, _frame_size(m, record)):
                if _load(m, one + w) != _load(m, two + w):
                    return False
            others = _load(m, one + F_OTHERS)
            if not _same_others(m, others, _load(m, two + F_OTHERS)):
                return False
        one, two = _load(m, one + F_PARENT), _load(m, two + F_PARENT)
    return True


@_internal
def _add_thread(m, count):
    """Add the configuration in ``regs`` to the first ``count`` of ``result``. The new count; -1: no room."""
    for t in range(count):
        if (
            _result(m, 4 * t) == _reg(m, 0)
            and _result(m, 4 * t + 1) == _reg(m, 1)
            and _result(m, 4 * t + 2) == _reg(m, 2)
            and _same_frames(m, _result(m, 4 * t + 3), _reg(m, 3))
        ):
            return count
    if 4 * count + 4 > _size(m, C_RESULT):
        return -1
    for i in range(4):
        _set_result(m, 4 * count + i, _reg(m, i))
    return count + 1


@_internal
def _advance(m, count, start, end):
    """All configurations after the bytes ``data[start:end]``, into ``result``.

    ``regs[ALTERNATIVES]`` becomes their number and ``regs[MISSING]`` that of the ones left out for want of room.
    """
    _set_reg(m, TOP, 0)
    found, dropped = 0, 0
    for t in range(count):
        for i in range(4):
            _set_stack(m, i, _thread(m, 4 * t + i))
        _set_stack(m, 4, start)
        _set_stack(m, 5, 0)
        depth = 1
        while depth > 0:
            depth -= 1
            for i in range(4):
                _set_reg(m, i, _stack(m, 6 * depth + i))
            place, alt = _stack(m, 6 * depth + 4), _stack(m, 6 * depth + 5)
            status = ALIVE
            while place < end:
                q, a, b, f = _reg(m, 0), _reg(m, 1), _reg(m, 2), _reg(m, 3)
                _set_reg(m, POSITION, _reg(m, WRITTEN) + place - start)
                status = _step(m, _data(m, place), alt)
                if status >= MISS:
                    return status
                if alt + 1 < _reg(m, ALTERNATIVES):
                    if 6 * depth + 6 > _size(m, C_STACK):
                        return FULL
                    _push(m, 6 * depth, q, a, b, f)
                    _set_stack(m, 6 * depth + 4, place)
                    _set_stack(m, 6 * depth + 5, alt + 1)
                    depth += 1
                if status == DEAD:
                    break
                alt = 0
                place += 1
            if status == ALIVE:
                added = _add_thread(m, found)
                if added < 0:
                    dropped += 1
                else:
                    found = added
    _set_reg(m, ALTERNATIVES, found)
    _set_reg(m, MISSING, dropped)
    return ALIVE if found else DEAD


@_internal
def _accept(m, count, token, top):
    """`_advance` over a token, and, if ``top`` >= 0, `_settle` at that place of the arena where it has the room.

    ``regs[TOP]`` becomes the new top of the arena, or -1 if the frames are still to be settled; then ``regs[FRESH]`` is
    the number of words that they take.
    """
    start, end = _offset(m, token), _offset(m, token + 1)
    if start == end:
        return DEAD
    status = _advance(m, count, start, end)
    if status == ALIVE:
        used = _reg(m, TOP)
        if used == 0:
            _set_reg(m, TOP, top)
        elif top >= 0 and top + used <= _size(m, C_ARENA):
            _set_reg(m, TOP, _settle(m, top, _reg(m, ALTERNATIVES)))
        else:
            _set_reg(m, FRESH, used)
            _set_reg(m, TOP, -1)
    return status


@_internal
def _settle_node(m, top, slot):
    """Copy the node of a tree that a place in the arena refers to from scratch, if it lies there. The new top."""
    place = _arena(m, slot) - SCRATCH
    if place < 0:
        return top
    if _scratch(m, place - 1) < 0:
        _set_scratch(m, place - 1, top + 1)
        _set_arena(m, top, -1)
        for i in range(K_SIZE):
            _set_arena(m, top + 1 + i, _scratch(m, place + i))
        top += K_SIZE + 1
    _set_arena(m, slot, _scratch(m, place - 1))
    return top


@_internal
def _settle_others(m, top, frame):
    """Copy the tree of a settled frame from scratch to the arena, breadth first (Cheney's algorithm). The new top."""
    done = top
    top = _settle_node(m, top, frame + F_OTHERS)
    while done < top:
        top = _settle_node(m, top, done + 1 + K_LEFT)
        top = _settle_node(m, top, done + 2 + K_LEFT)
        done += K_SIZE + 1
    return top


@_internal
def _settle(m, top, count):
    """Copy the frames that ``result`` refers to from scratch to the arena from ``top`` on. The new top."""
    for t in range(count):
        place = _result(m, 4 * t + 3)
        patch = -1
        while place >= SCRATCH:
            source = place - SCRATCH
            known = _scratch(m, source - 1)
            if known >= 0:
                new = known
            else:
                record = _scratch(m, source) & LOW32
                size = _frame_size(m, record)
                new = top + 1
                _set_arena(m, top, -1)
                for i in range(size):
                    _set_arena(m, new + i, _scratch(m, source + i))
                _set_scratch(m, source - 1, new)
                top = new + size
                if _has_list(m, record):
                    top = _settle_others(m, top, new)
            if patch < 0:
                _set_result(m, 4 * t + 3, new)
            else:
                _set_arena(m, patch + F_PARENT, new)
            if known >= 0:
                break
            patch = new
            place = _scratch(m, source + F_PARENT)
    return top


# --- masks ---
# ``nodes`` int32[N, 4] holds several tries one after the other, each in depth-first order: byte, depth, subtree end,
# token (lowest id that ends here, or -1; `next_same` chains the others). ``tries`` int64[T, 2] says where each lies.
NODE_BYTE, NODE_DEPTH, NODE_END, NODE_TOKEN = 0, 1, 2, 3
TEXT, QUOTED, STRUCTURE, BLANK, DIGITS, REMAINDERS, HARD, TRIES = 0, 1, 2, 3, 4, 5, 6, 7
# Rows that every vocabulary has: whitespace tokens; text of certain kinds of characters only (slices); text that stays
# inside a string with at most n code points (n = 0..), one still to come after an unfinished escape included.
ROW_BLANK, ROW_SLICES, SLICES = 0, 1, 20
ROW_LENGTHS = ROW_SLICES + SLICES
# ``limits`` int64: longest token in code points, pool state of the universal automaton,
# int32 words of a mask row.
L_TEXT, L_UNIVERSAL, L_WIDTH = 0, 1, 2


@_internal
def _set_tokens(m, token, out):
    while token >= 0:
        _set_bit(m, out, token)
        token = _next_same(m, token)


@_internal
def _clear_tokens(m, token, out):
    while token >= 0:
        _clear_bit(m, out, token)
        token = _next_same(m, token)


@_internal
def _set_group(m, group, out, length, least, most, frame, hashed):
    """Set the tokens of a remainder group: those whose text before the quote fits the string or key they close.

    ``members`` int32[M, 4]: token, code points before the quote, place and number of the bytes before it in
    ``token_bytes`` (decoded).
    """
    _ready(m, out)
    for i in range(_group(m, group), _group(m, group + 1)):
        points = _member_field(m, 4 * i + 1)
        if length + points < least or (most >= 0 and length + points > most):
            continue
        if frame >= 0:
            value = hashed
            for place in range(_member_field(m, 4 * i + 2), _member_field(m, 4 * i + 2) + _member_field(m, 4 * i + 3)):
                value = _hash_byte(value, _token_byte(m, place))
            if _is_duplicate(m, frame, value):
                continue
        token = _member_field(m, 4 * i + 0)
        _set_bit(m, out, token)


@_internal
def _is_free(m):
    """Whether any text may follow: inside a string or undeclared key without conditions, between characters."""
    q = _reg(m, 0)
    if q == STRING:
        record = _reg(m, 1) & LOW32
        if (_reg(m, 2) & LOW32) != _limit(m, L_UNIVERSAL):
            return False
        return record == 0 or (_grammar(m, record + S_MAX) < 0 and _grammar(m, record + S_DISTANCES) == 0)
    if q != KEY and q != OTHER_KEY:
        return False
    record = _load(m, _reg(m, 3)) & LOW32
    if _grammar(m, record + O_OTHERS) != ONE_CLASS or _grammar(m, record + O_NARROW) != 0:
        return False
    if q == OTHER_KEY:
        return (_reg(m, 1) & LOW32) == _limit(m, L_UNIVERSAL)
    return _others_admissible(m, record, _reg(m, 3)) and not _table_inside_sequence(
        m, _grammar(m, record + O_ENTRIES), _reg(m, 2)
    )


@_internal
def _walk(m, lo, hi, out, grouped, length, least, most, frame, hashed):
    """Set the tokens of ``nodes[lo:hi]`` that can follow the configuration in ``regs``. Depth first, no recursion.

    The nodes hold tokens, or if ``grouped`` remainder groups, see `_set_group`.
    """
    _ready(m, out)
    if lo >= hi:
        return ALIVE
    base = _node(m, lo, NODE_DEPTH)
    _save_stack(m, 0)
    half = _size(m, C_STACK) // 2
    forks = half  # places of (node, next alternative, alternatives) of the nodes on the path that have several
    i = lo
    alt = 0
    while True:
        alt = 0
        while forks > half and i >= _node(m, _stack(m, forks - 3), NODE_END):
            if _stack(m, forks - 2) < _stack(m, forks - 1):
                i = _stack(m, forks - 3)
                alt = _stack(m, forks - 2)
                _set_stack(m, forks - 2, _stack(m, forks - 2) + 1)
                break
            forks -= 3
        if i >= hi:
            return ALIVE
        level = 5 * (_node(m, i, NODE_DEPTH) - base)
        if level + 10 > half or forks + 3 > _size(m, C_STACK):
            return FULL
        _restore_stack(m, level)
        byte = _node(m, i, NODE_BYTE)
        _set_reg(m, POSITION, _reg(m, WRITTEN) + _node(m, i, NODE_DEPTH))
        status = _step(m, byte, alt)
        if status >= MISS:
            return status
        if alt == 0 and _reg(m, ALTERNATIVES) > 1:
            _set_stack(m, forks, i)
            _set_stack(m, forks + 1, 1)
            _set_stack(m, forks + 2, _reg(m, ALTERNATIVES))
            forks += 3
        if status == DEAD:
            i = _node(m, i, NODE_END)
            continue
        if not grouped and _node(m, i, NODE_END) > i + 1 and _class(m, i) >> NEVER_KIND == 0 and _is_free(m):
            _emit_subtree(m, i, _node(m, i, NODE_END), out)
            i = _node(m, i, NODE_END)
            continue
        _save_stack(m, level + 5)
        token = _node(m, i, NODE_TOKEN)
        if token >= 0:
            if not grouped:
                _set_tokens(m, token, out)
            else:
                _set_group(m, token, out, length, least, most, frame, hashed)
        i += 1


@_internal
def _exact(m, lo, hi, out):
    """`_walk` over a trie of tokens."""
    none = -1
    return _walk(m, lo, hi, out, False, 0, 0, none, none, 0)


@_internal
def _declared_keys(m, lo, hi, out):
    """Correct the mask of an open object's key for the tokens that keep to *declared* keys.

    The mask was made as if every key were undeclared. Walks the tokens as long as they are a prefix of declared keys;
    those that close on one are cleared and done again exactly.
    """
    _ready(m, out)
    _save_own(m, 0)
    frame = _reg(m, 3)
    i = lo
    while i < hi:
        level = 5 * _node(m, i, NODE_DEPTH)
        if level + 10 > _size(m, C_OWN):
            return FULL
        _restore_own(m, level)
        byte = _node(m, i, NODE_BYTE)
        _set_reg(m, POSITION, _reg(m, WRITTEN) + _node(m, i, NODE_DEPTH))
        if _reg(m, 0) == KEY and byte == 0x22:
            at = _reg(m, 2) & MASK20
            record = _load(m, frame) & LOW32
            entry = _grammar(m, record + O_ENTRIES) + E_SIZE * at
            if at < (_reg(m, 2) >> 20) & MASK20 and _grammar(m, entry + E_LENGTH) == _reg(m, 2) >> 40:
                for j in range(i, _node(m, i, NODE_END)):
                    _clear_tokens(m, _node(m, j, NODE_TOKEN), out)
                status = _exact(m, i, _node(m, i, NODE_END), out)
                if status >= MISS:
                    return status
            i = _node(m, i, NODE_END)
            continue
        status = _step(m, byte, 0)
        if status >= MISS:
            return status
        if status == DEAD or _reg(m, 0) & ~15 != KEY or _reg(m, 3) != frame:
            i = _node(m, i, NODE_END)
            continue
        _set_tokens(m, _node(m, i, NODE_TOKEN), out)
        _save_own(m, level + 5)
        i += 1
    return ALIVE


@_internal
def _zero_words(out, width):
    for w in range(width):
        _set_mask_word(out, w, 0)


@_internal
def _ready(m, out):
    """Make sure that the row holds a mask: a fresh one is cleared only where no row is copied over it."""
    if _reg(m, FRESH):
        _zero_words(out, _limit(m, L_WIDTH))
        _set_reg(m, FRESH, 0)


@_internal
def _or_row(m, row, out):
    width = _limit(m, L_WIDTH)
    source = _address(m, C_ROWS) + 4 * row * width
    if _reg(m, FRESH):
        _copy_words(source, out, width)
        _set_reg(m, FRESH, 0)
    else:
        _or_words(source, out, width)


@_internal
def _numbers_of(m):
    """The node whose numbers may begin here, or -1."""
    if _reg(m, 0) == VALUE:
        return _reg(m, 1)
    if _reg(m, 0) == ARRAY_FIRST and _grammar(m, H_WHITESPACE) != INDENT:
        return _item_node(m, _load(m, _reg(m, 3)) & LOW32, 0, 0)
    return -1


@_internal
def _structure_rows(m, out):
    """Or in the whitespace tokens and the tokens that are wholly digits, where rows are known for them."""
    q = _reg(m, 0)
    if _grammar(m, H_WHITESPACE) == ANY and _grammar(m, H_RUN) < 0 and q != LITERAL:
        if q != NUMBER or _flags(m, _reg(m, 2)) & ACCEPTING:
            _or_row(m, ROW_BLANK, out)
    if q == NUMBER:
        if _slot_of(m, 2 * _reg(m, 2) + 0) < 0:
            _set_reg(m, MISSING, _reg(m, 2))
            _set_reg(m, ALTERNATIVES, BODY)
            return MISS_ROW
        _or_row(m, _slot_of(m, 2 * _reg(m, 2) + 0), out)
    node = _numbers_of(m)
    if node >= 0:
        for alt in range(_grammar(m, node + NODE_NUMBERS + 1)):
            state = _grammar(m, _grammar(m, node + NODE_NUMBERS) + alt)
            if _slot_of(m, 2 * state + 0) < 0:
                _set_reg(m, MISSING, state)
                _set_reg(m, ALTERNATIVES, BODY)
                return MISS_ROW
            _or_row(m, _slot_of(m, 2 * state + 0), out)
    return ALIVE


@_internal
def _stay_row(m, state, place, out):
    """Or in the tokens that stay inside a string from pool state ``state``."""
    if _slot_of(m, 2 * state + place) < 0:
        _set_reg(m, MISSING, state)
        _set_reg(m, ALTERNATIVES, place)
        return MISS_ROW
    _or_row(m, _slot_of(m, 2 * state + place), out)
    return ALIVE


@_internal
def _among_distinct(m):
    """Whether some open array has distinct items, so that masks depend on the text of what is being written."""
    if _grammar(m, H_UNIQUE) == 0:
        return False
    frame = _reg(m, 3)
    while frame >= 0:
        record = _load(m, frame) & LOW32
        if _grammar(m, record + R_KIND) != R_OBJECT and _grammar(m, record + A_UNIQUE):
            return True
        frame = _load(m, frame + F_PARENT)
    return False


@_internal
def _stays_endless(m):
    """Whether a string or key has endlessly many completions after every token that stays inside it."""
    mode = _reg(m, 0) & ~15
    if mode == OTHER_KEY:
        return _values_here(m) == MANY
    if mode != STRING:
        return False
    record = _reg(m, 1) & LOW32
    if record == 0:
        return True
    most = _grammar(m, record + S_MAX)
    if most >= 0 and most - (_reg(m, 2) >> 32) <= _limit(m, L_TEXT):
        return False
    if _grammar(m, record + S_DISTANCES) == 0 and (_reg(m, 2) & LOW32) == _limit(m, L_UNIVERSAL):
        return True
    return most < 0 and _count_of(m, 2 * (_reg(m, 2) & LOW32)) > MANY


@_internal
def _endless_here(m):
    """Whether the string or key, or a container around it within an array of distinct items, can go on endlessly."""
    if _stays_endless(m):
        return True
    frame = _reg(m, 3)
    while frame >= 0:
        record = _load(m, frame) & LOW32
        if _is_distinct(m, record):
            return False
        if _endless_frame(m, frame):
            return True
        frame = _load(m, frame + F_PARENT)
    return True


@_internal
def _string_plan(m):
    """How to make the mask of a value string.

    0: walk all text. 1: stay row, then walk what has a quote. 2: stay row and remainders. 3: length row and remainders
    (a limit is near). 4: stay row cut by length row, then walk what has a quote.
    """
    place = _reg(m, 0) & 15
    record = _reg(m, 1) & LOW32
    universal = (_reg(m, 2) & LOW32) == _limit(m, L_UNIVERSAL)
    if place > ESCAPE:
        return 0
    if record == 0:
        return 2 if universal and place == BODY else 1
    least, most = _grammar(m, record + S_MIN), _grammar(m, record + S_MAX)
    room = most - (_reg(m, 2) >> 32) if most >= 0 else 1 << 30
    longest = _limit(m, L_TEXT)
    table = _grammar(m, record + S_DISTANCES)
    if table == 0:
        if room >= longest:
            return 2 if universal and place == BODY else 1
        return 3 if universal and place == BODY else 0
    slack = _grammar(m, table + D_SLACK)
    if slack < 0 or (most >= 0 and least + slack > most):
        return 0
    if slack <= room - longest:
        return 1
    return 4 if slack == 0 and place == BODY and not _flags(m, _reg(m, 2) & LOW32) & PARTIAL else 0


@_internal
def _key_plan(m):
    """How to make the mask of a key: 0 walk all text, 1 stay row and walk, 2 stay row and remainders (undeclared)."""
    record = _load(m, _reg(m, 3)) & LOW32
    place = _reg(m, 0) & 15
    if place > ESCAPE or _grammar(m, record + O_NARROW) != 0:
        return 0
    if _grammar(m, record + O_COUNTS) and not _all_classes_alive(m, record, _reg(m, 3)):
        return 0
    simple = _grammar(m, record + O_OTHERS) == ONE_CLASS and _grammar(m, record + O_DUTIES) == 0
    if _reg(m, 0) & ~15 == OTHER_KEY:
        if simple and (_reg(m, 1) & LOW32) == _limit(m, L_UNIVERSAL) and place == BODY:
            return 2
        return 1
    if place != BODY or not _others_admissible(m, record, _reg(m, 3)):
        return 0
    if _grammar(m, record + O_COUNT) > 0 and _table_inside_sequence(m, _grammar(m, record + O_ENTRIES), _reg(m, 2)):
        return 0
    return 2 if simple else 1


@_internal
def _fill_thread(m, out):
    """Or the mask of the configuration in ``regs`` into ``out``, which may be all zero before."""
    _save_start(m, 0)
    mode = _reg(m, 0) & ~15 if _reg(m, 0) >= STRING else 0
    trie = TEXT
    if mode == 0:
        distinct = _among_distinct(m)
        if distinct:
            status = _exact(m, _trie_field(m, 2 * DIGITS), _trie_field(m, 2 * DIGITS + 1), out)
            if status < MISS:
                _restore_start(m, 0)
        else:
            status = _structure_rows(m, out)
        if status >= MISS:
            return status
        if distinct or _grammar(m, H_WHITESPACE) != ANY or _grammar(m, H_RUN) >= 0:
            status = _exact(m, _trie_field(m, 2 * BLANK + 0), _trie_field(m, 2 * BLANK + 1), out)
            if status >= MISS:
                return status
            _restore_start(m, 0)
        trie = STRUCTURE
    plan = 0
    if mode == STRING:
        plan = _string_plan(m)
    elif mode == KEY or mode == OTHER_KEY:
        plan = _key_plan(m)
    if plan and _among_distinct(m):  # remainders would do without the text before the quote
        plan = 1 if plan <= 2 and _endless_here(m) else 0
    if plan == 0:
        return _exact(m, _trie_field(m, 2 * trie + 0), _trie_field(m, 2 * trie + 1), out)
    return _fill_text(m, out, mode, plan)


@_internal
def _fill_text(m, out, mode, plan):
    """The mask inside a string or key by rows: tokens that stay inside it, and those that cross its end."""
    state = _reg(m, 2) & LOW32
    length, least, most = 0, 0, -1
    frame, hashed = -1, 0
    if mode == STRING:
        record = _reg(m, 1) & LOW32
        if record != 0:
            length, least, most = (_reg(m, 2) >> 32, _grammar(m, record + S_MIN), _grammar(m, record + S_MAX))
    else:
        frame = _reg(m, 3)
        record = _load(m, frame) & LOW32
        state, hashed = _reg(m, 1) & LOW32, _reg(m, 2)
        if mode == KEY:
            state, hashed = _replay(m, record, _reg(m, 2))
            _set_string(m, OTHER_KEY, state, hashed)
    status = ALIVE
    if plan == 3:
        _or_row(m, ROW_LENGTHS + most - length, out)
    elif state >= 0:
        status = _stay_row(m, state, _start(m, 0) & 15, out)
        if status >= MISS:
            return status
        if plan == 4:
            width = _limit(m, L_WIDTH)
            _and_words(_address(m, C_ROWS) + 4 * (ROW_LENGTHS + most - length) * width, out, width)
    if plan == 2 or plan == 3:
        status = _fill_remainders(m, out, mode, length, least, most, frame, hashed)
    elif state >= 0:
        status = _exact(m, _trie_field(m, 2 * QUOTED), _trie_field(m, 2 * QUOTED + 1), out)
    if status >= MISS or mode != KEY:
        return status
    _restore_start(m, 0)
    # Any text may begin an undeclared key unless these have classes, so only tokens that end the key can differ.
    trie = TEXT if _grammar(m, record + O_OTHERS) == CLASSES else QUOTED
    return _declared_keys(m, _trie_field(m, 2 * trie), _trie_field(m, 2 * trie + 1), out)


@_internal
def _fill_remainders(m, out, mode, length, least, most, frame, hashed):
    """Tokens that close a free string (or undeclared key) here: walk what follows the quote once for all of them."""
    _save_cross(m, 0)
    status = _exact(m, _trie_field(m, 2 * HARD + 0), _trie_field(m, 2 * HARD + 1), out)
    if status >= MISS:
        return status
    _restore_cross(m, 0)
    if mode == STRING:
        _value_done(m)
    else:
        record = _load(m, frame) & LOW32
        parent = _load(m, frame + F_PARENT)
        count = (_load(m, frame) >> 32) + 1
        new = _new_frame(m, record, count, parent, frame)
        if new < 0:
            return FULL
        _key_done(m, new, _grammar(m, record + O_CHILD))
        if _load(m, frame + F_OTHERS) < 0:
            frame = -1  # no undeclared key yet, so none can be repeated
    # Group 0: nothing follows the quote.
    _set_group(m, 0, out, length, least, most, frame, hashed)
    return _walk(
        m,
        _trie_field(m, 2 * REMAINDERS + 0),
        _trie_field(m, 2 * REMAINDERS + 1),
        out,
        True,
        length,
        least,
        most,
        frame,
        hashed,
    )


# --- rows: masks of lexical states, the same for every grammar ---
@_internal
def _emit_subtree(m, lo, hi, out):
    for j in range(lo, hi):
        if _node(m, j, NODE_TOKEN) >= 0:
            _set_tokens(m, _node(m, j, NODE_TOKEN), out)


@_internal
def _slice_of(m, state):
    """The largest slice whose tokens all stay inside the string from a pool state, or -1.

    Slices are in falling order of their tokens. One serves if its characters leave the state as it is, or (ASCII) lead
    to states that they leave as they are.
    """
    if _flags(m, state) & PARTIAL:
        return -1
    for number in range(_size(m, C_SLICES)):
        kinds = _slice(m, number)
        if kinds & ~_loop(m, state) == 0:
            return number
        serves = kinds & (1 << NON_ASCII_KIND) == 0
        byte = 0x20
        while serves and byte < 0x80:
            if kinds >> _kind(m, byte) & 1:
                following = _pool(m, state * 256 + byte)
                serves = following >= 0 and kinds & ~_loop(m, following) == 0
            byte += 1
        if serves:
            return number
    return -1


@_internal
def _stay(m, state, place, out):
    """Set the tokens that stay inside a string which stands at pool state ``state``, place BODY or ESCAPE.

    ``classes`` int32[N]: kinds of characters below each node. ``loops`` int32[pool]: kinds that
    leave a state as it is; a subtree of only these is set without being walked. A whole slice is copied from its row,
    and subtrees within it are skipped.
    """
    lo, hi = _trie_field(m, 2 * TEXT), _trie_field(m, 2 * TEXT + 1)
    within = 0  # kinds of the slice that was copied
    if place == BODY:
        number = _slice_of(m, state)
        if number >= 0:
            _or_row(m, ROW_SLICES + number, out)
            within = _slice(m, number)
    _ready(m, out)
    _set_string(m, STRING + place, 0, state)
    _set_reg(m, 3, -1)
    _set_reg(m, TOP, 0)
    _save_stack(m, 0)
    i = lo
    while i < hi:
        level = 5 * _node(m, i, NODE_DEPTH)
        if level + 10 > _size(m, C_STACK):
            return FULL
        byte = _node(m, i, NODE_BYTE)
        kinds = _class(m, i)
        own = 1 << _kind(m, byte)
        # The place of the top of scratch, unused here, tells whether the path so far lies within the slice.
        inside = within != 0 and (level == 0 or _stack(m, level + 4) == 1) and own & ~within == 0
        if inside and kinds & ~within == 0:
            i = _node(m, i, NODE_END)
            continue
        q = _stack(m, level)
        if q == STRING and byte != 0x22 and byte != 0x5C and byte >= 0x20:
            following = _pool(m, _stack(m, level + 2) * 256 + byte)
            if following < 0:
                i = _node(m, i, NODE_END)
                continue
            _push(m, level + 5, STRING, 0, following, -1)
            _set_stack(m, level + 9, 1 if inside else 0)
            if (kinds & ~_loop(m, following)) == 0:
                _emit_subtree(m, i, _node(m, i, NODE_END), out)
                i = _node(m, i, NODE_END)
                continue
        else:
            _restore_stack(m, level)
            _set_reg(m, 3, -1)
            _set_reg(m, TOP, 0)
            status = _step(m, byte, 0)
            if status >= MISS:
                return status
            if status == DEAD or _reg(m, 0) < STRING:
                i = _node(m, i, NODE_END)
                continue
            _set_reg(m, TOP, 0)
            _save_stack(m, level + 5)
        _set_tokens(m, _node(m, i, NODE_TOKEN), out)
        i += 1
    return ALIVE


@_internal
def _digits(m, state, out):
    """Set the tokens that are wholly part of a number which stands at pool state ``state``."""
    lo, hi = _trie_field(m, 2 * DIGITS + 0), _trie_field(m, 2 * DIGITS + 1)
    _set_stack(m, 0, state)
    i = lo
    while i < hi:
        level = _node(m, i, NODE_DEPTH)
        status = _number_byte(m, _stack(m, level), _node(m, i, NODE_BYTE))
        if status >= MISS:
            return status
        if status == DEAD:
            i = _node(m, i, NODE_END)
            continue
        _set_stack(m, level + 1, _reg(m, 2))
        _set_tokens(m, _node(m, i, NODE_TOKEN), out)
        i += 1
    return ALIVE


@_internal
def _accepting(m, count):
    """Whether the text may stop after one of the ``count`` configurations in ``threads``."""
    for t in range(count):
        if _thread(m, 4 * t + 3) < 0:
            q = _thread(m, 4 * t)
            if q == AFTER or (q == NUMBER and _flags(m, _thread(m, 4 * t + 2)) & ACCEPTING):
                return True
    return False


@_internal
def _fill(m, count, out, first):
    """The mask of ``count`` configurations into the row at address ``out``, end-of-sequence tokens included.

    Where something is missing, ``regs[RESUME]`` is the configuration to go on with, as ``first``, when it is there:
    else many configurations that each miss something would all be done again each time.
    """
    width = _limit(m, L_WIDTH)
    spare = _address(m, C_SPARE)
    for t in range(first, count):
        row = out if t == 0 else spare
        _thread_to_regs(m, t)
        _set_reg(m, TOP, 0)
        _set_reg(m, FRESH, 1)
        status = _fill_thread(m, row)
        if status >= MISS:
            _set_reg(m, RESUME, t)
            return status
        _ready(m, row)
        if t > 0:
            _or_words(spare, out, width)
    if _accepting(m, count):
        for e in range(_size(m, C_ENDS)):
            _set_bit(m, out, _end_token(m, e))
    return ALIVE


@_internal
def _fill_row(m, state, place, number, out):
    """The row of a pool state: tokens inside a number, or inside a string at place BODY or ESCAPE."""
    _set_reg(m, FRESH, 1)
    _set_reg(m, POSITION, _reg(m, WRITTEN))
    if number:
        _ready(m, out)
        return _digits(m, state, out)
    return _stay(m, state, place, out)


@_internal
def _next_bytes(m, count, out):
    """Set bit ``byte`` of the 256 bits at address ``out`` if the byte may come next."""
    _zero_words(out, 8)
    for t in range(count):
        for byte in range(256):
            alt = 0
            while True:
                _set_reg(m, POSITION, _reg(m, WRITTEN))
                _thread_to_regs(m, t)
                _set_reg(m, TOP, 0)
                status = _step(m, byte, alt)
                if status >= MISS:
                    return status
                if status == ALIVE:
                    _set_bit(m, out, byte)
                    break
                alt += 1
                if alt >= _reg(m, ALTERNATIVES):
                    break
    return ALIVE


# --- the entry point: one, because every entry point is linked and optimised with all that it calls ---
ADVANCE, SETTLE, ACCEPTING_NOW, FILL, FILL_ROW, FILL_DIGITS, NEXT_BYTES, ACCEPT = range(8)


@njit(types.int64(types.int64, types.int64, types.int64, types.int64, types.int64), cache=True, nogil=True)
def run(m, operation, x, y, z):
    """Run an operation on the context at address ``m``; the functions below say which and how."""
    if operation == FILL:
        return _fill(m, x, y, z)
    if operation == ACCEPT:
        return _accept(m, x, y, z)
    if operation == ADVANCE:
        return _advance(m, x, y, z)
    if operation == ACCEPTING_NOW:
        return 1 if _accepting(m, x) else 0
    if operation == SETTLE:
        return _settle(m, x, y)
    if operation == NEXT_BYTES:
        return _next_bytes(m, x, y)
    return _fill_row(m, x, y, operation == FILL_DIGITS, z)


def advance(m, count, start, end):
    """The configurations after ``data[start:end]``, see `_advance`."""
    return run(m, ADVANCE, count, start, end)


def accept(m, count, token, top):
    """The configurations after a token, settled if they fit, see `_accept`."""
    return run(m, ACCEPT, count, token, top)


def settle(m, top, count):
    """Move the frames of new configurations from scratch to the arena, see `_settle`; it must have the room."""
    return run(m, SETTLE, top, count, 0)


def accepting(m, count):
    """Whether the text may stop after one of the ``count`` configurations in ``threads``: 0 or 1."""
    return run(m, ACCEPTING_NOW, count, 0, 0)


def fill(m, count, out, first):
    """The token bitmask of ``count`` configurations into the row at address ``out``, see `_fill`."""
    return run(m, FILL, count, out, first)


def fill_row(m, state, place, number, out):
    """The row of a pool state, see `_fill_row`."""
    return run(m, FILL_DIGITS if number else FILL_ROW, state, place, out)


def next_bytes(m, count, out):
    """The 256 bits of the bytes that may come next, see `_next_bytes`."""
    return run(m, NEXT_BYTES, count, out, 0)
