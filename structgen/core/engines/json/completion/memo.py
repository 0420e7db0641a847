"""Memory for answers that are found again: dictionaries that are emptied when they are full."""

from __future__ import annotations

from typing import TypeVar

# Answers that a dictionary keeps.
MAX_KEPT = 20_000
K = TypeVar("K")
V = TypeVar("V")


def keep(kept: dict[K, V], key: K, value: V) -> None:
    """Enter an answer."""
    if len(kept) >= MAX_KEPT:
        kept.clear()
    kept[key] = value
