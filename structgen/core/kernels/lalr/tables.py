"""The tables of the LALR machine's header: each is declared here, and nowhere else. No code is here."""

from structgen.core.kernels.heap_layout import FIRST_PLACE
from structgen.core.kernels.tables import INT32, INT64, UINT8, Header

HEADER = Header(FIRST_PLACE)

# working memory, and the masks that were found
scratch_at, set_scratch_at = HEADER.writable(INT64)
unknown_at, set_unknown_at = HEADER.writable(INT64)
level_at, set_level_at = HEADER.writable(INT64)
mask_at, set_mask_at = HEADER.writable(INT32)
stack_at, set_stack_at = HEADER.writable(INT64)
# classes of characters, the UTF-8 tree
ascii_class = HEADER.table(INT32)
lead_node = HEADER.table(INT32)
child_at = HEADER.table(INT32)
is_leaf = HEADER.table(INT32)
below_from = HEADER.table(INT32)
below_at = HEADER.table(INT32)
# the terminals' automata, the lexers
transition_at = HEADER.table(INT32)
flags_of = HEADER.table(INT32)
keywords_of = HEADER.table(INT32)
starts_from = HEADER.table(INT32)
lexer_start = HEADER.table(INT64)
# the parser
action_at = HEADER.table(INT32)
goto_at = HEADER.table(INT32)
rule_size = HEADER.table(INT32)
rule_origin = HEADER.table(INT32)
lexer_at = HEADER.table(INT32)
retyped_at = HEADER.table(INT32)
is_ignored = HEADER.table(INT32)
bracket_of = HEADER.table(INT32)
clean_at = HEADER.table(INT64)
is_prepared = HEADER.table(INT32)
# proofs
items_from = HEADER.table(INT32)
item_origin = HEADER.table(INT32)
item_dot = HEADER.table(INT32)
gotos_from = HEADER.table(INT32)
goto_symbol = HEADER.table(INT32)
values_from = HEADER.table(INT64)
out_from = HEADER.table(INT64)
following_at = HEADER.table(INT64)
proof_at, set_proof_at = HEADER.writable(INT64)
# of walks
token_at = HEADER.table(INT32)
tokens_before = HEADER.table(INT32)
path_at, set_path_at = HEADER.writable(INT32)
open_at, set_open_at = HEADER.writable(INT32)
trie_byte = HEADER.table(UINT8)
trie_depth = HEADER.table(INT32)
trie_end = HEADER.table(INT32)
trie_token = HEADER.table(INT32)
inside_at, set_inside_at = HEADER.writable(INT64)
offset_of = HEADER.table(INT32)
byte_at = HEADER.table(UINT8)
eos_at = HEADER.table(INT32)
