"""The tables of sorted texts: each is declared here, and nowhere else. No code is here."""

from structgen.core.kernels.tables import ARGUMENT_WORDS, INT32, INT64, UINT8, Header

SORTED = Header(words=ARGUMENT_WORDS)

# --- of the texts ---
setting = SORTED.table(INT64)  # `structgen.core.kernels.sorted.layout`
text = SORTED.table(UINT8)
start_of = SORTED.table(INT32)  # of each entry, in the text; of names one more, the text's end
bound = SORTED.table(INT64)  # of each byte: the first entry that begins with it or a higher one; 257 of them
border = SORTED.table(UINT8)  # a bit for each place in the text: whether a quote may end before it; none for CHAR
shortest = SORTED.table(INT32)  # bytes of the shortest name of each `BLOCK` entries
# of each `STEP` places of documents the first: code points before it, and the next border and END from it on
points_before = SORTED.table(INT64)
next_border = SORTED.table(INT64)
next_over = SORTED.table(INT64)

# --- of the vocabulary, and working memory: `LEVEL_WORDS` for each level of its trie ---
node_byte = SORTED.table(UINT8)
node_depth = SORTED.table(INT32)
node_end = SORTED.table(INT32)
node_token = SORTED.table(INT32)
root_node = SORTED.table(INT32)  # of each byte: the first child of the root with it or a higher one
next_same = SORTED.table(INT32)
token_byte = SORTED.table(UINT8)
token_start = SORTED.table(INT32)
end_token = SORTED.table(INT32)
level, set_level = SORTED.writable(INT64)

# --- of the construction of a suffix array (Nong, Zhang, Chan 2009): other arguments, so other places ---
SUFFIXES = Header(words=ARGUMENT_WORDS)
byte_letter = SUFFIXES.table(UINT8)  # of each place; none where the letters are ranks
rank_letter = SUFFIXES.table(INT32)  # of each place; none where the letters are bytes
given = SUFFIXES.table(INT32)  # places that the order is induced from
suffix, set_suffix = SUFFIXES.writable(INT32)
begins, set_begins = SUFFIXES.writable(UINT8)  # a bit for each place: whether it begins a rise
first_falling, set_first_falling = SUFFIXES.writable(INT32)  # of each letter: where its suffixes begin; one more
first_rising, set_first_rising = SUFFIXES.writable(INT32)
spare, set_spare = SUFFIXES.writable(INT32)  # a word for each letter
in_order, set_in_order = SUFFIXES.writable(INT32)  # places that begin a rise
rank_of_half, set_rank_of_half = SUFFIXES.writable(INT32)  # of these by half of the position
