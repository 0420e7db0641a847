"""How a schema is described to a model: one table of forms, from the schema to the text.

What each form is worth was measured: docs/generation.md, "What the model is told".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from structgen.core.json_schema.shapes import (
    DEPTHS,
    Array,
    Object,
    ObjectMember,
    Options,
    Scalar,
    Shape,
    Union,
    cut,
    shape_of,
    type_name,
)
from structgen.errors import OptionsError

if TYPE_CHECKING:
    from referencing import Registry

Schema: TypeAlias = "Mapping[str, Any] | bool"
SchemaForm = Literal["schema", "skeleton", "typescript", "example"]
"""A form in which a schema is described to a model."""
FormOption = Literal["auto", "schema", "skeleton", "typescript", "example"]
"""The same as an option; "auto": by the model."""
Render: TypeAlias = Callable[[Shape], str]
MAX_CHARACTERS = 4_000  # of a form but the schema itself; what is larger is shown less deeply
MAX_OPTIONS = 200  # characters of options; where they take more, their types are named
MAX_NOTE = 120  # characters of a description


def checked_form(form: Any, option: str = "schema_form") -> SchemaForm | None:
    """The form that an option names; "auto" is None: by the model.

    Raises:
        OptionsError: there is no such form.
    """
    if form == "auto":
        return None
    if not isinstance(form, str) or form not in FORMS:
        names = ", ".join(f'"{name}"' for name in FORMS)
        raise OptionsError(f'{option} must be "auto" or one of {names}, not {form!r:.100}', option=option, value=form)
    return form


def _whole(schema: Schema, registry: Registry[Any] | None) -> str:
    """The schema as it is: compact JSON."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"), default=_number)
    return f"Answer with JSON that matches this JSON Schema:\n{text}"


def _shown(lead: str, render: Render, schema: Schema, registry: Registry[Any] | None) -> str:
    """A lead and a shape as ``render`` writes it, less deep and with fewer members where that is too long."""
    shape = shape_of(schema, registry)
    for depth, most in (*((depth, None) for depth in DEPTHS), (1, 64), (1, 16), (1, 4)):
        text = render(cut(shape, depth, most))
        if len(text) <= MAX_CHARACTERS:
            return lead + text
    return "Answer with JSON."


# --- skeleton: {"name": string, "age": integer} ---
def _skeleton(shape: Shape) -> str:
    """Keys with types and descriptions. Of options the type: small models copy one of those that they are shown."""
    if isinstance(shape, Object):
        pairs = [f"{_json(name)}: {_noted(member)}" for name, member in shape.members.items()]
        others = [] if shape.others is None else [f"string: {_skeleton(shape.others)}", "..."]
        return "{" + ", ".join([*pairs, *others] or ["..."]) + "}"
    if isinstance(shape, Array):
        others = [] if shape.others is None else [_skeleton(shape.others), "..."]
        return "[" + ", ".join([*map(_skeleton, shape.first), *others]) + "]"
    if isinstance(shape, Union):
        return " | ".join(dict.fromkeys(map(_skeleton, shape.options)))
    if isinstance(shape, Options):
        return _types(shape)
    if isinstance(shape, Scalar):
        return f"{shape.type} ({shape.format})" if shape.format else shape.type
    return shape.name or "any value"


def _noted(member: ObjectMember) -> str:
    text = _skeleton(member.shape)
    return f"{text} ({_cut(member.note)})" if member.note else text


def _types(shape: Options) -> str:
    """The types of options; one that is alone, itself."""
    if len(shape.values) == 1 and len(text := _json(shape.values[0])) <= MAX_OPTIONS:
        return text
    return " | ".join(dict.fromkeys(map(type_name, shape.values)))


# --- typescript ---
def _typescript(shape: Shape, indent: str = "") -> str:
    """A type of TypeScript, whose comments are the descriptions."""
    inner = partial(_typescript, indent=indent)
    if isinstance(shape, Object):
        return _type_literal(shape, indent)
    if isinstance(shape, Array):
        if shape.first:
            others = [] if shape.others is None else [f"...{inner(shape.others)}[]"]
            return "[" + ", ".join([*map(inner, shape.first), *others]) + "]"
        item = "never" if shape.others is None else inner(shape.others)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if isinstance(shape, Union):
        return " | ".join(dict.fromkeys(map(inner, shape.options)))
    if isinstance(shape, Options):
        text = " | ".join(map(_json, shape.values))
        return text if len(text) <= MAX_OPTIONS else _types(shape).replace("integer", "number")
    if isinstance(shape, Scalar):
        return "number" if shape.type == "integer" else shape.type
    return shape.name or "any"


def _type_literal(shape: Object, indent: str) -> str:
    lines, deeper = [], f"{indent}  "
    for name, member in shape.members.items():
        key = (name if name.isidentifier() else _json(name)) + ("" if member.is_required else "?")
        note = f" // {_cut(member.note)}" if member.note else ""
        lines.append(f"{deeper}{key}: {_typescript(member.shape, deeper)};{note}")
    if shape.others is not None:
        lines.append(f"{deeper}[key: string]: {_typescript(shape.others, deeper)};")
    return "\n".join(["{", *lines, indent + "}"]) if lines else "object"


# --- example ---
_FORMATS = {
    "date": "2024-05-17",
    "date-time": "2024-05-17T09:30:00Z",
    "time": "09:30:00Z",
    "email": "name@example.com",
    "uri": "https://example.com",
    "uuid": "12345678-1234-4234-8234-123456789abc",
}
_VALUES: dict[str, Any] = {"string": "...", "integer": 0, "number": 0.5, "boolean": True, "null": None}


def _example(shape: Shape) -> Any:
    """A value of the shape, of which bounds and patterns are not known."""
    if isinstance(shape, Object):
        return {name: _example(member.shape) for name, member in shape.members.items()}
    if isinstance(shape, Array):
        return [*map(_example, shape.first), *([] if shape.others is None else [_example(shape.others)])]
    if isinstance(shape, Union):
        return _example(next((option for option in shape.options if option != Scalar("null")), shape.options[0]))
    if isinstance(shape, Options):
        return shape.values[0]
    if isinstance(shape, Scalar):
        return _FORMATS.get(shape.format, _VALUES.get(shape.type, "..."))
    return "..."


def _worked(schema: Schema, registry: Registry[Any] | None) -> str:
    """An example that the schema itself gives, or one of its shape."""
    lead = "Answer with JSON in the form of this example: "
    given = schema.get("examples") if isinstance(schema, Mapping) else None
    if isinstance(given, list) and given and len(text := _json(given[0])) <= MAX_CHARACTERS:
        return lead + text
    return _shown(lead, lambda shape: _json(_example(shape)), schema, registry)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_number)


def _number(value: Decimal) -> Any:
    """Numbers that float changes are rounded."""
    return float(value) if abs(value) <= sys.float_info.max else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_NOTE else f"{text[: MAX_NOTE - 3].rstrip()}..."


FORMS: dict[SchemaForm, Callable[[Schema, Registry[Any] | None], str]] = {
    "schema": _whole,
    "skeleton": partial(_shown, "Answer with JSON: ", _skeleton),
    "typescript": partial(_shown, "Answer with JSON of this TypeScript type:\n", _typescript),
    "example": _worked,
}
assert set(FORMS) == set(get_args(SchemaForm))
