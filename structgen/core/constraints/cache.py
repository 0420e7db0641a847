"""The compiled forms of constraints that were used last, for the process, found by what the constraints say."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from itertools import islice
from typing import Any
from weakref import WeakValueDictionary

LEAST_BYTES = 4_096
"""What an entry counts at least: its key and the objects around its arrays."""
SEARCHED = 64  # new entries until those that are outdated are looked for
COUNTED = 32  # grammars, those used last, that are counted again when one comes in: they grow while they are used


class CompiledCache:
    """The most recently used compiled grammars, up to a sum of bytes, and one at least. Thread-safe.

    What several threads ask for at once is built by one of them, and the others wait for it. What a grammar takes is
    asked when it comes in, whenever it is used and while others come in soon after, since it grows with what is read
    and with the texts that are written to complete outputs. Grammars that say ``is_outdated``
    are forgotten however often they are used: they hold what is large and no longer shared with newer ones.
    """

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._sum = 0
        self._settled = 0
        self._building: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """The grammar under ``key``, built where missing. A key of None is that of what may change: it is built.

        Raises:
            Exception: whatever ``build`` raises, in every thread that waits for it; the next call builds anew.
        """
        if key is None:
            return build()
        while True:
            with self._lock:
                grammar = self._use(key)
                if grammar is not None:
                    return grammar
                other = self._building.get(key)
                if other is None:
                    own = self._building[key] = Future[Any]()
                    break
            with suppress(CancelledError):  # who built it was interrupted
                return other.result()
        try:
            grammar = build()  # outside the lock, which other keys need
        except BaseException as error:
            self._settle(key)
            if isinstance(error, Exception):
                own.set_exception(error)
            else:
                own.cancel()
            raise
        self._settle(key, grammar)
        own.set_result(grammar)
        return grammar

    def kept(self, key: Hashable) -> Any:
        """As ``peek``; what is found counts as used."""
        with self._lock:
            return self._use(key)

    def clear(self) -> None:
        """Forget all grammars."""
        with self._lock:
            self._entries.clear()
            self._sizes.clear()
            self._sum = 0

    def peek(self, key: Hashable) -> Any:
        """The grammar under ``key`` if there is one, else None."""
        with self._lock:
            return self._entries.get(key)

    @property
    def bytes(self) -> int:
        """What the grammars took when they were used last."""
        return self._sum

    def _use(self, key: Hashable) -> Any:
        """What is under a key, used now; None: nothing is."""
        grammar = self._entries.get(key)
        if grammar is not None:
            self._entries.move_to_end(key)
            self._count(key, grammar)
        return grammar

    def _settle(self, key: Hashable, grammar: Any = None) -> None:
        """Nobody builds what is under a key any more; keep what was built."""
        with self._lock:
            del self._building[key]
            if grammar is None:
                return
            self._entries[key] = grammar
            for recent in list(islice(reversed(self._entries), COUNTED)):
                if recent in self._entries:
                    self._count(recent, self._entries[recent])
            self._settled += 1
            if self._settled % SEARCHED == 0:
                outdated = [key for key, kept in self._entries.items() if kept.is_outdated]
                for key in outdated:
                    self._forget(key)

    def _forget(self, key: Hashable) -> None:
        del self._entries[key]
        self._sum -= self._sizes.pop(key)

    def _count(self, key: Hashable, grammar: Any) -> None:
        """Note what a grammar takes, and forget those not used for longest until there is room."""
        size = max(grammar.memory_bytes, LEAST_BYTES)
        self._sum += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        while self._sum > self._max_bytes and len(self._entries) > 1:
            self._forget(next(iter(self._entries)))


class Same:
    """The key of an object that is only equal to itself. It keeps the object, so that no other gets its id."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def content_key(constraint: Any) -> Hashable:
    """What constraints that are compiled to the same have in common; None where that may change (files).

    Constraints of this library say it by a method ``content_key``; others are what they are equal to, or themselves.
    """
    own = getattr(constraint, "content_key", None)
    if callable(own) and not isinstance(constraint, type):
        found: Hashable = own()
        return found
    try:
        hash(constraint)
    except TypeError:
        return Same(constraint)
    return constraint


class _Joined:
    """A key of several parts. Equal ones are one object, so that keys in keys cost nothing to hash and to compare."""

    __slots__ = ("__weakref__", "_parts")

    def __init__(self, parts: tuple[Hashable, ...]) -> None:
        self._parts = parts

    def __repr__(self) -> str:
        return f"joined{self._parts!r:.200}"


_JOINED: WeakValueDictionary[tuple[Hashable, ...], _Joined] = WeakValueDictionary()
_JOINING = threading.Lock()


def joined(*keys: Hashable) -> Hashable:
    """The key of what is made of several parts, each with its key; None if one has none."""
    if None in keys:
        return None
    with _JOINING:
        found = _JOINED.get(keys)
        if found is None:
            found = _JOINED[keys] = _Joined(keys)
        return found


COMPILED = CompiledCache()
