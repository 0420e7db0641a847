"""The arguments of CHECK_TABLES: each is declared here, and nowhere else. No code is here."""

from structgen.core.kernels.tables import ARGUMENT_WORDS, INT32, INT64, UINT8, Header

ARGUMENTS = Header(words=ARGUMENT_WORDS)

# --- of the grammar ---
grammar = ARGUMENTS.table(INT32)
words = ARGUMENTS.table(INT64)
texts = ARGUMENTS.table(UINT8)

# --- of the pool ---
pool = ARGUMENTS.table(INT32)
accepting = ARGUMENTS.table(INT32)
payload = ARGUMENTS.table(INT32)
class_words = ARGUMENTS.table(INT32)  # of a start of classes, and c: words of its class c
labels = ARGUMENTS.table(INT32)  # 0, or what starts there: STRING_START + 1, NUMBER_START + 1, CLASSES_START + classes
narrow = ARGUMENTS.table(INT32)  # of a start: whether it has beginnings of finitely many words
states = ARGUMENTS.table(INT32)  # of a start: how many there are

# --- of records: rows of a kind and one of `KernelRecord.fields`, sorted by kind; each kind's first row, its size, its
# meaning or -1; its first row of choices or -1; choices: kind, field, value or OTHERWISE, kind ---
field_part = ARGUMENTS.table(INT32)
first_row = ARGUMENTS.table(INT32)
sizes = ARGUMENTS.table(INT32)
meanings = ARGUMENTS.table(INT32)
choose = ARGUMENTS.table(INT32)
choice_part = ARGUMENTS.table(INT32)

# --- working memory, and the place and the field of what is wrong (`where`) ---
where, set_where = ARGUMENTS.writable(INT64)
seen, set_seen = ARGUMENTS.writable(INT32)
order, set_order = ARGUMENTS.writable(INT32)
allowed, set_allowed = ARGUMENTS.writable(INT64)
live, set_live = ARGUMENTS.writable(UINT8)
spare, set_spare = ARGUMENTS.writable(INT64)
cheapest, set_cheapest = ARGUMENTS.writable(INT64)
