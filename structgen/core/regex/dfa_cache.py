"""Automata that were made before, kept up to a sum of bytes: by number alone, a few large ones would fill memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
MAX_BYTES = 16 << 20
"""Of one cache; an automaton has about a kilobyte a state."""
LEAST_BYTES = 1_024  # what an entry costs besides its automaton


class DfaCache(Generic[R]):
    """The automata used last. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, R] = OrderedDict()
        self._lock = threading.Lock()
        self.memory_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> R | None:
        """What was kept under a key."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: Hashable, value: R) -> None:
        """Keep one, and forget those not used for longest until there is room."""
        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = value
            self.memory_bytes += _bytes(value)
            while self.memory_bytes > self._max_bytes and len(self._entries) > 1:
                self.memory_bytes -= _bytes(self._entries.popitem(last=False)[1])


def _bytes(value: Any) -> int:
    """Of an automaton of any kind, or of one with a remark."""
    dfa = value[0] if isinstance(value, tuple) else value
    return LEAST_BYTES + dfa.transitions.nbytes + dfa.accepting.nbytes


def keeps_automata(function: Callable[P, R]) -> Callable[P, R]:
    """Remember what a function of hashable arguments makes, up to ``MAX_BYTES``; errors are not remembered.

    The cache is the function's attribute ``cache``.
    """
    cache: DfaCache[R] = DfaCache(MAX_BYTES)

    @wraps(function)
    def remembering(*args: P.args, **options: P.kwargs) -> R:
        key = (args, *sorted(options.items()))
        found = cache.get(key)
        if found is None:
            found = function(*args, **options)
            cache.put(key, found)
        return found

    remembering.cache = cache  # type: ignore[attr-defined]
    return remembering
