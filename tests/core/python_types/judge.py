"""Pydantic as the judge of what a type reads."""

from __future__ import annotations

from typing import Any

import pydantic


def is_read(reader: pydantic.TypeAdapter[Any], text: str | bytes) -> bool:
    """Whether pydantic reads a JSON text as a value of the reader's type."""
    try:
        reader.validate_json(text)
    except pydantic.ValidationError:
        return False
    return True
