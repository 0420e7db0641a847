"""Array code that makes tries: see `structgen.core.vocabulary.trie`, which owns their layout."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import byte_array, int_array


@internal
def common_prefixes(m):
    """``common[i]``: how many leading bytes token ``order[i]`` shares with its predecessor in the order."""
    token_bytes, offsets, order, common = byte_array(m, 0), int_array(m, 1), int_array(m, 2), int_array(m, 3)
    for i in range(1, len(order)):
        a, b = offsets[order[i - 1]], offsets[order[i]]
        limit = min(offsets[order[i - 1] + 1] - a, offsets[order[i] + 1] - b)
        length = 0
        while length < limit and token_bytes[a + length] == token_bytes[b + length]:
            length += 1
        common[i] = length


@internal
def fill_nodes(m):
    """Append the nodes of each token in sorted order; ``open_nodes[d]`` is the node at depth d on the current path."""
    token_bytes, offsets, order, common = byte_array(m, 0), int_array(m, 1), int_array(m, 2), int_array(m, 3)
    open_nodes, byte, depth, subtree_end = int_array(m, 4), byte_array(m, 5), int_array(m, 6), int_array(m, 7)
    token, next_same = int_array(m, 8), int_array(m, 9)
    size = 0
    opened = 0
    for i in range(len(order)):
        start = offsets[order[i]]
        length = offsets[order[i] + 1] - start
        for d in range(common[i], opened):
            subtree_end[open_nodes[d]] = size
        for d in range(common[i], length):
            byte[size] = token_bytes[start + d]
            depth[size] = d
            open_nodes[d] = size
            size += 1
        if common[i] < length:
            token[open_nodes[length - 1]] = order[i]
        else:  # the same bytes again: nothing sorts between a string and its equal
            next_same[order[i - 1]] = order[i]
        opened = length
    for d in range(opened):
        subtree_end[open_nodes[d]] = size


@internal
def filter_chains(m):
    """Take the ids that are not kept out of the chains that start at each node, in place."""
    keep, token, next_same = byte_array(m, 0), int_array(m, 1), int_array(m, 2)
    for node in range(len(token)):
        current = token[node]
        token[node] = -1
        last = -1
        while current >= 0:
            following = next_same[current]
            next_same[current] = -1
            if keep[current]:
                if last < 0:
                    token[node] = current
                else:
                    next_same[last] = current
                last = current
            current = following
