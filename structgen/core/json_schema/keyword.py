"""The table of keywords. An entry says all that is asked of a keyword; it stands before the function of the keyword.

``@Keyword("minLength", "validation")`` before a function puts both into `TABLE`. Dialects, the search for identifiers,
the report, vocabularies, hints at misspelt words, closed members and ``unevaluated*`` read this table and nothing else,
so a keyword is written in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from structgen.core.json_schema.formula.language import TRUE, Formula, absent, not_, unordered

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context
    from structgen.core.json_schema.pointers import Pointer
    from structgen.core.json_schema.report import Status

Schema: TypeAlias = dict[str, Any]
Function: TypeAlias = Callable[[Any, Schema, "Pointer", "Context"], Formula | list[Formula]]
X_STRUCTGEN = "x-structgen"
"""The keyword that is structgen's own, of no draft."""
MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
"""Keywords whose values are schemas by names, for walks of schemas that are not read yet, whatever their draft. Names
among them may be those of keywords."""
DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are no schemas, for the same walks."""
F = TypeVar("F", bound=Function)


def schemas_in(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a schema that is not read yet, itself first, that are schemas: no maps of names, no values."""
    waiting = [(schema, False)]
    while waiting:
        one, is_map = waiting.pop()
        if isinstance(one, Mapping):
            if not is_map:
                yield one
            waiting += [
                (value, not is_map and name in MAPS) for name, value in one.items() if is_map or name not in DATA
            ]
        elif isinstance(one, list):
            waiting += [(each, False) for each in one]


Forms = Literal["none", "one", "list", "map", "one or list"]


@dataclass(frozen=True, slots=True)
class Keyword:
    """One keyword of the drafts from ``since`` until ``until``; as a decorator, it enters itself with the function.

    Attributes:
        name: as schemas write it.
        vocabulary: of 2019-09 and 2020-12, by the end of its URI; "" for keywords that older drafts alone define.
        since, until: the drafts 3, 4, 6, 7, 2019 and 2020 between these have it.
        subschemas: where schemas stand in its value: it is one, a list or a map of them.
        needs: the keyword without which it has no effect.
        is_reference: its value leads to a schema of the same value.
        applies: for subschemas that speak of the same value: the condition under which one does, as a function with
            the signature of keyword functions.
        is_condition: its subschema is read as written where schemas are closed: less here would be more elsewhere.
        evaluates_keys: the class of keys whose members it evaluates (value, schema, context).
        evaluates_items: how many of the first items it evaluates; None is all.
        evaluates_matching: whether it evaluates the items that satisfy its subschema.
        names_members: whether its strings name members that an object needs.
        status: what the report says of an occurrence (value, schema, context); None: that it is enforced.
        function: what it means. Without one it is read by another keyword, or says nothing of values.
    """

    name: str
    vocabulary: str
    since: int = 3
    until: int = 2020
    subschemas: Forms = "none"
    needs: str = ""
    is_reference: bool = False
    applies: Callable[[Any, Schema, Pointer, Context], Formula] | None = None
    is_condition: bool = False
    evaluates_keys: Callable[[Any, Schema, Context], Formula] | None = None
    evaluates_items: Callable[[Any, Schema], int | None] | None = None
    evaluates_matching: bool = False
    names_members: bool = False
    status: Callable[[Any, Schema, Context], tuple[Status, str] | None] | None = None
    function: Function | None = None

    def __call__(self, function: F) -> F:
        TABLE.append(replace(self, function=function))
        return function

    @property
    def is_structure(self) -> bool:
        """Whether it orders the document and says nothing of values."""
        return self.vocabulary == "core" and self.function is None

    @property
    def is_annotation(self) -> bool:
        """Whether it describes values and says nothing of them."""
        return self.vocabulary in ("meta-data", "content")

    @property
    def is_union(self) -> bool:
        """Whether one of its subschemas must hold of the same value."""
        return "list" in self.subschemas and self.applies not in (None, always)

    @property
    def declares_members(self) -> bool:
        """Whether it has a subschema for each of some members."""
        return self.subschemas == "map" and self.evaluates_keys is not None

    def children(self, value: Any, pointer: Pointer) -> Iterator[tuple[Any, Pointer]]:
        """The subschemas in a value of this keyword, with the pointers to them."""
        if isinstance(value, list):
            if "list" in self.subschemas:
                for index, child in enumerate(value):
                    yield child, (pointer, index)
        elif "one" in self.subschemas:
            yield value, pointer
        elif self.subschemas == "map" and isinstance(value, dict):
            for name, child in value.items():
                yield child, (pointer, name)


def always(child: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """The subschema always applies."""
    return TRUE


def if_valid(child: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """The subschema applies to values that satisfy it.

    It is lowered as what a reference leads to, once: it may hold the very keyword that asks, after a reference.
    """
    return unordered(context.lower_once(child, pointer))


def if_present(child: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """The subschema applies to objects that have the member whose name it stands under."""
    return not_(absent(pointer[1]))


TABLE: list[Keyword] = [
    *(Keyword(name, "core") for name in ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor")),
    *(Keyword(name, "core") for name in ("$vocabulary", "$comment")),
    *(Keyword(name, "core", subschemas="map") for name in ("$defs", "definitions")),
    *(Keyword(name, "meta-data") for name in ("title", "description", "default", "examples", "deprecated")),
    *(Keyword(name, "meta-data") for name in ("readOnly", "writeOnly")),
    *(Keyword(name, "content") for name in ("contentEncoding", "contentMediaType")),
    Keyword("contentSchema", "content", subschemas="one"),
]
"""All keywords of all drafts: these, and those that modules enter with their functions."""
