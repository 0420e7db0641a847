"""Lark's LALR parser with its contextual lexer as array code: lexing by first match, parsing by table, masks.

One file, because numba's cache does not see edits to callees in other files. `structgen.contextual` prepares the static
tables and checks arguments; nothing here does.

**Heap.** All that is learned while texts are read lies in one int64 array: a header (``H_...``), then records
``hash, kind << 40 | n, payload, n key words``. Records are interned by kind and key, so that equal states are equal
integers; an id is a record's offset. The heap may be moved between calls. If room is short, a flag is raised
(``H_FLAG``), nothing more is interned, and the operation returns RETRY, to be called again with more room.

**Characters** come in classes that no terminal tells apart. A state between bytes of a character is a configuration and
a node of a UTF-8 tree, ``config | node << 40``.

- *Node* (NODE): an LALR stack: the stack below, and the state on top.
- *Parser* (PARSER): a stack, a stack of indentations (INDENT) and how many brackets are open; the last two only under
  an indenter. PARSER_WAY is the number of the terminal that has shown it to be live, and 1; 0: it may end, or Python
  knows.
- *Lexer state* (LEX): a lexer, and the terminals that may still match, in its order, with the state of each one's
  automaton: ``terminal << 32 | state``. Each automaton is of ordered threads (first match, as ``re.match``): entries of
  its table are ``state << 1 | promoted``. *promoted*: a match that ended one character ago was waiting for a lookahead,
  which has now come true. A state is *final* where a match ends for sure; whatever the expression prefers less is cut.
- *Configuration* (CONFIG): a parser, a lexer state (0: nothing of the next lexeme is read), a fallback, and the column
  of the text within a newline token. The fallback is the configuration that follows if the lexeme ends at the best
  match so far, with what has been read since read again: it advances with each character, and takes over when no
  terminal of the lexer state is left. So a lexer that goes back over any stretch of text is one step a character.
- FEED memoises what a parser is after a terminal.

**Liveness** is known fast where a terminal that can be finished cleanly, whatever follows (Python fills in which:
``LEX_CLEAN``, ``H_CLEAN``), leads the parser on; all else is listed as unknown, for Python to find a witness. Where
that gave up it says NO, and what lies behind counts as dead too.
"""

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# --- header -----------------------------------------------------------
(
    H_TOP, H_CAP, H_FLAG, H_HASH, H_HMASK, H_HCOUNT, H_SINK, H_FRESH, H_EVENT, H_TYPE, H_KEYWORD,
    H_SCRATCH, H_UNKNOWN, H_UNKNOWNS, H_UNKNOWN_CAP,
    H_CLASSES, H_ASCII, H_LEAD, H_CHILDREN, H_LEAF, H_BELOW_START, H_BELOW,
    H_TRANSITIONS, H_FINAL, H_KEYWORDS,
    H_ACTION, H_TERMINALS, H_GOTO, H_NONTERMINALS, H_RULE_SIZE, H_RULE_ORIGIN, H_END, H_END_STATE,
    H_LEXER_OF, H_THREAD_START, H_THREAD, H_TYPES, H_KEYWORD_COUNT, H_IGNORED, H_CLEAN, H_PREPARED, H_DISTRUST,
    H_NEWLINE, H_INDENT, H_DEDENT, H_BRACKET, H_BLANK, H_TAB, H_LINE_END, H_TAB_WIDTH,
    H_TRIE_BYTE, H_TRIE_DEPTH, H_TRIE_END, H_TRIE_TOKEN, H_TRIE_SAME, H_TRIE_SIZE, H_INSIDE, H_OFFSETS, H_BYTES,
    H_EOS, H_EOSES, H_WIDTH, H_LEVEL, H_MASKS, H_MASK_COUNT, H_MASK_CAP, H_EPOCH, H_STACK, H_HEIGHT, H_BASE, H_STATES,
) = range(71)  # fmt: skip
HEADER = 72
SINK_WORDS = 1024  # a record that is read, and never believed, once the flag is up

NODE, INDENT, PARSER, LEX, CONFIG, FEED = range(1, 7)
PAIR_KEY = 2  # of NODE and INDENT: what is below, and the state or column
PARSER_LIVE, PARSER_ENDS, PARSER_NEWLINE, PARSER_WAY, PARSER_KEY = 2, 3, 4, 5, 6
LEX_RESETS, LEX_CLEAN = 2, 3  # as many words as terminals need bits, then the key
CONFIG_LIVE, CONFIG_EPOCH, CONFIG_MASK, CONFIG_LOOPS, CONFIG_KEY, CONFIG_ROW = 2, 3, 4, 5, 6, 10
FEED_VALUE, FEED_KEY = 2, 3

