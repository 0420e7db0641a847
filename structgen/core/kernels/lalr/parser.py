"""The parser: shifts and reductions by the table, and what an indenter makes of newlines."""

from structgen.core.kernels.interning import lacks_room, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.lalr.classes import class_above, first_class
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.records import fresh_config, intern, lexer_of, pair, parser_of, put
from structgen.core.kernels.lalr.tables import *


@internal
def _stack_of(h, node, height):
    """The stack of ``node`` and the states in stack_at upon it."""
    for i in range(height):
        node = stacked(h, node, stack_at(h, i))
    return node


@internal
def stacked(h, below, state):
    """A stack: what is below, and the state on top."""
    node = pair(h, NODE, below, state)
    if word(h, H_PROVED) != 0 and word(h, node + NODE_CLASS) == 0 and not lacks_room(h):
        group = class_above(h, word(h, below + NODE_CLASS), state) if below != 0 else first_class(h, state)
        if not lacks_room(h):
            set_word(h, node + NODE_CLASS, group)
    return node


@internal
def start_config(h, state):
    """The configuration before all text."""
    indent = pair(h, INDENT, 0, 0) if word(h, H_NEWLINE) >= 0 else 0
    return fresh_config(h, parser_of(h, stacked(h, 0, state), indent, 0))


@internal
def reduced(h, node, terminal):
    """Reduce a stack before a terminal: 1 + the state that it is shifted to, DEAD, or DEEPER if that goes below a cut.

    Most stacks on the way are looked at once, so they are not interned: the stack is then that of H_BASE and H_HEIGHT
    states in stack_at upon it. The end of the text is not shifted; where it is accepted, the result is 1.

    A rule without symbols, reduced where Lark has resolved a conflict for it, can be reduced again for ever: Lark's
    parser then never returns, so it accepts nothing. The stack that grew by more states than there are has one of them
    twice, and will go round; where it goes round without growing (or takes as good as for ever), the number tells.
    """
    count = word(h, H_TERMINALS)
    height, state = 0, word(h, node + PAIR_KEY + 1)
    grown = reductions = 0  # since the stack was at its lowest
    while not lacks_room(h):
        action = action_at(h, state * count + terminal)
        if action & 1 == 0:
            set_word(h, H_BASE, node)
            set_word(h, H_HEIGHT, height)
            return action >> 1
        rule = (action >> 1) - 1
        size = rule_size(h, rule)
        reductions = 0 if size > grown else reductions + 1
        grown = max(grown - size, 0) + 1
        if grown > word(h, H_STATES) or reductions > MOST_REDUCTIONS:
            return DEAD
        for _ in range(size - height):
            node = word(h, node + PAIR_KEY)
            if node < 0:
                return DEEPER
        height = max(height - size, 0)
        if height == STACK:
            node, height = _stack_of(h, node, height), 0
        state = stack_at(h, height - 1) if height > 0 else word(h, node + PAIR_KEY + 1)
        state = goto_at(h, state * word(h, H_NONTERMINALS) + rule_origin(h, rule))
        if terminal == word(h, H_END) and state == word(h, H_END_STATE):
            return 1
        set_stack_at(h, height, state)
        height += 1
    return DEAD


@internal
def _shift(h, node, terminal):
    """The stack after a terminal: reductions, then the shift. DEAD if the table has no way; or BELOW."""
    if node == BELOW:
        return BELOW
    state = reduced(h, node, terminal)
    if state == DEEPER:
        return BELOW
    if state == DEAD or lacks_room(h):
        return DEAD
    return stacked(h, _stack_of(h, word(h, H_BASE), word(h, H_HEIGHT)), state - 1)


@internal
def parser_ends(h, parser):
    """Whether the text may end after a parser state: the indenter closes what is open, then comes the end."""
    cached = word(h, parser + PARSER_ENDS)
    if cached != 0:
        return cached == YES
    node, indent = word(h, parser + PARSER_KEY), word(h, parser + PARSER_KEY + 1)
    while node != DEAD and indent != 0 and word(h, indent + PAIR_KEY) != 0:
        node = _shift(h, node, word(h, H_DEDENT))
        indent = word(h, indent + PAIR_KEY)
    ends = node != DEAD and reduced(h, node, word(h, H_END)) != DEAD
    if not lacks_room(h):
        set_word(h, parser + PARSER_ENDS, YES if ends else NO)
    return ends


@internal
def _feed_newline(h, parser, column):
    """The parser after a newline token and what the indenter makes of its column."""
    node, indent = word(h, parser + PARSER_KEY), word(h, parser + PARSER_KEY + 1)
    if column == NO_COLUMN:
        return DEAD
    node = _shift(h, node, word(h, H_NEWLINE))
    if node == DEAD or node == BELOW:
        return node
    if column > word(h, indent + PAIR_KEY + 1):
        indent = pair(h, INDENT, indent, column)
        node = _shift(h, node, word(h, H_INDENT))
    else:
        while node != DEAD and column < word(h, indent + PAIR_KEY + 1):
            indent = word(h, indent + PAIR_KEY)
            node = _shift(h, node, word(h, H_DEDENT))
        if column != word(h, indent + PAIR_KEY + 1):
            return DEAD
    return node if node == DEAD or node == BELOW else parser_of(h, node, indent, 0)


@internal
def _feed_new(h, parser, terminal, column):
    """`feed`, not remembered yet."""
    brackets = word(h, parser + PARSER_KEY + 2)
    if terminal == word(h, H_NEWLINE):
        return parser if brackets > 0 else _feed_newline(h, parser, column)
    node = _shift(h, word(h, parser + PARSER_KEY), terminal)
    if node == DEAD or node == BELOW:
        return node
    brackets += bracket_of(h, terminal)
    if brackets < 0:
        return DEAD
    return parser_of(h, node, word(h, parser + PARSER_KEY + 1), brackets)


@internal
def feed(h, parser, terminal, column):
    """The parser after a terminal that is not ignored; DEAD if it does not fit; or BELOW."""
    if terminal != word(h, H_NEWLINE):
        column = NO_COLUMN
    put(h, 0, parser)
    put(h, 1, terminal)
    put(h, 2, column)
    memo = intern(h, FEED, 3, 1)
    value = word(h, memo + FEED_VALUE)
    if value == 0 or lacks_room(h):
        value = _feed_new(h, parser, terminal, column) + 1
        if not lacks_room(h):
            set_word(h, memo + FEED_VALUE, value)
    return value - 1


@internal
def match_lexeme(h, parser, terminal, keyword, column):
    """The parser after a lexeme of a terminal whose text is that of some keywords; DEAD if it does not fit."""
    if is_ignored(h, terminal) != 0:
        return parser
    if keyword != 0:
        retyped = retyped_at(h, lexer_of(h, parser) * word(h, H_KEYWORD_COUNT) + keyword)
        if retyped >= 0:
            terminal = retyped
    return feed(h, parser, terminal, column)
