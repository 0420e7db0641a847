"""How configurations go in and out of the registers of a context, whose tables come along."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *


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
save_level, restore_level = _saver(set_level_state), _restorer(level_state)
save_start, restore_start = _saver(set_start), _restorer(start)
save_cross, restore_cross = _saver(set_cross), _restorer(cross)
save_probe, restore_probe = _saver(set_probe), _restorer(probe)


@internal
def node(m, node, field):
    """A field of a trie's node."""
    return node_field(m, 4 * node + field)


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
def load_configuration(m, t):
    """A configuration of the set into the registers."""
    for i in range(4):
        set_reg(m, i, configuration(m, 4 * t + i))
