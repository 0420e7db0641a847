"""How descriptions of records are written for the checks, and what they find. No code is here."""

CHECK_TABLES, CHECK_AUTOMATON = range(2)  # operations

# --- what a field holds ---
INT, REF, LIST, POOL, WORDS, TEXT = range(6)
# INT: least, most. REF: kind, the value that stands for none. LIST: kind of the elements, field of their number, how
# far behind the value they begin. POOL: one of the next line. WORDS, TEXT: field of the length.
STRING_START, NUMBER_START, CLASSES_START = range(3)
HERE = -1  # in place of a field: the record itself is where the elements of a list are
NOTHING = -(1 << 31)  # in place of "the value that stands for none": there is no such value
OTHERWISE = -1
# --- what records are to the checks beyond their fields ---
NODE, OBJECT, ARRAY, COUNTED, DFA_STRING, ENUM_STRING, MEANINGS = range(7)
# --- verdicts ---
(
    FINE, OUT_OF_RANGE, WRONG_KIND, NOT_IN_ORDER, TWO_KINDS, BAD_KEY_SET, BAD_LIMITS, BAD_LENGTHS, BAD_CLASSES,
    BAD_EXISTENTIALS, BAD_DISTINCT, NO_VALUE,
) = range(12)  # fmt: skip
MAX_EXISTENTIAL_SETS = 64
