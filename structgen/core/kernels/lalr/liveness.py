"""Liveness and ends: whether some text leads from a state to the end, as far as the kernel can tell."""

from structgen.core.kernels.interning import lacks_room, length, raise_flag, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.lexer import step
from structgen.core.kernels.lalr.parser import feed, match_lexeme, parser_ends, reduced
from structgen.core.kernels.lalr.records import bit_words, lex_key, lexer_of
from structgen.core.kernels.lalr.tables import *
from structgen.core.kernels.memory import element, size


@internal
def _live_parser(h, parser):
    """YES, NO or UNKNOWN: whether some text that may come behind any clean lexeme leads from a parser to the end."""
    cached = word(h, parser + PARSER_LIVE)
    if cached != 0:
        return cached
    if word(h, H_PROVED) != 0 and word(h, _class_of(h, parser) + CLASS_LIVE) == YES:
        set_word(h, parser + PARSER_LIVE, YES)
        return YES
    lexer, words = lexer_of(h, parser), bit_words(h)
    prepared = is_prepared(h, lexer) != 0
    completion = _first_fit(h, parser, H_CLEAN, lexer * words) if prepared else -1
    if (completion < 0 and not parser_ends(h, parser)) or lacks_room(h):
        return UNKNOWN
    set_word(h, parser + PARSER_COMPLETION, completion + 1)
    set_word(h, parser + PARSER_LIVE, YES)
    return YES


@internal
def _fits(h, parser, terminal):
    """Whether the parser takes a terminal, and then leads on: `feed` without what comes after."""
    if terminal == word(h, H_END):  # no lexeme
        return False
    if word(h, H_DISTRUST) != 0:  # Lark has resolved conflicts: a parser that took it may still be at a dead end
        after = feed(h, parser, terminal, NO_COLUMN)
        return after != DEAD and word(h, after + PARSER_LIVE) == YES
    brackets = word(h, parser + PARSER_KEY + 2)
    if terminal == word(h, H_NEWLINE):
        return brackets > 0
    if brackets + bracket_of(h, terminal) < 0:
        return False
    return reduced(h, word(h, parser + PARSER_KEY), terminal) != DEAD


@internal
def _first_fit(h, parser, table, offset):
    """The first terminal, of a row of bits at a place of a table, that the parser takes; -1 if there is none."""
    for w in range(bit_words(h)):
        remaining = element(h, table, offset + w)
        t = 64 * w
        while remaining != 0:
            if remaining & 1 and _fits(h, parser, t):
                return t
            remaining = (remaining >> 1) & 0x7FFFFFFFFFFFFFFF
            t += 1
    return -1


@internal
def _class_of(h, parser):
    """The class of a parser's stack."""
    return word(h, word(h, parser + PARSER_KEY) + NODE_CLASS)


@internal
def _leads_on(h, parser, offset, idle):
    """Whether a terminal of a row of bits at a place of the heap, read next, leads to the end, as far as proofs tell.

    The end of the text, which is no lexeme, stands for what is ignored, where ``idle`` is the answer. So are newlines
    within brackets.
    """
    group, end, newline = _class_of(h, parser), word(h, H_END), word(h, H_NEWLINE)
    ignored = (word(h, offset + (end >> 6)) >> (end & 63)) & 1 != 0
    if newline >= 0 and word(h, parser + PARSER_KEY + 2) > 0:
        ignored |= (word(h, offset + (newline >> 6)) >> (newline & 63)) & 1 != 0
    if ignored and idle:
        return True
    for w in range(bit_words(h)):
        both = word(h, offset + w) & word(h, group + CLASS_FITS + w)
        if w == end >> 6:
            both &= ~(1 << (end & 63))
        if both != 0:
            return True
    return False


@internal
def _takes_nothing(h, parser):
    """Whether no terminal and no end of the text can come behind a parser; as far as proofs tell."""
    group, indent = _class_of(h, parser), word(h, H_INDENT)
    for w in range(bit_words(h)):
        fitting = word(h, group + CLASS_FITS + w)
        if indent >= 0 and w == indent >> 6:
            fitting &= ~(1 << (indent & 63))
        if fitting != 0:
            return False
    return True


@internal
def _by_class(h, config):
    """YES, NO or UNKNOWN: whether some text leads from a configuration to the end, as far as proofs tell.

    A lexeme that yields is given up at the next character that may follow a word: then its fallback tells.
    """
    dead, sure = word(h, H_EXACT) != 0, True
    while config != 0 and (sure or dead):
        if config == BELOW:
            return UNKNOWN
        parser, d = word(h, config + CONFIG_KEY), word(h, config + CONFIG_KEY + 1)
        if d == 0:
            if sure and word(h, _class_of(h, parser) + CLASS_LIVE) == YES:
                return YES
            return NO if dead and _takes_nothing(h, parser) else UNKNOWN
        if word(h, d + LEX_RESETS) == 0:  # not prepared
            return UNKNOWN
        live = word(h, _class_of(h, parser) + CLASS_LIVE) == YES
        if sure and _leads_on(h, parser, d + LEX_CLEAN, live):
            return YES
        possible = d + LEX_CLEAN + bit_words(h)
        dead = dead and not _leads_on(h, parser, possible, not _takes_nothing(h, parser))
        sure = sure and word(h, d + LEX_YIELDS) == YES
        config = word(h, config + CONFIG_KEY + 2)
    return NO if dead else UNKNOWN


