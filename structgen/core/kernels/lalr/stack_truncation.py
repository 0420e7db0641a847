"""Stacks cut off: the states on top, and of what lies below only the class. Masks are found for all that agree so far.

The stack below the lowest state that is kept is minus that state's class. What a parser does there is BELOW, and so is
the configuration that would follow.
"""

from structgen.core.kernels.interning import lacks_room, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.parser import stacked
from structgen.core.kernels.lalr.records import config_of, pair, parser_of
from structgen.core.kernels.lalr.tables import *


@internal
def _cut_stack(h, node, kept):
    """The stack with so many states kept."""
    lowest = node
    for i in range(kept - 1):
        if lowest <= 0:
            break
        set_stack_at(h, i, word(h, lowest + PAIR_KEY + 1))
        lowest = word(h, lowest + PAIR_KEY)
    if lowest <= 0 or word(h, lowest + PAIR_KEY) <= 0:
        return node
    group = word(h, lowest + NODE_CLASS)
    result = pair(h, NODE, -group, word(h, lowest + PAIR_KEY + 1))
    if not lacks_room(h):
        set_word(h, result + NODE_CLASS, group)
    for i in range(kept - 2, -1, -1):
        result = stacked(h, result, stack_at(h, i))
    return result


@internal
def _cut_one(h, config, kept, fallback):
    """A configuration with its stack cut, and another fallback."""
    parser = word(h, config + CONFIG_KEY)
    node, indent = word(h, parser + PARSER_KEY), word(h, parser + PARSER_KEY + 1)
    cut = _cut_stack(h, node, kept)
    if cut != node:
        parser = parser_of(h, cut, indent, word(h, parser + PARSER_KEY + 2))
    return config_of(h, parser, word(h, config + CONFIG_KEY + 1), fallback, word(h, config + CONFIG_KEY + 3))


@internal
def cut_config(h, config, kept):
    """A configuration with so many states kept of its stack and of those of its fallbacks; if these are few."""
    depth, current = 0, config
    while current != 0 and depth <= MOST_FALLBACKS:
        depth += 1
        current = word(h, current + CONFIG_KEY + 2)
    if current != 0:
        return config
    result = 0
    for i in range(depth - 1, -1, -1):
        current = config
        for _ in range(i):
            current = word(h, current + CONFIG_KEY + 2)
        result = _cut_one(h, current, kept, result)
        if lacks_room(h):
            return config
    return result
