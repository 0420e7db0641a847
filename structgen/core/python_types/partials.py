"""Partial values of Python types: what unfinished JSON text says of a type's value, as the type's own objects.

Parts that are whole are read by pydantic, as parts of the finished value will be. Values that are still open are made
here, without validators: models, dataclasses and named tuples with None for what is not yet known, typed dictionaries
and other containers with what there is, strings as far as they go. Other scalars are there once they are whole.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

import pydantic
from pydantic_core import CoreConfig, PydanticUndefined, SchemaValidator, core_schema, from_json

from structgen.core.json_prefix import (
    JsonPart,
    OpenArray,
    OpenObject,
    OpenString,
    WholeValue,
    opened,
    plain_value,
    read_prefix,
)

_ABSENT: Any = object()  # of a value that is not yet known
_ANY, _INT = core_schema.any_schema(), core_schema.int_schema()
_INNER = {  # core types that are what another is, but for what only a whole value tells
    "nullable": "schema", "default": "schema", "custom-error": "schema", "definitions": "schema",
    "function-before": "schema", "function-after": "schema", "function-wrap": "schema",
    "lax-or-strict": "lax_schema", "json-or-python": "json_schema",
}  # fmt: skip
_NO_STRINGS = frozenset({"int", "float", "bool", "none", "is-instance", "is-subclass", "callable"})
_SEQUENCES: dict[str, Callable[[Iterable[Any]], Any]] = {
    "list": list, "generator": list, "deque": collections.deque, "set": set, "frozenset": frozenset,
}  # fmt: skip
_MAPPINGS: dict[str, Callable[[dict[Any, Any]], Any]] = {
    "dict": dict, "frozendict": dict, "ordered-dict": collections.OrderedDict, "counter": collections.Counter,
}  # fmt: skip


class _UnfitError(Exception):
    """What is written is not of this type: another choice of a union is meant."""


class PartialReader:
    """Reads unfinished JSON text as a type.

    Args:
        adapter: of the type.
    """

    def __init__(self, adapter: pydantic.TypeAdapter[Any]) -> None:
        self._adapter = adapter
        self._schema: Any = adapter.core_schema
        definitions = self._schema["definitions"] if self._schema["type"] == "definitions" else []
        self._definitions = {definition["ref"]: definition for definition in definitions}
        self._validators: dict[tuple[int, int, bool], tuple[Any, SchemaValidator]] = {}  # with what is named by id

    def __reduce__(self) -> tuple[Any, ...]:
        return PartialReader, (self._adapter,)

    def read(self, text: str) -> Any:
        """The value as far as it goes; None where there is none yet. Nothing is raised."""
        part = read_prefix(text)
        if part is None:
            return None
        try:
            value = self._read(self._schema, part, None)
        except (_UnfitError, RecursionError):
            return None
        return None if value is _ABSENT else value

    def _read(self, schema: Any, part: JsonPart | None, config: CoreConfig | None) -> Any:
        """The value of a part, or ``_ABSENT``. ``config``: of the class around.

        Raises:
            _UnfitError: the part is of another type.
        """
        if isinstance(part, WholeValue):
            try:
                return self._validator(schema, config).validate_json(part.text)
            except Exception:  # a user's validators may raise anything; the parts may yet be good
                part = opened(part)
        if part is None:
            raise _UnfitError
        kind = schema["type"]
        if kind == "definition-ref":
            return self._read(self._definitions[schema["schema_ref"]], part, config)
        if kind.startswith("function-") and isinstance(part, OpenString):
            return _ABSENT  # a function may make anything of a string
        if kind in _INNER:
            return self._read(schema[_INNER[kind]], part, config)
        if kind == "chain":
            return self._read(schema["steps"][0], part, config)
        if kind == "any":
            return plain_value(part)
        if kind in ("union", "tagged-union"):
            return self._choice(_choices(schema, part), part, config)
        if kind == "model":
            return self._model(schema, part, schema.get("config", config))
        if isinstance(part, OpenString):
            return _string(schema, part.text, config or {})
        if isinstance(part, OpenArray):
            return self._array(schema, part, config)
        assert isinstance(part, OpenObject)
        return self._object(schema, part, config)

    def _choice(self, choices: Iterable[Any], part: JsonPart, config: CoreConfig | None) -> Any:
        """The value of the first choice that has one."""
        fits = False
        for choice in choices:
            try:
                value = self._read(choice, part, config)
            except _UnfitError:
                continue
            if value is not _ABSENT:
                return value
            fits = True
        if not fits:
            raise _UnfitError
        return _ABSENT

    # --- arrays ---

    def _array(self, schema: Any, part: OpenArray, config: CoreConfig | None) -> Any:
        kind = schema["type"]
        if kind == "named-tuple":
            names = [field["name"] for field in schema["fields"]]
            return self._row(schema, dict(zip(names, part.items, strict=False)), config)
        if kind == "tuple":
            kinds = _tuple_items(schema)
            return tuple(_known(self._read(next(kinds), item, config) for item in part.items))
        if kind not in _SEQUENCES:
            return self._opaque(schema)
        inner = schema.get("items_schema", _ANY)
        items = part.items
        if kind in ("set", "frozenset"):  # of whole items only: others cannot be told apart yet
            items = [item for item in items if isinstance(item, WholeValue)]
        values = list(_known(self._read(inner, item, config) for item in items))
        try:
            return _SEQUENCES[kind](values)
        except TypeError:  # no items of a set
            raise _UnfitError from None

    # --- objects ---

    def _object(self, schema: Any, part: OpenObject, config: CoreConfig | None) -> Any:
        kind = schema["type"]
        if kind in _MAPPINGS:
            return _MAPPINGS[kind](self._mapping(schema, part, config))
        inner_config = schema.get("config", config)
        if kind == "typed-dict":
            members, others = self._members(_aliases(schema["fields"].items()), part, inner_config)
            return {**members, **self._extra(schema, others, inner_config)}
        if kind == "named-tuple":
            return self._row(schema, dict(part.members), config)
        if kind == "dataclass":
            return self._dataclass(schema, part, inner_config)
        return self._opaque(schema)

    def _mapping(self, schema: Any, part: OpenObject, config: CoreConfig | None) -> dict[Any, Any]:
        keys = schema.get("keys_schema", _ANY)
        values = schema.get("values_schema", _ANY)
        if schema["type"] == "counter":
            values = schema.get("values_schema", _INT)
        members = {}
        for name, member in part.members:
            value = self._read(values, member, config)
            if value is not _ABSENT:
                members[self._key(keys, name, config)] = value
        return members

    def _key(self, schema: Any, name: str, config: CoreConfig | None) -> Any:
        """A key as pydantic reads it, which is not as it reads a string elsewhere."""
        try:
            (key,) = self._validator(schema, config, is_key=True).validate_python({name: None})
        except Exception as error:
            raise _UnfitError from error
        return key

    def _members(
        self, fields: dict[str, tuple[str, Any]], part: OpenObject, config: CoreConfig | None
    ) -> tuple[dict[str, Any], dict[str, JsonPart]]:
        """The values of fields by their names, and the members that are no fields."""
        members, others = {}, {}
        for key, member in part.members:
            if key not in fields:
                others[key] = member
                continue
            name, field = fields[key]
            value = self._read(field["schema"], member, config)
            if value is not _ABSENT:
                members[name] = value
        return members, others

    def _extra(self, schema: Any, others: dict[str, JsonPart], config: CoreConfig | None) -> dict[str, Any]:
        """Members that are no fields, where the type keeps them."""
        allowed = schema.get("extra_behavior") or (config or {}).get("extra_fields_behavior")
        if others and allowed != "allow":
            raise _UnfitError
        inner = schema.get("extras_schema", _ANY)
        read = {key: self._read(inner, member, config) for key, member in others.items()}
        return {key: value for key, value in read.items() if value is not _ABSENT}

    def _model(self, schema: Any, part: JsonPart, config: CoreConfig | None) -> Any:
        """A model with None in place of fields that are not yet known; ``model_fields_set`` has those that are."""
        cls = schema["cls"]
        if schema.get("root_model"):
            value = self._read(schema["schema"], part, config)
            return value if value is _ABSENT else _model(cls, {"root": value}, {"root"}, None)
        inner = self._inner(schema["schema"], "model-fields")
        if inner is None or not isinstance(part, OpenObject):
            raise _UnfitError
        members, others = self._members(_aliases(inner["fields"].items()), part, config)
        extra = self._extra(inner, others, config)
        fields = {name: members.get(name) for name in inner["fields"]}
        keeps = (config or {}).get("extra_fields_behavior") == "allow"
        return _model(cls, fields, {*members, *extra}, extra if keeps else None)

    def _dataclass(self, schema: Any, part: OpenObject, config: CoreConfig | None) -> Any:
        """A dataclass with None in place of fields that are not yet known; its ``__init__`` does not run."""
        inner = self._inner(schema["schema"], "dataclass-args")
        if inner is None:
            raise _UnfitError
        fields = [(field["name"], field) for field in inner["fields"] if field.get("init", True)]
        members, others = self._members(_aliases(fields), part, config)
        extra = self._extra(inner, others, config)
        made = object.__new__(schema["cls"])
        for field in dataclasses.fields(schema["cls"]):
            default = None if field.init or field.default is dataclasses.MISSING else field.default
            object.__setattr__(made, field.name, members.get(field.name, default))
        for name, value in extra.items():
            object.__setattr__(made, name, value)
        return made

    def _row(self, schema: Any, parts: dict[str, JsonPart], config: CoreConfig | None) -> Any:
        """A named tuple with None in place of fields that are not yet known."""
        members, others = self._members(
            _aliases((field["name"], field) for field in schema["fields"]), OpenObject(list(parts.items())), config
        )
        if others:
            raise _UnfitError
        return tuple.__new__(schema["cls"], [members.get(field["name"]) for field in schema["fields"]])

    # --- what all have in common ---

    def _inner(self, schema: Any, kind: str) -> Any:
        """The schema of a kind below functions and references; None where there is none."""
        while schema["type"] != kind:
            if schema["type"] == "definition-ref":
                schema = self._definitions[schema["schema_ref"]]
            elif schema["type"] in _INNER:
                schema = schema[_INNER[schema["type"]]]
            else:
                return None
        return schema

    def _opaque(self, schema: Any) -> Any:
        """An array or object that a type reads by code of its own, or not at all."""
        if schema["type"] in ("function-plain", "call"):
            return _ABSENT
        raise _UnfitError

    def _validator(self, schema: Any, config: CoreConfig | None, *, is_key: bool = False) -> SchemaValidator:
        """Pydantic's reading of a part; ``is_key``: of a dict with this key."""
        key = (id(schema), id(config), is_key)
        validator = self._validators.get(key)
        if validator is None:
            core: Any = self._alone(schema)
            if is_key:
                core = core_schema.dict_schema(core, _ANY)
            if self._definitions and core["type"] != "definitions":
                core = core_schema.definitions_schema(core, list(self._definitions.values()))
            validator = self._validators[key] = (schema, config), SchemaValidator(core, config)
        return validator[1]

    def _alone(self, schema: Any) -> Any:
        """A schema that is defined once, by reference."""
        ref = schema.get("ref")
        return core_schema.definition_reference_schema(ref) if ref in self._definitions else schema


