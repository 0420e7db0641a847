"""``structgen validate``: judges of a document: the engine itself and, for schemas, the python-jsonschema package."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from jsonschema.validators import validator_for

from structgen.cli.common import INVALID, BadInput, byte_vocabulary, print_json
from structgen.cli.consoles import err, out
from structgen.core.answers.refused_texts import reasons_of, refused_offset
from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import JsonSchemaConstraint, Schema
from structgen.core.json_schema.exact_validator import exact_validator
from structgen.core.json_text import loads_exact
from structgen.errors import EmptyLanguageError, GenerationError, UnsatisfiableSchemaError, UnsupportedSchemaError


def run(constraint: Constraint, text: str, as_json: bool, *, why: bool = False) -> int:
    """Judge and report; the exit code. A document is valid if no judge objects. ``why``: name the schema's keywords.

    Raises:
        ConstraintError: the constraint cannot be used. BadInput: neither judge can read the schema.
    """
    errors: list[dict[str, str]] = []
    offset, notes = None, []
    try:
        offset = first_refused_offset(constraint, text.encode())
    except UnsupportedSchemaError as error:
        notes.append(f"not judged by the engine: {error}")
    except (UnsatisfiableSchemaError, EmptyLanguageError) as error:
        offset = 0
        notes.append(str(error))
    if isinstance(constraint, JsonSchemaConstraint):
        try:
            errors = schema_errors(constraint.schema, loads_exact(text))
        except GenerationError as error:  # no JSON; or the engine has read it, and Python cannot
            if offset is None and not notes:
                notes.append(f"not judged by python-jsonschema: {error}")
            else:
                errors = [{"pointer": "", "message": str(error)}]
        except Exception as error:  # it reads expressions as Python's, and checks no schema first
            notes.append(f"not judged by python-jsonschema: {type(error).__name__}: {error}")
    if len(notes) > 1:
        raise BadInput("; ".join(notes))
    note = notes[0] if notes else None
    valid = not errors and offset is None
    named = reasons_of(constraint, text) if why and not valid else ()
    if as_json:
        said = {"valid": valid, "errors": errors, "refused_at_byte": offset, "note": note}
        print_json(said | ({"reasons": [one.to_dict() for one in named]} if why else {}))
        return 0 if valid else INVALID
    for result in errors:
        err.print(f"{result['pointer'] or '(root)'}: {result['message']}", markup=False, soft_wrap=True)
    if offset is not None:
        err.print(_excerpt(text.encode(), offset), markup=False, soft_wrap=True)
    for one in named:
        err.print(f"refused by {one}", markup=False, soft_wrap=True)
    if note:
        err.print(note, markup=False, soft_wrap=True)
    out.print("[green]valid[/]" if valid else "[red]invalid[/]")
    return 0 if valid else INVALID


def schema_errors(schema: Schema, value: Any) -> list[dict[str, str]]:
    """What python-jsonschema objects to (formats asserted): JSON Pointer into the document, and message."""
    validator_class = exact_validator(validator_for(schema, default=jsonschema.Draft202012Validator))
    plain = json.loads(json.dumps(schema, default=float))
    validator = validator_class(plain, format_checker=validator_class.FORMAT_CHECKER)
    return [
        {"pointer": "".join(f"/{_escape(part)}" for part in error.absolute_path), "message": error.message}
        for error in validator.iter_errors(value)
    ]


def first_refused_offset(constraint: Constraint, data: bytes) -> int | None:
    """The first byte that the engine refuses (``len(data)``: the end comes too early); None if it accepts all."""
    return refused_offset(constraint.compile(byte_vocabulary()), data)


def _escape(part: str | int) -> str:
    """A JSON Pointer token (RFC 6901, section 3)."""
    return str(part).replace("~", "~0").replace("/", "~1")


def _excerpt(data: bytes, offset: int) -> str:
    before = data[max(0, offset - 40) : offset].decode("utf-8", errors="replace")
    after = data[offset : offset + 20].decode("utf-8", errors="replace") or "(end of text)"
    return f"refused at byte {offset}: {before!r} then {after!r}"
