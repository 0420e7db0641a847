"""The layout of the LALR machine: its header, records, results, operations. No code is here."""

from structgen.core.kernels.heap_layout import *

# --- tables: the place of each one's address; behind it stands its length in elements -----------
(
    H_SCRATCH, H_UNKNOWN, H_LEVEL, H_MASKS, H_STACK,  # working memory, and the masks that were found
    H_ASCII, H_LEAD, H_CHILDREN, H_LEAF, H_BELOW_START, H_BELOW,  # classes of characters, the UTF-8 tree
    H_TRANSITIONS, H_FINAL, H_KEYWORDS, H_THREAD_START, H_THREAD,  # the terminals' automata, the lexers
    H_ACTION, H_GOTO, H_RULE_SIZE, H_RULE_ORIGIN, H_LEXER_OF, H_TYPES, H_IGNORED, H_BRACKET,  # the parser
    H_CLEAN, H_PREPARED,
    H_ITEM_START, H_ITEM_ORIGIN, H_ITEM_DOT, H_GOTO_START, H_GOTO_SYMBOL, H_VALUE_START, H_OUT_START,  # proofs
    H_FOLLOWING, H_PROOF,
    H_ORDER, H_BEFORE, H_PATH, H_OPEN,  # of walks
    H_TRIE_BYTE, H_TRIE_DEPTH, H_TRIE_END, H_TRIE_TOKEN, H_INSIDE, H_OFFSETS, H_BYTES, H_EOS,
) = range(FIRST_PLACE, FIRST_PLACE + 2 * 47, 2)  # fmt: skip
# --- numbers ---
(
    H_EVENT, H_TYPE, H_KEYWORD,  # what the lexer says of a character
    H_UNKNOWNS, H_HEIGHT, H_BASE,
    H_CLASSES, H_TERMINALS, H_NONTERMINALS, H_STATES, H_END, H_END_STATE, H_KEYWORD_COUNT, H_DISTRUST,
    H_NEWLINE, H_INDENT, H_DEDENT, H_BLANK, H_TAB, H_LINE_END, H_TAB_WIDTH,
    H_TRIE_SIZE, H_EOSES, H_WIDTH, H_MASK_COUNT, H_MASK_CAP, H_EPOCH,
    H_BUILT, H_OPENS,
    H_PROVED, H_EXACT,  # whether there are proofs, and whether what they do not show live is dead
) = range(H_EOS + 2, H_EOS + 33)  # fmt: skip
HEADER = H_EOS + 34
SINK_WORDS = 1024

# --- kinds of records and their payloads, which stand at record + 2 -------------
NODE, INDENT, PARSER, LEX, CONFIG, FEED, CLASS, ABOVE = range(1, 9)
NODE_CLASS, PAIR_KEY = 2, 3  # key of NODE and INDENT: what is below, and the state or column
PARSER_LIVE, PARSER_ENDS, PARSER_NEWLINE, PARSER_WAY, PARSER_KEY = 2, 3, 4, 5, 6
LEX_RESETS, LEX_YIELDS, LEX_CLEAN = 2, 3, 4  # two rows of bits by terminal (clean, possible), then the key
CONFIG_LIVE, CONFIG_EPOCH, CONFIG_MASK, CONFIG_LOOPS, CONFIG_MOVES, CONFIG_OPEN, CONFIG_OPENS = range(2, 9)
CONFIG_KEY, CONFIG_ROW = 9, 13
FEED_VALUE, FEED_KEY = 2, 3
CLASS_LIVE, CLASS_FITS, ABOVE_VALUE = 2, 3, 2  # CLASS_FITS: a row of bits, then the key

# --- states, threads, sets of classes ---
FINAL, PENDING_END = 1, 2  # flags of a terminal automaton's state
STATE_BITS = 40
STATE_MASK = (1 << STATE_BITS) - 1
NO_COLUMN = -1
# Sets of classes of characters, folded to so many bits; behind them a bit for what is no whole character.
CLASS_BITS, CUT = 60, 1 << 60
MOST_REDUCTIONS = 1 << 16  # before one terminal, without the stack getting lower than it was
STACK = 64  # states of a stack that are not interned

# --- results besides RETRY and DEAD, liveness, bits of H_FLAG besides those of every heap ---
UNKNOWN = -2
YES, NO = 1, 2
BELOW, DEEPER = 2, -3  # a stack, parser or configuration beyond what is kept of a stack; a reduction that goes there
FEW, MORE = 1, 6  # states that are kept of stacks for masks
MOST_FALLBACKS = 8  # of a configuration whose stacks are cut
UNKNOWN_FULL, MASKS_FULL = 4, 8

# --- operations of the entry, besides those of every heap ---
START, REHASH, STEP, FEED_TERMINAL, LIVE, ENDS_PARSER, FRESH, CLASSES_INSIDE, PROVE, ADOPT = range(
    FIRST_OPERATION, FIRST_OPERATION + 10
)
