"""What was made before, kept up to a sum of bytes (by number alone, a few large values would fill memory) or, of what
is small, up to a number."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import islice
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values up to ``max_bytes`` together, and one at least; those not used for longest give way. Thread-safe.

    Args:
        max_bytes: what all may take.
        size: bytes of a value; asked when it comes in, and again by `recount`. Left out, each counts 1.

    Attributes:
        memory_bytes: what all took when they were counted last.
    """

    def __init__(self, max_bytes: int, size: Callable[[V], int] = lambda value: 1) -> None:
        self.max_bytes, self._size = max_bytes, size
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._sizes: dict[K, int] = {}
        self._lock = threading.RLock()
        self.memory_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def keys(self) -> list[K]:
        """All keys; the one used last is last."""
        with self._lock:
            return list(self._entries)

    def peek(self, key: K) -> V | None:
        """What is kept under a key."""
        return self._entries.get(key)

    def get(self, key: K) -> V | None:
        """As `peek`; what is found counts as used."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def put(self, key: K, value: V) -> V:
        """Keep a value, and give it back; or what another thread has put there meanwhile."""
        with self._lock:
            kept = self._entries.setdefault(key, value)
            self._count(key)
            return kept

    def replace(self, key: K, value: V) -> None:
        """Keep a value in place of what is there."""
        with self._lock:
            self._entries[key] = value
            self._count(key)

    def recount(self, newest: int | None = None) -> None:
        """Ask again what values take, those used last or all: they may grow while they are used."""
        with self._lock:
            for key in list(islice(reversed(self._entries), newest)):
                if key in self._entries:
                    self._count(key)

    def forget(self, chosen: Callable[[V], bool] = lambda value: True) -> None:
        """Forget the values that are ``chosen``, or all."""
        with self._lock:
            for key in [key for key, value in self._entries.items() if chosen(value)]:
                self._drop(key)

    def discard(self, key: K) -> None:
        """Forget what is kept under a key, if anything is."""
        with self._lock:
            if key in self._entries:
                self._drop(key)

    def _drop(self, key: K) -> None:
        del self._entries[key]
        self.memory_bytes -= self._sizes.pop(key)

    def _count(self, key: K) -> None:
        size = self._size(self._entries[key])
        self.memory_bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        while self.memory_bytes > self.max_bytes and len(self._entries) > 1:
            self._drop(next(iter(self._entries)))


class Same:
    """The key of an object that is only equal to itself. It keeps the object, so that no other gets its id."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