def _choices(schema: Any, part: JsonPart) -> Iterator[Any]:
    """The choices of a union; of one by a member that is written, that one."""
    if schema["type"] == "union":
        yield from core_schema.iter_union_choices(schema)
        return
    choices = {tag.value if isinstance(tag, Enum) else tag: choice for tag, choice in schema["choices"].items()}
    given = dict(part.members) if isinstance(part, OpenObject) else {}
    discriminator = schema["discriminator"]
    names = [discriminator] if isinstance(discriminator, str) else []
    if isinstance(discriminator, list):
        paths = discriminator if discriminator and isinstance(discriminator[0], list) else [discriminator]
        names = [path[0] for path in paths if len(path) == 1]
    for name in names:
        tag = given.get(name)
        chosen = _named(tag.text, choices) if isinstance(tag, WholeValue) else None
        if chosen is not None:
            yield chosen
            return
    yield from choices.values()


def _named(text: str, choices: dict[Any, Any]) -> Any:
    """The choice that a text of JSON names; None where it names none."""
    try:
        return choices.get(from_json(text))
    except (ValueError, TypeError):  # a number without end; an array
        return None


def _string(schema: Any, text: str, config: CoreConfig) -> Any:
    """A string as far as it goes, where the type is one; of types that are written as strings nothing yet."""
    kind = schema["type"]
    if kind == "str":
        if schema.get("to_lower") or config.get("str_to_lower"):
            return text.lower()
        return text.upper() if schema.get("to_upper") or config.get("str_to_upper") else text
    if kind in ("literal", "enum"):
        options = schema["expected"] if kind == "literal" else schema["members"]
        values = (option.value if isinstance(option, Enum) else option for option in options)
        if not any(isinstance(value, str) and value.startswith(text) for value in values):
            raise _UnfitError
    if kind in _NO_STRINGS or kind in _SEQUENCES or kind in _MAPPINGS:
        raise _UnfitError
    if kind in ("typed-dict", "dataclass", "tuple", "named-tuple"):
        raise _UnfitError
    return _ABSENT


