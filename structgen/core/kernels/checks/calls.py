"""What others call of the checks' kernel."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.calls import Function
from structgen.core.kernels.checks.layout import *
from structgen.core.kernels.checks.tables import *
from structgen.core.kernels.loading import kernel
from structgen.core.kernels.records import KernelRecord

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_ZERO = array("q", (0,))

run = kernel("checks")
_DTYPES = [table.dtype for table in ARGUMENTS.tables]
_FIRST_POOL, _FIRST_RECORD, _FIRST_WRITTEN = (int(table) // ARGUMENT_WORDS for table in (pool, field_part, where))
_check_tables = Function(run, CHECK_TABLES, _DTYPES[:_FIRST_WRITTEN], _DTYPES[_FIRST_WRITTEN:])
_check_automaton = Function(run, CHECK_AUTOMATON, [INT32, UINT8], [UINT8])


def pool_words(*arrays: Int32) -> array[int]:
    """The arrays of a pool, in the order of `tables`; they must live as long as the words are used."""
    return array("q", _check_tables.words(_FIRST_POOL, *arrays))


class TableChecks:
    """Checks of tables whose records are these; each names the others that its fields lead to, and its variants.

    A call costs some 10 µs, and is linear in the tables for each round of the fixpoint. Thread-safe.
    """

    def __init__(self, records: Sequence[KernelRecord]) -> None:
        self.kinds = {record.name: kind for kind, record in enumerate(records)}
        rows, first, choices, choose = [], [0], [], []
        for kind, record in enumerate(records):
            selected, variants = record.select or (0, {})
            choose.append(len(choices) if variants else -1)
            choices += [(kind, selected, value, self.kinds[name]) for value, name in variants.items()]
            for field, what, one, two, three in record.fields:
                rows.append((kind, field, what, self.kinds[one] if isinstance(one, str) else one, two, three))
            first.append(len(rows))
        sizes, meanings = [record.size for record in records], [record.meaning for record in records]
        self._arrays = [np.array(one, np.int32) for one in (rows, first, sizes, meanings, choose, choices)]
        self._words = array("q", _check_tables.words(_FIRST_RECORD, *self._arrays))

    def __call__(
        self, grammar: array[int], words: array[int], texts: array[int], pool: array[int],
        universal: int, roots: Sequence[tuple[int, str]],
    ) -> tuple[int, int, int]:  # fmt: skip
        """A verdict, FINE or what is wrong; and at which place and in which field of it.

        Args:
            grammar, words, texts: int32, int64 and uint8.
            pool: `pool_words`.
            universal: the start that stands for any string.
            roots: places of records, and their names.
        """
        size, sets, count = len(grammar), len(words), 2 * len(roots)
        lives, most = -(-size // 8), MAX_EXISTENTIAL_SETS
        # where, int64; seen and order, int32; allowed, int64; live, uint8; two tables of sets of existentials, int64
        scratch = _ZERO * (count + size + sets + lives + 2 * most)
        for number, (offset, name) in enumerate(roots):
            scratch[2 * number], scratch[2 * number + 1] = offset, self.kinds[name]
        where = scratch.buffer_info()[0]
        seen = where + 8 * count
        allowed = seen + 8 * size
        live = allowed + 8 * sets
        spare = live + 8 * lives
        text, length = texts.buffer_info()
        begin = array(
            "q", (grammar.buffer_info()[0], size, size, words.buffer_info()[0], sets, sets, text, length, length)
        )
        end = array("q", (
            where, count, count, seen, size, size, seen + 4 * size, size, size, allowed, sets, sets, live, size, size,
            spare, most, most, spare + 8 * most, most, most,
        ))  # fmt: skip
        arguments = begin + pool + self._words + end
        return _check_tables.run(arguments, len(roots), universal), scratch[0], scratch[1]


def check_automaton(transitions: Int32, accepting: Bytes) -> int:
    """-1, or a state (start 0) that leads out of the table or to no accepting state. Linear, a round for each layer
    of states that are not numbered in breadth-first order."""
    return _check_automaton(transitions, accepting, np.zeros(len(accepting), UINT8))
