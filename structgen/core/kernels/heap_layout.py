"""What all heaps begin with, and what their records look like (`structgen.core.kernels.interning`). No code is here.

A heap is one int64 array: a header of tables (address, then length in elements) and numbers, then records. All that
a grammar learns while texts are read lies in it. It may be moved between calls. If room is short, a flag is raised
(``H_FLAG``), nothing more is interned, and the operation returns RETRY, to be called again with more room.
"""

# --- tables: the heap itself, and the hash table of its records (a power of two slots, 0: free) ---
H_HEAP, H_CAP, H_HASH, H_SLOTS = 0, 1, 2, 3
# --- numbers: the heap's first free word, what there was too little of, the sink, how many records are interned ---
H_TOP, H_FLAG, H_SINK, H_RECORDS = 4, 5, 6, 7
FIRST_PLACE = 8  # of what else a header holds

# --- bits of H_FLAG, to which machines add theirs; results of operations ---
HEAP_FULL, HASH_FULL = 1, 2
RETRY, DEAD = -1, 0

# --- operations that all such machines have; each adds its own. ENDS gives bits, of which the lowest is "may stop" ---
FILL, ACCEPT, ADVANCE, ENDS, NEXT_BYTES = range(5)
FIRST_OPERATION = 5  # of a machine's own

# --- records: hash, kind << LENGTH_BITS | key words, payload, key ---
R_HASH, R_HEAD, R_PAYLOAD = 0, 1, 2
LENGTH_BITS = 40
LENGTH_MASK = (1 << LENGTH_BITS) - 1
HASH_PRIME = 1099511628211  # FNV-1a, 64 bit