def _tuple_items(schema: Any) -> Iterator[Any]:
    """The types of a tuple's items, in order."""
    variadic = schema.get("variadic_item_index")
    for number, item in enumerate(schema["items_schema"]):
        while number == variadic:
            yield item
        yield item
    raise _UnfitError


def _known(values: Iterable[Any]) -> Iterator[Any]:
    return (value for value in values if value is not _ABSENT)


def _aliases(fields: Iterable[tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    """Fields by the keys that they are written with: aliases, and their own names where those are no alias."""
    fields = list(fields)
    by_key: dict[str, tuple[str, Any]] = {}
    for name, field in fields:
        alias = field.get("validation_alias", field.get("alias"))
        paths = alias if isinstance(alias, list) else [alias] if alias else []
        for path in paths if paths and isinstance(paths[0], list) else [paths]:
            if len(path) == 1 and isinstance(path[0], str):
                by_key.setdefault(path[0], (name, field))
    for name, field in fields:
        by_key.setdefault(name, (name, field))
    return by_key


def _model(cls: Any, fields: dict[str, Any], fields_set: set[str], extra: dict[str, Any] | None) -> Any:
    """A model of these fields, as ``model_construct`` makes one, without defaults and without code of the class."""
    made = cls.__new__(cls)
    private = {}
    for name, attribute in (cls.__private_attributes__ or {}).items():
        if attribute.default is not PydanticUndefined:
            private[name] = attribute.default
    object.__setattr__(made, "__dict__", fields)
    object.__setattr__(made, "__pydantic_fields_set__", fields_set)
    object.__setattr__(made, "__pydantic_extra__", extra)
    object.__setattr__(made, "__pydantic_private__", private or None)
    return made
