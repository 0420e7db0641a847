"""The compiled forms of constraints that were used last, for the process, found by what the constraints say."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from structgen.core.bounded_cache import BoundedCache, Same

LEAST_BYTES = 4_096
"""What an entry counts at least: its key and the objects around its arrays."""
SEARCHED = 64  # new entries until those that are outdated are looked for
MAX_VOCABULARIES = 8
"""Those used last, whose grammars are kept. What a grammar takes is counted without its vocabulary and what is made
for all grammars of that, some 10 MB."""
COUNTED = 32  # grammars, those used last, that are counted again when one comes in: they grow while they are used


class CompiledCache:
    """The compiled grammars of few vocabularies that were used last, up to a sum of bytes, one at least. Thread-safe.

    What several threads ask for at once is built by one of them, and the others wait for it. What a grammar takes is
    asked when it comes in, whenever it is used and while others come in soon after, since it grows with what is read
    and with the texts that are written to complete outputs. Grammars that say ``is_outdated``
    are forgotten however often they are used: they hold what is large and no longer shared with newer ones.
    """

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._grammars: BoundedCache[Hashable, Any] = BoundedCache(max_bytes, _bytes)
        self._used: dict[Hashable, float] = {}  # when each was, by ``time.monotonic``
        self._vocabularies: OrderedDict[str, None] = OrderedDict()  # by digest; the one used last is last
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
                    building = self._building[key] = Future[Any]()
                    break
            with suppress(CancelledError):  # who built it was interrupted
                return other.result()
        try:
            grammar = build()  # outside the lock, which other keys need
        except BaseException as error:
            self._settle(key)
            if isinstance(error, Exception):
                building.set_exception(error)
            else:
                building.cancel()
            raise
        self._settle(key, grammar)
        building.set_result(grammar)
        return grammar

    def kept(self, key: Hashable) -> Any:
        """As ``peek``; what is found counts as used."""
        with self._lock:
            return self._use(key)

    def clear(self) -> None:
        """Forget all grammars."""
        with self._lock:
            self._grammars.forget()
            self._vocabularies.clear()

    def forget_unused(self, seconds: float) -> None:
        """Forget the grammars that were not used for so long."""
        with self._lock:
            since, keys = time.monotonic() - seconds, self._grammars.keys()
            for key in keys:
                if self._used.get(key, since) < since:
                    self._grammars.discard(key)
            self._forget_times()

    def peek(self, key: Hashable) -> Any:
        """The grammar under ``key`` if there is one, else None."""
        with self._lock:
            return self._grammars.peek(key)

    @property
    def bytes(self) -> int:
        """What the grammars took when they were used last."""
        return self._grammars.memory_bytes

    def __len__(self) -> int:
        return len(self._grammars)

    def _use(self, key: Hashable) -> Any:
        """What is under a key, used now; None: nothing is."""
        grammar = self._grammars.get(key)
        if grammar is not None:
            self._grammars.recount(1)
            self._note_use(key, grammar)
        return grammar

    def _note_use(self, key: Hashable, grammar: Any) -> None:
        """A grammar is used now, and so is its vocabulary."""
        self._used[key] = time.monotonic()
        digest = grammar.vocabulary.digest
        self._vocabularies[digest] = None
        self._vocabularies.move_to_end(digest)

    def _forget_vocabulary(self) -> None:
        """Forget the grammars of the vocabulary that was not used for longest, where there are too many."""
        if len(self._vocabularies) > MAX_VOCABULARIES:
            oldest, _ = self._vocabularies.popitem(last=False)
            self._grammars.forget(lambda grammar: grammar.vocabulary.digest == oldest)
            self._forget_times()

    def _forget_times(self) -> None:
        """Those of grammars that are here no longer."""
        keys = self._grammars.keys()
        self._used = {key: self._used[key] for key in keys if key in self._used}

    def _settle(self, key: Hashable, grammar: Any = None) -> None:
        """Nobody builds what is under a key any more; keep what was built."""
        with self._lock:
            del self._building[key]
            if grammar is None:
                return
            self._grammars.put(key, grammar)
            self._note_use(key, grammar)
            self._forget_vocabulary()
            self._grammars.recount(COUNTED)
            self._settled += 1
            if self._settled % SEARCHED == 0:
                self._grammars.forget(lambda grammar: grammar.is_outdated)
                self._forget_times()


def _bytes(grammar: Any) -> int:
    return max(int(grammar.memory_bytes), LEAST_BYTES)


def content_key(constraint: Any) -> Hashable:
    """What constraints that are compiled to the same have in common; None where that may change (files).

    Constraints of this library say it by a method ``content_key``; others are what they are equal to, or themselves.
    """
    content_key_of = getattr(constraint, "content_key", None)
    if callable(content_key_of) and not isinstance(constraint, type):
        key: Hashable = content_key_of()
        return key
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
        joined_key = _JOINED.get(keys)
        if joined_key is None:
            joined_key = _JOINED[keys] = _Joined(keys)
        return joined_key


COMPILED = CompiledCache()
