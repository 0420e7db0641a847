"""A last look at finished tables: nothing is handed out that would make a kernel read astray or come to a dead end.

`RECORDS` says of each field of a record what it holds; `structgen.core.kernels.checks` follows that from the root on.
The check shares no code with what wrote the tables: liveness is computed anew, from the numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.core.engines.json.tables.pool import UNIVERSAL, AutomatonPool
from structgen.core.kernels.checks import calls as c
from structgen.core.kernels.json import layout
from structgen.errors import InternalError

if TYPE_CHECKING:
    from structgen.core.engines.json.tables.arrays import JsonTables

MOST = (1 << 31) - 1
Field = tuple[int, ...]


def whole(field: int, least: int = 0, most: int = MOST) -> Field:
    """A number from ``least`` to ``most``."""
    return field, c.INT, least, most, 0


def ref(field: int, kind: str, none: int = c.NOTHING) -> Field:
    """The place of a record, or ``none``."""
    return field, c.REF, KINDS[kind], none, 0


def many(field: int, kind: str, number: int, begin: int = 0) -> Field:
    """The place of records of one kind, which begin ``begin`` behind it; their number stands in another field."""
    return field, c.LIST, KINDS[kind], number, begin


def start(field: int, what: int) -> Field:
    """The pool state in which an automaton of a kind starts."""
    return field, c.POOL, what, 0, 0


def bits(field: int, number: int) -> Field:
    """The place of words; their number stands in another field."""
    return field, c.WORDS, number, 0, 0


def text(field: int, length: int) -> Field:
    """The place of a text; its length stands in another field."""
    return field, c.TEXT, length, 0, 0


# Kinds of records. Those with a meaning to the checks come first, as `structgen.core.kernels.checks` numbers them; of
# objects and plain arrays several have the same meaning.
MEANT = ("node", "object 0", "array", "counted", "string of a DFA", "string of an enumeration")
OTHERS = (
    "header", "string", "object", "any object", "plain object", "existential object", "object 1", "object 2",
    "existential 0", "existential 1", "existential 2", "items", "any array", "plain array", "paired array",
    "node ref", "string ref", "number ref", "object ref", "items ref", "item", "choices ref", "choices", "way",
    "key", "existential key", "word", "dependent", "transition",
)  # fmt: skip
KINDS = {name: number for number, name in enumerate((*MEANT, *OTHERS))}
MEANING = {
    **{name: number for number, name in enumerate(MEANT)},
    **{f"object {n}": c.OBJECT for n in range(3)},
    **{f"existential {n}": c.OBJECT for n in range(3)},
    "paired array": c.ARRAY,
}
# Records that share a beginning: field, then the kind for each of its values (`c.OTHERWISE`: any other).
DISPATCH: dict[str, tuple[int, dict[int, str]]] = {
    "string": (layout.S_KIND, {layout.S_DFA: "string of a DFA", layout.S_ENUM: "string of an enumeration"}),
    "object": (layout.R_KIND, {layout.R_OBJECT: "any object"}),
    "any object": (layout.O_DUTIES, {0: "plain object", c.OTHERWISE: "existential object"}),
    "plain object": (
        layout.O_OTHERS,
        {layout.NO_OTHERS: "object 0", layout.ONE_CLASS: "object 1", layout.CLASSES: "object 2"},
    ),
    "existential object": (
        layout.O_OTHERS,
        {layout.NO_OTHERS: "existential 0", layout.ONE_CLASS: "existential 1", layout.CLASSES: "existential 2"},
    ),
    "items": (layout.R_KIND, {layout.R_ARRAY: "plain array", layout.R_COUNTED: "counted"}),
    "any array": (layout.R_KIND, {layout.R_ARRAY: "plain array"}),
    "plain array": (layout.A_UNIQUE, {0: "array", layout.DISTINCT: "array", layout.PAIRED: "paired array"}),
}
OBJECT_SIZE = layout.O_COUNTS + 1
_HEADER, _NODE = KINDS["header"], KINDS["node"]


def _object(kind: str, others: list[Field]) -> list[Field]:
    return [
        many(layout.O_ENTRIES, "existential key" if kind == "existential" else "key", layout.O_COUNT),
        whole(layout.O_WORDS, 1),
        bits(layout.O_REQUIRED, layout.O_WORDS),
        whole(layout.O_MIN),
        whole(layout.O_MAX, -1),
        many(layout.O_DEPENDENT, "dependent", layout.O_DEPENDENTS),
        whole(layout.O_NARROW, 0, 1),
        whole(layout.O_DUTIES, 0, c.MAX_DUTY_SETS - 1),
        *others,
    ]


_ONE = [whole(layout.O_START, UNIVERSAL, UNIVERSAL), whole(layout.O_CLASSES, 1, 1)]
_CLASSES = [start(layout.O_START, c.CLASSES_START), whole(layout.O_CLASSES, 1)]
_NO_COUNTS = whole(layout.O_COUNTS, 0, 0)
_PLAIN_ARRAY = [
    many(layout.A_PREFIX, "item", layout.A_PREFIXES),
    ref(layout.A_REST, "node", -1),
    whole(layout.A_MIN),
    whole(layout.A_MAX, -1),
]
# Of each kind its length and its fields. What is not named is not read.
RECORDS: dict[str, tuple[int, list[Field]]] = {
    "header": (
        layout.H_SIZE,
        [
            whole(layout.H_WHITESPACE, layout.COMPACT, layout.INDENT),
            whole(layout.H_RUN, -1),
            whole(layout.H_INDENT),
            whole(layout.H_ESCAPES, 0, 1),
            whole(layout.H_ORDER, 0, 1),
            whole(layout.H_UNIQUE, 0, 1),
        ],
    ),
    "node": (
        layout.NODE_SIZE,
        [
            whole(layout.NODE_FLAGS),
            many(layout.NODE_STRINGS, "string ref", layout.NODE_STRINGS + 1),
            many(layout.NODE_NUMBERS, "number ref", layout.NODE_NUMBERS + 1),
            many(layout.NODE_OBJECTS, "object ref", layout.NODE_OBJECTS + 1),
            many(layout.NODE_ARRAYS, "items ref", layout.NODE_ARRAYS + 1),
        ],
    ),
    "node ref": (1, [ref(0, "node")]),
    "string ref": (1, [ref(0, "string")]),
    "number ref": (1, [start(0, c.NUMBER_START)]),
    "object ref": (1, [ref(0, "object")]),
    "items ref": (1, [ref(0, "items")]),
    "item": (1, [ref(0, "node", -1)]),
    "string of a DFA": (
        layout.S_SIZE,
        [start(layout.S_START, c.STRING_START), whole(layout.S_MIN), whole(layout.S_MAX, -1)],
    ),
    "string of an enumeration": (
        layout.S_SIZE,
        [many(layout.S_ENTRIES, "word", layout.S_COUNT), whole(layout.S_COUNT, 1)],
    ),
    "word": (layout.E_SIZE, [text(layout.E_OFFSET, layout.E_LENGTH)]),
    "key": (layout.E_SIZE, [text(layout.E_OFFSET, layout.E_LENGTH), ref(layout.E_CHILD, "node", -1)]),
    "existential key": (layout.E_SIZE, [text(layout.E_OFFSET, layout.E_LENGTH), ref(layout.E_CHILD, "choices", -1)]),
    "choices": (1, [many(c.HERE, "way", 0, 1), whole(0, 1)]),
    "choices ref": (1, [ref(0, "choices")]),
    "way": (2, [ref(0, "node"), whole(1, 0, c.MAX_DUTY_SETS - 1)]),
    "dependent": (2, [whole(0), whole(1)]),
    "object 0": (OBJECT_SIZE, _object("plain", [_NO_COUNTS])),
    "object 1": (OBJECT_SIZE, _object("plain", [*_ONE, ref(layout.O_CHILD, "node"), _NO_COUNTS])),
    "object 2": (
        OBJECT_SIZE,
        _object("plain", [*_CLASSES, many(layout.O_CHILD, "node ref", layout.O_CLASSES, 1), _NO_COUNTS]),
    ),
    "existential 0": (OBJECT_SIZE, _object("existential", [_NO_COUNTS])),
    "existential 1": (OBJECT_SIZE, _object("existential", [*_ONE, ref(layout.O_CHILD, "choices"), _NO_COUNTS])),
    "existential 2": (
        OBJECT_SIZE,
        _object("existential", [*_CLASSES, many(layout.O_CHILD, "choices ref", layout.O_CLASSES, 1)]),
    ),
    "array": (layout.A_SIZE, _PLAIN_ARRAY),
    "paired array": (
        layout.A_SIZE,
        [*_PLAIN_ARRAY, whole(layout.A_PREFIXES, 0, 0), whole(layout.A_MAX, -1, -1), ref(layout.A_PAIRED, "any array")],
    ),
    "counted": (
        layout.A_SIZE,
        [
            whole(layout.T_CLOSES, 0, 1),
            whole(layout.T_ENDLESS, 0, 1),
            many(layout.T_CHOICES, "transition", layout.T_COUNT),
            whole(layout.A_UNIQUE, 0, 1),
        ],
    ),
    "transition": (2, [ref(0, "node"), ref(1, "items")]),
}
WRONG = {
    c.OUT_OF_RANGE: "a number is out of range",
    c.WRONG_KIND: "a reference leads to something else than it should",
    c.NOT_IN_ORDER: "texts are not in order",
    c.TWO_KINDS: "a place is used as two things",
    c.BAD_KEY_SET: "a set of keys holds what it cannot",
    c.BAD_LIMITS: "limits exclude each other",
    c.BAD_LENGTHS: "lengths of a string exclude each other",
    c.BAD_CLASSES: "classes of keys do not fit their automaton",
    c.BAD_DISTINCT: "items must differ in a grammar that does not compare any",
    c.BAD_OBLIGATIONS: "existentials are not numbered through",
    c.NO_VALUE: "something can be entered that has no value",
}


def verify_tables(tables: JsonTables, pool: AutomatonPool) -> None:
    """Check the tables of a grammar. Linear, some microseconds a record.

    Raises:
        InternalError: a kernel could read out of range or come to a dead end.
    """
    checked = pool.checked  # states never change their meaning, so these arrays stay right
    if bool(tables.grammar[layout.H_UNIQUE]) != tables.distinct:
        raise InternalError("the head of a grammar does not say whether items are compared")
    try:
        str(tables.texts, "utf-8")  # keys and strings, one after another
    except UnicodeDecodeError:
        raise InternalError("the tables hold a key or string that is not UTF-8") from None
    roots = 0, _HEADER, tables.root, _NODE
    verdict, place, field = _CHECKS(tables.grammar, tables.words, tables.texts, checked.words, pool.universal, roots)
    if verdict != c.FINE:
        what = WRONG.get(verdict, f"verdict {verdict}")
        raise InternalError(f"the tables of a grammar are wrong at {place}, field {field}: {what}")


def _layout() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Rows of all kinds, each kind's first row, each kind's length."""
    names = sorted(KINDS, key=KINDS.__getitem__)
    rows: list[Field] = []
    first = [0]
    for name in names:
        rows += [(KINDS[name], *field) for field in RECORDS.get(name, (0, []))[1]]
        first.append(len(rows))
    sizes = [RECORDS.get(name, (0, []))[0] for name in names]
    return np.array(rows, np.int32), np.array(first, np.int32), np.array(sizes, np.int32)


_LAYOUT, _FIRST, _SIZES = _layout()
_MEANINGS = np.array([MEANING.get(name, -1) for name in sorted(KINDS, key=KINDS.__getitem__)], np.int32)
_DISPATCH = np.array(
    [(KINDS[n], field, value, KINDS[kind]) for n, (field, kinds) in DISPATCH.items() for value, kind in kinds.items()],
    np.int32,
)
_CHOOSE = np.full(len(KINDS), -1, np.int32)
for _row in range(len(_DISPATCH) - 1, -1, -1):
    _CHOOSE[_DISPATCH[_row, 0]] = _row
_CHECKS = c.TableChecks(_LAYOUT, _FIRST, _SIZES, _MEANINGS, _CHOOSE, _DISPATCH)
