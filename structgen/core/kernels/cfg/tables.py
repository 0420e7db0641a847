"""The tables of the grammar machine's header: each is declared here, and nowhere else. No code is here."""

from structgen.core.kernels.heap_layout import FIRST_PLACE
from structgen.core.kernels.tables import INT32, INT64, UINT8, Header, Writer

HEADER = Header(FIRST_PLACE)

# the mask heap
mask_at, set_mask_at = HEADER.writable(INT64)
# of walks: configurations after each byte of the path, how many, ...
level_at, set_level_at = HEADER.writable(INT64)
count_at, set_count_at = HEADER.writable(INT64)
deferred_at, set_deferred_at = HEADER.writable(INT64)
path_at, set_path_at = HEADER.writable(INT64)
near_at, set_near_at = HEADER.writable(INT64)
# of the grammar
first_of = HEADER.table(INT32)
next_of = HEADER.table(INT32)
is_nullable = HEADER.table(INT32)
can_be_empty = HEADER.table(INT32)
scc_of = HEADER.table(INT32)
is_recursive = HEADER.table(INT32)
corners_from = HEADER.table(INT32)
corner_at = HEADER.table(INT32)
scans_from = HEADER.table(INT32)
scan_at = HEADER.table(INT32)
members_from = HEADER.table(INT32)
member_at = HEADER.table(INT32)
# of prediction
head_of, set_head_of = HEADER.writable(INT64)
is_pending, set_is_pending = HEADER.writable(INT64)
segment_at, set_segment_at = HEADER.writable(INT64)
cont_of, set_cont_of = HEADER.writable(INT64)
# the automata
edges_from = HEADER.table(INT32)
edge_at = HEADER.table(INT32)
class_of = HEADER.table(INT32)
is_accepting = HEADER.table(INT32)
known_wide, set_known_wide = HEADER.writable(INT32)
known_stays, set_known_stays = HEADER.writable(INT64)
known_lasts, set_known_lasts = HEADER.writable(INT64)
starts_from = HEADER.table(INT32)
start_at = HEADER.table(INT32)
ignored_at = HEADER.table(INT32)
# the vocabulary
trie_at = HEADER.table(INT64)
kinds_at = HEADER.table(INT64)
token_at = HEADER.table(INT32)
tokens_before = HEADER.table(INT32)
root_of = HEADER.table(INT32)
next_same = HEADER.table(INT32)
offset_of = HEADER.table(INT32)
byte_at = HEADER.table(UINT8)
eos_at = HEADER.table(INT32)
# its slices: kinds, ends of what is left, tokens, what is left
slice_kinds = HEADER.table(INT64)
slice_end = HEADER.table(INT64)
slice_row = HEADER.table(INT32)
residue_at = HEADER.table(INT64)
# ends of and tries of remainders; tokens with the same ones, as groups
remainder_end = HEADER.table(INT64)
remainder_at = HEADER.table(INT64)
group_from = HEADER.table(INT32)
group_at = HEADER.table(INT32)
# bytes of a shortest word: of a suffix, from a position on; not there until BOUND asks
least_of = HEADER.table(INT64)
to_go_from = HEADER.table(INT64)
move_at, set_move_at = HEADER.writable(INT64)
# of pairs: the automaton; of each row those after a byte, its configurations, whether its live states are known (1:
# asked for, 2: known), and these as bits
pair_step = HEADER.table(INT32)
pair_ends = HEADER.table(INT32)
pair_row, set_pair_row = HEADER.writable(INT32)
pair_configs, set_pair_configs = HEADER.writable(INT64)
pair_known, set_pair_known = HEADER.writable(INT32)
pair_live = HEADER.table(INT64)
# buffers; C holds keys of records to be, E tries of tokens, A and B what their users say
a_at = HEADER.buffer(INT64)
b_at = HEADER.buffer(INT64)
c_at = HEADER.buffer(INT64)
set_c_at = Writer(c_at)
e_at = HEADER.buffer(INT64)
