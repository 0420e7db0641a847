"""Values that are likely to tell a schema from its neighbours: led by it, and then changed a little."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.schemas import FORMATS, NAMES, SCALARS

SAMPLES = {
    "": [
        "",
        "a",
        "b",
        "ab",
        "ba",
        "aa",
        "aaa",
        "abab",
        "x1",
        "x",
        "foo",
        "é",
        "😀",
        " ",
        "A_1",
        "bb",
        "\x00",
        "\n",
        "a\n",
    ],
    "date": ["2020-02-29", "2021-02-29", "1999-12-31", "2020-1-01"],
    "ipv4": ["127.0.0.1", "1.2.3.256", "0.0.0.0", "01.1.1.1"],
    "ip-address": ["127.0.0.1", "1.2.3.256"],
    "ipv6": ["::1", "1::", "12345::", "::ffff:1.2.3.4"],
    "uuid": ["2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380", "2eb8aa08"],
    "json-pointer": ["", "/a", "/~0", "/~2", "a"],
}
assert set(FORMATS) < set(SAMPLES)
ITEMS = 6


class Instances:
    """Values for one schema."""

    def __init__(self, rng: random.Random, schema: Any) -> None:
        self.rng = rng
        self.root = schema
        self.numbers: list[Any] = []
        self.values: list[Any] = []
        self.names: set[str] = set()
        self.lengths: set[int] = set()
        self._collect(schema, 0)
        self.all_names = sorted(self.names) + rng.sample(NAMES, 3)

    def _collect(self, schema: Any, depth: int) -> None:
        """What the schema speaks of, wherever it stands."""
        if isinstance(schema, list):
            for child in schema:
                self._collect(child, depth)
        if not isinstance(schema, dict) or depth > 12:
            return
        for word, child in schema.items():
            if word == "enum" and isinstance(child, list):
                self.values += child
            elif word == "const":
                self.values.append(child)
            elif isinstance(child, bool) or child is None:
                continue
            elif isinstance(child, (int, float)):
                if isinstance(child, int) and 0 <= child <= 20:
                    self.lengths.add(child)
                near = [child, child + 1, child - 1, child * 2]
                self.numbers += [number for number in near if abs(number) != float("inf")]  # twice a large float
            elif word in ("required", "dependentRequired", "dependencies", "properties", "dependentSchemas"):
                self.names.update(name for name in child if isinstance(name, str))
                for listed in child.values() if isinstance(child, dict) else ():
                    self.names.update(name for name in _list(listed) if isinstance(name, str))
            self._collect(child, depth + 1)

    def sample(self) -> Any:
        """One value."""
        way = self.rng.random()
        if way < 0.12:
            return self.anything(0)
        value = self.near(self.root, 0)
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2))):
            value = self.changed(value)
        return value

    def anything(self, depth: int) -> Any:
        """A value that owes the schema its parts only."""
        way = self.rng.random()
        if self.values and way < 0.25:
            return self.rng.choice(self.values)
        if way < 0.5 or depth > 2:
            return self.rng.choice(self.numbers) if self.numbers and way < 0.35 else self.rng.choice(SCALARS)
        if way < 0.75:
            return [self.anything(depth + 1) for _ in range(self._length())]
        return {self.rng.choice(self.all_names): self.anything(depth + 1) for _ in range(min(4, self._length()))}

    def near(self, schema: Any, depth: int) -> Any:
        """A value that follows the keywords it comes by."""
        rng = self.rng
        if not isinstance(schema, dict) or not schema or depth > 5:
            return self.anything(depth)
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"] and rng.random() < 0.9:
            return rng.choice(schema["enum"])
        inner = self._inner(schema)
        if inner and rng.random() < (0.5 if self._kinds(schema) else 0.9):
            value = self.near(rng.choice(inner), depth + 1)
            if isinstance(value, dict) and self._has(schema, "properties", "required"):
                value = {**self._object(schema, depth), **value}
            return value
        kinds = self._kinds(schema)
        return getattr(self, "_" + rng.choice(kinds))(schema, depth) if kinds else self.anything(depth)

    def _inner(self, schema: dict[str, Any]) -> list[Any]:
        found = [child for word in ("allOf", "anyOf", "oneOf", "extends") for child in _list(schema.get(word))]
        found += [schema[word] for word in ("if", "then", "else") if word in schema]
        reference = schema.get("$ref", "#" if "$dynamicRef" in schema or "$recursiveRef" in schema else "")
        if isinstance(reference, str) and reference.startswith("#") and isinstance(self.root, dict):
            target = self.root
            for token in reference.split("/")[1:]:
                target = target.get(token, {}) if isinstance(target, dict) else {}
            found.append(target)
        return found

    @staticmethod
    def _has(schema: dict[str, Any], *words: str) -> bool:
        return any(word in schema for word in words)

    def _kinds(self, schema: dict[str, Any]) -> list[str]:
        declared = schema.get("type")
        if declared is not None:
            return [name for name in _list(declared) if isinstance(name, str) and name != "any"]
        kinds = []
        if self._has(schema, "properties", "required", "patternProperties", "additionalProperties", "minProperties",
                     "maxProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies",
                     "unevaluatedProperties"):  # fmt: skip
            kinds += ["object"] * 2
        if self._has(
            schema, "items", "prefixItems", "contains", "uniqueItems", "minItems", "maxItems", "unevaluatedItems"
        ):
            kinds += ["array"] * 2
        if self._has(schema, "pattern", "format", "minLength", "maxLength"):
            kinds += ["string"] * 2
        if self._has(schema, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "divisibleBy"):
            kinds += ["number"] * 2
        return kinds

    # --- by type ---
    def _null(self, schema: Any, depth: int) -> None:
        return None

    def _boolean(self, schema: Any, depth: int) -> bool:
        return self.rng.random() < 0.5

    def _number(self, schema: Any, depth: int) -> Any:
        step = schema.get("multipleOf", schema.get("divisibleBy", 1))
        bounds = [schema[w] for w in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if w in schema]
        base = self.rng.choice([b for b in bounds if not isinstance(b, bool)] or [0, 1, 10])
        way = self.rng.random()
        if way < 0.3:
            return _sum(base, self.rng.choice((0, 1, -1, 0.5)))
        if way < 0.6 and isinstance(step, int) and isinstance(base, int):
            return (base // step + self.rng.randint(-1, 2)) * step
        if way < 0.75:
            return self.rng.randint(-3, 12) * step
        return self.rng.choice(self.numbers or [0, 1, 0.5])

    def _integer(self, schema: Any, depth: int) -> Any:
        value = self._number(schema, depth)
        return int(value) if self.rng.random() < 0.9 else value

    def _string(self, schema: Any, depth: int) -> str:
        text: str = self.rng.choice(
            SAMPLES.get(schema.get("format", ""), SAMPLES[""]) if self.rng.random() < 0.8 else SAMPLES[""]
        )
        if self.rng.random() < 0.4:
            length = schema.get("minLength", schema.get("maxLength", 2))
            length = min(length if isinstance(length, int) else 2, 30) + self.rng.choice((0, 0, 1, -1))
            text = (text or "a") * max(length, 0)
            text = text[: max(length, 0)]
        return text

    def _array(self, schema: Any, depth: int) -> list[Any]:
        prefix = schema.get("prefixItems", schema["items"] if isinstance(schema.get("items"), list) else [])
        rest = schema.get("items") if not isinstance(schema.get("items"), list) else schema.get("additionalItems")
        rest = schema.get("unevaluatedItems", {}) if rest is None else rest
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", ITEMS)
        length = self._length() if self.rng.random() < 0.5 else min(max(min(least, ITEMS), self._length()), most)
        found = [self.near(prefix[i] if i < len(prefix) else rest, depth + 1) for i in range(length)]
        if "contains" in schema and self.rng.random() < 0.8:
            for _ in range(self.rng.randint(1, 2)):
                found.insert(self.rng.randint(0, len(found)), self.near(schema["contains"], depth + 1))
        return found

    def _object(self, schema: Any, depth: int) -> dict[str, Any]:
        declared = schema.get("properties") or {}
        required = schema.get("required") if isinstance(schema.get("required"), list) else []
        found: dict[str, Any] = {}
        for name in [*declared, *required]:
            if name in required or self.rng.random() < 0.6:
                found[name] = self.near(declared.get(name, self._member(schema)), depth + 1)
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            found[self.rng.choice(self.all_names + SAMPLES[""])] = self.near(self._member(schema), depth + 1)
        names = list(found)
        self.rng.shuffle(names)
        return {name: found[name] for name in names if self.rng.random() < 0.95}

    def _member(self, schema: Any) -> Any:
        listed = [
            schema[w] for w in ("additionalProperties", "unevaluatedProperties") if isinstance(schema.get(w), dict)
        ]
        listed += list((schema.get("patternProperties") or {}).values())
        return self.rng.choice(listed) if listed else {}

    def _length(self) -> int:
        if self.lengths and self.rng.random() < 0.5:
            return min(ITEMS, max(0, self.rng.choice(sorted(self.lengths)) + self.rng.choice((0, 0, 1, -1))))
        return self.rng.choice((0, 1, 1, 2, 2, 3, 4))

    def changed(self, value: Any) -> Any:
        """The value with one change somewhere."""
        rng = self.rng
        if isinstance(value, list) and value and rng.random() < 0.85:
            place, copy = rng.randrange(len(value)), list(value)
            way = rng.randrange(4)
            if way == 0:
                del copy[place]
            elif way == 1:
                copy.insert(rng.randint(0, len(copy)), copy[place])
            else:
                copy[place] = self.changed(copy[place])
            return copy[:8]
        if isinstance(value, dict) and value and rng.random() < 0.85:
            name, way = rng.choice(list(value)), rng.randrange(4)
            if way == 0:
                return {k: v for k, v in value.items() if k != name}
            if way == 1:
                return {**value, rng.choice(self.all_names): self.anything(2)}
            return {**value, name: self.changed(value[name])}
        if isinstance(value, bool) or value is None or rng.random() < 0.3:
            return self.anything(1)
        if isinstance(value, str):
            return rng.choice((value + "a", value[1:], value[:-1], value + "😀", value.upper(), value + "\n"))
        if isinstance(value, (int, float)):
            return rng.choice((value + 1, value - 1, -value, value * 10, value / 2 if abs(value) < 1e300 else 0))
        return self.anything(1)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _sum(one: Any, other: Any) -> Any:
    """In the type that loses least: a huge integer stays one."""
    return one + int(other) if isinstance(one, int) and abs(one) > 2**53 else one + other
