"""The keywords of all drafts, a function each: (judge, argument, schema, value, scope, seen) to whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any

from tests.fuzz import judge as j
from tests.fuzz.judge import ANNOTATED, OLD, BeyondJudgeError, Evaluated, Judge, Keyword, Scope, canonical, exact, found

# They see what the others have evaluated.
LAST = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items", "extends", "type", "disallow")
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_ONES = (
    *("additionalItems", "additionalProperties", "contains", "else", "extends", "if", "items", "not", "propertyNames"),
    *("then", "unevaluatedItems", "unevaluatedProperties"),
)


def children(schema: dict[str, Any]) -> Iterator[Any]:
    """All subschemas, one level down."""
    for word in _LISTS:
        if isinstance(schema.get(word), list):
            yield from schema[word]
    for word in _MAPS:
        if isinstance(schema.get(word), dict):
            yield from schema[word].values()
    for word in _ONES:
        if isinstance(schema.get(word), dict):
            yield schema[word]


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "any": lambda value: True,
}


def is_type(judge: Judge, name: str, value: Any) -> bool:
    if name != "integer":
        return _TYPES[name](value)
    if not is_number(value):
        return False
    return isinstance(value, int) if judge.draft in OLD else isinstance(exact(value), int)


def type_(judge: Judge, names: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    names = names if isinstance(names, list) else [names]
    return any(is_type(judge, n, value) if isinstance(n, str) else judge.holds(n, value, scope) for n in names)


def disallow(judge: Judge, names: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not type_(judge, names, schema, value, scope, seen)


def extends(judge: Judge, others: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return all(judge.holds(s, value, scope) for s in (others if isinstance(others, list) else [others]))


def enum(judge: Judge, values: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return canonical(value) in judge.values_of(values)


def const(judge: Judge, one: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return canonical(value) == canonical(one)


def multiple_of(judge: Judge, step: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not is_number(value) or exact(value) % exact(step) == 0


def minimum(judge: Judge, bound: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not is_number(value):
        return True
    if judge.draft in OLD and schema.get("exclusiveMinimum") is True:
        return exact(value) > exact(bound)
    return exact(value) >= exact(bound)


def maximum(judge: Judge, bound: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not is_number(value):
        return True
    if judge.draft in OLD and schema.get("exclusiveMaximum") is True:
        return exact(value) < exact(bound)
    return exact(value) <= exact(bound)


def exclusive_minimum(judge: Judge, bound: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not is_number(value) or exact(value) > exact(bound)


def exclusive_maximum(judge: Judge, bound: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not is_number(value) or exact(value) < exact(bound)


def _size(kind: Any, least: bool) -> Keyword:
    def size(judge: Judge, count: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
        return not isinstance(value, kind) or (len(value) >= count if least else len(value) <= count)

    return size


def pattern(judge: Judge, expression: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not isinstance(value, str) or found(expression, value)


def format_(judge: Judge, name: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not judge.formats or not isinstance(value, str) or j.format_holds(name, value, judge.draft)


# --- objects ----------------------------------------------------------------------------------------------------------


def properties(judge: Judge, table: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not isinstance(value, dict):
        return True
    here = [name for name in table if name in value]
    seen.update(here)
    if judge.draft == "draft3" and any(
        isinstance(child, dict) and child.get("required") is True and name not in value for name, child in table.items()
    ):
        return False
    return all(judge.holds(table[name], value[name], scope) for name in here)


def pattern_properties(judge: Judge, table: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not isinstance(value, dict):
        return True
    pairs = [(name, child) for expression, child in table.items() for name in value if found(expression, name)]
    seen.update(name for name, _ in pairs)
    return all(judge.holds(child, value[name], scope) for name, child in pairs)


def additional_properties(judge: Judge, child: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not isinstance(value, dict):
        return True
    declared, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    rest = [name for name in value if name not in declared and not any(found(p, name) for p in patterns)]
    seen.update(rest)
    return all(judge.holds(child, value[name], scope) for name in rest)


def property_names(judge: Judge, child: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not isinstance(value, dict) or all(judge.holds(child, name, scope) for name in value)


def required(judge: Judge, names: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not isinstance(value, dict) or all(name in value for name in names)


def dependent_required(judge: Judge, table: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not isinstance(value, dict) or all(
        needed in value for name, names in table.items() if name in value for needed in names
    )


def dependent_schemas(judge: Judge, table: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not isinstance(value, dict) or all(
        judge.in_place(child, value, scope, seen) for name, child in table.items() if name in value
    )


def dependencies(judge: Judge, table: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not isinstance(value, dict):
        return True
    for name, needs in table.items():
        if name in value:
            if isinstance(needs, str):
                needs = [needs]
            if isinstance(needs, list):
                if not all(needed in value for needed in needs):
                    return False
            elif not judge.in_place(needs, value, scope, seen):
                return False
    return True


def unevaluated_properties(judge: Judge, child: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not isinstance(value, dict):
        return True
    rest = [name for name in value if name not in seen]
    seen.update(rest)
    return all(judge.holds(child, value[name], scope) for name in rest)


# --- arrays -----------------------------------------------------------------------------------------------------------


def prefix_items(judge: Judge, listed: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not isinstance(value, list):
        return True
    count = min(len(listed), len(value))
    seen.update(range(count))
    return all(judge.holds(listed[place], value[place], scope) for place in range(count))


def _rest(judge: Judge, child: Any, start: int, value: Any, scope: Scope, seen: Evaluated) -> bool:
    seen.update(range(start, len(value)))
    return all(judge.holds(child, item, scope) for item in value[start:])


def items(judge: Judge, child: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if isinstance(child, list):
        return prefix_items(judge, child, schema, value, scope, seen)
    start = len(schema.get("prefixItems", ())) if judge.draft == "draft2020-12" else 0
    return not isinstance(value, list) or _rest(judge, child, start, value, scope, seen)


def additional_items(judge: Judge, child: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    listed = schema.get("items")
    if not isinstance(value, list) or not isinstance(listed, list):
        return True
    return _rest(judge, child, len(listed), value, scope, seen)


def contains(judge: Judge, child: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not isinstance(value, list):
        return True
    places = [place for place, item in enumerate(value) if judge.holds(child, item, scope)]
    if judge.draft == "draft2020-12":
        seen.update(places)
    counts = schema if judge.draft in ANNOTATED else {}
    return counts.get("minContains", 1) <= len(places) <= counts.get("maxContains", len(value))


def unique_items(judge: Judge, wanted: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not wanted or not isinstance(value, list) or len(set(map(canonical, value))) == len(value)


def unevaluated_items(judge: Judge, child: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if not isinstance(value, list):
        return True
    rest = [place for place in range(len(value)) if place not in seen]
    seen.update(rest)
    return all(judge.holds(child, value[place], scope) for place in rest)


# --- in place ---------------------------------------------------------------------------------------------------------


def _branches(judge: Judge, listed: Any, value: Any, scope: Scope, seen: Evaluated) -> int:
    """How many hold (all are looked at: each that holds evaluates)."""
    return sum(judge.in_place(child, value, scope, seen) for child in listed)


def all_of(judge: Judge, listed: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return all(judge.in_place(child, value, scope, seen) for child in listed)


def any_of(judge: Judge, listed: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if judge.collects:
        return _branches(judge, listed, value, scope, seen) > 0
    return any(judge.holds(child, value, scope) for child in listed)


def one_of(judge: Judge, listed: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return _branches(judge, listed, value, scope, seen) == 1


def not_(judge: Judge, child: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    return not judge.holds(child, value, scope)


def if_(judge: Judge, child: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    branch = "then" if judge.in_place(child, value, scope, seen) else "else"
    return branch not in schema or judge.in_place(schema[branch], value, scope, seen)


def ref(judge: Judge, reference: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    target, resource = judge.resolve(reference, scope)
    return judge.in_place(target, value, (*scope, resource), seen)


def dynamic_ref(judge: Judge, reference: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    target, resource = judge.resolve(reference, scope)
    name = reference.rpartition("#")[2]
    if resource.dynamic.get(name) is target and "#" in reference:
        for outer in scope:
            if name in outer.dynamic:
                target, resource = outer.dynamic[name], outer
                break
    return judge.in_place(target, value, (*scope, resource), seen)


def recursive_ref(judge: Judge, reference: Any, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
    if reference != "#":
        raise BeyondJudgeError(reference)
    resource = scope[-1]
    if isinstance(resource.root, dict) and resource.root.get("$recursiveAnchor") is True:
        resource = next(r for r in scope if isinstance(r.root, dict) and r.root.get("$recursiveAnchor") is True)
    return judge.in_place(resource.root, value, (*scope, resource), seen)


_ALL: dict[str, Keyword] = {
    "type": type_,
    "enum": enum,
    "minimum": minimum,
    "maximum": maximum,
    "minLength": _size(str, True),
    "maxLength": _size(str, False),
    "minItems": _size(list, True),
    "maxItems": _size(list, False),
    "pattern": pattern,
    "format": format_,
    "properties": properties,
    "patternProperties": pattern_properties,
    "additionalProperties": additional_properties,
    "items": items,
    "uniqueItems": unique_items,
    "$ref": ref,
}
_FROM_4: dict[str, Keyword] = {
    "multipleOf": multiple_of,
    "required": required,
    "minProperties": _size(dict, True),
    "maxProperties": _size(dict, False),
    "allOf": all_of,
    "anyOf": any_of,
    "oneOf": one_of,
    "not": not_,
}
_FROM_6: dict[str, Keyword] = {
    "const": const,
    "contains": contains,
    "propertyNames": property_names,
    "exclusiveMinimum": exclusive_minimum,
    "exclusiveMaximum": exclusive_maximum,
}
_FROM_2019: dict[str, Keyword] = {
    "dependentRequired": dependent_required,
    "dependentSchemas": dependent_schemas,
    "unevaluatedProperties": unevaluated_properties,
    "unevaluatedItems": unevaluated_items,
}
_NEW: dict[str, dict[str, Keyword]] = {
    "draft3": {
        "divisibleBy": multiple_of,
        "disallow": disallow,
        "extends": extends,
        "additionalItems": additional_items,
    },
    "draft4": {**_FROM_4, "additionalItems": additional_items},
    "draft6": {**_FROM_4, **_FROM_6, "additionalItems": additional_items},
    "draft7": {**_FROM_4, **_FROM_6, "if": if_, "additionalItems": additional_items},
    "draft2019-09": {
        **{**_FROM_4, **_FROM_6, **_FROM_2019, "if": if_},
        **{"additionalItems": additional_items, "$recursiveRef": recursive_ref},
    },
    "draft2020-12": {
        **{**_FROM_4, **_FROM_6, **_FROM_2019, "if": if_},
        **{"prefixItems": prefix_items, "$dynamicRef": dynamic_ref},
    },
}


@cache
def keywords(draft: str) -> dict[str, Keyword]:
    """The keywords that a draft knows. ``dependencies`` counts in all (core 2020-12, "Compatibility")."""
    return {**_ALL, **_NEW[draft], "dependencies": dependencies}
