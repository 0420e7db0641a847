"""The lexer: states of the automata of the terminals that are being read."""

from structgen.core.kernels.cfg.automata import lasts, next_position, same_edges
from structgen.core.kernels.cfg.buffers import intern, pair, push, sort_unique
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import half, lacks_room, length, set_half, set_word, word
from structgen.core.kernels.jit import internal


@internal
def _push_ignored(h, p):
    """Append to C the position of an ignored terminal where a lexeme may begin, as one that goes on alike, if any does.

    So the state behind white space is mostly the one before it.
    """
    first, end = edges_from(h, p), edges_from(h, p + 1)
    for e in range(first, end):
        if same_edges(h, p, edge_at(h, 3 * e + 2)):
            push(h, H_C, edge_at(h, 3 * e + 2))
            return
    if first < end:
        push(h, H_C, p)


@internal
def _push_starts(h, classes):
    """Append to C where a lexeme may begin: the terminals of a set, and the ignored ones."""
    for i in range(length(h, classes)):
        t = word(h, classes + CLASSES_KEY + i)
        for j in range(starts_from(h, t), starts_from(h, t + 1)):
            push(h, H_C, start_at(h, j))
    for i in range(word(h, H_IGNOREDS)):
        _push_ignored(h, ignored_at(h, i))


@internal
def join(h, a, b):
    """The lexer state of the positions of two that have the same terminal set."""
    if a == b:
        return a
    memo = pair(h, GOTO, -a, b, 1)
    value = word(h, memo + GOTO_VALUE)
    if value != 0 and not lacks_room(h):
        return value
    start = word(h, H_CTOP)
    push(h, H_C, word(h, a + LEX_KEY))
    for d in (a, b):
        for i in range(1, length(h, d)):
            push(h, H_C, word(h, d + LEX_KEY + i))
    value = lex_of(h, start)
    if not lacks_room(h):
        set_word(h, memo + GOTO_VALUE, value)
    return value


@internal
def any_lex(h, classes):
    """The first lexer state that goes on with any terminals after each terminal."""
    start = word(h, H_CTOP)
    push(h, H_C, -classes)
    _push_starts(h, classes)
    return lex_of(h, start)


@internal
def first_lex(h, classes):
    """The first lexer state where a set of terminals may be read."""
    start = word(h, H_CTOP)
    push(h, H_C, classes if word(h, H_IGNOREDS) > 0 else 0)
    _push_starts(h, classes)
    return lex_of(h, start)


@internal
def lex_of(h, start):
    """The lexer state whose terminal set (0: none) and positions lie on C from ``start`` on."""
    sort_unique(h, H_C, start + 1)
    d = intern(h, LEX, start, LEX_KEY - 2)
    if not lacks_room(h) and word(h, d + LEX_BUILT) == 0:
        _build_lex(h, d)
    return d


@internal
def _build_lex(h, d):
    """Find what a new lexer state accepts, and for which bytes it has transitions."""
    pseudo = word(h, H_PSEUDO)
    for i in range(128):
        set_word(h, d + LEX_TABLE + i, -1)
    start, ends = word(h, H_CTOP), 0
    for i in range(1, length(h, d)):
        p = word(h, d + LEX_KEY + i)
        for e in range(edges_from(h, p), edges_from(h, p + 1)):
            for byte in range(edge_at(h, 3 * e), edge_at(h, 3 * e + 1) + 1):
                set_half(h, 2 * (d + LEX_TABLE) + byte, -2)
        if is_accepting(h, p) and class_of(h, p) >= 0 and word(h, d + LEX_KEY) >= 0:
            if class_of(h, p) >= pseudo:
                ends |= 1 if class_of(h, p) == word(h, H_TERMINALS) else 2
            else:
                push(h, H_C, class_of(h, p))
    classes = 0
    if word(h, H_CTOP) > start:
        sort_unique(h, H_C, start)
        classes = intern(h, CLASSES, start, 0)
    if not lacks_room(h):
        set_word(h, d + LEX_ACCEPTS, classes)
        set_word(h, d + LEX_ENDS, ends)
        set_word(h, d + LEX_BUILT, 1)


@internal
def _find_step(h, d, byte):
    """Find a transition of the lexer that is not known yet and has a target."""
    start, boundary, classes = word(h, H_CTOP), 0, word(h, d + LEX_KEY)
    push(h, H_C, min(classes, 0))
    for i in range(1, length(h, d)):
        q = next_position(h, word(h, d + LEX_KEY + i), byte)
        if q >= 0:
            if class_of(h, q) < 0 and not lacks_room(h):  # else ``start`` may lie behind the buffer
                set_c_at(h, start, classes)
            if (class_of(h, q) < 0 or classes < 0) and is_accepting(h, q):
                boundary = 1
            if class_of(h, q) < 0 and is_accepting(h, q):
                _push_ignored(h, q)
            else:
                push(h, H_C, q)
    if boundary:
        _push_starts(h, abs(classes))
    target = lex_of(h, start)
    if not lacks_room(h):
        set_half(h, 2 * (d + LEX_TABLE) + byte, target)
        return target
    return -1


@internal
def step(h, d, byte):
    """The lexer state after a byte, or -1."""
    target = half(h, 2 * (d + LEX_TABLE) + byte)
    return target if target != -2 else _find_step(h, d, byte)


@internal
def loops(h, d):
    """Kinds of bytes that one of the positions of a lexer state survives for ever."""
    cached = word(h, d + LEX_LOOPS)
    if cached != 0:
        return cached
    best, most = KNOWN, 0
    for i in range(1, length(h, d)):
        kinds = lasts(h, word(h, d + LEX_KEY + i))
        count, left = 0, kinds
        while left != 0:
            left &= left - 1
            count += 1
        if count > most:
            best, most = kinds, count
    if not lacks_room(h):
        set_word(h, d + LEX_LOOPS, best)
    return best
