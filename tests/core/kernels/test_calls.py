"""Kernels that are functions of arrays: what they get, what they refuse, and that nothing depends on room at first."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest

from structgen.core.kernels.aligned import calls as aligned
from structgen.core.kernels.automata import calls as automata
from structgen.core.kernels.calls import Function, grown
from structgen.core.kernels.checks import calls as checks
from structgen.core.kernels.objects import is_checked
from structgen.core.kernels.records import KernelRecord
from structgen.core.kernels.tokens import calls as tokens
from structgen.core.regex.charset import partition
from structgen.core.regex.ecma_parser import parse
from structgen.core.regex.nfa import search_program
from structgen.core.regex.pattern import pattern_dfa
from structgen.core.regex.utf8 import utf8_tree

RUNS = {module.__name__: module.run for module in (aligned, automata, checks, tokens)}


@pytest.mark.parametrize("name", RUNS)
def test_an_entry_takes_five_integers(name: str) -> None:
    run: Any = RUNS[name]
    for wrong in ((), (0, 99, 0, 0), (0, 99, 0, 0, 0, 0), (0, 99, 0, 0, "x"), (0, 99, 0, 0, 1.5), (None, 99, 0, 0, 0)):
        with pytest.raises(TypeError):
            run(*wrong)
    with pytest.raises(OverflowError):
        run(0, 99, 1 << 63, 0, 0)
    assert isinstance(run(0, 99, -1, -1, -1), int)  # no operation: what stamps the sources


TABLE = np.zeros((2, 256), np.int32)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([TABLE], "takes 3 arrays, got 1"),
        ([TABLE, np.zeros(2, np.uint8), np.zeros(2, np.int8)], "array 2 has the dtype int8, expected uint8"),
        ([TABLE.astype(">i4"), np.zeros(2, np.uint8), np.zeros(2, np.uint8)], "array 0 has the dtype >i4"),
        ([TABLE[:, ::2], np.zeros(2, np.uint8), np.zeros(2, np.uint8)], "array 0 is not C-contiguous"),
        ([TABLE, np.zeros(2, np.uint8), np.frombuffer(bytes(2), np.uint8)], "array 2 is read-only"),
    ],
)
def test_arrays_that_a_kernel_cannot_take(arrays: list[Any], message: str) -> None:
    function = Function(checks.run, checks.CHECK_AUTOMATON, [np.int32, np.uint8], [np.uint8])
    with pytest.raises(TypeError, match=message):
        function(*arrays)


def bounds(nodes: int, logp: Any) -> list[Any]:
    """Arguments of `refresh` for nodes without edges: all that comes after the node."""
    types = [np.int32, np.int64, np.int32, np.float64, np.float64]
    return [*(np.zeros(nodes, t) for t in types), logp, np.zeros(1, np.int32)]


def test_a_field_is_a_vector_to_write() -> None:
    records = np.zeros(3, [("a", np.int64), ("b", np.float64)])
    with pytest.raises(TypeError, match=r"array 10 .* vector"):
        aligned.refresh(0, *bounds(1, records["b"].reshape(3, 1)))
    parents = bounds(2, records["b"])
    parents[0][:] = -1
    aligned.refresh(1, *parents)
    assert parents[3].tolist() == [0.0, -np.inf]  # no edges: nothing behind it


def test_what_is_only_read_may_be_read_only() -> None:
    table, accepting = np.zeros((1, 256), np.int32), np.ones(1, np.uint8)
    table.flags.writeable = accepting.flags.writeable = False
    assert checks.check_automaton(table, accepting) == -1
    assert automata.column_classes(table)[1] == 1


def test_empty_arrays() -> None:
    table, flags = automata.minimise(np.zeros((0, 3), np.int32), np.zeros(0, np.uint8))
    assert table.shape == (0, 3) and flags.shape == (0,)
    assert automata.renumber(np.zeros((0, 256), np.int32), np.zeros(0, np.uint8))[0].shape == (0, 256)
    assert automata.count_words(np.zeros((0, 256), np.int32), np.zeros(0, np.uint8), 9).shape == (0,)


def test_grown() -> None:
    assert grown(np.array([[1, 2]], np.int32), -1).tolist() == [[1, 2], [-1, -1]]


@pytest.mark.skipif(not is_checked(), reason="kernels without bounds checks read on")
def test_an_access_out_of_bounds_is_an_error() -> None:
    """In arrays seen as vectors and matrices, in tables of a context, and in fields."""
    with pytest.raises(IndexError):
        tokens.add_rows(TABLE, 5, *(np.zeros(size, np.int32) for size in (256, 9, 9, 9)))
    none = np.zeros(0, np.int32)
    described = checks.TableChecks([KernelRecord("node")])
    described.kinds["other"] = 1
    with pytest.raises(IndexError):
        described(array("i", [0]), array("q"), array("B"), checks.pool_words(*[none] * 7), 0, [(0, "other")])
    with pytest.raises(IndexError):
        aligned.refresh(3, *bounds(1, np.zeros(1)))


# --- room that runs out is found again, at any place ---
def everything() -> list[Any]:
    """What the kernels that may run out of room say of some expressions."""
    found: list[Any] = []
    for expression in (
        "^(a|b)*a(a|b){5}$",
        "^[\\u0391-\\u03a9]{2,9}[^\\u0400-\\u2fff\\u4e00]$",
        "(\\p{L}|\\d+)x$",
        "b{40}",
    ):
        program, start = search_program(parse(expression), 1000)
        segments, masks = partition(list(program.sets))
        member = np.array([[mask >> s & 1 for mask in masks] for s in range(len(program.sets))], np.uint8)
        for states, steps in ((1000, 10**9), (7, 10**9), (1000, 700)):
            found.append(automata.determinise(program.array(), start, member, states, steps))
        table, accepting, _ = automata.determinise(program.array(), start, member, 1000, 10**9)
        tree = utf8_tree(tuple((max(low, 128), high, name) for low, high, name in segments if high >= 128))
        ascii_class = np.zeros(128, np.int32)
        for states in (10_000, 20):
            found.append(
                automata.expand_utf8(
                    table, accepting, ascii_class, tree.children, tree.leaf, tree.uniform, tree.root,
                    np.arange(len(masks), dtype=np.int32), states,
                )
            )  # fmt: skip
    parts = [pattern_dfa(text) for text in ("^(aa|b)*$", "^(aaa|b)*$", "^([^b]|bbbbb)*$")]
    first = np.cumsum([0, *map(len, parts)], dtype=np.int32)
    columns = np.tile(np.arange(256, dtype=np.int32), (len(parts), 1))
    for states in (10_000, 11):
        found.append(
            automata.product(
                np.concatenate([part.transitions for part in parts]),
                np.concatenate([part.accepting for part in parts]).view(np.uint8),
                first, columns, states,
            )
        )  # fmt: skip
    loops = pattern_dfa("^((aaaaa)*|(bbbbbbb)*|c{30})$")
    found += [automata.distances(loops.transitions, loops.accepting.view(np.uint8), cap) for cap in (100_000, 400)]
    return found


def test_results_do_not_depend_on_the_room_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automata, "_FIRST_ROWS", 4096)
    expected = everything()
    assert max(result[2] for result in expected) > 64
    assert {-1, -2} <= {result[2] for result in expected if len(result[0]) == 0}
    for rows in (1, 3):
        monkeypatch.setattr(automata, "_FIRST_ROWS", rows)
        for one, other in zip(everything(), expected, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b, strict=True)
