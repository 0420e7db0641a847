"""Numbers of the kernel of sorted texts. No code is here."""

from structgen.core.kernels.heap_layout import ACCEPT, ADVANCE, DEAD, ENDS, FILL, FIRST_OPERATION, NEXT_BYTES

__all__ = [
    "ACCEPT",
    "ADVANCE",
    "BLOCK",
    "CHAR",
    "DEAD",
    "DEPTH_BITS",
    "DEPTH_MASK",
    "END",
    "ENDED",
    "ENDS",
    "FILL",
    "INTERVAL",
    "LEVEL_WORDS",
    "LINE",
    "LOOKED_AT",
    "L_BYTE",
    "L_ENTRY",
    "L_LAST",
    "L_NODE_END",
    "L_POINTS",
    "MANY",
    "NAMES",
    "NEXT_BYTES",
    "QUOTES",
    "SHORTEST",
    "START",
    "STEP",
    "SUFFIX_INDUCE",
    "SUFFIX_KINDS",
    "SUFFIX_RANKS",
    "S_BOUNDARY",
    "S_ENTRIES",
    "S_KIND",
    "S_LEAST",
    "S_LIMITED",
    "S_MOST",
    "S_SIZE",
    "S_WIDTH",
    "WORD",
]  # fmt: skip

# --- operations beyond those of all such machines ---
INTERVAL, SHORTEST, SUFFIX_KINDS, SUFFIX_INDUCE, SUFFIX_RANKS = range(FIRST_OPERATION, FIRST_OPERATION + 5)

# --- a state: (first entry << DEPTH_BITS | bytes written) + 1 ---
DEPTH_BITS = 23
DEPTH_MASK = (1 << DEPTH_BITS) - 1
START = 1

# --- settings ---
# what the entries are; where quotes may end; code points that a text may have; whether that has to be looked at; int32
# words of a mask; entries
S_KIND, S_BOUNDARY, S_LEAST, S_MOST, S_LIMITED, S_WIDTH, S_ENTRIES, S_SIZE = range(8)
NAMES, QUOTES = range(2)
CHAR, WORD, LINE = range(3)
ENDED = -1  # in place of a name's byte: it has ended
END = 0xFF  # behind a document
BLOCK = 64  # entries whose shortest name is tabulated
STEP = 1024  # places of a text of which the first is tabulated: code points before it, the next border, the next END
MANY = 1 << 62
LOOKED_AT = 64  # continuations of a quote, until the nearest end of those is taken

# --- a level of the walk over a vocabulary's trie ---
# the entry at which the search goes on, the end of the interval, code points, the byte that the entry goes on with (END
# if there is none), the node after the last child
L_ENTRY, L_LAST, L_POINTS, L_BYTE, L_NODE_END, LEVEL_WORDS = range(6)
