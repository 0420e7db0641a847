"""JSON Schema by its specification, keyword by keyword, without automata, tables or normal forms.

A plain recursive evaluator of parsed schemas over parsed values, exact in numbers, with annotations for
``unevaluated*`` and a dynamic scope. It shares nothing with the engine, and `test_judge.py` holds it against the
official suite. Values are read with ``read``: numbers with a fraction or exponent are ``Decimal``, so drafts 3 and 4
can tell ``1.0`` from ``1``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from tests.fuzz.ecma import searcher
from tests.fuzz.formats import FORMATS, IN_DRAFT_3

Evaluated = set[Any]
MOST_DIGITS = 5_000
OLD = ("draft3", "draft4")
REF_HIDES = (*OLD, "draft6", "draft7")
ANNOTATED = ("draft2019-09", "draft2020-12")


class BeyondJudgeError(Exception):
    """The judge has no opinion: a number of too many digits, a reference that leads nowhere or only to itself."""


def read(text: str | bytes) -> Any:
    """The value of a JSON text; numbers spelled with a fraction or exponent are ``Decimal``."""
    return json.loads(text, parse_float=_decimal, parse_int=_integer)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of some twenty digits
        raise BeyondJudgeError(text[:20]) from None


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise BeyondJudgeError(text[:20])
    return int(text) if len(text) < 4000 else int(Decimal(text))


def exact(number: Any) -> int | Fraction:
    """The number's exact value; a float means its shortest spelling."""
    if number.__class__ is int:
        return number
    if isinstance(number, float):
        number = Decimal(repr(number))
    if isinstance(number, Decimal) and abs(int(number.as_tuple().exponent)) > MOST_DIGITS:
        raise BeyondJudgeError(str(number)[:40])
    fraction = Fraction(number)
    return fraction.numerator if fraction.denominator == 1 else fraction