FINAL, PENDING_END = 1, 2  # flags of a terminal automaton's state
UNKNOWN, DEAD, RETRY = -2, 0, -1
YES, NO = 1, 2
HEAP_FULL, HASH_FULL, UNKNOWN_FULL, MASKS_FULL = 1, 2, 4, 8
STATE_BITS = 40
STATE_MASK = (1 << STATE_BITS) - 1
NO_COLUMN = -1
# Sets of classes of characters, folded to so many bits; behind them bits for what is no whole character, and for a set
# that has been computed.
CLASS_BITS, CUT, KNOWN = 60, 1 << 60, 1 << 61
MOST_REDUCTIONS = 1 << 16  # before one terminal, without the stack getting lower than it was
STACK = 64  # states of a stack that are not interned
SUBTREE = 48  # a subtree of so many nodes is worth finding out which characters leave a configuration as it is
HASH_PRIME = 1099511628211

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


@intrinsic
def _wrapped_mul(typingctx, a, b):
    """Multiplication modulo 2**64: numba's own is marked as never overflowing, and hashes are then miscompiled."""

    def codegen(context, builder, signature, args):
        return builder.mul(args[0], args[1])

    return types.int64(types.int64, types.int64), codegen


_byte, _int, _word = _reader(8, signed=False), _reader(32), _reader(64)
_set_int, _set_word = _writer(32), _writer(64)


@_internal
def _set_bit(target, i):
    _set_int(target, i >> 5, _int(target, i >> 5) | (1 << (i & 31)))


# --- memory -----------------------------------------------------------
@_internal
def _raise(h, flag):
    _set_word(h, H_FLAG, _word(h, H_FLAG) | flag)


@_internal
def _intern(h, kind, n, payload):
    """The record of a kind whose key is the first ``n`` words of the scratch. A new one's payload is zero."""
    c, table, mask = _word(h, H_SCRATCH), _word(h, H_HASH), _word(h, H_HMASK)
    x = (kind << 40) + n
    for i in range(n):
        x = _wrapped_mul(x ^ _word(c, i), HASH_PRIME)
        x ^= x >> 31
    head = (kind << 40) | n
    slot = (x ^ (x >> 17)) & mask
    while True:
        r = _word(table, slot)
        if r == 0:
            break
        if _word(h, r) == x and _word(h, r + 1) == head:
            i = 0
            base = r + _key_offset(h, kind)
            while i < n and _word(h, base + i) == _word(c, i):
                i += 1
            if i == n:
                return r
        slot = (slot + 1) & mask
    size = 2 + payload + n
    top = _word(h, H_TOP)
    if 4 * _word(h, H_HCOUNT) > 3 * mask:
        _raise(h, HASH_FULL)
    if top + size > _word(h, H_CAP):
        _raise(h, HEAP_FULL)
    if _word(h, H_FLAG) & (HEAP_FULL | HASH_FULL) != 0:
        return _word(h, H_SINK)
    _set_word(h, H_TOP, top + size)
    _set_word(h, top, x)
    _set_word(h, top + 1, head)
    for i in range(payload + n):
        _set_word(h, top + 2 + i, 0)
    base = top + _key_offset(h, kind)
    for i in range(n):
        _set_word(h, base + i, _word(c, i))
    _set_word(table, slot, top)
    _set_word(h, H_HCOUNT, _word(h, H_HCOUNT) + 1)
    return top


@_internal
def _key_offset(h, kind):
    if kind == LEX:
        return LEX_CLEAN + _bit_words(h)
    if kind == CONFIG:
        return CONFIG_KEY
    if kind == PARSER:
        return PARSER_KEY
    return FEED_KEY if kind == FEED else PAIR_KEY


@_internal
def _bit_words(h):
    return (_word(h, H_TERMINALS) + 63) >> 6


@_internal
def _length(h, r):
    return _word(h, r + 1) & STATE_MASK


@_internal
def _full(h):
    return _word(h, H_FLAG) != 0


@_internal
def _put(h, i, value):
    _set_word(_word(h, H_SCRATCH), i, value)


@_internal
def _pair(h, kind, below, value):
    _put(h, 0, below)
    _put(h, 1, value)
    return _intern(h, kind, 2, 0)


@_internal
def _parser(h, node, indent, brackets):
    _put(h, 0, node)
    _put(h, 1, indent)
    _put(h, 2, brackets)
    return _intern(h, PARSER, 3, PARSER_KEY - 2)


@_internal
def _config(h, parser, d, fallback, column):
    """A configuration. The word behind its key is for `_row`."""
    _put(h, 0, parser)
    _put(h, 1, d)
    _put(h, 2, fallback)
    _put(h, 3, column)
    return _intern(h, CONFIG, 4, CONFIG_KEY - 1)


