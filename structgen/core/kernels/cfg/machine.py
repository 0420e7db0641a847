"""What engines call of the grammar machine: `run`, an operation on the heap whose address stands at address ``root``.

It releases the GIL: whoever calls it holds the lock of the heap (`structgen.core.kernels.heaps.Heap`).

======================  ======================================  ==================================
operation               x, y, z                                result
======================  ======================================  ==================================
FILL                    configurations, address of a mask row   1
ACCEPT                  configurations, token                   those after it, or DEAD
ADVANCE                 configurations, address, bytes          those after it, or DEAD
ENDS                    configurations                          1: may stop, 2: may embed a terminal
NEXT_BYTES              configurations, address of 256 bits     1
INITIAL                 suffix of the start symbol              configurations
AFTER                   configurations, terminal                those after it, or DEAD
REHASH                  address of the old table, its size      1
READ_AUTOMATA           addresses, count                        positions
GOTO_ITEMS              item set, class                         item set
KINDS_BELOW             address of trie nodes, count, address   1
KIND_OF                 byte                                    its kind
BOUND                   configurations                          bytes, or UNMEASURED
ROW_OF                  configurations                          their row, see `paired`
FILL_PAIRS              configurations, state, address of a row 1, or UNMEASURED
======================  ======================================  ==================================

Any may return RETRY: ``H_FLAG`` tells what there was too little of. BOUND needs the tables of lengths (``least_of``,
``to_go_from``); FILL_PAIRS those of pairs, and ``pair_known`` says which sets it lacks. Nothing here checks its
arguments.
"""

from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.loading import kernel

run = kernel("cfg")
