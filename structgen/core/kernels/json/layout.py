"""The layout of the JSON machine: lexical states, matchers, registers, results, masks. No code is here.

Records of a grammar are declared in `structgen.core.kernels.json.records` and tables in `core.kernels.json.tables`.
"""

from structgen.core.kernels.json.records import *

# --- lexical states ---
VALUE, AFTER, OBJECT_FIRST, KEY_NEXT, COLON, ARRAY_FIRST, LITERAL, NUMBER, PAD, NEWLINE, CLOSE = range(11)
STRING, ENUM, SORTED, KEY, OTHER_KEY = 16, 32, 48, 64, 80
BODY, ESCAPE, HEX, LOW_BACKSLASH, LOW_U, LOW_HEX = 0, 1, 2, 6, 7, 8  # HEX and LOW_HEX take four places each

# --- pool flags ---
ACCEPTING, LAZY, PARTIAL = 1, 2, 4
NON_ASCII_KIND, NEVER_KIND = 26, 28  # of `core.kernels.tokens.characters`; between them white space beyond ASCII

SOME_BEYOND = -4  # SOME of `structgen.core.kernels.tokens.layout`

# --- a matcher's block: what it is made of, which each call copies into the context ---
(
    B_TABLES,  # address of the grammar's tables
    B_TRAIL, B_TRAIL_SIZE,  # its states, one behind the other
    B_ARENA, B_ARENA_SIZE,
    B_TEXT, B_TEXT_SIZE,  # the text so far, if items must be distinct
    B_PLACE,  # of the present state in the trail
    B_DROPPED, B_SEARCHES,  # how many configurations were left out, and searches given up
    B_REMEMBERS,  # see REMEMBERS
    BLOCK_SIZE,
) = range(12)  # fmt: skip
# --- a state in the trail: place of the one before, number of steps, top of the arena, length of the text, whether the
# end of sequence was accepted, configurations (each q, a, b, frame) ---
STATE_BEFORE, STATE_STEPS, STATE_TOP, STATE_LENGTH, STATE_ENDED, STATE_COUNT, STATE_CONFIGURATIONS = range(7)
MAX_CONFIGURATIONS = 1 << 14  # configurations at most; one more costs a look at each of the others at every step

# --- frames ---
F_HEAD, F_PARENT, F_DEPTH, F_BELOW, F_OTHERS, F_SEEN = 0, 1, 2, 3, 4, 5
F_START = 5  # of an array of distinct items
K_LEFT, K_HASH, K_START, K_SIZE = 0, 2, 3, 4  # node of the tree of a frame's undeclared keys or finished items
SCRATCH = 1 << 40
SEEN_BITS = 62  # bits of a seen word in use: int64 without its sign, and without overflow in shifts

# --- registers of a step ---
Q, A, B, FRAME = range(4)  # the configuration, in and out
(
    TOP,  # top of scratch
    ALTERNATIVES,  # how many ways the byte can be read; of a set: how many configurations there are
    MISSING,  # pool state that something is missing of; of a set: configurations dropped
    FRESH,  # whether the mask row is still to be cleared
    POSITION,  # place in the text of the byte read
    WRITTEN,  # length of the text before this call
    GIVEN_UP,  # searches given up for want of steps
    SEARCHING,  # whether a search for a new item is under way (which adds members in one order only)
    TOO_DEEP,  # whether values are nested too deep for `nesting`, or words for `search`
    RESUME,  # the configuration whose mask is not done
    USED,  # words of new frames
    REMEMBERS,  # whether masks are looked up in the memory, and kept there: the number of the grammar, or 0
    SHALLOWEST,  # how many containers were open at least while the mask was made: what is around was not looked at
    ASKED,  # whether the mask depends on what no key of the memory says
    JOINED,  # how many rows are known to be in the mask already
    LOGGED_ROWS, LOGGED,  # rows, and tokens, that the mask is made of so far
    UNRIVALLED,  # while a mask is made, bits of depths: arrays whose open item can be none of those before it any more
    KNOWN,  # address of a row whose tokens the mask that is made is added to, and does not need; or 0
    REGISTERS,
) = range(4, 24)  # fmt: skip

# --- results of a step ---
DEAD, ALIVE, MISS, FULL = 0, 1, 2, 3
MISS_ROW = 4  # the mask row of pool state reg(m, MISSING) at place reg(m, ALTERNATIVES) is to be computed
MISS_COUNT = 5  # how many values go on from pool state reg(m, MISSING) is to be computed
STALE = 6  # the context's arrays have been replaced by larger ones
CROWDED = 7  # ``result`` lacks the room for all configurations
SHORT = 8  # the trail lacks room for reg(m, ALTERNATIVES) configurations, or the arena for reg(m, USED) words more
FILLING = 16  # added to what the mask lacks after a step that was taken

