"""The compiled forms of constraints that were used last, for the process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any


class CompiledCache:
    """The most recently used compiled grammars, up to a number and a sum of bytes. Thread-safe."""

    def __init__(self, max_entries: int = 128, max_bytes: int = 256 << 20) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._entries: OrderedDict[Any, tuple[Any, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, build: Any, keep: Any = None) -> Any:
        """The grammar under ``key``, built where missing; ``keep`` lives as long as the entry (ids in the key)."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
        grammar = build()  # outside the lock: two threads may build the same, which costs time only
        with self._lock:
            self._entries[key] = (grammar, keep)
            while len(self._entries) > 1 and (
                len(self._entries) > self._max_entries or self._bytes() > self._max_bytes
            ):
                self._entries.popitem(last=False)
        return grammar

    def _bytes(self) -> int:
        return sum(grammar.memory_bytes for grammar, _ in self._entries.values())


def value_key(constraint: Any) -> Any:
    """What equal constraints share: the constraint itself, or the identity of one with a part that has no hash."""
    try:
        hash(constraint)
    except TypeError:
        return id(constraint)
    return constraint


COMPILED = CompiledCache()
