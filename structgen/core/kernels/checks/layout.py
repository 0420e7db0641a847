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
# --- kinds of records that have a meaning here; `structgen.core.engines.json.tables.verify` adds others ---
NODE, OBJECT, ARRAY, COUNTED, DFA_STRING, ENUM_STRING, MEANINGS = range(7)
# --- verdicts ---
(
    FINE, OUT_OF_RANGE, WRONG_KIND, NOT_IN_ORDER, TWO_KINDS, BAD_KEY_SET, BAD_LIMITS, BAD_LENGTHS, BAD_CLASSES,
    BAD_OBLIGATIONS, BAD_DISTINCT, NO_VALUE,
) = range(12)  # fmt: skip
MAX_DUTY_SETS = 64

# --- arguments of CHECK_TABLES, in words of the argument array ---
(
    A_GRAMMAR, A_WORDS, A_TEXTS, A_POOL, A_ACCEPTING, A_PAYLOAD, A_CLASS_WORDS, A_LABELS, A_NARROW, A_STATES,
    A_LAYOUT, A_FIRST, A_SIZES, A_MEANINGS, A_CHOOSE, A_DISPATCH,
    A_WHERE, A_SEEN, A_ORDER, A_ALLOWED, A_LIVE, A_SPARE, A_CHEAPEST,
) = range(0, 3 * 23, 3)  # fmt: skip
