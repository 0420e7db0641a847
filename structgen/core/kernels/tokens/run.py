"""The entry of the tokens' kernel: kinds of characters and tokens, and tries."""

from structgen.core.kernels.jit import entry
from structgen.core.kernels.tokens.automata import add_rows
from structgen.core.kernels.tokens.characters import (
    kind_of,
    node_kinds,
    path_kinds,
    subtree_kinds,
    subtree_rises,
    token_kinds,
)
from structgen.core.kernels.tokens.layout import *
from structgen.core.kernels.tokens.trie import common_prefixes, fill_nodes, filter_chains


def _make(stamp):
    def run(m, operation, x, y, z):
        """Run an operation on the arguments at address ``m``; `structgen.core.kernels.tokens.calls` says which."""
        if operation == ADD_ROWS:
            add_rows(m, x)
        elif operation == TOKEN_KINDS:
            token_kinds(m)
        elif operation == SUBTREE_KINDS:
            subtree_kinds(m)
        elif operation == PATH_KINDS:
            path_kinds(m)
        elif operation == KIND_OF:
            return kind_of(x)
        elif operation == COMMON_PREFIXES:
            common_prefixes(m)
        elif operation == FILL_NODES:
            fill_nodes(m)
        elif operation == FILTER_CHAINS:
            filter_chains(m)
        elif operation == SUBTREE_RISES:
            subtree_rises(m)
        elif operation == NODE_KINDS:
            node_kinds(m)
        return stamp

    return run


run = entry(_make)