@_internal
def _fresh(h, parser):
    return _config(h, parser, 0, 0, NO_COLUMN)


# --- the parser -------------------------------------------------------
@_internal
def _stack_of(h, node, height):
    """The stack of ``node`` and the states in H_STACK upon it."""
    for i in range(height):
        node = _pair(h, NODE, node, _word(_word(h, H_STACK), i))
    return node


@_internal
def _reduced(h, node, terminal):
    """Reduce a stack before a terminal: 1 + the state that it is shifted to, or DEAD.

    Most stacks on the way are looked at once, so they are not interned: the stack is then that of H_BASE and H_HEIGHT
    states in H_STACK upon it. The end of the text is not shifted; where it is accepted, the result is 1.

    A rule without symbols, reduced where Lark has resolved a conflict for it, can be reduced again for ever: Lark's
    parser then never returns, so it accepts nothing. The stack that grew by more states than there are has one of them
    twice, and will go round; where it goes round without growing (or takes as good as for ever), the number tells.
    """
    actions, count, states = _word(h, H_ACTION), _word(h, H_TERMINALS), _word(h, H_STACK)
    height, state = 0, _word(h, node + PAIR_KEY + 1)
    grown = reductions = 0  # since the stack was at its lowest
    while not _full(h):
        action = _int(actions, state * count + terminal)
        if action & 1 == 0:
            _set_word(h, H_BASE, node)
            _set_word(h, H_HEIGHT, height)
            return action >> 1
        rule = (action >> 1) - 1
        size = _int(_word(h, H_RULE_SIZE), rule)
        reductions = 0 if size > grown else reductions + 1
        grown = max(grown - size, 0) + 1
        if grown > _word(h, H_STATES) or reductions > MOST_REDUCTIONS:
            return DEAD
        for _ in range(size - height):
            node = _word(h, node + PAIR_KEY)
        height = max(height - size, 0)
        if height == STACK:
            node, height = _stack_of(h, node, height), 0
        state = _word(states, height - 1) if height > 0 else _word(h, node + PAIR_KEY + 1)
        state = _int(_word(h, H_GOTO), state * _word(h, H_NONTERMINALS) + _int(_word(h, H_RULE_ORIGIN), rule))
        if terminal == _word(h, H_END) and state == _word(h, H_END_STATE):
            return 1
        _set_word(states, height, state)
        height += 1
    return DEAD


@_internal
def _shift(h, node, terminal):
    """The stack after a terminal: reductions, then the shift. DEAD if the table has no way."""
    state = _reduced(h, node, terminal)
    if state == DEAD or _full(h):
        return DEAD
    return _pair(h, NODE, _stack_of(h, _word(h, H_BASE), _word(h, H_HEIGHT)), state - 1)


@_internal
def _ends_parser(h, parser):
    """Whether the text may end after a parser state: the indenter closes what is open, then comes the end."""
    known = _word(h, parser + PARSER_ENDS)
    if known != 0:
        return known == YES
    node, indent = _word(h, parser + PARSER_KEY), _word(h, parser + PARSER_KEY + 1)
    while node != DEAD and indent != 0 and _word(h, indent + PAIR_KEY) != 0:
        node = _shift(h, node, _word(h, H_DEDENT))
        indent = _word(h, indent + PAIR_KEY)
    ends = node != DEAD and _reduced(h, node, _word(h, H_END)) != DEAD
    if not _full(h):
        _set_word(h, parser + PARSER_ENDS, YES if ends else NO)
    return ends


@_internal
def _feed_newline(h, parser, column):
    """The parser after a newline token and what the indenter makes of its column."""
    node, indent = _word(h, parser + PARSER_KEY), _word(h, parser + PARSER_KEY + 1)
    if column == NO_COLUMN:
        return DEAD
    node = _shift(h, node, _word(h, H_NEWLINE))
    if node == DEAD:
        return DEAD
    if column > _word(h, indent + PAIR_KEY + 1):
        indent = _pair(h, INDENT, indent, column)
        node = _shift(h, node, _word(h, H_INDENT))
    else:
        while node != DEAD and column < _word(h, indent + PAIR_KEY + 1):
            indent = _word(h, indent + PAIR_KEY)
            node = _shift(h, node, _word(h, H_DEDENT))
        if column != _word(h, indent + PAIR_KEY + 1):
            return DEAD
    return DEAD if node == DEAD else _parser(h, node, indent, 0)


