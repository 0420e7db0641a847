"""Names of models and constraints that mean the same in another process, so that what was learned can be kept.

A name is made from all that two values are compared by: what a class gains later is in it without further ado.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import numpy as np

from structgen.generation.models.capabilities import capabilities_of

_THIS_PROCESS = "\0this process: "  # no text of a value has it: repr escapes it
_PLAIN = (str, bytes, int, float, bool, type(None))


def is_lasting(name: str) -> bool:
    """Whether a name means the same in another process."""
    return _THIS_PROCESS not in name


def model_id(model: Any) -> str:
    """A digest of what a model says that it is (``fingerprint``); else the object's identity."""
    fingerprint = capabilities_of(model).fingerprint
    return _identity(model) if fingerprint is None else str(fingerprint())


def value_id(value: Any) -> str:
    """All that a value is compared by: plain values, containers, dataclasses and types; anything else by identity.

    A file counts with its content. O(size of the value).
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # equal values, equal names
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if get_origin(value) is not None:  # list[int] and its like
        return f"{value_id(get_origin(value))}{value_id(get_args(value))}"
    if isinstance(value, Path):
        return f"file {hashlib.blake2b(value.read_bytes(), digest_size=16).hexdigest()}"
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(value_id, value))})"
    if isinstance(value, (set, frozenset)):
        return f"{{{','.join(sorted(map(value_id, value)))}}}"
    if isinstance(value, dict):
        return f"{{{','.join(sorted(f'{value_id(key)}:{value_id(item)}' for key, item in value.items()))}}}"
    if is_dataclass(value):
        compared = (f"{item.name}={value_id(getattr(value, item.name))}" for item in fields(value) if item.compare)
        return f"{value_id(type(value))}({','.join(compared)})"
    return _identity(value)


def _identity(value: Any) -> str:
    return f"{_THIS_PROCESS}{type(value).__qualname__} {id(value)}"
