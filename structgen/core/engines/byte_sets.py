"""Sets of bytes as integers: bit b for byte b."""

from __future__ import annotations

from collections.abc import Iterable

EVERY_BYTE = (1 << 256) - 1


def byte_set(data: Iterable[int]) -> int:
    """The set of these bytes."""
    members = 0
    for byte in data:
        members |= 1 << byte
    return members


def flags(members: int) -> bytes:
    """bytes[256]: 1 for the bytes of a set, 0 for others."""
    return bytes(members >> byte & 1 for byte in range(256))