@internal
def _is_prepared(h, config):
    """Whether all is known of the lexer states of a configuration and its fallbacks."""
    while config != 0 and config != BELOW:
        d = word(h, config + CONFIG_KEY + 1)
        if d != 0 and word(h, d + LEX_RESETS) == 0:
            return False
        config = word(h, config + CONFIG_KEY + 2)
    return True


@internal
def _live_cut(h, config):
    """YES, NO or UNKNOWN: whether a configuration is live, whatever lies below where its stack is cut."""
    if config == BELOW:
        return UNKNOWN
    liveness = word(h, config + CONFIG_LIVE)
    if liveness != 0:
        return liveness
    liveness = _by_class(h, config)
    if liveness != UNKNOWN and not lacks_room(h):
        set_word(h, config + CONFIG_LIVE, liveness)
    elif liveness == UNKNOWN and not _is_prepared(h, config):
        note(h, -config)
    return liveness


@internal
def live_state(h, state, is_cut):
    """YES, NO or UNKNOWN: whether a state is live; what must be known for that is listed, unless it is cut off."""
    noted = word(h, H_UNKNOWNS)
    if not is_cut:
        return YES if is_alive(h, state) else UNKNOWN if word(h, H_UNKNOWNS) > noted else NO
    config, node = state & STATE_MASK, state >> STATE_BITS
    if node == 0:
        return _live_cut(h, config)
    live = NO
    for i in range(below_from(h, node - 1), below_from(h, node)):
        after = step(h, config, below_at(h, i))
        liveness = _live_cut(h, after) if after != DEAD else NO
        if liveness == YES:
            set_word(h, H_UNKNOWNS, noted)
            return YES
        if liveness == UNKNOWN:
            live = UNKNOWN
    return live


@internal
def live_config(h, config):
    """YES, NO or UNKNOWN: whether some text leads from a configuration to the end."""
    liveness = word(h, config + CONFIG_LIVE)
    if liveness != 0:
        return liveness
    parser, d = word(h, config + CONFIG_KEY), word(h, config + CONFIG_KEY + 1)
    liveness = _by_class(h, config) if word(h, H_PROVED) != 0 else UNKNOWN
    if liveness != UNKNOWN:
        pass
    elif d == 0:
        liveness = YES if _live_parser(h, parser) == YES else UNKNOWN
    elif _first_fit(h, parser, H_HEAP, d + LEX_CLEAN) >= 0 or (
        word(h, d + LEX_RESETS) == YES and word(h, parser + PARSER_NEWLINE) == YES
    ):
        liveness = YES
    elif (
        word(h, config + CONFIG_KEY + 2) == 0
        and word(h, d + LEX_RESETS) == YES
        and length(h, d) == 2
        and word(h, parser + PARSER_NEWLINE) == NO
    ):
        liveness = NO  # a newline token, and nothing else, where none fits
    else:
        liveness = UNKNOWN
    if lacks_room(h):
        return UNKNOWN
    if liveness != UNKNOWN:
        set_word(h, config + CONFIG_LIVE, liveness)
        if d == 0:
            set_word(h, parser + PARSER_LIVE, liveness)
    return liveness


@internal
def config_ends(h, config):
    """Whether the text may end in a configuration."""
    while config != 0:
        parser, d = word(h, config + CONFIG_KEY), word(h, config + CONFIG_KEY + 1)
        if d == 0:
            return parser_ends(h, parser)
        first = d + lex_key(h) + 1
        for i in range(length(h, d) - 1):
            candidate = word(h, first + i)
            q = candidate & 0xFFFFFFFF
            if flags_of(h, q) & PENDING_END:  # a lookahead that the end satisfies
                keyword = keywords_of(h, q)
                after = match_lexeme(h, parser, candidate >> 32, keyword, word(h, config + CONFIG_KEY + 3))
                return after != DEAD and parser_ends(h, after)
        config = word(h, config + CONFIG_KEY + 2)
    return False


@internal
def note(h, config):
    """List a configuration whose liveness is not known."""
    n = word(h, H_UNKNOWNS)
    if 2 * n + 2 >= size(h, unknown_at):
        raise_flag(h, UNKNOWN_FULL)
        return
    set_unknown_at(h, n, config)
    set_word(h, H_UNKNOWNS, n + 1)


@internal
def is_alive(h, state):
    """Whether a state is live; if that is not known, what it depends on is listed and it counts as not."""
    config, node = state & STATE_MASK, state >> STATE_BITS
    if node == 0:
        live = live_config(h, config)
        if live == UNKNOWN:
            note(h, config)
        return live == YES
    first, last = below_from(h, node - 1), below_from(h, node)
    noted = word(h, H_UNKNOWNS)
    for i in range(first, last):
        after = step(h, config, below_at(h, i))
        if after != DEAD:
            live = live_config(h, after)
            if live == YES:
                set_word(h, H_UNKNOWNS, noted)
                return True
            if live == UNKNOWN:
                note(h, after)
    return False
