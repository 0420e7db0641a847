"""Solved value nodes as plain arrays: what took long to compile can be kept in the cache folder, for other processes.

Nothing of a file is executed or unpickled: it holds a JSON text (the graph) and integer arrays (automata). Automata are
looked at here, and tables by `tables.verify`, before anything is handed out, so a wrong file cannot make a kernel read
astray or a text come to a dead end; what it *allows* is as trustworthy as whoever can write to the folder, which holds
object code, too, and is read only if nobody else can (`core.cache_folder`). A file is found by what it was made
from: the schema, the options, this version and the sources that compile. Value nodes do not depend on a vocabulary.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.json.numbers.automaton import automaton
from structgen.core.engines.json.numbers.spec import NumberSpec
from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec, CountedState
from structgen.core.engines.json.value_graph.node import StringAlternative, ValueNode
from structgen.core.engines.json.value_graph.objects import KeyClasses, ObjectSpec
from structgen.core.engines.json.value_graph.scalars import AddAutomaton, EnumSpec, NumberChoice, QuoteSpec, StringSpec
from structgen.core.json_schema.formula.language import FALSE
from structgen.core.kernels.automata.calls import column_classes
from structgen.core.kernels.checks.calls import check_automaton
from structgen.core.regex.dfa import Dfa, compact, expanded
from structgen.core.regex.labelled import LabelledDfa, every_text
from structgen.core.regex.lengths import distances
from structgen.core.text_sets.corpus import known_corpus
from structgen.core.vocabulary import store
from structgen.options import JsonOptions

KIND = "values"
MAX_FILES = 1_000
"""Files that are kept; the oldest go."""

Arrays = dict[str, npt.NDArray[Any]]
Solved = tuple[ValueNode, list[tuple[str, str]]]
"""The root of a solved graph, and what was left out on request: pointers with reasons."""


def key_of(schema: Any, options: JsonOptions) -> str:
    """The name of what a plain schema is compiled to, 32 hexadecimal digits."""
    return hashlib.blake2b(
        repr((_sources(), options, schema)).encode("utf-8", "backslashreplace"), digest_size=16
    ).hexdigest()


@lru_cache(1)
def _sources() -> str:
    """A hash of all that compiles: value nodes that other sources made are never looked at. Some milliseconds, once."""
    digest = hashlib.blake2b(digest_size=16)
    for name, path in sources().items():
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def sources() -> dict[str, Path]:
    """The files that what is compiled depends on, by their names in the package: all of the core, and the options."""
    core = Path(__file__).parents[3]
    files = [*core.rglob("*.py"), *core.rglob("*.npz"), *core.parent.glob("*.py")]
    return {path.relative_to(core.parent).as_posix(): path for path in sorted(files)}


def load(key: str) -> Solved | None:
    """What is kept under a key; None if there is nothing, or nothing that can be read whole."""
    arrays = store.load(KIND, key)
    if arrays is None:
        return None
    try:
        return decode(arrays)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None  # arrays of another kind


def save(key: str, solved: Solved) -> None:
    """Keep a solved graph, where the folder can be written and its automata are not too large."""
    with suppress(ValueError):
        if store.save(KIND, key, encode(*solved)):
            store.trim(KIND, MAX_FILES)


# --- to arrays ---
def encode(root: ValueNode, ignored: Sequence[tuple[str, str]]) -> Arrays:
    """A solved graph as arrays: what its root reaches. Linear.

    Raises:
        ValueError: an automaton has more states than are kept.
    """
    number = {root: 0}
    nodes = [root]
    for node in nodes:
        for child in node.children():
            if child not in number:
                number[child] = len(nodes)
                nodes.append(child)
    tables: list[npt.NDArray[np.uint16]] = []
    classes: list[npt.NDArray[np.uint8]] = []
    ends: list[npt.NDArray[np.int32]] = []

    def add(table: npt.NDArray[np.int32], labels: npt.NDArray[Any]) -> int:
        if len(table) >= 0xFFFF:
            raise ValueError("an automaton of more states than 16 bits can number")
        columns, numbers = compact(table, *column_classes(table))
        tables.append(columns)
        classes.append(numbers)
        ends.append(labels.astype(np.int32))
        return len(tables) - 1

    graph = {"nodes": [_node(node, number, add) for node in nodes], "ignored": list(ignored)}
    return {
        "graph": np.frombuffer(json.dumps(graph).encode(), np.uint8),
        "sizes": np.array([table.shape for table in tables], np.int64).reshape(-1, 2),
        "tables": np.concatenate([*(table.ravel() for table in tables), np.zeros(0, np.uint16)]),
        "classes": np.concatenate([*classes, np.zeros(0, np.uint8)]),
        "ends": np.concatenate([*ends, np.zeros(0, np.int32)]),
    }


def _node(node: ValueNode, number: dict[ValueNode, int], add: AddAutomaton) -> list[Any]:
    return [
        node.flags,
        node.live,
        [spec.encoded(add) for spec in node.strings],
        [(_number(choice.automaton.spec), choice.has_ends) for choice in node.numbers],
        [spec.encoded(number, add) for spec in node.objects],
        [spec.encoded(number) for spec in node.arrays],
    ]


def _number(spec: NumberSpec) -> list[Any]:
    def texts(values: frozenset[Fraction] | None) -> list[str] | None:
        return None if values is None else [_text(value) for value in sorted(values)]

    limits = [None if bound is None else _text(bound) for bound in (spec.minimum, spec.maximum)]
    sets = [texts(each) for each in (spec.multiples, spec.non_multiples, spec.excluded, spec.values)]
    return [*limits, spec.exclusive_minimum, spec.exclusive_maximum, *sets, spec.spelling, spec.max_length]


def _text(value: Fraction) -> str:
    return f"{value.numerator:x}/{value.denominator:x}"  # decimal digits are limited, and quadratic


def _fraction(text: str) -> Fraction:
    numerator, denominator = text.split("/")
    return Fraction(int(numerator, 16), int(denominator, 16))


# --- from arrays ---
def decode(arrays: Arrays) -> Solved:
    """The inverse of `encode`.

    Raises:
        KeyError, IndexError, ValueError, TypeError, ...: these are no such arrays.
    """
    graph = json.loads(arrays["graph"].tobytes())
    ends = arrays["ends"].astype(np.int32)
    parts = [(table, ends[low:high]) for table, (low, high) in zip(*_tables(arrays), strict=True)]
    if (ends < 0).any() or any(table.max(initial=-1) >= len(table) for table, _ in parts):
        raise ValueError("an automaton leads out of itself")
    nodes = [ValueNode(FALSE) for _ in graph["nodes"]]
    for node, (flags, live, strings, numbers, objects, items) in zip(nodes, graph["nodes"], strict=True):
        node.expanded, node.live, node.flags = True, bool(live), int(flags)
        node.strings = [_read_string(one, parts) for one in strings]
        node.numbers = [NumberChoice(automaton(_read_number(*one)), bool(has_ends)) for one, has_ends in numbers]
        node.objects = [_read_object(nodes, parts, **one) for one in objects]
        node.arrays = [_read_array(nodes, **one) for one in items]
    return nodes[0], [(str(pointer), str(reason)) for pointer, reason in graph["ignored"]]


def _tables(arrays: Arrays) -> tuple[list[npt.NDArray[np.int32]], list[tuple[int, int]]]:
    """The tables of the automata, and which of all states are theirs."""
    shapes, flat = arrays["sizes"], arrays["tables"]
    states, cells = (list(pairwise(np.cumsum([0, *sizes]).tolist())) for sizes in (shapes[:, 0], shapes.prod(axis=1)))
    classes = arrays["classes"].reshape(-1, 256)
    ends = sum(shapes[:, 0].tolist())
    if flat.shape != (shapes.prod(axis=1).sum(),) or arrays["ends"].shape != (ends,) or flat.dtype != np.uint16:
        raise ValueError("automata of another shape")
    pairs = zip(cells, shapes.tolist(), classes, strict=True)
    return [expanded(flat[low:high].reshape(shape), part) for (low, high), shape, part in pairs], states


def _read_string(entry: Any, parts: list[tuple[Any, Any]]) -> StringAlternative:
    if isinstance(entry, list):
        return EnumSpec(tuple(entry))
    least, most = entry["lengths"]
    if "quoted" in entry:
        return QuoteSpec(known_corpus(entry["quoted"], entry["boundary"], entry["fold"]), least, most)
    dfa = None
    if entry["dfa"] is not None:
        table, ends = parts[entry["dfa"]]
        dfa = Dfa(table, ends != 0)
        if check_automaton(table, dfa.accepting.view(np.uint8)) >= 0:
            raise ValueError("an automaton leads nowhere")
    counted = dfa is not None and (least > 0 or most is not None)
    return StringSpec(dfa, least, most, distances(dfa) if counted and dfa is not None else None)


def _read_number(
    least: str | None, most: str | None, above: bool, below: bool, steps: list[str], others: list[str],
    excluded: list[str], values: list[str] | None, spelling: Any, max_length: int | None,
) -> NumberSpec:  # fmt: skip
    def numbers(texts: list[str]) -> frozenset[Fraction]:
        return frozenset(map(_fraction, texts))

    return NumberSpec(
        minimum=None if least is None else _fraction(least),
        exclusive_minimum=above,
        maximum=None if most is None else _fraction(most),
        exclusive_maximum=below,
        multiples=numbers(steps),
        non_multiples=numbers(others),
        excluded=numbers(excluded),
        values=None if values is None else numbers(values),
        spelling=spelling,
        max_length=max_length,
    )


def _read_object(
    nodes: list[ValueNode], parts: list[tuple[Any, Any]], *, keys: Any, required: Any, dependents: Any, counts: Any,
    others: Any, forbidden: Any, existentials: int, choices: Any, other_choices: Any,
) -> ObjectSpec:  # fmt: skip
    def pairs(entries: Any) -> list[tuple[ValueNode, int]]:
        return [(nodes[number], bits) for number, bits in entries]

    remaining = None
    if others is not None:
        part, places, words = others
        automaton = every_text() if part is None else LabelledDfa(*parts[part])
        remaining = KeyClasses(automaton, [nodes[number] for number in places], words)
    return ObjectSpec(
        {name: nodes[number] for name, number in keys},
        set(required),
        {name: set(names) for name, names in dependents},
        counts[0],
        counts[1],
        remaining,
        forbidden=set(forbidden),
        existentials=existentials,
        choices={name: pairs(entries) for name, entries in choices},
        other_choices=[pairs(entries) for entries in other_choices],
    )


def _read_array(
    nodes: list[ValueNode], *, distinct: Any, items: Any = None, counts: Any = None, states: Any = None,
    live: Any = None,
) -> ArraySpec | CountedSpec:  # fmt: skip
    if items is not None:
        prefix, remaining = items
        return ArraySpec([nodes[number] for number in prefix], nodes[remaining], counts[0], counts[1], distinct)
    read = [
        CountedState(closes, [(nodes[number], after) for number, after in choices], needs)
        for closes, choices, needs in states
    ]
    return CountedSpec(read, distinct, live)
