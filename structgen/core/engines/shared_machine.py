"""What grammars have in common whose matchers share a machine: it grows with what is read, and is no part of them."""

from __future__ import annotations

import threading
from typing import Any, Generic, Protocol, TypeVar


class Machine(Protocol):
    """What matchers of one grammar share."""

    @property
    def is_full(self) -> bool:
        """Whether it has outgrown its bound."""
        ...


M = TypeVar("M", bound=Machine)


class SharedMachine(Generic[M]):
    """A grammar with a machine, which comes with ``_begin`` and once the grammar is unpickled."""

    _machine: M
    is_outdated = False  # what grammars share is the machine, which is no part of them

    def machine(self) -> M:
        """The machine that new matchers share; a fresh one once what it holds has outgrown its bound."""
        if self._machine.is_full:
            with self._lock:
                if self._machine.is_full:
                    self._machine = self._new_machine()
        return self._machine

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._machine = self._new_machine()

    def _new_machine(self) -> M:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """All but the machine."""
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_machine")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The same grammar with a new machine."""
        vars(self).update(state)
        self._begin()
