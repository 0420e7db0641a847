"""Solved goals as plain arrays: what took long to compile can be kept in the cache folder, for other processes.

Nothing of a file is executed or unpickled: it holds a JSON text (the graph) and integer arrays (automata). Automata are
looked at here, and tables by `tables.verify`, before anything is handed out, so a wrong file cannot make a kernel read
astray or a text come to a dead end; what it *allows* is as trustworthy as whoever can write to the folder, which holds
object code, too, and is read only if nobody else can (`core.cache_folder`). A file is found by what it was made
from: the schema, the options, this version and the sources that compile. Goals do not depend on a vocabulary.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
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
from structgen.core.engines.json.value_graph.liveness import children
from structgen.core.engines.json.value_graph.node import GoalNode
from structgen.core.engines.json.value_graph.specs import (
    ArraySpec,
    CountedSpec,
    CountedState,
    EnumSpec,
    KeyClasses,
    NumberChoice,
    ObjectSpec,
    StringSpec,
)
from structgen.core.json_schema.formula.language import FALSE
from structgen.core.kernels.automata.calls import column_classes
from structgen.core.kernels.checks.calls import check_automaton
from structgen.core.regex.dfa import Dfa, compact, expanded
from structgen.core.regex.labelled import LabelledDfa
from structgen.core.regex.lengths import distances
from structgen.core.vocabulary import store
from structgen.options import JsonOptions

KIND = "goals"
MAX_FILES = 1_000
"""Files that are kept; the oldest go."""

Arrays = dict[str, npt.NDArray[Any]]
Solved = tuple[GoalNode, list[tuple[str, str]]]
"""The root of a solved graph, and what was left out on request: pointers with reasons."""


def key_of(schema: Any, options: JsonOptions) -> str:
    """The name of what a plain schema is compiled to, 32 hexadecimal digits."""
    return hashlib.blake2b(
        repr((_sources(), options, schema)).encode("utf-8", "backslashreplace"), digest_size=16
    ).hexdigest()


@lru_cache(1)
def _sources() -> str:
    """A hash of all that compiles: goals that other sources made are never looked at. Some milliseconds, once."""
    core = Path(__file__).parents[3]
    digest = hashlib.blake2b(digest_size=16)
    for folder in ("json_schema", "regex", "engines/json", "kernels/automata"):
        for path in sorted((core / folder).rglob("*.py")):
            digest.update(path.relative_to(core).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


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
def encode(root: GoalNode, ignored: Sequence[tuple[str, str]]) -> Arrays:
    """A solved graph as arrays: what its root reaches. Linear.

    Raises:
        ValueError: an automaton has more states than are kept.
    """
    number = {root: 0}
    nodes = [root]
    for node in nodes:
        for child in children(node):
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


def _node(node: GoalNode, number: dict[GoalNode, int], add: Callable[..., int]) -> list[Any]:
    strings: list[Any] = [
        list(spec.values)
        if isinstance(spec, EnumSpec)
        else {
            "dfa": None if spec.dfa is None else add(spec.dfa.transitions, spec.dfa.accepting),
            "lengths": [spec.least, spec.most],
        }
        for spec in node.strings
    ]
    numbers = [(_number(choice.automaton.spec), choice.has_ends) for choice in node.numbers]
    objects = [_object(spec, number, add) for spec in node.objects]
    return [node.flags, node.live, strings, numbers, objects, [_array(spec, number) for spec in node.arrays]]


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


def _object(spec: ObjectSpec, number: dict[GoalNode, int], add: Callable[..., int]) -> dict[str, Any]:
    others: Any = None
    if isinstance(spec.others, KeyClasses):
        classes = spec.others
        others = [
            add(classes.automaton.transitions, classes.automaton.labels),
            [number[node] for node in classes.nodes],
            classes.words,
        ]
    elif spec.others is not None:
        others = number[spec.others]
    return {
        "keys": [(name, number[node]) for name, node in spec.keys.items()],
        "required": sorted(spec.required),
        "dependents": [(name, sorted(names)) for name, names in spec.dependents.items()],
        "counts": [spec.least, spec.most],
        "others": others,
        "forbidden": sorted(spec.forbidden),
        "duties": spec.duties,
        "choices": [(name, [(number[node], bits) for node, bits in ways]) for name, ways in spec.choices.items()],
        "other_choices": [[(number[node], bits) for node, bits in ways] for ways in spec.other_choices],
    }


def _array(spec: ArraySpec | CountedSpec, number: dict[GoalNode, int]) -> dict[str, Any]:
    if isinstance(spec, ArraySpec):
        items = [[number[node] for node in spec.prefix], number[spec.rest]]
        return {"items": items, "counts": [spec.least, spec.most], "distinct": spec.distinct}
    states = [
        [state.closes, [(number[node], after) for node, after in state.choices], state.needs] for state in spec.states
    ]
    return {"states": states, "distinct": spec.distinct, "live": spec.live}


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
    nodes = [GoalNode(FALSE) for _ in graph["nodes"]]
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
    return [expanded(flat[low:high].reshape(shape), own) for (low, high), shape, own in pairs], states


def _read_string(found: Any, parts: list[tuple[Any, Any]]) -> EnumSpec | StringSpec:
    if isinstance(found, list):
        return EnumSpec(tuple(found))
    least, most = found["lengths"]
    dfa = None
    if found["dfa"] is not None:
        table, ends = parts[found["dfa"]]
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
    nodes: list[GoalNode], parts: list[tuple[Any, Any]], *, keys: Any, required: Any, dependents: Any, counts: Any,
    others: Any, forbidden: Any, duties: int, choices: Any, other_choices: Any,
) -> ObjectSpec:  # fmt: skip
    def ways(found: Any) -> list[tuple[GoalNode, int]]:
        return [(nodes[place], bits) for place, bits in found]

    rest: GoalNode | KeyClasses | None = None
    if isinstance(others, list):
        part, places, words = others
        rest = KeyClasses(LabelledDfa(*parts[part]), [nodes[place] for place in places], words)
    elif others is not None:
        rest = nodes[others]
    return ObjectSpec(
        {name: nodes[place] for name, place in keys},
        set(required),
        {name: set(names) for name, names in dependents},
        counts[0],
        counts[1],
        rest,
        forbidden=set(forbidden),
        duties=duties,
        choices={name: ways(found) for name, found in choices},
        other_choices=[ways(found) for found in other_choices],
    )


def _read_array(
    nodes: list[GoalNode], *, distinct: Any, items: Any = None, counts: Any = None, states: Any = None, live: Any = None
) -> ArraySpec | CountedSpec:
    if items is not None:
        prefix, rest = items
        return ArraySpec([nodes[place] for place in prefix], nodes[rest], counts[0], counts[1], distinct)
    read = [
        CountedState(closes, [(nodes[place], after) for place, after in choices], needs)
        for closes, choices, needs in states
    ]
    return CountedSpec(read, distinct, live)
