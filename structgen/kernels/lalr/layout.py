"""The layout of the LALR machine: its header, records, results, operations. No code is here."""

from structgen.kernels.heap_layout import *

# --- tables: the place of each one's address; behind it stands its length in elements -----------
(
    H_SCRATCH, H_UNKNOWN, H_LEVEL, H_MASKS, H_STACK,  # working memory, and the masks that were found
    H_ASCII, H_LEAD, H_CHILDREN, H_LEAF, H_BELOW_START, H_BELOW,  # classes of characters, the UTF-8 tree
    H_TRANSITIONS, H_FINAL, H_KEYWORDS, H_THREAD_START, H_THREAD,  # the terminals' automata, the lexers
    H_ACTION, H_GOTO, H_RULE_SIZE, H_RULE_ORIGIN, H_LEXER_OF, H_TYPES, H_IGNORED, H_BRACKET,  # the parser
    H_CLEAN, H_PREPARED,
    H_TRIE_BYTE, H_TRIE_DEPTH, H_TRIE_END, H_TRIE_TOKEN, H_TRIE_SAME, H_INSIDE, H_OFFSETS, H_BYTES, H_EOS,
) = range(FIRST_PLACE, FIRST_PLACE + 2 * 35, 2)  # fmt: skip
# --- numbers ---
(
    H_EVENT, H_TYPE, H_KEYWORD,  # what the lexer says of a character
    H_UNKNOWNS, H_HEIGHT, H_BASE,
    H_CLASSES, H_TERMINALS, H_NONTERMINALS, H_STATES, H_END, H_END_STATE, H_KEYWORD_COUNT, H_DISTRUST,
    H_NEWLINE, H_INDENT, H_DEDENT, H_BLANK, H_TAB, H_LINE_END, H_TAB_WIDTH,
    H_TRIE_SIZE, H_EOSES, H_WIDTH, H_MASK_COUNT, H_MASK_CAP, H_EPOCH,
) = range(H_EOS + 2, H_EOS + 29)  # fmt: skip
HEADER = H_EOS + 30
SINK_WORDS = 1024

# --- kinds of records and their payloads, which stand at record + 2 -------------
NODE, INDENT, PARSER, LEX, CONFIG, FEED = range(1, 7)
PAIR_KEY = 2  # of NODE and INDENT: what is below, and the state or column
PARSER_LIVE, PARSER_ENDS, PARSER_NEWLINE, PARSER_WAY, PARSER_KEY = 2, 3, 4, 5, 6
LEX_RESETS, LEX_CLEAN = 2, 3  # as many words as terminals need bits, then the key
CONFIG_LIVE, CONFIG_EPOCH, CONFIG_MASK, CONFIG_LOOPS, CONFIG_KEY, CONFIG_ROW = 2, 3, 4, 5, 6, 10
FEED_VALUE, FEED_KEY = 2, 3

# --- states, threads, sets of classes ---
FINAL, PENDING_END = 1, 2  # flags of a terminal automaton's state
STATE_BITS = 40
STATE_MASK = (1 << STATE_BITS) - 1
NO_COLUMN = -1
# Sets of classes of characters, folded to so many bits; behind them bits for what is no whole character, and for a set
# that has been computed.
CLASS_BITS, CUT, KNOWN = 60, 1 << 60, 1 << 61
MOST_REDUCTIONS = 1 << 16  # before one terminal, without the stack getting lower than it was
STACK = 64  # states of a stack that are not interned
SUBTREE = 48  # a subtree of so many nodes is worth finding out which characters leave a configuration as it is

# --- results besides RETRY and DEAD, liveness, bits of H_FLAG besides those of every heap ---
UNKNOWN = -2
YES, NO = 1, 2
UNKNOWN_FULL, MASKS_FULL = 4, 8

# --- operations of the entry, besides those of every heap ---
START, REHASH, STEP, FEED_TERMINAL, LIVE, ENDS_PARSER, FRESH, CLASSES_INSIDE = range(
    FIRST_OPERATION, FIRST_OPERATION + 8
)