# --- numbers ---
LOW32 = (1 << 32) - 1
MASK20 = (1 << 20) - 1
HASH_START = 1469598103934665603  # FNV-1a, 64 bit; a collision would refuse a legal key, with probability 2**-64
HASH_PRIME = 1099511628211
ALL_DECLARED = 1 << 30  # noted by a search that has added an undeclared key, after which no declared one may come
MANY = MAX_VALUES  # as good as endlessly many values; one more: and so it is after whatever may come
SHORT_WORDS = 16  # code points of the words that the second count of a state of strings is of
OTHER_SYMBOLS = 16  # bits of what a number may go on with: the low four of the byte; this more if it is no digit
LETTER_U, BACKSLASH = 0x75, 0x5C
COUNTED_TEXTS = 64  # texts that a string of sorted texts can still become are counted up to so many

# --- masks ---
# ``nodes`` int32[N, 4] holds several tries one after the other, each in depth-first order: byte, depth, subtree end,
# token (lowest id that ends here, or -1; `next_same` chains the others). ``tries`` int64[T, 2] says where each lies.
NODE_BYTE, NODE_DEPTH, NODE_END, NODE_TOKEN = 0, 1, 2, 3
TEXT, QUOTED, STRUCTURE, BLANK, DIGITS, REMAINDERS, HARD, TRIES = 0, 1, 2, 3, 4, 5, 6, 7
# ``order`` int32: the tokens in the order of their nodes, ``order_starts`` int32[N + 1]: how many lie before each node.
# ``plain_nodes`` int64: of each node of the trie of text, byte, depth and subtree end in one word; below 0 where the
# byte is not text as it stands (quote, backslash, control characters).
PLAIN_DEPTH, PLAIN_END, DEPTH_MASK, END_MASK = 8, 32, (1 << 24) - 1, (1 << 31) - 1
# Rows that every vocabulary has: whitespace tokens; text of certain kinds of characters only (slices); text that stays
# inside a string with at most n code points (n = 0..), one still to come after an unfinished escape included.
ROW_BLANK, ROW_SLICES, SLICES = 0, 1, 25
ROW_LENGTHS = ROW_SLICES + SLICES
# Rows lie in blocks of so many, whose addresses are a table: more rows come without those that are there being moved.
BLOCK_ROWS = 64
# ``limits`` int64: longest token in code points that it stands for, pool state of the universal automaton, int32 words
# of a mask row, longest token in code points as it is written (behind a backslash, what looks like an escape is text),
# whether some tokens have the same bytes.
L_TEXT, L_UNIVERSAL, L_WIDTH, L_WRITTEN, L_ALIKE, LIMITS = range(6)

SEARCH_STATES, SEARCH_SLOTS = 512, 1024  # room of a search over states, and of their places by hash behind it

# --- memory of masks (`structgen.core.kernels.json.mask_cache`), int64: a header, slots, and a ring of entries ---
# The gap of the ring, from M_HEAD to M_TAIL, goes round; entries end before M_LAST.
M_LOCK, M_HEAD, M_TAIL, M_LAST, M_SLOTS = 0, 1, 2, 3, 8
SLOTS = 1 << 15  # each the place of an entry, 0, or below 0: look at one more container
M_RING = M_SLOTS + SLOTS
# An entry: its words, hash of its key, whether it was used since the gap was here, words of the key, rows, tokens (-1:
# a whole row follows); then the key, the rows, and the tokens or the whole row as int32.
N_SIZE, N_HASH, N_USED, N_KEY, N_ROWS, N_TOKENS, N_FIELDS = range(7)
KEY_WORDS = 256  # of a key at most
JOINED_ROWS = 64  # of which it is known that they are in a mask already
LOG_ROWS, LOG_TOKENS = 8, 1024  # that an entry lists; of others the whole row is kept
CHANCES = 16  # entries in use that are moved, at most, to make room for one

# --- operations of the entry ---
ADVANCE, ACCEPTING_NOW, FILL, FILL_ROW, FILL_DIGITS, NEXT_BYTES, STEP, STEPS, FILLS, TREES = range(10)
# ``jobs`` int64[n, 8] of STEPS, FILLS and TREES: a matcher's block, its token (of FILLS: nothing), address of its row,
# what came of it. Of TREES before: NOT_YET, the first job that follows on it, and the next one that follows on the
# same, or -1. The first of a tree has the token NO_TOKEN and the place in the trail where its matcher stands; the walk
# writes the places of the others, and the job before each.
J_BLOCK, J_TOKEN, J_OUT, J_STATUS, J_CHILD, J_SIBLING, J_PLACE, J_PARENT, JOB_SIZE = range(9)
NOT_YET, NO_TOKEN = -1, -2
