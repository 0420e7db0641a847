"""Classes with fields as schemas: models, dataclasses, typed dictionaries."""

from __future__ import annotations

from typing import Any

from pydantic_core import SchemaValidator, ValidationError, core_schema

from structgen.core.python_types.functions import Functions
from structgen.core.python_types.notes import checked, narrowed
from structgen.core.python_types.values import JsonDict

_ANNOTATIONS = frozenset({"title", "description", "examples", "deprecated", "default", "$comment"})


class Objects(Functions):
    """Schemas of objects: closed, unless they keep undeclared members.

    Pydantic drops undeclared members by default, so a model would write them for nothing. A type that keeps them
    (``extra="allow"``) says so in its schema and stays open.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonDict:
        """A pydantic model."""
        with self.settings_of(schema["cls"]):
            derived = _closed(super().model_schema(schema))
        return _with_code(_by_hand(derived, schema), schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonDict:
        """A dataclass."""
        with self.settings_of(schema["cls"]):
            derived = _closed(super().dataclass_schema(schema))
        return _with_code(_by_hand(derived, schema), schema)

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonDict:
        """A TypedDict."""
        with self.settings_of(schema.get("cls")):
            derived = _closed(super().typed_dict_schema(schema))
        return _by_hand(derived, schema)

    def field_is_present(self, field: Any) -> bool:
        """Fields that the constructor does not take are not written."""
        return super().field_is_present(field) and field.get("init", True)

    def field_is_required(self, field: Any, total: bool) -> bool:
        """A field is written that has no default, or one that is checked and refused."""
        return bool(super().field_is_required(field, total)) or self._is_default_taken(field["schema"]) is False

    def _is_default_taken(self, schema: Any) -> bool | None:
        """Whether what is not written gets past the checks; None: not known before it is made."""
        if schema["type"] != "default" or not schema.get("validate_default", self.setting("validate_default")):
            return True
        if "default" not in schema:
            return None
        config: Any = {key: self.setting(key) for key in core_schema.CoreConfig.__annotations__ if self.setting(key)}
        inner, references = schema["schema"], list(self._by_ref.values())
        try:
            whole = core_schema.definitions_schema(inner, references) if references else inner
            SchemaValidator(whole, config).validate_python(schema["default"])
        except ValidationError:
            return False
        except Exception:  # a user's validator may raise anything; definitions may not be known yet
            return None
        return True

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonDict:
        """A field of a model."""
        return self._named(super().model_field_schema(schema), schema)

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonDict:
        """A field of a dataclass."""
        return self._named(super().dataclass_field_schema(schema), schema)

    def typed_dict_field_schema(self, schema: core_schema.TypedDictField) -> JsonDict:
        """A field of a TypedDict."""
        return self._named(super().typed_dict_field_schema(schema), schema)

    def _named(self, derived: JsonDict, field: Any) -> JsonDict:
        """A field with a note where it is read by several names; refused if only from inside of other members."""
        alias = field.get("validation_alias")
        by_name = alias is not None and (self.setting("validate_by_name") or self.setting("populate_by_name"))
        by_name = by_name and self.setting("validate_by_alias", True)
        several = isinstance(alias, list) and len(alias) > 1 and isinstance(alias[0], list)
        if isinstance(alias, list):
            paths = alias if alias and isinstance(alias[0], list) else [alias]
            if not any(len(path) == 1 and isinstance(path[0], str) for path in paths):
                self.refuse(field, f"a field that is read from inside of other members ({paths!r:.100})")
        if self._is_default_taken(field["schema"]) is None:
            derived = checked(derived, field["type"], "its default, where it is not written")
        return narrowed(derived, field["type"], "written by its first alias only") if by_name or several else derived


def _closed(schema: JsonDict) -> JsonDict:
    return {"additionalProperties": False, **schema} if "properties" in schema else schema


def _by_hand(derived: JsonDict, schema: Any) -> JsonDict:
    """With a note where the class changes its schema (``json_schema_extra``)."""
    kind = schema.get("cls")
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}
    extra = config.get("json_schema_extra")
    if extra is None or (isinstance(extra, dict) and not set(extra) - _ANNOTATIONS):
        return derived
    return checked(derived, schema["type"], "json_schema_extra changes the schema, which need not be that of the type")


def _with_code(derived: JsonDict, schema: Any) -> JsonDict:
    """With notes on the functions of a class that run when it is read."""
    kind = schema["cls"]
    for key, what in (("custom_init", "__init__"), ("post_init", str(schema.get("post_init")))):
        if what == "True":
            what = "__post_init__"
        if schema.get(key) and not _is_pydantics(getattr(kind, what, None)):
            derived = checked(derived, schema["type"], f"what {kind.__qualname__}.{what} makes of it")
    return derived


def _is_pydantics(function: Any) -> bool:
    return str(getattr(function, "__module__", "pydantic")).partition(".")[0] == "pydantic"
