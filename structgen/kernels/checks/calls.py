"""What others call of the checks' kernel.

`structgen.engines.json.tables.verify` says what records look like, as ``layout`` rows (record kind, field, what it
holds, three arguments), sorted by kind; ``first[kind]`` is a kind's first row, ``sizes[kind]`` its length; ``dispatch``
rows (kind, field, value or `OTHERWISE`, kind) tell apart records that share a beginning; ``choose[kind]`` is a kind's
first row there, or -1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from structgen.kernels.calls import Function
from structgen.kernels.checks.layout import *
from structgen.kernels.loading import kernel

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
_I4, _I8, _U1 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8)

run = kernel("checks")
_check_tables = Function(run, CHECK_TABLES, [_I4, _I8, _U1, *[_I4] * 13], [_I8, _I4, _I4, _I8, _U1, _I8, _I8])
_check_automaton = Function(run, CHECK_AUTOMATON, [_I4, _U1], [_U1])


def check_tables(
    grammar: Int32, words: Int64, texts: Bytes,
    pool: Int32, accepting: Int32, payload: Int32, class_words: Int32, labels: Int32, narrow: Int32, states: Int32,
    layout: Int32, first: Int32, sizes: Int32, meanings: Int32, choose: Int32, dispatch: Int32,
    universal: int, roots: int, where: Int64,
) -> int:  # fmt: skip
    """Check tables from their roots on; a verdict, FINE or what is wrong at place ``where[0]``, field ``where[1]``.

    ``where`` holds the roots on entry: ``roots`` pairs (place, kind). ``meanings[kind]`` is what a kind is here,
    or -1. ``labels[state]``: 0, or, where an automaton starts, STRING_START + 1, NUMBER_START + 1, CLASSES_START + the
    number of classes; ``narrow`` and ``states`` of it: whether it has beginnings of finitely many words; its size;
    ``class_words[state + c]``: how many words its class ``c`` has; ``universal``: the start that stands for any string.
    Linear in the tables, for each round of the fixpoint.
    """
    size = len(grammar)
    return _check_tables(
        grammar, words, texts, pool, accepting, payload, class_words, labels, narrow, states,
        layout, first, sizes, meanings, choose, dispatch,
        where, np.zeros(size, _I4), np.empty(size, _I4), np.empty(len(words), _I8), np.zeros(size, _U1),
        np.empty(MAX_DUTY_SETS, _I8), np.empty(MAX_DUTY_SETS, _I8), x=roots, y=universal,
    )  # fmt: skip


def check_automaton(transitions: Int32, accepting: Bytes) -> int:
    """-1, or a state (start 0) that leads out of the table or to no accepting state. Linear, a round for each layer
    of states that are not numbered in breadth-first order."""
    return _check_automaton(transitions, accepting, np.zeros(len(accepting), _U1))
