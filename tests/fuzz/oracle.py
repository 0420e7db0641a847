"""python-jsonschema as the judge of the judge, with its own known faults left out.

What is repaired here: expressions are translated (it gives them to ``re`` as they are), steps are exact (it divides
floats), items are compared one by one (it sorts them, and ``[1]`` and ``[true]`` sort alike). What cannot be repaired
makes ``second_opinion`` None: `KNOWN_FAULTS`, each with an example that `test_oracle.py` runs.
"""

from __future__ import annotations

import gc
import json
import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import jsonschema
import jsonschema.validators
from referencing.exceptions import Unresolvable

from tests.fuzz.ecma import to_python
from tests.fuzz.judge import canonical, exact
from tests.fuzz.judge_keywords import children

_CLASSES = {
    "draft3": jsonschema.Draft3Validator,
    "draft4": jsonschema.Draft4Validator,
    "draft6": jsonschema.Draft6Validator,
    "draft7": jsonschema.Draft7Validator,
    "draft2019-09": jsonschema.Draft201909Validator,
    "draft2020-12": jsonschema.Draft202012Validator,
}


def _multiple_of(validator: Any, step: Any, value: Any, schema: Any) -> Iterator[Any]:
    if validator.is_type(value, "number") and exact(value) % exact(step):
        yield jsonschema.ValidationError("no multiple")


def _unique(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if wanted and isinstance(value, list) and len(set(map(canonical, value))) < len(value):
        yield jsonschema.ValidationError("not unique")


def _bound(holds: Callable[[Any, Any], bool]) -> Callable[..., Iterator[Any]]:
    def bound(validator: Any, limit: Any, value: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "number") and not holds(exact(value), exact(limit)):
            yield jsonschema.ValidationError("out of bounds")

    return bound


_BOUNDS = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}


def _repaired(draft: str) -> Any:
    words = {"uniqueItems": _unique, ("divisibleBy" if draft == "draft3" else "multipleOf"): _multiple_of}
    if draft not in ("draft3", "draft4"):
        words |= {word: _bound(holds) for word, holds in _BOUNDS.items()}
    return jsonschema.validators.extend(_CLASSES[draft], words)


_REPAIRED = {draft: _repaired(draft) for draft in _CLASSES}


def translated(schema: Any) -> Any:
    """The schema with its expressions in Python's spelling."""
    if isinstance(schema, list):
        return [translated(child) for child in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for word, child in schema.items():
        if word in ("enum", "const"):
            found[word] = child
        elif word == "pattern" and isinstance(child, str):
            found[word] = to_python(child)
        elif word == "patternProperties" and isinstance(child, dict):
            found[word] = {  # the groups keep apart what is one expression in Python
                to_python(name) + "(?:)" * place: translated(inner) for place, (name, inner) in enumerate(child.items())
            }
        elif word in ("properties", "$defs", "definitions", "dependentSchemas", "dependencies") and isinstance(
            child, dict
        ):
            found[word] = {name: translated(inner) for name, inner in child.items()}
        else:
            found[word] = translated(child)
    return found


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """All schema objects in a schema, itself first."""
    if isinstance(schema, dict):
        yield schema
        for child in children(schema):
            yield from subschemas(child)


def _uses(schema: Any, *words: str) -> bool:
    return any(word in inner for inner in subschemas(schema) for word in words)


# name: (whether it may matter for (schema, draft), draft, schema, value, what the specification says of it)
KNOWN_FAULTS: dict[str, tuple[Callable[[Any, str], bool], str, Any, Any, bool]] = {
    "drafts 6 to 2019-09: additionalItems beside a Boolean items raises TypeError": (
        lambda schema, draft: (
            any(isinstance(inner.get("items"), bool) for inner in subschemas(schema))
            and _uses(schema, "additionalItems", "unevaluatedItems")
        ),
        "draft7",
        {"items": True, "additionalItems": False},
        [1],
        True,
    ),
    "2019-09: contains evaluates the items that it finds": (
        lambda schema, draft: (
            draft == "draft2019-09" and _uses(schema, "unevaluatedItems") and _uses(schema, "contains")
        ),
        "draft2019-09",
        {"contains": {"type": "boolean"}, "unevaluatedItems": {"type": "integer"}},
        [-1, False],
        False,
    ),
    "2019-09: additionalProperties evaluates only members called like its own keywords": (
        lambda schema, draft: draft == "draft2019-09" and _uses(schema, "unevaluatedProperties"),
        "draft2019-09",
        {"allOf": [{"additionalProperties": {"type": "integer"}}], "unevaluatedProperties": False},
        {"a": 1},
        True,
    ),
    "up to draft 4: bounds compare the binary value of a float, not the number that was written": (
        lambda schema, draft: draft in ("draft3", "draft4") and "e+" in json.dumps(schema),
        "draft4",
        {"maximum": 1e300},
        int(1e300),
        False,
    ),
}


class SecondOpinion:
    """python-jsonschema on one schema."""

    def __init__(self, schema: Any, draft: str) -> None:
        self._silent = any(applies(schema, draft) for applies, *_ in KNOWN_FAULTS.values())
        self._validator = None if self._silent else _REPAIRED[draft](translated(schema))

    def valid(self, value: Any) -> bool | None:
        """Its verdict; None where a known fault may matter, or it cannot judge."""
        if self._validator is None or _has_decimals(value):
            return None
        collects = gc.isenabled()
        gc.disable()  # what it calls at the limit of recursion fails where nobody can catch it
        try:
            return bool(self._validator.is_valid(value))
        except (RecursionError, Unresolvable, jsonschema.exceptions.UnknownType):
            return None
        except BaseException as error:
            if type(error).__name__ == "PanicException":  # what a RecursionError becomes in rpds (of referencing)
                return None
            raise
        finally:
            if collects:
                gc.enable()


def _has_decimals(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_decimals, value.values()))
    return any(map(_has_decimals, value)) if isinstance(value, list) else isinstance(value, Decimal)


def unrepaired(schema: Any, draft: str, value: Any) -> bool | None:
    """python-jsonschema's own verdict, as it is installed; None: it raises TypeError."""
    try:
        return bool(_CLASSES[draft](schema).is_valid(value))
    except TypeError:
        return None
