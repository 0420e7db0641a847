"""The tables of a context of the JSON machine, and how configurations go in and out of its registers."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.memory import reader, writer

grammar = reader(C_GRAMMAR, 32)
word = reader(C_WORDS, 64)
text = reader(C_TEXTS, 8, signed=False)
pool = reader(C_POOL, 32)
flags = reader(C_FLAGS, 32)
payload = reader(C_PAYLOAD, 32)
words_left = reader(C_WORDS_LEFT, 32)
limit = reader(C_LIMITS, 64)
next_same = reader(C_NEXT_SAME, 32)
group_of = reader(C_GROUPS, 32)
token_byte = reader(C_TOKEN_BYTES, 8, signed=False)
class_of = reader(C_CLASSES, 32)
loop = reader(C_LOOPS, 32)
wide = reader(C_WIDES, 32)
block = reader(C_ROWS, 64)
safe, set_safe = reader(C_SAFE, 64), writer(C_SAFE)
rise = reader(C_RISES, 32)
order_start = reader(C_ORDER_STARTS, 32)
own_kind = reader(C_NODE_KINDS, 8, signed=False)
slice_size = reader(C_SLICE_SIZES, 32)
thread = reader(C_THREADS, 64)
data = reader(C_DATA, 8, signed=False)
offset = reader(C_OFFSETS, 32)
end_token = reader(C_ENDS, 32)
kind = reader(C_KINDS, 32)
slice_kinds = reader(C_SLICES, 32)
slot_of = reader(C_SLOTS, 32)
_node_field = reader(C_NODES, 32)
member_field = reader(C_MEMBERS, 32)
trie_field = reader(C_TRIES, 64)
arena, set_arena = reader(C_ARENA, 64), writer(C_ARENA)
scratch, set_scratch = reader(C_SCRATCH, 64), writer(C_SCRATCH)
stack, set_stack = reader(C_STACK, 64), writer(C_STACK)
reg, set_reg = reader(C_REGS, 64), writer(C_REGS)
result, set_result = reader(C_RESULT, 64), writer(C_RESULT)
_own, _set_own = reader(C_OWN, 64), writer(C_OWN)
search, set_search = reader(C_SEARCH, 64), writer(C_SEARCH)
start, _set_start = reader(C_START, 64), writer(C_START)
_cross, _set_cross = reader(C_CROSS, 64), writer(C_CROSS)
written, set_written = reader(C_WRITTEN, 8, signed=False), writer(C_WRITTEN, 8)
probe, set_probe = reader(C_PROBE, 64), writer(C_PROBE)
nesting, set_nesting = reader(C_NESTING, 64), writer(C_NESTING)
count_of = reader(C_COUNTS, 32)
symbols = reader(C_SYMBOLS, 32)
memory, set_memory = reader(C_MEMORY, 64), writer(C_MEMORY)
key, set_key = reader(C_KEY, 64), writer(C_KEY)
logged, set_logged = reader(C_LOG, 64), writer(C_LOG)
joined_row, set_joined_row = reader(C_JOINED, 64), writer(C_JOINED)
following, set_following = reader(C_FOLLOWING, 64), writer(C_FOLLOWING)


def _saver(write):
    """A function that copies the configuration and the top of scratch out of the registers."""

    @internal
    def save(m, index):
        for i in range(5):
            write(m, index + i, reg(m, i))

    return save


def _restorer(read):
    """A function that copies them back."""

    @internal
    def restore(m, index):
        for i in range(5):
            set_reg(m, i, read(m, index + i))

    return restore


save_stack, restore_stack = _saver(set_stack), _restorer(stack)
save_own, restore_own = _saver(_set_own), _restorer(_own)
save_start, restore_start = _saver(_set_start), _restorer(start)
save_cross, restore_cross = _saver(_set_cross), _restorer(_cross)
save_probe, restore_probe = _saver(set_probe), _restorer(probe)


@internal
def node(m, node, field):
    """A field of a trie's node."""
    return _node_field(m, 4 * node + field)


@internal
def set_string(m, q, a, b):
    """Lexical state and both registers of the configuration."""
    set_reg(m, Q, q)
    set_reg(m, A, a)
    set_reg(m, B, b)


@internal
def push(m, index, q, a, b, f):
    """Write a configuration to the stack."""
    set_stack(m, index, q)
    set_stack(m, index + 1, a)
    set_stack(m, index + 2, b)
    set_stack(m, index + 3, f)


@internal
def thread_to_regs(m, t):
    """A configuration of the set into the registers."""
    for i in range(4):
        set_reg(m, i, thread(m, 4 * t + i))