@_internal
def _feed_new(h, parser, terminal, column):
    brackets = _word(h, parser + PARSER_KEY + 2)
    if terminal == _word(h, H_NEWLINE):
        return parser if brackets > 0 else _feed_newline(h, parser, column)
    node = _shift(h, _word(h, parser + PARSER_KEY), terminal)
    if node == DEAD:
        return DEAD
    brackets += _int(_word(h, H_BRACKET), terminal)
    if brackets < 0:
        return DEAD
    return _parser(h, node, _word(h, parser + PARSER_KEY + 1), brackets)


@_internal
def _feed(h, parser, terminal, column):
    """The parser after a terminal that is not ignored; DEAD if it does not fit."""
    if terminal != _word(h, H_NEWLINE):
        column = NO_COLUMN
    _put(h, 0, parser)
    _put(h, 1, terminal)
    _put(h, 2, column)
    memo = _intern(h, FEED, 3, 1)
    known = _word(h, memo + FEED_VALUE)
    if known == 0 or _full(h):
        known = _feed_new(h, parser, terminal, column) + 1
        if not _full(h):
            _set_word(h, memo + FEED_VALUE, known)
    return known - 1


@_internal
def _lexer_of(h, parser):
    return _int(_word(h, H_LEXER_OF), _word(h, _word(h, parser + PARSER_KEY) + PAIR_KEY + 1))


@_internal
def _match(h, parser, terminal, keyword, column):
    """The parser after a lexeme of a terminal whose text is that of some keywords; DEAD if it does not fit."""
    if _int(_word(h, H_IGNORED), terminal) != 0:
        return parser
    if keyword != 0:
        retyped = _int(_word(h, H_TYPES), _lexer_of(h, parser) * _word(h, H_KEYWORD_COUNT) + keyword)
        if retyped >= 0:
            terminal = retyped
    return _feed(h, parser, terminal, column)


# --- the lexer --------------------------------------------------------
@_internal
def _column(h, column, m):
    if m == _word(h, H_LINE_END):
        return 0
    if column >= 0:
        if m == _word(h, H_BLANK):
            return column + 1
        if m == _word(h, H_TAB):
            return column + _word(h, H_TAB_WIDTH)
    return column


@_internal
def _threads(h, parser, d, m):
    """Write the terminals that may still match after a character of class ``m`` behind the lexer into the scratch.

    Their number, and in H_EVENT 1 if a lexeme ends here, 2 if one has ended before the character, else 0; then H_TYPE
    and H_KEYWORD tell of which terminal, and of which keywords its text is.
    """
    _set_word(h, H_EVENT, 0)
    lexer = _lexer_of(h, parser)
    _put(h, 0, lexer)
    if d == 0:
        base = _word(h, H_THREAD) + 8 * _int(_word(h, H_THREAD_START), lexer)
        count = _int(_word(h, H_THREAD_START), lexer + 1) - _int(_word(h, H_THREAD_START), lexer)
    else:
        first = LEX_CLEAN + _bit_words(h) + 1
        base, count = h + 8 * (d + first), _length(h, d) - 1
    transitions, classes, finals = _word(h, H_TRANSITIONS), _word(h, H_CLASSES), _word(h, H_FINAL)
    n = 0
    for i in range(count):
        thread = _word(base, i)
        terminal, q = thread >> 32, thread & 0xFFFFFFFF
        entry = _int(transitions, q * classes + m)
        if entry == 0:
            continue
        after = entry >> 1
        flags = _int(finals, after)
        if flags >> 2 != 0:  # threads are left
            n += 1
            _put(h, n, (terminal << 32) | after)
        if flags & FINAL or entry & 1:
            _set_word(h, H_EVENT, 1 if flags & FINAL else 2)
            _set_word(h, H_TYPE, terminal)
            _set_word(h, H_KEYWORD, _int(_word(h, H_KEYWORDS), after if flags & FINAL else q))
            break
    return n


@_internal
def _has_newline(h, n):
    newline = _word(h, H_NEWLINE)
    for i in range(n):
        if _word(_word(h, H_SCRATCH), 1 + i) >> 32 == newline:
            return True
    return False


@_internal
def _read_first(h, parser, m):
    """The configuration after the first character of a lexeme; DEAD if there is none."""
    n = _threads(h, parser, 0, m)
    event, terminal, keyword = _word(h, H_EVENT), _word(h, H_TYPE), _word(h, H_KEYWORD)
    newline = _word(h, H_NEWLINE) >= 0
    column = _column(h, NO_COLUMN, m) if newline else NO_COLUMN
    kept = column if newline and _has_newline(h, n) else NO_COLUMN
    d = _intern(h, LEX, n + 1, 1 + _bit_words(h)) if n > 0 else 0
    fallback = 0
    if event == 1:
        after = _match(h, parser, terminal, keyword, column)
        fallback = _fresh(h, after) if after != DEAD else 0
    return _config(h, parser, d, fallback, kept) if n > 0 else fallback


