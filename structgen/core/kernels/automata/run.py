"""The entry of the automata's kernel."""

from structgen.core.kernels.automata.counting import count_words, distances, next_lengths
from structgen.core.kernels.automata.layout import *
from structgen.core.kernels.automata.minimise import column_classes, minimise, renumber
from structgen.core.kernels.automata.subset import determinise
from structgen.core.kernels.automata.tables import expand_utf8, product, word_trie
from structgen.core.kernels.jit import entry


def _make(stamp):
    def run(m, operation, x, y, z):
        """Run an operation on the arguments at address ``m``; `structgen.core.kernels.automata.calls` says which."""
        if operation == DETERMINISE:
            return determinise(m)
        if operation == MINIMISE:
            return minimise(m)
        if operation == RENUMBER:
            return renumber(m)
        if operation == COLUMN_CLASSES:
            return column_classes(m)
        if operation == COUNT_WORDS:
            count_words(m, x)
        elif operation == DISTANCES:
            return distances(m, x)
        elif operation == NEXT_LENGTHS:
            next_lengths(m, x)
        elif operation == EXPAND_UTF8:
            return expand_utf8(m)
        elif operation == PRODUCT:
            return product(m)
        elif operation == WORD_TRIE:
            return word_trie(m, x)
        return stamp

    return run


run = entry(_make)
