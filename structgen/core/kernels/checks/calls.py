"""What others call of the checks' kernel.

`structgen.core.engines.json.tables.verify` says what records look like, as ``layout`` rows (record kind, field, what it
holds, three arguments), sorted by kind; ``first[kind]`` is a kind's first row, ``sizes[kind]`` its length; ``dispatch``
rows (kind, field, value or `OTHERWISE`, kind) tell apart records that share a beginning; ``choose[kind]`` is a kind's
first row there, or -1.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.calls import Function
from structgen.core.kernels.checks.layout import *
from structgen.core.kernels.loading import kernel

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
_I4, _I8, _U1 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8)

_ZERO = array("q", (0,))

run = kernel("checks")
_check_tables = Function(run, CHECK_TABLES, [_I4, _I8, _U1, *[_I4] * 13], [_I8, _I4, _I4, _I8, _U1, _I8, _I8])
_check_automaton = Function(run, CHECK_AUTOMATON, [_I4, _U1], [_U1])


def pool_words(
    transitions: Int32,
    accepting: Int32,
    payload: Int32,
    class_words: Int32,
    labels: Int32,
    narrow: Int32,
    states: Int32,
) -> array[int]:
    """The arrays of a pool as `TableChecks` takes them; they must live as long as the words are used.

    ``labels[state]`` is 0, or, where an automaton starts, STRING_START + 1, NUMBER_START + 1, CLASSES_START + the
    number of classes; ``narrow`` and ``states`` of it: whether it has beginnings of finitely many words; its size;
    ``class_words[state + c]``: how many words its class ``c`` has.
    """
    return array("q", _check_tables.words(3, transitions, accepting, payload, class_words, labels, narrow, states))


class TableChecks:
    """Checks of tables whose records are described by these arrays; see the head of this module.

    A call costs some 10 µs, and is linear in the tables for each round of the fixpoint. Thread-safe.
    """

    def __init__(
        self, layout: Int32, first: Int32, sizes: Int32, meanings: Int32, choose: Int32, dispatch: Int32
    ) -> None:
        self._arrays = layout, first, sizes, meanings, choose, dispatch
        self._words = array("q", _check_tables.words(10, *self._arrays))

    def __call__(
        self, grammar: array[int], words: array[int], texts: array[int], pool: array[int],
        universal: int, roots: Sequence[int],
    ) -> tuple[int, int, int]:  # fmt: skip
        """A verdict, FINE or what is wrong; and at which place and in which field of it.

        Args:
            grammar, words, texts: int32, int64 and uint8.
            pool: `pool_words`.
            universal: the start that stands for any string.
            roots: pairs of place and kind. ``meanings[kind]`` is what a kind is here, or -1.
        """
        size, sets, count = len(grammar), len(words), len(roots)
        lives = -(-size // 8)
        # where, int64; seen and order, int32; allowed, int64; live, uint8; two tables of sets of obligations, int64
        scratch = _ZERO * (count + size + sets + lives + 2 * MAX_DUTY_SETS)
        for place, root in enumerate(roots):
            scratch[place] = root
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
            spare, MAX_DUTY_SETS, MAX_DUTY_SETS, spare + 8 * MAX_DUTY_SETS, MAX_DUTY_SETS, MAX_DUTY_SETS,
        ))  # fmt: skip
        arguments = begin + pool + self._words + end
        return _check_tables.run(arguments, count // 2, universal), scratch[0], scratch[1]


def check_automaton(transitions: Int32, accepting: Bytes) -> int:
    """-1, or a state (start 0) that leads out of the table or to no accepting state. Linear, a round for each layer
    of states that are not numbered in breadth-first order."""
    return _check_automaton(transitions, accepting, np.zeros(len(accepting), _U1))