@_internal
def _read(h, config, m, below):
    """The configuration after a character, if that of its fallback is ``below``; DEAD if there is none."""
    parser, d = _word(h, config + CONFIG_KEY), _word(h, config + CONFIG_KEY + 1)
    if d == 0:
        return _read_first(h, parser, m)
    n = _threads(h, parser, d, m)
    event, terminal, keyword = _word(h, H_EVENT), _word(h, H_TYPE), _word(h, H_KEYWORD)
    newline = _word(h, H_NEWLINE) >= 0
    before = _word(h, config + CONFIG_KEY + 3)
    column = _column(h, before, m) if newline else NO_COLUMN
    kept = column if newline and _has_newline(h, n) else NO_COLUMN
    lexing = _intern(h, LEX, n + 1, 1 + _bit_words(h)) if n > 0 else 0
    fallback = below
    if event != 0:
        after = _match(h, parser, terminal, keyword, column if event == 1 else before)
        fallback = 0
        if after != DEAD:
            fallback = _fresh(h, after) if event == 1 else _read_first(h, after, m)
    return _config(h, parser, lexing, fallback, kept) if n > 0 else fallback


@_internal
def _row(h, config):
    """Address of a configuration's successors (int32 by class: 0 not known, 1 dead, else an id); 0 if there is no room.

    Most configurations are ends of tokens that are never gone on from, so a row begins when it is asked for.
    """
    row = _word(h, config + CONFIG_ROW)
    if row == 0:
        row, size = _word(h, H_TOP), (_word(h, H_CLASSES) + 1) // 2
        if row + size > _word(h, H_CAP):
            _raise(h, HEAP_FULL)
            return 0
        for i in range(row, row + size):
            _set_word(h, i, 0)
        _set_word(h, H_TOP, row + size)
        _set_word(h, config + CONFIG_ROW, row)
    return h + 8 * row


@_internal
def _step(h, config, m):
    """The configuration after a character of class ``m``; DEAD if there is none. Memoised in its row."""
    row = _row(h, config)
    if row == 0:
        return DEAD
    known = _int(row, m)
    if known != 0:
        return known if known != 1 else DEAD
    # The fallbacks of fallbacks, down to the first whose successor is known or that has none; then back up.
    depth = 0
    current = config
    below = 0
    unknown = _word(h, H_UNKNOWN)  # its far end serves as the stack
    most = _word(h, H_UNKNOWN_CAP) - 1
    while current != 0:
        row = _row(h, current)
        if row == 0:
            return DEAD
        known = _int(row, m)
        if known != 0:
            below = known if known != 1 else DEAD
            break
        if depth + _word(h, H_UNKNOWNS) >= most:
            _raise(h, UNKNOWN_FULL)
            return DEAD
        _set_word(unknown, most - depth, current)
        depth += 1
        current = _word(h, current + CONFIG_KEY + 2)
    while depth > 0:
        depth -= 1
        current = _word(unknown, most - depth)
        below = _read(h, current, m, below)
        if _full(h):
            return DEAD
        _set_int(_row(h, current), m, below if below != DEAD else 1)
    return below


# --- liveness and ends ------------------------------------------------
@_internal
def _live_parser(h, parser):
    """YES, NO or UNKNOWN: whether some text that may come behind any clean lexeme leads from a parser to the end."""
    known = _word(h, parser + PARSER_LIVE)
    if known != 0:
        return known
    lexer, words = _lexer_of(h, parser), _bit_words(h)
    prepared = _int(_word(h, H_PREPARED), lexer) != 0
    way = _first_fit(h, parser, _word(h, H_CLEAN) + 8 * lexer * words) if prepared else -1
    if (way < 0 and not _ends_parser(h, parser)) or _full(h):
        return UNKNOWN
    _set_word(h, parser + PARSER_WAY, way + 1)
    _set_word(h, parser + PARSER_LIVE, YES)
    return YES


@_internal
def _fits(h, parser, terminal):
    """Whether the parser takes a terminal, and then leads on: `_feed` without what comes after."""
    if _word(h, H_DISTRUST) != 0:  # Lark has resolved conflicts: a parser that took it may still be at a dead end
        after = _feed(h, parser, terminal, NO_COLUMN)
        return after != DEAD and _word(h, after + PARSER_LIVE) == YES
    brackets = _word(h, parser + PARSER_KEY + 2)
    if terminal == _word(h, H_NEWLINE):
        return brackets > 0
    if brackets + _int(_word(h, H_BRACKET), terminal) < 0:
        return False
    return _reduced(h, _word(h, parser + PARSER_KEY), terminal) != DEAD


