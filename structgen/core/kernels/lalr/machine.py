"""What engines call of the LALR machine: `run`, an operation on the heap whose address stands at address ``root``.

It releases the GIL: whoever calls it holds the lock of the heap (`structgen.core.kernels.heaps.Heap`).

==============  ====================================  =====================================
operation       x, y, z                               result
==============  ====================================  =====================================
FILL            state, address of a mask row          1
ACCEPT          state, token                          state or DEAD
ADVANCE         state, address, bytes                 state or DEAD
ENDS            state                                 1 or 0
NEXT_BYTES      state, address of 256 bits, cleared   1
START           first state of the parser             configuration
REHASH          address of the old table, its size    1
STEP            configuration, class                  configuration or DEAD
FEED_TERMINAL   parser, terminal, column              parser or DEAD
LIVE            configuration                         YES, NO or UNKNOWN
ENDS_PARSER     parser                                1 or 0
FRESH           parser                                configuration
CLASSES_INSIDE  (into inside_at)                       1
PROVE           (into proof_at)                        1
ADOPT           kind, address of a key, its words     record
==============  ====================================  =====================================

Any may return RETRY: ``H_FLAG`` tells what there was too little of. The first five may return UNKNOWN: the first
H_UNKNOWNS words of `unknown_at` are configurations whose ``CONFIG_LIVE`` must be set before the call is repeated, or
minus configurations whose lexer states must be prepared (``LEX_RESETS`` is set last).
Nothing here checks its arguments.
"""

from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.loading import kernel

run = kernel("lalr")
