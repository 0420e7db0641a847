"""Validators that are functions: which of pydantic's own a schema can say, and notes on all others."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import pydantic
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import core_schema

from structgen.core.python_types.data_marks import DataMark
from structgen.core.python_types.notes import checked
from structgen.core.python_types.values import JsonDict, WrappedValues

NOTHING: JsonDict = {"not": {}}
"""No value at all."""

_EXACT = frozenset(
    {
        *("_BaseUrl.__get_pydantic_core_schema__.<locals>.wrap_val", "IPv4Address", "IPv6Address", "IPv4Network"),
        *("_BaseMultiHostUrl.__get_pydantic_core_schema__.<locals>.wrap_val", "IPv6Network", "IPv4Interface"),
        *("IPv6Interface", "SecretStr", "SecretBytes", "Secret.__get_pydantic_core_schema__.<locals>.<lambda>"),
        *("GenerateSchema._path_schema.<locals>.path_validator", "EncodedBytes.decode", "EncodedStr.decode_str"),
        *("EmailStr._validate", "NameEmail._validate", "ByteSize._validate", "defaultdict_validator"),
        *("sequence_validator",),
    }
)
"""Functions of pydantic and the standard library whose values the schemas here describe."""

LENGTHS = {"min_length_validator": ("minLength", "minItems"), "max_length_validator": ("maxLength", "maxItems")}
_ON_DISK = {
    "PathType.validate_file": "that there is such a file",
    "PathType.validate_directory": "that there is such a directory",
    "PathType.validate_new": "that there is no such file, and its directory is there",
    "PathType.validate_socket": "that there is such a socket",
    "PaymentCardNumber.validate": "that it is the number of a card, with its check digit",
}
_REFUSED = {
    "import_string": "ImportString would import whatever module a model names",
    "pattern_bytes_validator": "JSON has no byte patterns",
}
_ANNOTATIONS = frozenset({"title", "description", "examples", "deprecated", "default", "readOnly", "writeOnly"})


class Functions(WrappedValues):
    """Schemas of functions, and what subclasses need: the settings in force, and core schemas by reference."""

    def __init__(self, *args: Any, config: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}
        self._settings: list[Mapping[str, Any]] = [config or {}]
        self._by_ref: dict[str, Any] = {}

    def setting(self, name: str, default: Any = None) -> Any:
        """What the innermost ``model_config`` says."""
        return self._settings[-1].get(name, default)

    @contextmanager
    def settings_of(self, kind: Any) -> Iterator[None]:
        """A block in which the configuration of a class is in force; that around it if it has none."""
        settings = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None)
        self._settings.append(settings if settings is not None else self._settings[-1])
        try:
            yield
        finally:
            self._settings.pop()

    def core(self, schema: Any) -> Any:
        """A core schema without references, defaults and what else says nothing of JSON around it."""
        while True:
            kind = schema["type"]
            if kind == "definition-ref":
                schema = self._by_ref[schema["schema_ref"]]
            elif kind == "json-or-python":
                schema = schema["json_schema"]
            elif kind == "lax-or-strict":
                schema = schema["lax_schema"]
            elif kind in ("default", "custom-error"):
                schema = schema["schema"]
            elif kind == "definitions":
                self.remember(schema)
                schema = schema["schema"]
            else:
                return schema

    def remember(self, schema: Any) -> None:
        """Note the core schemas that references lead to."""
        for definition in schema.get("definitions", ()):
            self._by_ref[definition["ref"]] = definition

    def definitions_schema(self, schema: core_schema.DefinitionsSchema) -> JsonDict:
        """A schema with definitions."""
        self.remember(schema)
        return super().definitions_schema(schema)

    def generate_inner(self, schema: Any) -> JsonDict:
        """The schema of a core schema; where users gave one by hand, a note says so."""
        if isinstance(schema.get("ref"), str):
            self._by_ref[schema["ref"]] = schema
        if schema["type"] == "function-plain":
            _refuse(schema)
        derived = super().generate_inner(schema)
        metadata = schema.get("metadata") or {}
        extra = metadata.get("pydantic_js_extra")
        functions = [
            *metadata.get("pydantic_js_functions", ()),
            *metadata.get("pydantic_js_annotation_functions", ()),
        ]
        by_hand = any(map(_is_users, functions)) or callable(extra) or bool(set(extra or ()) - _ANNOTATIONS)
        if by_hand:
            return checked(derived, schema["type"], "the schema was given by hand and need not be that of the type")
        return derived

    def function_after_schema(self, schema: core_schema.AfterValidatorFunctionSchema) -> JsonDict:
        """A function that sees the value: it may refuse any."""
        derived = super().function_after_schema(schema)
        name = function_name(schema)
        reached = {*derived, *((schema.get("metadata") or {}).get("pydantic_js_updates") or ())}
        if name in LENGTHS and reached & {*LENGTHS[name]}:
            if derived.get("format") in ("path", "file-path", "directory-path"):
                self.refuse(schema, "pydantic measures the length of paths, which have none")
            return derived
        return self._judged(derived, schema, "after")

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonDict:
        """A function that may change what is checked."""
        return self._judged(super().function_before_schema(schema), schema, "before")

    def function_wrap_schema(self, schema: core_schema.WrapValidatorFunctionSchema) -> JsonDict:
        """A function around the check."""
        return self._judged(super().function_wrap_schema(schema), schema, "wrap")

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonDict:
        """A function in place of the check."""
        return self._judged(super().function_plain_schema(schema), schema, "plain")

    def chain_schema(self, schema: core_schema.ChainSchema) -> JsonDict:
        """Steps, of which a schema says the first."""
        derived = super().chain_schema(schema)
        if len(schema["steps"]) == 1:
            return derived
        return checked(derived, "chain", f"the steps after the first ({len(schema['steps']) - 1})")

    def _judged(self, derived: JsonDict, schema: Any, mode: str) -> JsonDict:
        name = function_name(schema)
        if name in _EXACT or isinstance(getattr(_function(schema), "__self__", None), DataMark):
            return derived
        reason = _ON_DISK.get(name or "")
        if reason is None:
            shown = getattr(_function(schema), "__qualname__", repr(_function(schema)))
            reason = f"what the {mode} validator {shown} makes of it"
        return checked(derived, schema["type"], reason)

    def refuse(self, schema: Any, reason: str) -> NoReturn:
        """Refuse a type that JSON cannot write, by name."""
        raise PydanticInvalidForJsonSchema(f"{schema['type']}: {reason}")


def _refuse(schema: Any) -> None:
    reason = _REFUSED.get(function_name(schema) or "")
    if reason is not None:
        raise PydanticInvalidForJsonSchema(reason)


def _function(schema: Any) -> Any:
    function = schema["function"]["function"]
    return function.func if isinstance(function, functools.partial) else function


def function_name(schema: Any) -> str | None:
    """The qualified name of a function of pydantic or the standard library; None: it is the user's."""
    function = _function(schema)
    module = str(getattr(function, "__module__", ""))
    if not module.startswith("pydantic.") and module != "ipaddress":
        return None
    return str(getattr(function, "__qualname__", ""))


def _is_users(function: Any) -> bool:
    """Whether what changes a schema is not pydantic's own, or says what the user wrote."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, pydantic.WithJsonSchema):
        return True
    if isinstance(owner, DataMark):
        return False
    return not str(getattr(function, "__module__", "")).startswith("pydantic.")