@_internal
def _first_fit(h, parser, bits):
    """The first terminal of a row of bits that the parser takes; -1 if there is none."""
    for w in range(_bit_words(h)):
        rest = _word(bits, w)
        t = 64 * w
        while rest != 0:
            if rest & 1 and _fits(h, parser, t):
                return t
            rest = (rest >> 1) & 0x7FFFFFFFFFFFFFFF
            t += 1
    return -1


@_internal
def _live(h, config):
    """YES, NO or UNKNOWN: whether some text leads from a configuration to the end."""
    known = _word(h, config + CONFIG_LIVE)
    if known != 0:
        return known
    parser, d = _word(h, config + CONFIG_KEY), _word(h, config + CONFIG_KEY + 1)
    if d == 0:
        known = YES if _live_parser(h, parser) == YES else UNKNOWN
    elif _first_fit(h, parser, h + 8 * (d + LEX_CLEAN)) >= 0 or (
        _word(h, d + LEX_RESETS) == YES and _word(h, parser + PARSER_NEWLINE) == YES
    ):
        known = YES
    elif (
        _word(h, config + CONFIG_KEY + 2) == 0
        and _word(h, d + LEX_RESETS) == YES
        and _length(h, d) == 2
        and _word(h, parser + PARSER_NEWLINE) == NO
    ):
        known = NO  # a newline token, and nothing else, where none fits
    else:
        known = UNKNOWN
    if _full(h):
        return UNKNOWN
    if known != UNKNOWN:
        _set_word(h, config + CONFIG_LIVE, known)
    return known


@_internal
def _ends(h, config):
    """Whether the text may end in a configuration."""
    while config != 0:
        parser, d = _word(h, config + CONFIG_KEY), _word(h, config + CONFIG_KEY + 1)
        if d == 0:
            return _ends_parser(h, parser)
        first = d + LEX_CLEAN + _bit_words(h) + 1
        for i in range(_length(h, d) - 1):
            thread = _word(h, first + i)
            q = thread & 0xFFFFFFFF
            if _int(_word(h, H_FINAL), q) & PENDING_END:  # a lookahead that the end satisfies
                keyword = _int(_word(h, H_KEYWORDS), q)
                after = _match(h, parser, thread >> 32, keyword, _word(h, config + CONFIG_KEY + 3))
                return after != DEAD and _ends_parser(h, after)
        config = _word(h, config + CONFIG_KEY + 2)
    return False


@_internal
def _note(h, config):
    """List a configuration whose liveness is not known."""
    n = _word(h, H_UNKNOWNS)
    if 2 * n + 2 >= _word(h, H_UNKNOWN_CAP):
        _raise(h, UNKNOWN_FULL)
        return
    _set_word(_word(h, H_UNKNOWN), n, config)
    _set_word(h, H_UNKNOWNS, n + 1)


@_internal
def _alive(h, state):
    """Whether a state is live; if that is not known, what it depends on is listed and it counts as not."""
    config, node = state & STATE_MASK, state >> STATE_BITS
    if node == 0:
        live = _live(h, config)
        if live == UNKNOWN:
            _note(h, config)
        return live == YES
    first, last = _int(_word(h, H_BELOW_START), node - 1), _int(_word(h, H_BELOW_START), node)
    noted = _word(h, H_UNKNOWNS)
    for i in range(first, last):
        after = _step(h, config, _int(_word(h, H_BELOW), i))
        if after != DEAD:
            live = _live(h, after)
            if live == YES:
                _set_word(h, H_UNKNOWNS, noted)
                return True
            if live == UNKNOWN:
                _note(h, after)
    return False


# --- bytes and masks --------------------------------------------------
@_internal
def _character(h, node, byte):
    """One byte on in the UTF-8 tree from a node (0: between characters): the node after it, -1 if it is not UTF-8, or
    the class of the character that it completes, as ``-2 - class``."""
    if node == 0:
        if byte < 128:
            return -2 - _int(_word(h, H_ASCII), byte)
        return _int(_word(h, H_LEAD), byte - 128) + 1 or -1
    if node < 0 or byte & 0xC0 != 0x80:
        return -1
    child = _int(_word(h, H_CHILDREN), (node - 1) * 64 + (byte & 63))
    if child < 0:
        return -1
    return -2 - child if _int(_word(h, H_LEAF), node - 1) != 0 else child + 1


@_internal
def _byte_step(h, state, byte):
    """The state after a byte, DEAD if there is none; its liveness is not looked at."""
    config, found = state & STATE_MASK, _character(h, state >> STATE_BITS, byte)
    if found == -1:
        return DEAD
    return _step(h, config, -2 - found) if found < -1 else config | (found << STATE_BITS)


