"""Arrays, objects and choices as schemas: what JSON tells apart is not always what Python does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from enum import Enum, Flag
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import (
    PydanticOmit,
    PydanticSerializationError,
    SchemaValidator,
    ValidationError,
    core_schema,
    to_jsonable_python,
)

from structgen.core.python_types.functions import NOTHING, Functions
from structgen.core.python_types.notes import checked, narrowed
from structgen.core.python_types.ranges import integers
from structgen.core.python_types.values import JsonDict, wrapped

MAX_FLAGS = 8
"""Flags of which all combinations are listed."""
_DISTINCT = frozenset({"int", "bool", "none", "date"})  # whose spellings are one for each value
_UNHASHABLE = frozenset({"list", "set", "dict", "deque", "typed-dict", "counter", "ordered-dict", "generator"})
_SCALARS: JsonDict = {"type": ["string", "number", "boolean", "null"]}
_FLOAT_KEY = r"^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?$"


def _hashes_fields(cls: type) -> bool:
    """Whether the hash of a class was made for it, by dataclasses or pydantic, from its fields."""
    hash_of: Any = cls.__hash__
    code = getattr(hash_of, "__code__", None)
    return str(getattr(hash_of, "__module__", "")).startswith("pydantic.") or (
        dataclasses.is_dataclass(cls) and code is not None and code.co_filename == "<string>"
    )


class Containers(Functions):
    """Schemas of containers, enumerations and unions."""

    # --- values that are listed ---

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonDict:
        """The values that pydantic finds in JSON: of bytes and tuples none."""
        return self._listed(schema, [_value(expected) for expected in schema["expected"]], {})

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonDict:
        """The values of the members."""
        derived = super().enum_schema(schema)
        kept = {key: value for key, value in derived.items() if key in ("title", "description")}
        return self._listed(schema, _member_values(schema), kept)

    def _listed(self, schema: Any, values: list[Any], kept: JsonDict) -> JsonDict:
        options = list(_read(schema, values))
        if not options:
            self.refuse(schema, f"JSON has none of the values {values!r:.100}")
        derived = {**kept, "enum": list(map(wrapped, options))}
        lost = len(values) - len(options)
        return narrowed(derived, schema["type"], f"{lost} values that JSON has not") if lost else derived

    # --- arrays ---

    def set_schema(self, schema: core_schema.SetSchema) -> JsonDict:
        """A set: an array of distinct items."""
        return self._set(schema)

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonDict:
        """A set that does not change."""
        return self._set(schema)  # type: ignore[arg-type]

    def _set(self, schema: core_schema.SetSchema) -> JsonDict:
        inner: Any = schema.get("items_schema", {"type": "any"})
        items = self.hashable(inner)
        derived: JsonDict = {"type": "array", "uniqueItems": True, "items": items}
        self.update_with_validations(derived, schema, self.ValidationsMapping.array)
        if (schema.get("min_length") or 0) > 1 and not self._is_distinct(inner):
            return checked(derived, schema["type"], "min_length: items may be equal once they are read")
        return derived

    def hashable(self, schema: Any) -> JsonDict:
        """What can be an item of a set."""
        core = self.core(schema)
        if core["type"] == "any":
            return narrowed(dict(_SCALARS), "any", "items of sets are neither arrays nor objects")
        if core["type"] in ("union", "nullable"):
            choices = core_schema.iter_union_choices(core) if core["type"] == "union" else [core["schema"]]
            options = [self.hashable(choice) for choice in choices]
            options += [{"type": "null"}] if core["type"] == "nullable" else []
            return {"anyOf": options}
        if self._is_hashable(core):
            return self.generate_inner(schema)
        return narrowed(NOTHING, core["type"], "it cannot be an item of a set, or part of one")

    def custom_error_schema(self, schema: core_schema.CustomErrorSchema) -> JsonDict:
        """With another message; ``Hashable`` is such a one."""
        if schema["custom_error_type"] == "is_hashable":
            return self.hashable(core_schema.any_schema())
        return super().custom_error_schema(schema)

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonDict:
        """A class, which JSON cannot write."""
        self.refuse(schema, "JSON has no classes")

    def _is_hashable(self, core: Any, within: tuple[type, ...] = ()) -> bool:
        """Whether all values of a core schema have a hash; ``within``: classes of whose fields it is one."""
        core = self.core(core)
        kind = core["type"]
        if kind in ("model", "dataclass"):
            cls = core["cls"]
            if cls.__hash__ is None or cls in within or not _hashes_fields(cls):
                return cls.__hash__ is not None
            return all(self._is_hashable(part, (*within, cls)) for part in self._hashed_fields(core))
        if kind == "tuple":
            return all(self._is_hashable(one, within) for one in core["items_schema"])
        if kind == "named-tuple":
            return all(self._is_hashable(field["schema"], within) for field in core["fields"])
        if kind in ("function-after", "function-before", "function-wrap", "nullable", "json"):
            return "schema" not in core or self._is_hashable(core["schema"], within)
        if kind in ("union", "tagged-union"):
            choices = core_schema.iter_union_choices(core) if kind == "union" else core["choices"].values()
            return all(self._is_hashable(one, within) for one in choices)
        return kind not in _UNHASHABLE and kind != "any"

    def _hashed_fields(self, core: Any) -> list[Any]:
        """The schemas of what a generated hash is made of."""
        inner = self.core(core["schema"])
        while inner["type"].startswith("function-") and "schema" in inner:
            inner = self.core(inner["schema"])
        if inner["type"] == "model-fields":
            return [one["schema"] for one in inner["fields"].values()]
        if inner["type"] == "dataclass-args":
            left_out = {
                one.name
                for one in dataclasses.fields(core["cls"])
                if not (one.compare if one.hash is None else one.hash)
            }
            return [one["schema"] for one in inner["fields"] if one["name"] not in left_out]
        return [inner]

    def _is_distinct(self, schema: Any) -> bool:
        """Whether other texts are other values."""
        core = self.core(schema)
        if core["type"] == "str":
            keys = ("strip_whitespace", "to_lower", "to_upper")
            return not any(core.get(key) or self.setting(f"str_{key}") for key in keys)
        return core["type"] in _DISTINCT

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonDict:
        """A tuple."""
        derived = super().tuple_schema(schema)
        variadic = schema.get("variadic_item_index")
        if variadic is None or variadic + 1 == len(schema["items_schema"]):
            return derived
        return checked(derived, "tuple", "the items after its variadic part")

    def named_tuple_schema(self, schema: Any) -> JsonDict:
        """A named tuple. (Before pydantic 2.14 it is a call.)"""
        derived: JsonDict = super().named_tuple_schema(schema)
        return narrowed(derived, "named-tuple", "written as an array, not as an object")

    # --- objects ---

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonDict:
        """A dict, whose keys are written as strings."""
        return self._mapping(schema)

    def frozendict_schema(self, schema: Any) -> JsonDict:
        """A dict that does not change."""
        return self._mapping(schema)

    def ordered_dict_schema(self, schema: Any) -> JsonDict:
        """A dict that is compared in order."""
        return self._mapping(schema)

    def counter_schema(self, schema: Any) -> JsonDict:
        """A dict of counts."""
        return self._mapping({"values_schema": core_schema.int_schema(), **schema})

    def _mapping(self, schema: Any) -> JsonDict:
        keys: Any = schema.get("keys_schema", {"type": "any"})
        names = self._keys(keys)
        values = self.generate_inner(schema["values_schema"]) if "values_schema" in schema else True
        derived: JsonDict = {"type": "object", "additionalProperties": values}
        if names:
            derived["propertyNames"] = names
        self.update_with_validations(derived, schema, self.ValidationsMapping.object)
        if (schema.get("min_length") or 0) > 1 and not self._is_distinct(keys) and self.core(keys)["type"] != "any":
            return checked(derived, schema["type"], "min_length: keys may be equal once they are read")
        return derived

    def _keys(self, schema: Any) -> JsonDict:
        """The strings that are read as keys of a type; no condition where all are."""
        core = self.core(schema)
        kind = core["type"]
        if kind in ("any", "str"):
            derived = {key: value for key, value in self.generate_inner(schema).items() if key not in ("type", "title")}
            return {"type": "string", **derived} if derived else {}
        if kind == "int":
            return self._integer_keys(core)
        if kind == "float":
            derived = {"type": "string", "pattern": _FLOAT_KEY}
            limited = any(core.get(limit) is not None for limit in ("ge", "gt", "le", "lt", "multiple_of"))
            return checked(derived, "float", "limits of keys") if limited else derived
        if kind == "bool":
            return {"enum": ["true", "false"]}
        if kind in ("enum", "literal"):
            values = core["expected"] if kind == "literal" else _member_values(core)
            return {"enum": list(_read_as_keys(core, [_value(value) for value in values]))}
        if kind in ("union", "nullable"):
            choices = core_schema.iter_union_choices(core) if kind == "union" else [core["schema"]]
            options = [self._keys(choice) for choice in choices]
            return {"anyOf": options} if all(options) else {}
        if not self._is_hashable(core):
            return {"type": "string", **NOTHING}
        return {"type": "string", "allOf": [self.generate_inner(schema)]}

    def _integer_keys(self, core: Any) -> JsonDict:
        lows = [core["ge"]] if core.get("ge") is not None else []
        lows += [core["gt"] + 1] if core.get("gt") is not None else []
        highs = [core["le"]] if core.get("le") is not None else []
        highs += [core["lt"] - 1] if core.get("lt") is not None else []
        low, high = max(lows, default=-(10**18) + 1), min(highs, default=10**18 - 1)
        derived: JsonDict = {"type": "string", "pattern": f"^{integers(low, high)}$"}
        if core.get("multiple_of") is not None:
            return checked(derived, "int", f"keys: that they are multiples of {core['multiple_of']}")
        return derived

    # --- choices ---

    def union_schema(self, schema: core_schema.UnionSchema) -> JsonDict:
        """Any of the types, of which those that JSON cannot write are left out."""
        generated, lost = [], []
        for choice in core_schema.iter_union_choices(schema):
            try:
                generated.append(self.generate_inner(choice))
            except PydanticOmit:
                continue
            except PydanticInvalidForJsonSchema as error:
                lost.append(error.message)
        if not generated:
            self.refuse(schema, "; ".join(lost))
        derived = generated[0] if len(generated) == 1 else self.get_union_of_schemas(generated)
        return narrowed(derived, "union", f"without choices: {'; '.join(lost)}") if lost else derived

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonDict:
        """A choice by a member, which must be there even where it has a default."""
        choices: list[tuple[JsonDict, list[Any]]] = []
        for tag, choice in schema["choices"].items():
            inner = self.generate_inner(choice)
            tags_of_equal = next((tags for other, tags in choices if other == inner), None)
            if tags_of_equal is None:
                choices.append((inner, [_value(tag)]))
            else:
                tags_of_equal.append(_value(tag))
        name = _tag_name(schema["discriminator"], [self._declared(inner) for inner, _ in choices])
        if name is None:
            derived = {"anyOf": [inner for inner, _ in choices]}
            return checked(derived, "tagged-union", "that the discriminator picks the choice that was written")
        conditions = [
            (inner, {"properties": {name: {"enum": list(map(wrapped, tags))}}, "required": [name]})
            for inner, tags in choices
        ]
        return {"anyOf": [{"allOf": [inner], **condition} for inner, condition in conditions]}

    def _declared(self, schema: JsonDict) -> frozenset[str]:
        try:
            properties = self.resolve_ref_schema(schema).get("properties", {})
        except RuntimeError:  # not known yet: the type holds itself
            return frozenset()
        return frozenset(properties)


def _tag_name(discriminator: Any, declared: list[frozenset[str]]) -> str | None:
    """The member that a discriminator looks at: of several names one that all choices declare."""
    if isinstance(discriminator, str):
        return discriminator
    if not isinstance(discriminator, list):
        return None
    paths = discriminator if discriminator and isinstance(discriminator[0], list) else [discriminator]
    names = [path[0] for path in paths if len(path) == 1 and isinstance(path[0], str)]
    return next(
        (name for name in names if all(name in tags_of_equal for tags_of_equal in declared if tags_of_equal)), None
    )


def _member_values(schema: Any) -> list[Any]:
    """The values of an enumeration; of flags those of all that they combine to, if they are few."""
    values = [member.value for member in schema["members"]]
    if issubclass(schema["cls"], Flag) and len(values) <= MAX_FLAGS:
        combined = {0}
        for value in values:
            combined |= {value | other for other in combined}
        return sorted(combined)
    return values


def _value(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _read(schema: Any, values: list[Any]) -> Iterator[Any]:
    """The values that pydantic reads from JSON, each once."""
    validator = SchemaValidator({key: value for key, value in schema.items() if key not in ("ref", "metadata")})
    seen = set()
    for value in values:
        try:
            plain = to_jsonable_python(value)
            text = json.dumps(plain, allow_nan=False)
            validator.validate_json(text)
        except (ValidationError, PydanticSerializationError, ValueError, TypeError):
            continue
        if text not in seen:
            seen.add(text)
            yield plain


def _read_as_keys(schema: Any, values: list[Any]) -> Iterator[str]:
    """The strings that are read as keys of these values."""
    inner = {key: value for key, value in schema.items() if key not in ("ref", "metadata")}
    validator = SchemaValidator(core_schema.dict_schema(inner, core_schema.any_schema()))
    for value in values:
        text = str(value).lower() if value is None or isinstance(value, bool) else str(value)
        try:
            validator.validate_json(json.dumps({text: None}))
        except ValidationError:
            continue
        yield text
