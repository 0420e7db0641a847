"""The lexer: a character on in the automata of the terminals that may still match, and in the fallbacks."""

from structgen.core.kernels.interning import allocate, half, lacks_room, length, raise_flag, set_half, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.parser import match_lexeme
from structgen.core.kernels.lalr.records import config_of, fresh_config, intern, lex_key, lexer_of, put
from structgen.core.kernels.lalr.tables import *
from structgen.core.kernels.memory import element, size


@internal
def _column_after(h, column, m):
    """The column of the text within a newline token after a character of class ``m``."""
    if m == word(h, H_LINE_END):
        return 0
    if column >= 0:
        if m == word(h, H_BLANK):
            return column + 1
        if m == word(h, H_TAB):
            return column + word(h, H_TAB_WIDTH)
    return column


@internal
def _scan(h, parser, d, m):
    """Write the terminals that may still match after a character of class ``m`` behind the lexer into the scratch.

    Their number, and in H_EVENT 1 if a lexeme ends here, 2 if one has ended before the character, else 0; then H_TYPE
    and H_KEYWORD tell of which terminal, and of which keywords its text is.
    """
    set_word(h, H_EVENT, 0)
    lexer = lexer_of(h, parser)
    put(h, 0, lexer)
    if d == 0:
        table, first = H_LEXER_START, starts_from(h, lexer)
        count = starts_from(h, lexer + 1) - first
    else:
        table, first = H_HEAP, d + lex_key(h) + 1
        count = length(h, d) - 1
    classes = word(h, H_CLASSES)
    n = 0
    for i in range(count):
        candidate = element(h, table, first + i)
        terminal, q = candidate >> 32, candidate & 0xFFFFFFFF
        entry = transition_at(h, q * classes + m)
        if entry == 0:
            continue
        after = entry >> 1
        flags = flags_of(h, after)
        if flags >> 2 != 0:  # threads are left
            n += 1
            put(h, n, (terminal << 32) | after)
        if flags & FINAL or entry & 1:
            set_word(h, H_EVENT, 1 if flags & FINAL else 2)
            set_word(h, H_TYPE, terminal)
            set_word(h, H_KEYWORD, keywords_of(h, after if flags & FINAL else q))
            break
    return n


@internal
def _has_newline(h, n):
    """Whether the newline is among the ``n`` terminals on the scratch."""
    newline = word(h, H_NEWLINE)
    for i in range(n):
        if scratch_at(h, 1 + i) >> 32 == newline:
            return True
    return False


@internal
def _read_first(h, parser, m):
    """The configuration after the first character of a lexeme; DEAD if there is none."""
    n = _scan(h, parser, 0, m)
    event, terminal, keyword = word(h, H_EVENT), word(h, H_TYPE), word(h, H_KEYWORD)
    newline = word(h, H_NEWLINE) >= 0
    column = _column_after(h, NO_COLUMN, m) if newline else NO_COLUMN
    kept = column if newline and _has_newline(h, n) else NO_COLUMN
    d = intern(h, LEX, n + 1, lex_key(h) - 2) if n > 0 else 0
    fallback = 0
    if event == 1:
        after = match_lexeme(h, parser, terminal, keyword, column)
        fallback = after if after == DEAD or after == BELOW else fresh_config(h, after)
    return config_of(h, parser, d, fallback, kept) if n > 0 else fallback


@internal
def _read_character(h, config, m, below):
    """The configuration after a character, if that of its fallback is ``below``; DEAD if there is none."""
    parser, d = word(h, config + CONFIG_KEY), word(h, config + CONFIG_KEY + 1)
    if d == 0:
        return _read_first(h, parser, m)
    n = _scan(h, parser, d, m)
    event, terminal, keyword = word(h, H_EVENT), word(h, H_TYPE), word(h, H_KEYWORD)
    newline = word(h, H_NEWLINE) >= 0
    before = word(h, config + CONFIG_KEY + 3)
    column = _column_after(h, before, m) if newline else NO_COLUMN
    kept = column if newline and _has_newline(h, n) else NO_COLUMN
    lexing = intern(h, LEX, n + 1, lex_key(h) - 2) if n > 0 else 0
    fallback = below
    if event != 0:
        after = match_lexeme(h, parser, terminal, keyword, column if event == 1 else before)
        fallback = after
        if after != DEAD and after != BELOW:
            fallback = fresh_config(h, after) if event == 1 else _read_first(h, after, m)
    return config_of(h, parser, lexing, fallback, kept) if n > 0 else fallback


@internal
def _row_of(h, config):
    """Place of a configuration's successors (int32 by class: 0 not known, 1 dead, else an id); 0: no room.

    Most configurations are ends of tokens that are never gone on from, so a row begins when it is asked for.
    """
    row = word(h, config + CONFIG_ROW)
    if row == 0:
        count = (word(h, H_CLASSES) + 1) // 2
        row = allocate(h, count)
        if row == word(h, H_SINK):
            return 0
        for i in range(row, row + count):
            set_word(h, i, 0)
        set_word(h, config + CONFIG_ROW, row)
    return row


@internal
def step(h, config, m):
    """The configuration after a character of class ``m``; DEAD if there is none; or BELOW. Memoised in its row."""
    row = _row_of(h, config)
    if row == 0:
        return DEAD
    cached = half(h, 2 * row + m)
    if cached != 0:
        return cached if cached != 1 else DEAD
    # The fallbacks of fallbacks, down to the first whose successor is known or that has none; then back up.
    depth = 0
    current = config
    below = 0
    most = size(h, unknown_at) - 1  # the far end of what is unknown serves as the stack
    while current != 0:
        if current == BELOW:
            below = BELOW
            break
        row = _row_of(h, current)
        if row == 0:
            return DEAD
        cached = half(h, 2 * row + m)
        if cached != 0:
            below = cached if cached != 1 else DEAD
            break
        if depth + word(h, H_UNKNOWNS) >= most:
            raise_flag(h, UNKNOWN_FULL)
            return DEAD
        set_unknown_at(h, most - depth, current)
        depth += 1
        current = word(h, current + CONFIG_KEY + 2)
    while depth > 0:
        depth -= 1
        current = unknown_at(h, most - depth)
        below = _read_character(h, current, m, below)
        if lacks_room(h):
            return DEAD
        set_half(h, 2 * _row_of(h, current) + m, below if below != DEAD else 1)
    return below