@_internal
def _result(h, value):
    """A result, or what must be done before it can be had."""
    if _full(h):
        return RETRY
    return UNKNOWN if _word(h, H_UNKNOWNS) > 0 else value


@_internal
def _advance(h, state, data, size):
    """The live state after some bytes, or DEAD: all states on the way must be live, as in masks."""
    for i in range(size):
        state = _byte_step(h, state, _byte(data, i))
        live = DEAD
        if state != DEAD:
            live = YES if state >> STATE_BITS != 0 else _live(h, state)
        if live == DEAD or live == NO:
            _set_word(h, H_UNKNOWNS, 0)
            return _result(h, DEAD)
        if live == UNKNOWN:
            _note(h, state)
    return _result(h, state if state >> STATE_BITS == 0 or _alive(h, state) else DEAD)


@_internal
def _classes_inside(h, out):
    """For each node of the vocabulary's trie, the set of classes of the characters below it (int64 at address ``out``),
    with CUT if some token there is not of whole characters. Means nothing at nodes within a character."""
    level, size = _word(h, H_LEVEL), _word(h, H_TRIE_SIZE)
    bytes_, depths, tokens = _word(h, H_TRIE_BYTE), _word(h, H_TRIE_DEPTH), _word(h, H_TRIE_TOKEN)
    _set_word(level, 0, 0)
    deepest = 0
    for i in range(size):
        depth = _int(depths, i)
        deepest = max(deepest, depth)
        found = _character(h, _word(level, depth), _byte(bytes_, i))
        own = CUT if found == -1 or (found > 0 and _int(tokens, i) >= 0) else 0
        if found < -1:
            own = 1 << ((-2 - found) % CLASS_BITS)
        _set_word(level, depth + 1, 0 if found < -1 else found)
        _set_word(out, i, own)
    for depth in range(deepest + 2):
        _set_word(level, depth, 0)
    for i in range(size - 1, -1, -1):  # the level below a node holds what its children found
        depth = _int(depths, i)
        below = _word(level, depth + 1)
        _set_word(level, depth + 1, 0)
        _set_word(level, depth, _word(level, depth) | _word(out, i) | below)
        _set_word(out, i, below)
    return 1


@_internal
def _loops(h, config):
    """The classes of characters that leave a configuration as it is, and KNOWN."""
    known = _word(h, config + CONFIG_LOOPS)
    if known != 0:
        return known
    others = 0
    for m in range(_word(h, H_CLASSES)):
        if _step(h, config, m) != config:
            others |= 1 << (m % CLASS_BITS)
    known = (((1 << CLASS_BITS) - 1) & ~others) | KNOWN
    if _full(h):
        return KNOWN
    _set_word(h, config + CONFIG_LOOPS, known)
    return known


@_internal
def _set_tokens(h, bits, lo, hi):
    """Set the bits of the tokens at nodes ``lo`` to ``hi`` of the vocabulary's trie."""
    tokens, same = _word(h, H_TRIE_TOKEN), _word(h, H_TRIE_SAME)
    for i in range(lo, hi):
        token = _int(tokens, i)
        while token >= 0:
            _set_bit(bits, token)
            token = _int(same, token)


@_internal
def _walk(h, state, bits):
    """Set the bits of all tokens after which a state is live."""
    level = _word(h, H_LEVEL)
    _set_word(level, 0, state)
    bytes_, depths, ends = _word(h, H_TRIE_BYTE), _word(h, H_TRIE_DEPTH), _word(h, H_TRIE_END)
    inside, size = _word(h, H_INSIDE), _word(h, H_TRIE_SIZE)
    i = 0
    while i < size:
        depth, end = _int(depths, i), _int(ends, i)
        after = _byte_step(h, _word(level, depth), _byte(bytes_, i))
        if _full(h):
            return
        noted = _word(h, H_UNKNOWNS)
        if after == DEAD or not (_alive(h, after) or _word(h, H_UNKNOWNS) > noted):
            i = end  # what is not known is followed too, so that all of it is found in one walk
            continue
        _set_word(level, depth + 1, after)
        is_whole = end - i >= SUBTREE and after >> STATE_BITS == 0 and _word(inside, i) & ~_loops(h, after) == 0
        following = end if is_whole else i + 1
        _set_tokens(h, bits, i, following)
        i = following


@_internal
def _copy(source, target, width):
    for i in range(width):
        _set_int(target, i, _int(source, i))


