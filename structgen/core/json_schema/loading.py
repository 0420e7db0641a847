"""Schema texts to Python values: exact numbers, and errors that name line and column."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from structgen.core.json_text import UnreadableNumberError, exact_decimal, exact_integer
from structgen.errors import SchemaError, SchemaTooComplexError

MAX_FILE = 1 << 28
"""Bytes of a file with a schema."""


def load_schema(source: str | bytes | Path | Mapping[str, Any] | bool) -> Any:
    """The parsed schema of a JSON text (str, or bytes in UTF-8), a file (`pathlib.Path`), or a parsed one as it is.

    Numbers with a fraction or exponent, and integers of thousands of digits, become `decimal.Decimal`. Of members with
    the same key the last one counts, as `json.loads` has it; RFC 8259 leaves that open.

    Raises:
        SchemaError: not JSON (line and column), NaN, an infinity or an exponent that no ``Decimal`` has, not UTF-8, or
            neither an object nor a Boolean.
        SchemaTooComplexError: nested deeper than the recursion limit.
        OSError: the file cannot be read.
    """
    if isinstance(source, (Mapping, bool)):
        return source
    data = _content(source) if isinstance(source, Path) else source
    if isinstance(data, (bytes, bytearray)):
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            utf16 = bytes(data[:2]) in (b"\xff\xfe", b"\xfe\xff")
            hint = "It looks like UTF-16; save the file as UTF-8" if utf16 else "Convert it: iconv -t UTF-8"
            raise SchemaError(f"the schema is not UTF-8: {error.reason} at byte {error.start}", hint=hint) from None
    elif isinstance(data, str):
        text = data
    else:
        raise SchemaError(
            f"expected a JSON text, a path, a dict or a bool, found {type(source).__name__}",
            hint="json_schema(...) takes pydantic models and other types",
        )
    schema = _parse(text)
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"a schema is an object, true or false; this text holds a {type(schema).__name__}")
    return schema


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:  # it may have no end
        raise SchemaError(f"the file {str(path)!r} holds more than {MAX_FILE:,} bytes, which is no schema")
    return data


def _parse(text: str) -> Any:
    if not text.strip():
        raise SchemaError("the schema is empty", hint="{} allows any JSON value")
    try:
        return json.loads(text, parse_float=exact_decimal, parse_int=exact_integer, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1]  # as the parser counts: by line feeds alone
        start = max(0, error.colno - 41)
        caret = f"\n  {line[start : start + 80]}\n  {' ' * (error.colno - 1 - start)}^"
        message = f"the schema is not JSON: {error.msg} at line {error.lineno}, column {error.colno}{caret}\n"
        raise SchemaError(message) from None
    except UnreadableNumberError as error:
        raise SchemaError(f"the schema has a number that cannot be read: {error}") from None
    except RecursionError:
        limit = sys.getrecursionlimit()
        raise SchemaTooComplexError("the schema is nested too deeply for Python's JSON parser", limit=limit) from None


def _refuse_constant(name: str) -> NoReturn:
    raise SchemaError(f"{name} is not JSON", hint="Leave the keyword out, or write a number")
