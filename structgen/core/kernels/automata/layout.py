"""Operations, verdicts and registers of the automata's kernel. No code is here."""

# --- operations of NFA programs ---
CHAR, SPLIT, BOL, EOL, MATCH, LOOK, BOUNDARY = range(7)
# ``CHAR x=set y=next``, ``SPLIT x=next y=next``, ``BOL/EOL y=next``, ``MATCH``, and, for other passes than the subset
# construction, ``LOOK x=lookaround y=next``, ``BOUNDARY x=negative y=next``.

# --- operations of the kernel ---
(
    DETERMINISE, MINIMISE, RENUMBER, COLUMN_CLASSES, COUNT_WORDS, DISTANCES, NEXT_LENGTHS, EXPAND_UTF8, PRODUCT,
    WORD_TRIE,
) = range(10)  # fmt: skip

# --- what a kernel returns in place of a number of states ---
TOO_MANY, TOO_LONG, FULL = -1, -2, -3  # FULL: to be called again with larger arrays, and goes on where it was

# --- registers: limits, then where a kernel that came back with FULL goes on ---
R_START, R_MAX_STATES, R_MAX_STEPS, R_COUNT, R_ROW, R_COLUMN, R_STEPS, R_STAMP, REGISTERS = range(9)
# `DISTANCES`: how many rows there are, and which one the next would repeat.
R_LENGTH, R_REPEAT = R_COUNT, R_ROW
