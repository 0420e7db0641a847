"""A schema in the few words that all targets know: the first half of lowering, the same for each of them.

What comes out is plain 2020-12 with one shape for each thing: ``{}`` (any value), ``$ref`` to a definition, ``anyOf``,
an ``enum`` of scalars, or one ``type`` with the keywords of that type; None: no value. It means what the schema means,
but for what `lost` names. A subschema that says no more is copied, with its texts; others are written from their
formulas (`written`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any
from urllib.parse import unquote

from structgen.core.answers.deciding import UNDECIDED, Questions, answering
from structgen.core.answers.occurrences import dialect_for, value_at
from structgen.core.answers.targets.loops import open_loops
from structgen.core.answers.targets.written import (
    FormulaWriting,
    Simple,
    enumeration,
    object_words,
    tidy_array,
    union_of,
)
from structgen.core.json_schema.dialects import Dialect
from structgen.core.json_schema.explained import Subschema
from structgen.core.json_schema.formula.language import FALSE, TRUE, Formula, and_
from structgen.core.json_schema.keyword import schemas_in
from structgen.core.json_schema.lowering import Lowered
from structgen.core.json_schema.pointers import unescape
from structgen.errors import pointer_to
from structgen.options import JsonOptions

TEXTS = ("title", "description")
KEYWORDS_OF = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
    "array": ("prefixItems", "items", "additionalItems", "minItems", "maxItems", "uniqueItems",
              "contains", "minContains", "maxContains"),
    "boolean": (),
    "null": (),
}  # fmt: skip
TYPES = ("object", "array", "string", "number", "boolean", "null")
_TYPED = frozenset({"type", *[name for names in KEYWORDS_OF.values() for name in names]})
MAX_PAIRS = 300
"""Pairs of alternatives of one ``oneOf`` of which it is asked whether they overlap."""
PROBE_STEPS = 100_000


class SimpleSchema:
    """A schema, simplified.

    Attributes:
        root: see the module; ``definitions``: by name, what references lead to.
        lost: (pointer, why) for what could not be said.
    """

    def __init__(self, schema: Any, options: JsonOptions, registry: Any = None) -> None:
        self._schema = schema
        options = answering(options)
        self._dialect = dialect_for(schema, options, registry)
        self._lowered, parts = Lowered(schema, options, registry).parts()
        self._parts: Mapping[str, Subschema] = parts.subschemas
        self._lowered.budget.left = min(self._lowered.budget.left, PROBE_STEPS)
        self._questions = Questions(self._lowered, self._lowered.options)
        self.definitions: dict[str, Simple | None] = {}
        self.lost: list[tuple[str, str]] = []
        self._names: dict[str, str] = {}
        self._writing = FormulaWriting(self._questions, self.definitions, self._lose)
        self._is_local = not (isinstance(schema, dict) and _has_identifiers(schema, self._dialect))
        self.root = self._simple(schema, ())
        open_loops(self.definitions)

    def _lose(self, pointer: str, why: str) -> None:
        if (pointer, why) not in self.lost:
            self.lost.append((pointer, why))

    def _formula(self, schema: Any, path: tuple[Any, ...]) -> Formula:
        if isinstance(schema, bool):
            return TRUE if schema else FALSE
        part = self._parts.get(pointer_to(path))
        return TRUE if part is None else part.formula

    def _simple(self, schema: Any, path: tuple[Any, ...]) -> Simple | None:
        if isinstance(schema, bool):
            return {} if schema else None
        words = {name for name in self._dialect.read_of(schema) if name in self._dialect.speaking}
        simple = self._by_words(schema, words, path)
        if simple is None:
            return None
        texts = {name: schema[name] for name in TEXTS if isinstance(schema.get(name), str)}
        return {**simple, **texts}

    def _by_words(self, schema: dict[str, Any], words: set[str], path: tuple[Any, ...]) -> Simple | None:
        if not words:
            return {}
        if words == {"$ref"} and self._is_local and schema["$ref"].startswith("#"):
            return self._reference(schema["$ref"])
        if words == {"anyOf"}:
            return self._union(schema["anyOf"], (*path, "anyOf"))
        if words == {"oneOf"} and self._is_disjoint(schema["oneOf"], (*path, "oneOf")):
            return self._union(schema["oneOf"], (*path, "oneOf"))
        if words in ({"enum"}, {"const"}):
            return enumeration(schema["enum"] if "enum" in words else [schema["const"]])
        if words <= _TYPED and self._dialect.name != "draft3":
            return self._typed(schema, path)
        texts = [schema, *[part for part in schema.get("allOf", []) if isinstance(part, dict)]]
        return self._writing.schema(self._formula(schema, path), pointer_to(path), self._described(texts))

    def _described(self, schemas: list[dict[str, Any]]) -> dict[str, str]:
        """Descriptions of members, by name, that some of the schemas declare."""
        texts: dict[str, str] = {}
        for schema in schemas:
            if self._is_local and isinstance(schema.get("$ref"), str) and schema["$ref"].startswith("#"):
                schema = value_at(self._schema, _path_of(schema["$ref"], self._schema))[1] or {}
            members = schema.get("properties") if isinstance(schema, dict) else None
            for name, member in members.items() if isinstance(members, dict) else ():
                if isinstance(member, dict) and isinstance(member.get("description"), str):
                    texts.setdefault(name, member["description"])
        return texts

    # --- references and alternatives ---
    def _reference(self, reference: str) -> Simple | None:
        path = _path_of(reference, self._schema)
        pointer = pointer_to(path)
        if pointer not in self._names:
            name = self._names[pointer] = self._writing.new_name(str(path[-1]) if path else "root")
            there, target = value_at(self._schema, path)
            assert there, reference  # lowering has followed it
            self.definitions[name] = {}
            self.definitions[name] = self._simple(target, path)
        name = self._names[pointer]
        return None if self.definitions[name] is None else {"$ref": f"#/$defs/{name}"}

    def _union(self, branches: list[Any], path: tuple[Any, ...]) -> Simple | None:
        return union_of([self._simple(branch, (*path, index)) for index, branch in enumerate(branches)])

    def _is_disjoint(self, branches: list[Any], path: tuple[Any, ...]) -> bool:
        """Whether no value satisfies two alternatives, so that "one of" is "some of"."""
        formulas = [self._formula(branch, (*path, index)) for index, branch in enumerate(branches)]
        pairs = list(combinations(formulas, 2))
        if len(pairs) > MAX_PAIRS:
            self._lose(pointer_to(path), "oneOf is written as anyOf, alternatives not looked at: there are too many")
            return True
        try:
            return all(self._questions.is_contained(and_(a, b), FALSE).contained is True for a, b in pairs)
        except UNDECIDED:
            return False

    # --- types ---
    def _typed(self, schema: dict[str, Any], path: tuple[Any, ...]) -> Simple | None:
        types = schema.get("type", TYPES)
        types = [types] if isinstance(types, str) else list(types)
        if "number" in types:
            types = [name for name in types if name != "integer"]
        words = {name for name in schema if name in self._dialect.speaking}
        if len(types) == len(TYPES) and words == {"type"}:
            return {}
        return union_of([self._of_type(name, schema, path) for name in types])

    def _of_type(self, name: str, schema: dict[str, Any], path: tuple[Any, ...]) -> Simple | None:
        spoken = {word: schema[word] for word in KEYWORDS_OF.get(name, ()) if word in schema}
        if name == "object":
            return {"type": name, **self._object(spoken, path)}
        if name == "array":
            return {"type": name, **self._array(spoken, path)}
        if name in ("number", "integer") and self._dialect.name == "draft4":
            for word, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
                if spoken.pop(word, False) and limit in spoken:
                    spoken[word] = spoken.pop(limit)
        return {"type": name, **spoken}

    def _object(self, spoken: dict[str, Any], path: tuple[Any, ...]) -> Simple:
        required = spoken.get("required", [])
        members = {
            name: self._simple(member, (*path, "properties", name))
            for name, member in spoken.get("properties", {}).items()
        }
        for name in required:
            if name not in members:
                others = True if spoken.get("patternProperties") else spoken.get("additionalProperties", True)
                members[name] = self._simple(others, (*path, "additionalProperties"))
        patterns = {
            pattern: self._simple(member, (*path, "patternProperties", pattern))
            for pattern, member in spoken.get("patternProperties", {}).items()
        }
        others = self._simple(spoken.get("additionalProperties", True), (*path, "additionalProperties"))
        counts: Simple = {name: spoken[name] for name in ("minProperties", "maxProperties") if name in spoken}
        return object_words(members, list(required), patterns, others, counts)

    def _array(self, spoken: dict[str, Any], path: tuple[Any, ...]) -> Simple:
        items, prefix, after = spoken.pop("items", True), spoken.pop("prefixItems", []), ("items",)
        if isinstance(items, list):
            prefix, items, after = items, spoken.get("additionalItems", True), ("additionalItems",)
            first: tuple[Any, ...] = ("items",)
        else:
            first = ("prefixItems",)
        spoken.pop("additionalItems", None)
        words: Simple = {name: spoken[name] for name in spoken if not name.endswith(("contains", "Contains"))}
        if prefix:
            words["prefixItems"] = [self._simple(part, (*path, *first, i)) for i, part in enumerate(prefix)]
        words["items"] = self._simple(items, (*path, *after))
        if "contains" in spoken:
            words["contains"] = self._simple(spoken["contains"], (*path, "contains"))
            words |= {name: spoken[name] for name in ("minContains", "maxContains") if name in spoken}
        return tidy_array(words)


_NAMING = frozenset({"$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef", "$recursiveRef"})


def _has_identifiers(schema: Any, dialect: Dialect) -> bool:
    """Whether parts of the document may be other documents, or have names of their own."""
    names = _NAMING | {dialect.identifier}
    parts = (part for part in schemas_in(schema) if part is not schema)
    return any(isinstance(part.get(name), str) for part in parts for name in names)


def _path_of(reference: str, schema: Any) -> tuple[Any, ...]:
    """The path that ``#/a/0`` leads along in a document."""
    path: list[Any] = []
    for token in [unescape(token) for token in unquote(reference[1:]).split("/")[1:]]:
        key = int(token) if isinstance(schema, list) else token
        schema = schema[key]
        path.append(key)
    return tuple(path)
