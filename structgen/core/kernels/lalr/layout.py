"""The layout of the LALR machine: its header, records, results, operations. No code is here."""

from structgen.core.kernels.heap_layout import *
from structgen.core.kernels.lalr import tables as _t

_HEADER = _t.HEADER

# --- tables that functions get as arguments, as numbers ---
H_SCRATCH, H_LEXER_START, H_CLEAN = map(int, (_t.scratch_at, _t.lexer_start, _t.clean_at))
# --- numbers ---
(
    H_EVENT, H_TYPE, H_KEYWORD,  # what the lexer says of a character
    H_UNKNOWNS, H_HEIGHT, H_BASE,
    H_CLASSES, H_TERMINALS, H_NONTERMINALS, H_STATES, H_END, H_END_STATE, H_KEYWORD_COUNT, H_DISTRUST,
    H_NEWLINE, H_INDENT, H_DEDENT, H_BLANK, H_TAB, H_LINE_END, H_TAB_WIDTH,
    H_TRIE_SIZE, H_EOSES, H_WIDTH, H_MASK_COUNT, H_MASK_CAP, H_EPOCH,
    H_BUILT, H_OPENS,
    H_PROVED, H_EXACT,  # whether there are proofs, and whether what they do not show live is dead
) = _HEADER.numbers(31)  # fmt: skip
HEADER = _HEADER.size
SINK_WORDS = 1024

# --- kinds of records and their payloads, which stand at record + 2 -------------
NODE, INDENT, PARSER, LEX, CONFIG, FEED, CLASS, ABOVE = range(1, 9)
NODE_CLASS, PAIR_KEY = 2, 3  # key of NODE and INDENT: what is below, and the state or column
PARSER_LIVE, PARSER_ENDS, PARSER_NEWLINE, PARSER_COMPLETION, PARSER_KEY = 2, 3, 4, 5, 6
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