@_internal
def _fill(h, state, out):
    """Write the mask of a state."""
    config, node = state & STATE_MASK, state >> STATE_BITS
    width = _word(h, H_WIDTH)
    if node == 0 and _word(h, config + CONFIG_EPOCH) == _word(h, H_EPOCH):
        _copy(_word(h, H_MASKS) + 4 * width * _word(h, config + CONFIG_MASK), out, width)
        return 1
    for i in range(width):
        _set_int(out, i, 0)
    _walk(h, state, out)
    if node == 0 and _ends(h, config):
        for i in range(_word(h, H_EOSES)):
            _set_bit(out, _int(_word(h, H_EOS), i))
    if node == 0 and not _full(h) and _word(h, H_UNKNOWNS) == 0:
        place = _word(h, H_MASK_COUNT)
        if place == _word(h, H_MASK_CAP):  # forget all masks
            place = 0
            _set_word(h, H_EPOCH, _word(h, H_EPOCH) + 1)
        _copy(out, _word(h, H_MASKS) + 4 * width * place, width)
        _set_word(h, H_MASK_COUNT, place + 1)
        _set_word(h, config + CONFIG_MASK, place)
        _set_word(h, config + CONFIG_EPOCH, _word(h, H_EPOCH))
    return _result(h, 1)


@_internal
def _next_bytes(h, state, out):
    for byte in range(256):
        after = _byte_step(h, state, byte)
        if after != DEAD and _alive(h, after):
            _set_bit(out, byte)
    return _result(h, 1)


@_internal
def _rehash(h, old, size):
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
def _start(h, state):
    """The configuration before all text."""
    indent = _pair(h, INDENT, 0, 0) if _word(h, H_NEWLINE) >= 0 else 0
    return _fresh(h, _parser(h, _pair(h, NODE, 0, state), indent, 0))


(
    FILL, ACCEPT, ADVANCE, ENDS, NEXT_BYTES, START, REHASH, STEP, FEED_TERMINAL, LIVE, ENDS_PARSER, FRESH,
    CLASSES_INSIDE,
) = range(13)  # fmt: skip


@njit(types.int64(types.int64, types.int64, types.int64, types.int64, types.int64), cache=True)
def run(root, operation, x, y, z):
    """Run an operation on the heap whose address stands at address ``root``.

    It holds the GIL: each call is atomic, which is what matchers that share a heap rely on.

    ==============  ====================================  =====================================
    operation       x, y, z                               result
    ==============  ====================================  =====================================
    FILL            state, address of a mask row          1
    ACCEPT          state, token                          state or DEAD
    ADVANCE         state, address, bytes                 state or DEAD
    ENDS            state                                 1 or 0
    NEXT_BYTES      state, address of 256 bits            1
    START           first state of the parser             configuration
    REHASH          address of the old table, its size    1
    STEP            configuration, class                  configuration or DEAD
    FEED_TERMINAL   parser, terminal, column              parser or DEAD
    LIVE            configuration                         YES, NO or UNKNOWN
    ENDS_PARSER     parser                                1 or 0
    FRESH           parser                                configuration
    CLASSES_INSIDE  address of int64[trie nodes]          1
    ==============  ====================================  =====================================

    Any may return RETRY: ``H_FLAG`` tells what there was too little of. The first five may return UNKNOWN: the first
    H_UNKNOWNS words of H_UNKNOWN are configurations whose ``CONFIG_LIVE`` must be set before the call is repeated.
    """
    h = _word(root, 0)
    _set_word(h, H_UNKNOWNS, 0)
    if operation == FILL:
        return _fill(h, x, y)
    if operation == ACCEPT:
        first = _int(_word(h, H_OFFSETS), y)
        size = _int(_word(h, H_OFFSETS), y + 1) - first
        return _advance(h, x, _word(h, H_BYTES) + first, size) if size > 0 else DEAD
    if operation == ADVANCE:
        return _advance(h, x, y, z)
    if operation == NEXT_BYTES:
        return _next_bytes(h, x, y)
    if operation == REHASH:
        return _rehash(h, x, y)
    if operation == CLASSES_INSIDE:
        return _classes_inside(h, x)
    result = 0
    if operation == ENDS:
        result = 1 if x >> STATE_BITS == 0 and _ends(h, x) else 0
    elif operation == START:
        result = _start(h, x)
    elif operation == STEP:
        result = _step(h, x, y)
    elif operation == FEED_TERMINAL:
        result = _feed(h, x, y, z)
    elif operation == LIVE:
        result = _live(h, x)
    elif operation == ENDS_PARSER:
        result = 1 if _ends_parser(h, x) else 0
    else:
        result = _fresh(h, x)
    return RETRY if _full(h) else result


call = run.overloads[run.signatures[0]].entry_point
"""``run`` without numba's dispatcher: the arguments must be int."""
