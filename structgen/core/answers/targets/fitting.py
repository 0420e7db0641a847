"""Whether a schema is within what a target reads: a check of its own, which shares nothing with what lowers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from structgen.core.answers.targets.table import SchemaTarget, target_of

_STRUCTURE = {"type", "anyOf", "enum", "$ref", "$defs", "properties", "required", "additionalProperties", "items",
              "title", "description"}  # fmt: skip
_REFUSED_IN_PATTERNS = ("(?=", "(?!", "(?<", "\\b", "\\B", "\\k", "\\p", "\\P", *[f"\\{n}" for n in range(1, 10)])

MAX_VISITED = 50_000
"""Parts that are looked at, on all paths through the definitions, to count the levels."""


class _TooManyPathsError(Exception):
    """The levels are not counted."""


def fits(schema: Any, target: str | SchemaTarget) -> list[str]:
    """What in a schema the target refuses, ignores or counts as too much; empty: it takes the schema as it is.

    Args:
        schema: as it would be sent. target: see `structgen.lower`.

    Raises:
        OptionsError: no such target.
    """
    return list(dict.fromkeys(_Fitting(schema, target_of(target)).complaints()))


def counts_of(schema: Any, target: SchemaTarget) -> dict[str, int]:
    """What a schema has of all that is limited, by the names of `SchemaTarget.limits`."""
    fitting = _Fitting(schema, target)
    list(fitting.complaints())
    return fitting.counts


class _Fitting:
    """One look at one schema."""

    def __init__(self, schema: Any, target: SchemaTarget) -> None:
        self._schema, self._target = schema, target
        self._definitions: Mapping[str, Any] = schema.get("$defs", {}) if isinstance(schema, dict) else {}
        self.counts = dict.fromkeys(("properties", "enum_values", "characters", "optional", "unions"), 0)
        self._visited = 0
        self._depths: dict[str, int] = {}
        self._leads_to: dict[str, frozenset[str]] = {}

    def complaints(self) -> Iterator[str]:
        schema, target = self._schema, self._target
        if target.object_root and (not isinstance(schema, dict) or schema.get("type") != "object" or "anyOf" in schema):
            yield "the root must be an object"
        self.counts["characters"] += sum(map(len, self._definitions))
        yield from self._part(schema, "")
        for name, definition in self._definitions.items():
            yield from self._part(definition, f"/$defs/{name}")
        for name, limit in target.limits.items():
            if self.counts.get(name, 0) > limit:
                yield f"{self.counts[name]} {name}, where {limit} are taken"
        if "depth" in target.limits:
            yield from self._too_deep(target.limits["depth"])
        if target.recursion != "yes":
            yield from self._cycles()

    def _part(self, part: Any, pointer: str) -> Iterator[str]:
        if isinstance(part, bool):
            yield f"{pointer}: a Boolean as schema"
            return
        for word in part.keys() - _STRUCTURE - self._target.keywords:
            yield f"{pointer}: {word} is not read"
        if "$ref" in part and part.keys() - {"$ref", "$defs"}:
            yield f"{pointer}: words next to $ref"
        if "$ref" in part and part["$ref"].removeprefix("#/$defs/") not in self._definitions:
            yield f"{pointer}: $ref leads nowhere"
        if not part and self._target.anything != "empty":
            yield f"{pointer}: no type"
        if "anyOf" in part or isinstance(part.get("type"), list):
            self.counts["unions"] += 1
        yield from self._scalars(part, pointer)
        if part.get("type") == "object":
            yield from self._object(part, pointer)
        for index, branch in enumerate(part.get("anyOf", ())):
            yield from self._part(branch, f"{pointer}/anyOf/{index}")
        for index, item in enumerate(part.get("prefixItems", ())):
            yield from self._part(item, f"{pointer}/prefixItems/{index}")
        if "items" in part:
            yield from self._part(part["items"], f"{pointer}/items")
        elif part.get("type") == "array" and not part.get("prefixItems") and self._target.anything != "empty":
            yield f"{pointer}: an array without items"

    def _scalars(self, part: dict[str, Any], pointer: str) -> Iterator[str]:
        target = self._target
        pattern = part.get("pattern", "")
        if any(refused in pattern for refused in _REFUSED_IN_PATTERNS):
            yield f"{pointer}/pattern: an expression that is not read"
        if target.patterns == "plain" and pattern and not (pattern[0] == "^" and pattern[-1] == "$"):
            yield f"{pointer}/pattern: not anchored"
        said = [words for words in ({"pattern"}, {"format"}, {"minLength", "maxLength"}) if words & part.keys()]
        if not target.length_with_pattern and len(said) > 1:
            yield f"{pointer}: lengths, pattern and format together"
        for word in ("minLength", "maxLength", "minItems", "maxItems"):
            if target.max_count is not None and part.get(word, 0) > target.max_count:
                yield f"{pointer}/{word}: more than {target.max_count}"
        if "format" in part and part["format"] not in target.formats:
            yield f"{pointer}/format: {part['format']} is not read"
        if target.min_items is not None and part.get("minItems", 0) > target.min_items:
            yield f"{pointer}/minItems: more than {target.min_items}"
        values = part.get("enum", [])
        self.counts["enum_values"] += len(values)
        lengths = [len(value) for value in values if isinstance(value, str)]
        self.counts["characters"] += sum(lengths)
        if len(values) > 250 and sum(lengths) > target.limits.get("long_enum", sum(lengths)):
            yield f"{pointer}/enum: too many characters"
        for value in values:
            kinds = {bool: "boolean", str: "string", type(None): "null", dict: "object", list: "array"}
            if kinds.get(type(value), "number") not in target.enum_types:
                yield f"{pointer}/enum: {value!r:.40}"

    def _object(self, part: dict[str, Any], pointer: str) -> Iterator[str]:
        target = self._target
        members, required = part.get("properties", {}), part.get("required", [])
        self.counts["properties"] += len(members)
        self.counts["characters"] += sum(map(len, members))
        self.counts["optional"] += len(set(members) - set(required))
        if not target.is_open and part.get("additionalProperties") is not False:
            yield f"{pointer}: additionalProperties is not false"
        if not target.has_optional and set(members) - set(required):
            yield f"{pointer}: members that are not required"
        if set(required) - set(members):
            yield f"{pointer}: required members that are not declared"
        for name, member in members.items():
            yield from self._part(member, f"{pointer}/properties/{name}")
        if isinstance(part.get("additionalProperties"), dict):
            yield from self._part(part["additionalProperties"], f"{pointer}/additionalProperties")

    # --- levels ---
    def _too_deep(self, limit: int) -> Iterator[str]:
        try:
            if self._depth(self._schema, frozenset()) > limit:
                yield f"more than {limit} levels"
        except _TooManyPathsError:
            yield f"too many paths through the definitions to count the levels (more than {MAX_VISITED:,} parts)"

    def _depth(self, part: Any, above: frozenset[str]) -> int:
        """Levels of objects and arrays, on the longest path on which no definition comes twice.

        Raises:
            _TooManyPathsError: there are too many.
        """
        self._visited += 1
        if self._visited > MAX_VISITED:
            raise _TooManyPathsError
        if not isinstance(part, dict):
            return 0
        name = part.get("$ref", "").removeprefix("#/$defs/")
        if name:
            return 0 if name in above else self._depth_of(name, above)
        inner = [*part.get("properties", {}).values(), *part.get("prefixItems", ()), part.get("items")]
        inner.append(part.get("additionalProperties"))
        level = part.get("type") in ("object", "array")
        below = max((self._depth(one, above) for one in inner), default=0)
        return max([level + below, *[self._depth(one, above) for one in part.get("anyOf", ())]])

    def _depth_of(self, name: str, above: frozenset[str]) -> int:
        """Of a definition: the same wherever it stands, if it leads to none of those above."""
        is_same = not above & self._reached(name)
        if is_same and name in self._depths:
            return self._depths[name]
        depth = self._depth(self._definitions.get(name), above | {name})
        if is_same:
            self._depths[name] = depth
        return depth

    def _reached(self, name: str) -> frozenset[str]:
        """The definitions that one leads to."""
        if name not in self._leads_to:
            reached, todo = set[str](), [name]
            while todo:
                others = set(_referred(self._definitions.get(todo.pop()))) - reached
                reached |= others
                todo += others
            self._leads_to[name] = frozenset(reached)
        return self._leads_to[name]

    # --- definitions that lead to themselves ---
    def _cycles(self) -> Iterator[str]:
        state: dict[str, bool] = {}  # False: being looked at

        def visit(name: str) -> bool:
            """Whether it leads to itself."""
            if name in state:
                return not state[name]
            state[name] = False
            others = _referred(self._definitions.get(name), only_needed=self._target.recursion != "no")
            cyclic = any([visit(other) for other in others])
            state[name] = True
            return cyclic

        for name in self._definitions:
            if visit(name):
                yield f"/$defs/{name}: leads to itself"


def _referred(part: Any, *, only_needed: bool = False) -> Iterator[str]:
    """Definitions that a part leads to; ``only_needed``: not those below members that may be absent."""
    if not isinstance(part, dict):
        return
    if "$ref" in part:
        yield part["$ref"].removeprefix("#/$defs/")
    for name, member in part.get("properties", {}).items():
        if not only_needed or name in part.get("required", ()):
            yield from _referred(member, only_needed=only_needed)
    for other in (*part.get("anyOf", ()), *part.get("prefixItems", ()), part.get("items")):
        yield from _referred(other, only_needed=only_needed)
    yield from _referred(part.get("additionalProperties"), only_needed=only_needed)
