"""The layout of the grammar machine: its header, records, mask heap, results, operations. No code is here."""

from structgen.core.kernels.cfg import tables as _t
from structgen.core.kernels.heap_layout import *

_HEADER = _t.HEADER

# --- tables that functions get as arguments, as numbers ---
H_A, H_B, H_C, H_E, H_MASKS = map(int, (_t.a_at, _t.b_at, _t.c_at, _t.e_at, _t.mask_at))
H_TRIE, H_RESIDUES, H_REMAINDERS = map(int, (_t.trie_at, _t.residue_at, _t.remainder_at))
CAPACITY, TOP = 1, 2  # of a buffer, behind its place
H_ATOP, H_BTOP, H_CTOP, H_ETOP = H_A + TOP, H_B + TOP, H_C + TOP, H_E + TOP
# --- numbers ---
(
    H_END, H_OPEN, H_ANY,  # continuations of the two markers; the item set that any terminal follows
    H_MTOP, H_EPOCH,  # the mask heap's first free word, and how often it was emptied
    H_WIDTH_OF_LEVEL, H_BUILT, H_WALKED, H_LIMIT, H_DEPTH,  # of walks
    H_COMPONENTS, H_TERMINALS, H_PSEUDO, H_IGNOREDS,
    H_NODES, H_WIDTH, H_EOSES,
    H_PAIRS, H_PAIR_WORDS,  # rows of pairs so far, the first of which is none; words of a set of states
) = _HEADER.numbers(19)  # fmt: skip
HEADER = _HEADER.size
MOVES = 1 << 13  # slots of (configurations, token, configurations after), the latest that were asked for
SINK_WORDS = 256

# --- kinds of records and their payloads, which stand at record + 2 -------------
ITEMS, CONT, GROUP, LEX, CLASSES, GOTO, MEMO, CONFIGS, INCOMING = range(1, 10)
ITEMS_BUILT, ITEMS_LEX, ITEMS_OPEN, ITEMS_SCAN, ITEMS_SCANS, ITEMS_CUT, ITEMS_BARE, ITEMS_KEY = range(2, 10)
CONT_CUT, CONT_GROUP, CONT_MEMBER, CONT_REMAINING, CONT_KEY = range(2, 7)
GROUP_MEMBERS, GROUP_KEY = 2, 3
LEX_BUILT, LEX_ACCEPTS, LEX_ENDS, LEX_EPOCH, LEX_SPLIT, LEX_UNIT_EPOCH, LEX_UNIT, LEX_LOOPS, LEX_TABLE = range(2, 11)
LEX_KEY = LEX_TABLE + 128
CLASSES_KEY, GOTO_VALUE, GOTO_KEY, MEMO_EPOCH, MEMO_VALUE, MEMO_KEY = 2, 2, 3, 2, 3, 4
CONFIGS_EPOCH, CONFIGS_MASK, CONFIGS_REMAINING, CONFIGS_ROW, CONFIGS_KEY, INCOMING_VALUE = 2, 3, 4, 5, 6, 2

# --- what lies in the mask heap --------------------------
SPLIT_BITS, SPLIT_REMAINING, SPLIT_COUNT, SPLIT_UNITS = 0, 1, 2, 3  # row of bits or -1, narrow lexer state or 0, units
UNIT_BITS, UNIT_TRIE, UNIT_NODES, UNIT_SIZE = 0, 1, 2, 3
WHOLE = -1  # at the place of the mask of configurations: it lies as one row where the next word says
KEPT_AFTER = 6  # uses of a mask after which one row is made of its parts
ENTRY_PARENT, ENTRY_IDS, ENTRY_COUNT, ENTRY_TRIE, ENTRY_NODES, ENTRY_BITS, ENTRY_SIZE = 0, 1, 2, 3, 4, 5, 6

# --- items, configurations, nodes of tries ---
K_BITS = 28
K_MASK = (1 << K_BITS) - 1
ITEM_MASK = (1 << 48) - 1
LOCAL = 1 << 27  # in a group's key, a reference to the member of nonterminal (k & ~LOCAL)
END_ITEM, OPEN_ITEM = 0, 1
DEFERRED = 1 << 56
CONFIG_MASK = DEFERRED - 1
DEPTH_MASK, SIZE_MASK = (1 << 11) - 1, (1 << 24) - 1
WIDE_NODES, UNCERTAIN_NODES = 1500, 1000
NON_ASCII, INVALID, KNOWN = 60, 61, 1 << 62  # of kinds of bytes
LETTERS = 5  # kinds below are letters and digits
CLOSED_POSITIONS = 16  # that are looked at to find kinds which go on for ever
FAR = 1 << 40  # bytes: more than any text has

# --- bits of H_FLAG, besides those of every heap ---
SCRATCH_FULL, MASKS_FULL, LEVELS_FULL, PAIRS_FULL = 4, 8, 16, 32

# --- results besides RETRY and DEAD ---
UNMEASURED = -2  # the tables of lengths, or sets of live states, are not there yet

# --- operations of the entry, besides those of every heap ---
(
    INITIAL, AFTER, REHASH, READ_AUTOMATA, GOTO_ITEMS, KINDS_BELOW, BOUND, KIND_OF, ROW_OF, FILL_PAIRS,
) = range(FIRST_OPERATION, FIRST_OPERATION + 10)  # fmt: skip
