"""What may happen where a value begins, and how many bytes decide it.

A decider reads the bytes after an offset and names the event once they decide it: None before, never another after.
Blanks are part of what it reads, as is every spelling of a value, so that events do not depend on the format.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from structgen.core.json_text import EXACT_DECODER
from structgen.errors import OptionsError

Decider: TypeAlias = Callable[[bytes, bool], "str | None"]
"""From the bytes so far, and whether the output ends after them, to the event's name; None: nothing is decided."""

BLANKS = b" \t\r\n"
MAX_DEPTH = 200  # of values that are compared
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NUMBER = re.compile(rb"[-0-9.eE+]*")
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[]["{}]', re.DOTALL)
_WORDS = {b"t": b"true", b"f": b"false", b"n": b"null"}
TYPES = {
    **dict.fromkeys(b"-0123456789", "number"),
    ord('"'): "string", ord("{"): "object", ord("["): "array", ord("t"): "boolean", ord("f"): "boolean",
    ord("n"): "null",
}  # fmt: skip


def value_event(data: bytes, is_end: bool = False) -> str | None:
    """The JSON value that the bytes begin with, as ``canonical`` names it, once it is whole: at the closing quote or
    bracket, the last letter of a word, the byte after a number or the end."""
    text = data.lstrip(BLANKS)
    end = _value_end(text, is_end)
    return None if end is None else canonical(EXACT_DECODER.decode(text[:end].decode("utf-8", errors="replace")))


def type_event(data: bytes, is_end: bool = False) -> str | None:
    """The JSON type that the first byte, blanks aside, decides."""
    text = data.lstrip(BLANKS)
    return TYPES.get(text[0]) if text else None


def reply_event(data: bytes, is_end: bool = False) -> str | None:
    """The whole text, once the output ends: as a JSON string, so that it is named as a value is."""
    return json.dumps(data.decode("utf-8", errors="replace"), ensure_ascii=False) if is_end else None


def canonical(value: Any) -> str:
    """JSON text that is equal for equal values: 1 and 1.0 are one, 1 and true two; members by name."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float, Decimal)):
        return _number(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{canonical(name)}: {canonical(value[name])}' for name in sorted(value))}}}"
    return f"[{', '.join(map(canonical, value))}]"


def check_plain(value: Any, what: str, depth: int = 0) -> None:
    """Refuse what cannot be compared as JSON.

    Raises:
        OptionsError: something in it is of another type, no finite number, or too deep; ``what`` says where.
    """
    number = isinstance(value, (int, float, Decimal))
    plain = value is None or isinstance(value, str) or (number and math.isfinite(value))
    if isinstance(value, (dict, list)) and depth < MAX_DEPTH:
        plain = not isinstance(value, dict) or all(isinstance(name, str) for name in value)
        for inner in value.values() if isinstance(value, dict) else value:
            check_plain(inner, what, depth + 1)
    if not plain:
        raise OptionsError(
            f"{what} holds {value!r:.80} ({type(value).__name__}), which cannot be compared as JSON; give plain JSON "
            "values (of a pydantic model: model_dump(mode='json'), of numpy: item())",
            value=value,
        )


def named_value(event: str) -> Any:
    """The plain JSON value that ``canonical`` has named."""
    return EXACT_DECODER.decode(event)


def _number(value: float | Decimal) -> str:
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if exact == exact.to_integral_value() and exact.adjusted() < 64:
        return str(int(exact))
    sign, digits, exponent = exact.as_tuple()
    while len(digits) > 1 and not digits[-1]:  # Decimal.normalize rounds to the context's precision
        digits, exponent = digits[:-1], int(exponent) + 1
    return f"{'-' if sign else ''}{''.join(map(str, digits))}e{exponent}"


def _value_end(text: bytes, is_end: bool) -> int | None:
    """Bytes of the first value of a text without leading blanks; None: it is not whole."""
    if not text:
        return None
    first = text[:1]
    if first == b'"':
        match = _STRING.match(text)
        return None if match is None else match.end()
    if first in (b"{", b"["):
        return _bracket_end(text)
    if word := _WORDS.get(first):
        return len(word) if text.startswith(word) else None
    match = _NUMBER.match(text)
    end = 0 if match is None else match.end()
    return end if end and (end < len(text) or is_end) else None


def _bracket_end(text: bytes) -> int | None:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] == b'"':  # a string that is open: what follows is in it
            return None
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(match[0], 0)
        if not depth:
            return match.end()
    return None
