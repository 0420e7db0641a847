"""The keyword occurrences of a schema, and the schema without one of them.

An occurrence is silenced by the table of keywords, not by deleting it blindly: a child of ``properties`` becomes
``true``, since deleting it would hand the key to ``additionalProperties``; ``oneOf`` becomes ``anyOf``. Copies share
all but the path that is edited, so that unchanged parts lower to the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from structgen.core.json_schema.dialects import BY_NAME, Dialect
from structgen.core.json_schema.keyword import Keyword
from structgen.core.json_schema.references import dialect_of
from structgen.errors import pointer_to
from structgen.options import JsonOptions

Path: TypeAlias = "tuple[str | int, ...]"
Kind = Literal["leaf", "name", "schema", "choice"]
"""A keyword that is deleted; a name in a list; a subschema that becomes true; ``oneOf``, which becomes ``anyOf``."""
T = TypeVar("T")

NEVER_ALONE = {"contains": ("minContains", "maxContains"), "minimum": (), "maximum": ()}
_OPENED = ("additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems", "propertyNames")
_DELETED = ("contains", "not", "if", "disallow", "type", "extends", "items")


@dataclass(frozen=True)
class Occurrence:
    """A keyword at one place of a schema document, or one name or subschema in its value.

    Attributes:
        path: from the document's root to the keyword, and to the part of its value where it is one.
        keyword: its name.
        kind: how it is silenced.
        name: of a list of names, which one.
        is_container: whether its parts are occurrences too: it is looked at where none of these is.
        under: the keywords passed on the path that read their subschema as a condition ("not", "if", "oneOf", ...).
        depth: how much of the path leads to the schema that has the keyword.
        hidden: keywords that this one keeps from being read (those next to ``$ref`` up to draft 7): they go with it.
    """

    path: Path
    keyword: str
    kind: Kind = "leaf"
    name: str = ""
    is_container: bool = False
    under: tuple[str, ...] = ()
    depth: int = 0
    hidden: tuple[str, ...] = ()

    @property
    def pointer(self) -> str:
        """The JSON Pointer."""
        return pointer_to(self.path)

    def __str__(self) -> str:
        return self.pointer + (f" ({self.name!r})" if self.name else "")

    def to_dict(self) -> dict[str, str]:
        """Pointer, keyword and, of a list of names, which one, as JSON values."""
        return {"pointer": self.pointer, "keyword": self.keyword} | ({"name": self.name} if self.name else {})

    def silenced(self, schema: Any, anything: Any = True) -> Any:
        """A copy of the schema without it, that shares all else; ``anything`` is the schema of any value."""
        match self.kind:
            case "schema":
                return edited(schema, self.path, lambda _: anything)
            case "name":
                return edited(schema, self.path, lambda names: [n for n in names if n != self.name] or _GONE)
            case "choice":
                return edited(schema, self.path[:-1], _any_of)
        gone = (self.keyword, *self.hidden, *NEVER_ALONE.get(self.keyword, ()))
        if self.keyword == "if":
            gone = ("then", "else")
        return edited(schema, self.path[:-1], lambda owner: {k: v for k, v in owner.items() if k not in gone})


_GONE: Any = object()


def _any_of(owner: dict[str, Any]) -> dict[str, Any]:
    """A schema whose ``oneOf`` is ``anyOf``; with an ``anyOf`` that is there already, under ``allOf``."""
    if "oneOf" not in owner:  # it was silenced whole
        return owner
    left = {key: value for key, value in owner.items() if key != "oneOf"}
    choice = {"anyOf": owner["oneOf"]}
    return {**left, "allOf": [*left.get("allOf", []), choice]} if "anyOf" in left else {**left, **choice}


def edited(schema: Any, path: Sequence[str | int], change: Callable[[Any], Any]) -> Any:
    """A copy of plain JSON with the value at ``path`` changed; it shares all else. Without such a place: the same."""
    if not path:
        return change(schema)
    key, inner = path[0], path[1:]
    if isinstance(schema, dict) and key in schema:
        value = edited(schema[key], inner, change)
        if value is _GONE:
            return {k: v for k, v in schema.items() if k != key}
        return schema if value is schema[key] else {**schema, key: value}
    if isinstance(schema, list) and isinstance(key, int) and key < len(schema):
        value = edited(schema[key], inner, change)
        return schema if value is schema[key] else [*schema[:key], value, *schema[key + 1 :]]
    return schema


def _child(schema: Any, key: Any) -> Any:
    """The member or item; KeyError and its like: there is none."""
    if isinstance(schema, str):
        raise TypeError(key)
    return schema[key]


def value_at(schema: Any, path: Sequence[str | int]) -> tuple[bool, Any]:
    """Whether plain JSON has a value at ``path``, and which."""
    for key in path:
        try:
            schema = _child(schema, key)
        except (KeyError, IndexError, TypeError):
            return False, None
    return True, schema


def dialect_for(schema: Any, options: JsonOptions, registry: Any = None) -> Dialect:
    """The dialect that a schema document is read in."""
    dialect = BY_NAME[options.dialect]
    return dialect_of(schema, dialect, registry) if isinstance(schema, dict) and "$schema" in schema else dialect


def anything_in(dialect: Dialect) -> Any:
    """The schema of any value, as the draft writes it."""
    return {} if dialect.name in ("draft3", "draft4") else True


def occurrences(schema: Any, dialect: Dialect) -> list[Occurrence]:
    """All keyword occurrences of a schema document that say something of values, definitions included."""
    return list(_within(schema, (), dialect, ()))


def _within(schema: Any, path: Path, dialect: Dialect, under: tuple[str, ...]) -> Iterator[Occurrence]:
    if not isinstance(schema, dict):
        return
    read = dialect.read_of(schema)
    hidden = tuple(name for name in schema if name not in read and dialect.is_effective(name))
    for name, value in schema.items():
        entry = dialect.keywords.get(name)
        if entry is None or name in hidden or not _is_read(entry, schema):
            continue
        if name == "$ref":
            yield Occurrence((*path, name), name, under=under, depth=len(path), hidden=hidden)
        elif name in dialect.speaking:
            yield from _of_keyword(entry, value, (*path, name), under)
        inner = (*under, name) if _turns(entry) else under
        for child, pointer in entry.children(value, ()):
            yield from _within(child, (*path, name, *_tokens(pointer)), dialect, inner)


def _is_read(entry: Keyword, schema: dict[str, Any]) -> bool:
    return not entry.needs or entry.needs in schema


def _turns(entry: Keyword) -> bool:
    """Whether less in a subschema of the keyword may be more around it."""
    return (entry.is_condition and entry.name != "propertyNames") or entry.name == "oneOf"


def _tokens(pointer: tuple[Any, ...]) -> Path:
    return (pointer[1],) if len(pointer) == 2 else ()


def _of_keyword(entry: Keyword, value: Any, path: Path, under: tuple[str, ...]) -> Iterator[Occurrence]:
    name, depth = entry.name, len(path) - 1
    if name == "required" and isinstance(value, list):
        for member in value:
            yield Occurrence(path, name, "name", member, under=under, depth=depth)
    elif name == "oneOf":
        yield Occurrence(path, name, "choice", under=under, depth=depth)
        yield Occurrence(path, name, is_container=True, under=under, depth=depth)  # where no alternative is met
    elif name == "if" or entry.subschemas == "none":
        yield Occurrence(path, name, under=under, depth=depth)
    elif name in ("then", "else") or name in _OPENED:
        inner = isinstance(value, dict) and bool(value)
        yield Occurrence(path, name, "schema", is_container=inner, under=under, depth=depth)
    elif name in ("anyOf", *_DELETED) and not (name == "items" and _is_schema(value)):
        yield Occurrence(path, name, is_container=name != "type", under=under, depth=depth)
    elif name == "dependencies":
        yield Occurrence(path, name, under=under, depth=depth)
    else:
        for child, pointer in entry.children(value, ()):
            if child not in (True, {}):
                inner = isinstance(child, dict)
                yield Occurrence(
                    (*path, *_tokens(pointer)), name, "schema", is_container=inner, under=under, depth=depth
                )


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


# --- which of them make a difference ---


def responsible(candidates: Sequence[T], helps: Callable[[Sequence[T]], bool], most: int) -> tuple[list[T], list[T]]:
    """The candidates whose silence helps by itself; where there is none, a least set of them that helps together.

    Args:
        helps: whether what was refused is allowed without some of them. More silence is taken to help no less.
        most: candidates among which a set is looked for.
    """
    alone = [one for one in candidates if helps([one])]
    if alone or len(candidates) > most or not helps(candidates):
        return alone, []
    return [], _least([], list(candidates), helps, False)


def _least(certain: list[T], candidates: list[T], helps: Callable[[Sequence[T]], bool], is_new: bool) -> list[T]:
    """QuickXplain (Junker 2004): of ``candidates`` a least set that helps together with those that are ``certain``."""
    if is_new and helps(certain):
        return []
    if len(candidates) == 1:
        return candidates
    half = len(candidates) // 2
    first, second = candidates[:half], candidates[half:]
    of_second = _least([*certain, *first], second, helps, bool(first))
    of_first = _least([*certain, *of_second], first, helps, bool(of_second))
    return [*of_first, *of_second]


def without(schema: Any, silent: Iterable[Occurrence], anything: Any = True) -> Any:
    """The schema without several occurrences, inner ones first, and what is silenced whole before its parts."""
    for one in sorted(silent, key=lambda one: (-len(one.path), not one.is_container)):
        schema = one.silenced(schema, anything)
    return schema