def canonical(value: Any) -> Any:
    """Hashable, and equal exactly where JSON Schema calls the values equal."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return ("object", frozenset((key, canonical(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(map(canonical, value)))
    return ("number", exact(value))


class Resource:
    """A schema with a URI, and its anchors."""

    def __init__(self, root: Any, uri: str) -> None:
        self.root, self.uri = root, uri
        self.anchors: dict[str, Any] = {}
        self.dynamic: dict[str, Any] = {}


Scope = tuple[Resource, ...]
Keyword = Callable[["Judge", Any, dict[str, Any], Any, Scope, Evaluated], bool]


class Judge:
    """Judges values by one schema. ``formats``: whether formats count."""

    def __init__(self, schema: Any, draft: str, formats: bool = False) -> None:
        self.draft, self.formats = draft, formats
        self.identifier = "id" if draft in OLD else "$id"
        self._plans: dict[int, list[tuple[Keyword, Any]]] = {}
        self._sets: dict[int, Any] = {}
        self._resources: dict[str, Resource] = {}
        self._inner: dict[int, Resource] = {}
        self._targets: dict[tuple[str, int], tuple[Any, Resource]] = {}
        root = schema.get(self.identifier) if isinstance(schema, dict) else None
        self.root = Resource(schema, urldefrag(root)[0] if isinstance(root, str) else "")
        self._resources[self.root.uri] = self.root
        self._index(schema, self.root)
        self.collects = draft in ANNOTATED and "unevaluated" in json.dumps(schema, default=str)

    def valid(self, value: Any) -> bool:
        """Whether the value is valid."""
        try:
            return self.check(self.root.root, value, (self.root,)) is not None
        except RecursionError:
            raise BeyondJudgeError("recursion") from None

    def check(self, schema: Any, value: Any, scope: Scope) -> Evaluated | None:
        """None: invalid; else the keys or places of ``value`` that keywords in place have evaluated."""
        if schema is True or schema is False:
            return set() if schema else None
        inner = self._inner.get(id(schema))
        if inner is not None and inner is not scope[-1]:
            scope = (*scope, inner)
        seen: Evaluated = set()
        for function, argument in self._plan(schema):
            if not function(self, argument, schema, value, scope, seen):
                return None
        return seen

    def holds(self, schema: Any, value: Any, scope: Scope) -> bool:
        """Whether a value (of a part, or in place but without annotations) is valid."""
        return self.check(schema, value, scope) is not None

    def in_place(self, schema: Any, value: Any, scope: Scope, seen: Evaluated) -> bool:
        """Whether it holds for the same value; what it evaluates counts."""
        found = self.check(schema, value, scope)
        if found:
            seen |= found
        return found is not None

    def values_of(self, listed: Any) -> Any:
        """The canonical forms of an ``enum``."""
        if id(listed) not in self._sets:
            self._sets[id(listed)] = frozenset(map(canonical, listed))
        return self._sets[id(listed)]

    def resolve(self, reference: str, scope: Scope) -> tuple[Any, Resource]:
        """The schema that a reference leads to, and the resource it stands in."""
        key = (reference, id(scope[-1]))
        if key not in self._targets:
            self._targets[key] = self._resolve(reference, scope[-1])
        return self._targets[key]

    def _resolve(self, reference: str, base: Resource) -> tuple[Any, Resource]:
        uri, fragment = urldefrag(urljoin(base.uri, reference))
        resource = self._resources.get(uri)
        if resource is None:
            raise BeyondJudgeError(reference)
        if not fragment:
            return resource.root, resource
        if not fragment.startswith("/"):
            if fragment not in resource.anchors:
                raise BeyondJudgeError(reference)
            return resource.anchors[fragment], resource
        node = resource.root
        for token in unquote(fragment).split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            try:
                node = node[int(token)] if isinstance(node, list) else node[token]
            except (KeyError, IndexError, ValueError, TypeError):
                raise BeyondJudgeError(reference) from None
            resource = self._inner.get(id(node), resource)
        return node, resource

    def _plan(self, schema: dict[str, Any]) -> list[tuple[Keyword, Any]]:
        plan = self._plans.get(id(schema))
        if plan is None:
            from tests.fuzz.judge_keywords import LAST, keywords  # which is built on this module

            table = keywords(self.draft)
            names = ["$ref"] if self.draft in REF_HIDES and "$ref" in schema else sorted(schema, key=LAST.__contains__)
            plan = self._plans[id(schema)] = [(table[name], schema[name]) for name in names if name in table]
        return plan

    def _index(self, schema: Any, resource: Resource) -> None:
        """Find resources and anchors; only where schemas stand."""
        from tests.fuzz.judge_keywords import children

        if not isinstance(schema, dict):
            return
        uri = schema.get(self.identifier)
        hidden = self.draft in REF_HIDES and "$ref" in schema
        if isinstance(uri, str) and not hidden:
            if uri.startswith("#"):
                resource.anchors[uri[1:]] = schema
            elif schema is not resource.root:
                resource = Resource(schema, urldefrag(urljoin(resource.uri, uri))[0])
                self._resources[resource.uri] = self._inner[id(schema)] = resource
        for keyword, anchors in (
            ("$anchor", [resource.anchors]),
            ("$dynamicAnchor", [resource.anchors, resource.dynamic]),
        ):
            if isinstance(schema.get(keyword), str) and self.draft in ANNOTATED:
                for table in anchors:
                    table[schema[keyword]] = schema
        for child in children(schema):
            self._index(child, resource)


def format_holds(name: str, value: str, draft: str) -> bool:
    """Whether a string has a format; formats that are not in the table are annotations here."""
    test = (IN_DRAFT_3 if draft == "draft3" else FORMATS).get(name)
    return test is None or bool(test(value))


def found(pattern: str, text: str) -> bool:
    """Whether an ECMA-262 expression is found in a text."""
    return searcher(pattern)(text) is not None
