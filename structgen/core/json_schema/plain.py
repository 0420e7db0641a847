"""Whatever Python holds JSON in, as dict, list, str, int, float, Decimal, bool and None: the walk looks at classes."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from sys import getsizeof
from typing import Any

import numpy as np

from structgen.core.json_schema.checks import refuse
from structgen.core.json_schema.pointers import ROOT, Pointer
from structgen.core.text_sets.references import SourceReference

_SCALARS = frozenset({int, float, bool, type(None), Decimal})
UNNOTED = 10_000  # arrays and objects that are looked at before it is noted which ones: what holds itself has more
_PRINTED_BITS = 14_000  # CPython prints integers of up to 4,300 digits; a Decimal is printed whatever its length


def plain_json(value: Any, pointer: Pointer = ROOT) -> Any:
    """``value`` itself if it is plain JSON, else a copy that is.

    Any mapping is an object, a tuple an array; subclasses of ``str``, ``int`` and ``float`` (enums among them) and the
    scalars of numpy are what they hold. Linear in the size of the value. What holds itself comes back as it is.

    Raises:
        SchemaError: a key is no string, or a value is of a type that JSON does not have; the pointer says where.
        RecursionError: what has to be copied is nested too deeply.
    """
    return value if _is_plain(value) else _copied(value, pointer)


def _is_plain(value: Any) -> bool:
    """Whether this is plain JSON: dict, list, str, int, float, bool, None and Decimal, and no classes of one's own."""
    todo: list[Any] = [[value]]
    seen: set[int] = set()
    for count, node in enumerate(todo):  # which grows
        if count >= UNNOTED:
            if id(node) in seen:
                continue
            seen.add(id(node))
        if node.__class__ is dict:
            for key in node:
                if key.__class__ is not str:
                    return False
            node = node.values()
        for item in node:
            kind = item.__class__
            if kind is str or kind is SourceReference:
                continue
            if kind is dict or kind is list:
                todo.append(item)
            elif kind not in _SCALARS or (kind is int and item.bit_length() > _PRINTED_BITS):
                return False
    return True


def plain_bytes(value: Any) -> int:
    """What plain JSON takes in memory, keys and constants that may be shared included. Linear."""
    size, todo = 0, [value]
    while todo:
        node = todo.pop()
        size += getsizeof(node)
        if node.__class__ is dict:
            todo.extend(node)
            todo.extend(node.values())
        elif node.__class__ is list:
            todo.extend(node)
    return size


def _copied(value: Any, pointer: Pointer) -> Any:
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                refuse(pointer, f"strings as the keys of an object, not {type(key).__name__}", key)
        return {str.__str__(key): _copied(item, (pointer, str.__str__(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(item, (pointer, index)) for index, item in enumerate(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value if value.__class__ is SourceReference else str.__str__(value)
    if value is None or isinstance(value, (bool, Decimal)):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _PRINTED_BITS else Decimal(int(value))
    if isinstance(value, float):
        return float(value)
    hint = f"JSON has no {type(value).__name__}"
    if isinstance(value, type):
        hint = "For Python types, give a TypedDict, dataclass or pydantic model to json_schema"
    refuse(pointer, "a JSON value", value, hint=hint)
