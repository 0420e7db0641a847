"""Random schemas over all keywords of all drafts: small, with odd keys, huge limits, recursion and contradictions."""

from __future__ import annotations

import random
from typing import Any

DRAFTS = ("draft2020-12", "draft2019-09", "draft7", "draft6", "draft4", "draft3")
_SHARES = (40, 16, 16, 8, 12, 8)
NAMES = ["a", "b", "ab", "c", "foo", "", "\x00", "😀", "__proto__", "$ref", "a/b", "~", "\n", '"', "\\", "é", "\u2028"]
SCALARS: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        2,
        3,
        -1,
        -2,
        7,
        10,
        100,
        1000,
        0.5,
        1.5,
        2.25,
        -0.5,
        0.1,
        0.3,
        1e-7,
        123456789.123456789,
    ),
    *(
        2**53,
        2**53 + 1,
        -(2**63),
        2**64,
        10**20,
        1e22,
        "",
        "a",
        "b",
        "ab",
        "aa",
        "ba",
        "abc",
        "é",
        "😀",
        "😀a",
        '"',
        "\\",
    ),
    *("\n", "\x00", "\x7f", "\u2028", "a b", "12", "null", "x1", "z" * 20, "2020-02-29", "127.0.0.1"),
]
PATTERNS = [
    *(
        "^a",
        "b$",
        "^$",
        "a",
        "^a{2,3}$",
        "^(ab)*$",
        "^(a|b)+$",
        "^[^a]*$",
        "^..?$",
        "^x[0-9]*$",
        r"\d",
        r"^\w+$",
        r"^\s",
    ),
    *(r"^\x00?$", r"\\\\", '"', "^[é😀]$", "(?=.*a)(?=.*b)", "^(?!a)", "^(?!foo$).*$", "(?<=a)b", r"\bab\b", r"^\S*$"),
    *(
        "^[a-z]{1,20}$",
        "a|^b|c$",
        "^(?:a?b){2}",
        "[]",
        "[^]",
        "^[A-Za-z0-9_]+$",
        r"^[\d.-]+$",
        r"^\u{1F600}?",
        r"^[\s\S]{2}$",
        r"^[^\W\d]+$",
        "(?<!a)b$",
    ),
]
FORMATS = ["date", "ipv4", "ipv6", "uuid", "json-pointer"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
BOUNDS: list[Any] = [
    *(
        0,
        1,
        2,
        3,
        5,
        7,
        10,
        -1,
        -2,
        100,
        1000,
        0.5,
        1.5,
        -0.5,
        0.1,
        1e-7,
        2**53,
        2**53 + 1,
        2**64,
        -(2**63),
        10**20,
        1e300,
    )
]
STEPS: list[Any] = [1, 2, 3, 5, 12, 0.5, 0.1, 0.3, 0.01, 1e-7, 1.5, 10**20, 7]
HUGE = [2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**30]
_NUMBERS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "divisibleBy"]
_TEXTS = ["minLength", "maxLength", "pattern", "format"]
_ARRAYS = [
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "unevaluatedItems",
]
_OBJECTS = [
    *("properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties"),
    *("propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
]
_PLACE = ["allOf", "anyOf", "oneOf", "not", "if", "$ref", "enum", "const", "type", "extends", "disallow"]
_CLUSTERS = [_NUMBERS, _TEXTS, _ARRAYS, _ARRAYS, _OBJECTS, _OBJECTS, _PLACE]


def words_of(draft: str) -> frozenset[str]:
    """The keywords of a draft that are written (``dependencies`` only where it is defined)."""
    from tests.fuzz.judge_keywords import keywords

    known = set(keywords(draft)) - {"$dynamicRef", "$recursiveRef"}
    return frozenset(known - {"dependencies"} if draft.startswith("draft20") else known)


class Schemas:
    """Schemas of one draft; ``most`` bounds the subschemas of one root."""

    def __init__(self, rng: random.Random, draft: str | None = None) -> None:
        self.rng = rng
        self.draft = draft or rng.choices(DRAFTS, _SHARES)[0]
        self.words = sorted(words_of(self.draft))
        self.old = self.draft in ("draft3", "draft4")
        self.names = rng.sample(NAMES, rng.randint(2, 5))
        self.left = rng.choice((3, 6, 6, 10, 16))
        self.definitions = "$defs" if self.draft.startswith("draft20") else "definitions"
        self.count = rng.choice((0, 0, 0, 1, 1, 2, 3))
        self.named = [f"d{i}" for i in range(self.count)]
        self.dynamic = self.draft.startswith("draft20") and self.count > 0 and rng.random() < 0.25

    def root(self) -> Any:
        """A whole schema."""
        schema = self.schema(0)
        if not isinstance(schema, dict):
            return schema
        if self.named:
            schema[self.definitions] = {name: self._definition(name) for name in self.named}
        if self.dynamic and self.rng.random() < 0.6:
            schema |= {"$dynamicAnchor": "n"} if self.draft == "draft2020-12" else {"$recursiveAnchor": True}
        return schema

    def _definition(self, name: str) -> Any:
        self.left += 3
        schema = self.schema(1)
        if self.dynamic and isinstance(schema, dict):
            if self.draft == "draft2019-09":
                schema |= {"$id": f"http://x.test/{name}"}
                schema |= {"$recursiveAnchor": True} if self.rng.random() < 0.6 else {}
            elif self.rng.random() < 0.7:
                schema |= {"$id": f"http://x.test/{name}", "$dynamicAnchor": "n"}
        return schema

    def schema(self, depth: int) -> Any:
        rng = self.rng
        self.left -= 1
        if depth and not self.old and rng.random() < 0.08:
            return rng.random() < 0.6
        if depth and (self.left < 0 or depth > 4):
            return rng.choice(({}, {"type": rng.choice(TYPES)}, {"type": rng.choice(TYPES)}))
        schema: dict[str, Any] = {}
        cluster = [word for word in rng.choice(_CLUSTERS) if word in self.words]
        for _ in range(rng.randint(1, 3)):
            word = rng.choice(cluster) if cluster and rng.random() < 0.7 else rng.choice(self.words)
            self._put(schema, word, depth)
        if rng.random() < 0.25 and "type" not in schema:
            schema["type"] = self._type(depth)
        return schema

    def _put(self, schema: dict[str, Any], word: str, depth: int) -> None:
        rng = self.rng
        if word == "$ref":
            self._refer(schema)
            return
        value = getattr(self, f"_{word}", self._child)(depth)
        schema[word] = value
        if word == "if":
            schema |= {branch: self.schema(depth + 1) for branch in ("then", "else") if rng.random() < 0.7}
        elif word == "contains" and self.draft.startswith("draft20"):
            schema |= {limit: rng.randint(0, 3) for limit in ("minContains", "maxContains") if rng.random() < 0.4}
        elif word == "additionalItems" and "items" not in schema:
            schema["items"] = self._schemas(depth)
        elif word in ("exclusiveMinimum", "exclusiveMaximum") and self.old:
            schema.setdefault(word.replace("exclusiveM", "m"), rng.choice(BOUNDS))

    def _refer(self, schema: dict[str, Any]) -> None:
        if self.dynamic and self.rng.random() < 0.5:
            schema |= {"$dynamicRef": "#n"} if self.draft == "draft2020-12" else {"$recursiveRef": "#"}
        elif self.named and self.rng.random() < 0.8:
            schema["$ref"] = f"#/{self.definitions}/{self.rng.choice(self.named)}"
        else:
            schema["$ref"] = "#"

    # --- values of keywords ---
    def value(self, depth: int = 0) -> Any:
        """A random JSON value."""
        kind = self.rng.random()
        if depth > 2 or kind < 0.6:
            return self.rng.choice(SCALARS)
        if kind < 0.8:
            return [self.value(depth + 1) for _ in range(self.rng.randint(0, 3))]
        return {name: self.value(depth + 1) for name in self._few(2)}

    def _few(self, most: int) -> list[str]:
        return self.rng.sample(self.names, self.rng.randint(0, min(most, len(self.names))))

    def _child(self, depth: int) -> Any:
        return self.schema(depth + 1)

    def _additionalProperties(self, depth: int) -> Any:
        return False if self.rng.random() < 0.4 else self.schema(depth + 1)

    _additionalItems = _unevaluatedProperties = _unevaluatedItems = _additionalProperties

    def _schemas(self, depth: int) -> list[Any]:
        return [self.schema(depth + 1) for _ in range(self.rng.choice((1, 2, 2, 3)))]

    _allOf = _anyOf = _oneOf = _prefixItems = _schemas

    def _extends(self, depth: int) -> Any:
        return self._schemas(depth) if self.rng.random() < 0.5 else self.schema(depth + 1)

    def _items(self, depth: int) -> Any:
        listed = self.draft != "draft2020-12" and self.rng.random() < 0.4
        return self._schemas(depth) if listed else self.schema(depth + 1)

    def _properties(self, depth: int) -> dict[str, Any]:
        table = {name: self.schema(depth + 1) for name in self._few(3)}
        for child in table.values():
            if self.draft == "draft3" and isinstance(child, dict) and self.rng.random() < 0.4:
                child["required"] = self.rng.random() < 0.8
        return table

    def _patternProperties(self, depth: int) -> dict[str, Any]:
        return {self.rng.choice(PATTERNS): self.schema(depth + 1) for _ in range(self.rng.randint(1, 2))}

    def _dependentSchemas(self, depth: int) -> dict[str, Any]:
        return {name: self.schema(depth + 1) for name in self._few(2)}

    def _dependentRequired(self, depth: int) -> dict[str, Any]:
        return {name: self._few(2) for name in self._few(2)}

    def _dependencies(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self._few(2):
            way = self.rng.random()
            found[name] = self.schema(depth + 1) if way < 0.5 else (self._few(2) or ["a"])
            if self.draft == "draft3" and way > 0.8:
                found[name] = self.rng.choice(self.names)
        return found

    def _required(self, depth: int) -> Any:
        return self._few(3) or ["a"]

    def _type(self, depth: int) -> Any:
        if self.rng.random() < 0.7:
            return self.rng.choice(TYPES)
        names: list[Any] = self.rng.sample(TYPES, self.rng.randint(2, 3))
        if self.draft == "draft3" and self.rng.random() < 0.3:
            names[0] = self.schema(3)
        return names

    _disallow = _type

    def _enum(self, depth: int) -> list[Any]:
        return list({repr(v): v for v in (self.value(depth) for _ in range(self.rng.randint(1, 5)))}.values())

    def _const(self, depth: int) -> Any:
        return self.value(depth)

    def _size(self, depth: int) -> int:
        return self.rng.choice(HUGE) if self.rng.random() < 0.03 else self.rng.choice((0, 0, 1, 1, 2, 2, 3, 4, 5, 20))

    _minLength = _maxLength = _minItems = _maxItems = _minProperties = _maxProperties = _size

    def _uniqueItems(self, depth: int) -> bool:
        return self.rng.random() < 0.9

    def _pattern(self, depth: int) -> str:
        return self.rng.choice(PATTERNS)

    def _format(self, depth: int) -> str:
        return self.rng.choice(["date", "ip-address", "ipv6"] if self.draft == "draft3" else FORMATS)

    def _minimum(self, depth: int) -> Any:
        return self.rng.choice(BOUNDS)

    _maximum = _minimum

    def _exclusiveMinimum(self, depth: int) -> Any:
        return self.rng.random() < 0.7 if self.old else self.rng.choice(BOUNDS)

    _exclusiveMaximum = _exclusiveMinimum

    def _multipleOf(self, depth: int) -> Any:
        return self.rng.choice(STEPS)

    _divisibleBy = _multipleOf
