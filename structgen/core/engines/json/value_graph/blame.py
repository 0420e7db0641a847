"""Why a schema has no value: the deepest of its subschemas that has none itself and must hold.

Looked for only once it is known that there is no value. From a schema without values the way goes down to what must
hold if it does: what stands in ``allOf`` or after ``$ref``, the only branch of a union, members that are required of
what must be an object, items that must be there. Each step is sure, so what is found leaves the whole without values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from structgen.core.json_schema.explained import CLOSING, Parts, Subschema
from structgen.core.json_schema.formula.language import TRUE, Formula, Type, and_
from structgen.core.json_schema.formula.values import ANY, ARRAY, OBJECT
from structgen.core.json_schema.pointers import escape

MOST_QUESTIONS = 100
"""Of how many subschemas, and sets of keywords, it is asked whether they have a value."""
HasValue = Callable[[Formula], bool]  # True where it is not known
PossibleTypes = Callable[[Formula], int]


class Blame(NamedTuple):
    """What leaves no value: a subschema and why.

    ``keyword``: of the subschema, if it is to blame alone.
    """

    pointer: str
    keyword: str | None
    reason: str


def blame(parts: Parts, types: int, has_value: HasValue, possible_types: PossibleTypes) -> Blame:
    """The deepest subschema that has no value and must hold.

    Args:
        parts: the subschemas.
        types: the types (bits) that values may have, beside what the schema says.
        has_value: whether some value satisfies a formula.
        possible_types: the types that its values may have, at most.
    """
    return _Search(parts, has_value, possible_types).deepest("", types)


class _Search:
    def __init__(self, parts: Parts, has_value: HasValue, possible_types: PossibleTypes) -> None:
        self._parts = parts.subschemas
        self._has_value, self._possible_types = has_value, possible_types
        self._left = MOST_QUESTIONS
        self._path: set[str] = set()

    def _impossible(self, formula: Formula) -> bool:
        self._left -= 1
        return self._left >= 0 and not self._has_value(formula)

    def deepest(self, pointer: str, types: int = ANY) -> Blame:
        """What is to blame at or below a subschema that has no value."""
        if pointer not in self._parts:
            return Blame(pointer, None, "it is false")
        self._path.add(pointer)
        together = list(self._together(pointer))
        for below in self._must_hold(together, types):
            part = self._parts.get(below)
            if below not in self._path and (part is None or self._impossible(part.formula)):
                return self.deepest(below)
        for other in together[1:]:
            if other not in self._path and self._impossible(and_(Type(types), self._parts[other].formula)):
                return self.deepest(other, types)
        return self._conflict(pointer, types)

    def _together(self, pointer: str) -> Iterator[str]:
        """The subschema and those that hold of the same value if it does."""
        todo = [pointer]
        for one in todo:  # which grows
            yield one
            part = self._parts[one]
            parts_of = [f"{one}/allOf/{i}" for i in range(len(_array(part, "allOf")))]
            parts_of += [f"{one}/{union}/0" for union in ("anyOf", "oneOf") if len(_array(part, union)) == 1]
            target = _target(part)
            if target is not None and self._says(target, part.keywords["$ref"]):
                parts_of.append(target)
            todo += [other for other in parts_of if other in self._parts and other not in todo]

    def _says(self, pointer: str, formula: Formula) -> bool:
        """Whether the subschema at a place is what a reference leads to: then it says the same."""
        return pointer in self._parts and self._parts[pointer].formula is formula

    def _must_hold(self, together: list[str], types: int) -> Iterator[str]:
        """Places of subschemas of members and items that must be there; false ones have no `Subschema`."""
        parts = [self._parts[pointer] for pointer in together]
        for part in parts:
            for formula in part.keywords.values():
                types &= self._possible_types(formula)
        if types == OBJECT:
            needed = dict.fromkeys(name for part in parts for name in _array(part, "required") if isinstance(name, str))
            for pointer, part in zip(together, parts, strict=True):
                declared = _object(part, "properties")
                for name in needed:
                    if name in declared and self._is_schema(f"{pointer}/properties/{escape(name)}", declared[name]):
                        yield f"{pointer}/properties/{escape(name)}"
                remaining = f"{pointer}/additionalProperties"
                if remaining in self._parts and needed.keys() - declared and not _object(part, "patternProperties"):
                    yield remaining
        elif types == ARRAY:
            least = max((count for part in parts if isinstance(count := _value(part, "minItems"), int)), default=0)
            for pointer, part in zip(together, parts, strict=True):
                yield from self._items(pointer, part, least)

    def _items(self, pointer: str, part: Subschema, least: int) -> Iterator[str]:
        listed = "items" if isinstance(part.schema.get("items"), list) else "prefixItems"
        prefix = _array(part, listed)
        for index, child in enumerate(prefix[:least]):
            if self._is_schema(f"{pointer}/{listed}/{index}", child):
                yield f"{pointer}/{listed}/{index}"
        remaining = f"{pointer}/additionalItems" if listed == "items" else f"{pointer}/items"
        if least > len(prefix) and remaining in self._parts:
            yield remaining
        inner = f"{pointer}/contains"
        if "contains" in part.keywords and part.schema.get("minContains", 1) != 0 and inner in self._parts:
            yield inner

    def _is_schema(self, pointer: str, schema: Any) -> bool:
        return schema is False or pointer in self._parts

    def _conflict(self, pointer: str, types: int) -> Blame:
        """Which keywords of a subschema leave no value together: as few as can be."""
        said = dict(self._parts[pointer].keywords)
        if types != ANY:
            said[""] = Type(types)
        for keyword in list(said):
            others = [formula for word, formula in said.items() if word != keyword]
            if said[keyword] is TRUE or self._impossible(and_(*others)):
                del said[keyword]
        words = [_named(word) for word in said]
        if len(words) == 1:
            keyword = next(iter(said))
            if keyword == "$ref" and _target(self._parts[pointer]) in self._path:
                return Blame(pointer, keyword, "'$ref' leads back to what needs it, without end")
            return Blame(pointer, keyword or None, f"{words[0]} allows no value")
        return Blame(pointer, None, f"{', '.join(words[:-1])} and {words[-1]} exclude each other")


def _target(part: Subschema) -> str | None:
    """The place that ``$ref`` names, if it is one of the same document as far as its spelling tells."""
    reference = _value(part, "$ref")
    return reference[1:] if isinstance(reference, str) and reference[:1] == "#" else None


def _named(word: str) -> str:
    if word == CLOSING:
        return "the closing of members (additional_members)"
    return repr(word) if word else "being an object"


def _value(part: Subschema, keyword: str) -> Any:
    """The value of a keyword; None of one that is not read (beside ``$ref`` up to draft 7, or in other drafts)."""
    return part.schema.get(keyword) if keyword in part.keywords else None


def _array(part: Subschema, keyword: str) -> list[Any]:
    value = _value(part, keyword)
    return value if isinstance(value, list) else []


def _object(part: Subschema, keyword: str) -> dict[str, Any]:
    value = _value(part, keyword)
    return value if isinstance(value, dict) else {}
