"""The tables of a context of the JSON machine: each is declared here, and nowhere else. No code is here.

A context is what the machine works on (`structgen.core.kernels.tables`); engines make it
(`structgen.core.engines.json.masks.context`).
"""

from structgen.core.kernels.tables import INT32, INT64, UINT8, Header

CONTEXT = Header()

# --- of the grammar: entered from its own array, which holds these four as they stand here ---
grammar = CONTEXT.table(INT32)  # `structgen.core.kernels.json.records`
word = CONTEXT.table(INT64)  # sets of keys
text = CONTEXT.table(UINT8)  # declared keys and enumerated strings
sorted_texts = CONTEXT.table(INT64)  # addresses of tables (`structgen.core.kernels.sorted.tables`)
TABLES_SIZE = CONTEXT.size

# --- of the pool ---
pool = CONTEXT.table(INT32)
flags = CONTEXT.table(INT32)
payload = CONTEXT.table(INT32)
words_left = CONTEXT.table(INT32)

# --- of the matcher, and working memory of its steps; `result`: configurations after a step ---
arena, set_arena = CONTEXT.writable(INT64)
scratch, set_scratch = CONTEXT.writable(INT64)
stack, set_stack = CONTEXT.writable(INT64)
level_state, set_level_state = CONTEXT.writable(INT64)
search, set_search = CONTEXT.writable(INT64)
reg, set_reg = CONTEXT.writable(INT64)
start, set_start = CONTEXT.writable(INT64)
cross, set_cross = CONTEXT.writable(INT64)

# --- bitmask rows: of pool states (`slot_of`), the blocks they lie in, numbers about them ---
slot_of = CONTEXT.table(INT32)
block = CONTEXT.table(INT64)
limit = CONTEXT.table(INT64)

# --- of the vocabulary ---
node_field = CONTEXT.table(INT32)
trie_field = CONTEXT.table(INT64)
next_same = CONTEXT.table(INT32)
group_of = CONTEXT.table(INT32)
member_field = CONTEXT.table(INT32)
token_byte = CONTEXT.table(UINT8)
class_of = CONTEXT.table(INT32)

loop = CONTEXT.table(INT32)  # of the pool
configuration = CONTEXT.table(INT64)  # configurations of the matcher before a step
result, set_result = CONTEXT.writable(INT64)
data = CONTEXT.table(UINT8)  # bytes that are read: the vocabulary's tokens, or a text
spare = CONTEXT.table(INT32)  # a bitmask row
offset = CONTEXT.table(INT32)  # of each token in `data`
end_token = CONTEXT.table(INT32)  # those that end the sequence
kind = CONTEXT.table(INT32)
slice_kinds = CONTEXT.table(INT32)
written, set_written = CONTEXT.writable(UINT8)  # the text so far, if items must be distinct
probe, set_probe = CONTEXT.writable(INT64)
nesting, set_nesting = CONTEXT.writable(INT64)
count_of = CONTEXT.table(INT32)  # of the pool, as the next
symbols = CONTEXT.table(INT32)
VERSION, VERSION_TAKEN = CONTEXT.numbers(2)  # address of the pool's; that which the arrays are of
wide = CONTEXT.table(INT32)  # of the pool, as the next
safe, set_safe = CONTEXT.writable(INT64)
rise = CONTEXT.table(INT32)  # of the vocabulary, as the next
own_kind = CONTEXT.table(UINT8)
slice_size = CONTEXT.table(INT32)
memory, set_memory = CONTEXT.writable(INT64)  # finished masks: `structgen.core.kernels.json.mask_cache`
key, set_key = CONTEXT.writable(INT64)  # of the mask that is made
logged, set_logged = CONTEXT.writable(INT64)  # rows and tokens of it
following, set_following = CONTEXT.writable(INT64)
joined_row, set_joined_row = CONTEXT.writable(INT64)
plain_node = CONTEXT.table(INT64)  # of the vocabulary, as the next two
order = CONTEXT.table(INT32)
order_start = CONTEXT.table(INT32)
