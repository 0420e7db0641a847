"""Goals that were solved for schemas before: what a goal without references allows depends on its formula and the
options alone, so later schemas take it as it is. A shared goal is never changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from structgen.core.engines.json.value_graph.memory_estimates import goal_bytes
from structgen.core.engines.json.value_graph.node import GoalNode
from structgen.core.json_schema.formula.language import Formula
from structgen.options import JsonOptions

MAX_BYTES = 16 << 20
"""What the shared goals may take, over all options; beyond it all are forgotten, and with them their formulas."""


class GoalsUnder:
    """Shared goals under the same options by formula, to be read; another object when all were forgotten."""

    __slots__ = ("goals", "options")

    def __init__(self, options: JsonOptions) -> None:
        self.options = options
        self.goals: dict[Formula, GoalNode] = {}


class SharedGoals:
    """Shared goals by options and formula, up to a sum of bytes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[JsonOptions, GoalsUnder] = {}
        self._last: GoalsUnder | None = None  # what was asked for last: options are mostly one object, rarely compared
        self._counted: set[int] = set()  # automata of these goals, by id: many goals may have one
        self.memory_bytes = 0

    def __len__(self) -> int:
        return sum(len(under.goals) for under in self._of.values())

    def under(self, options: JsonOptions) -> GoalsUnder:
        """Those under some options."""
        last = self._last
        if last is None or last.options is not options:
            with self._lock:
                last = self._last = self._of.get(options) or self._of.setdefault(options, GoalsUnder(options))
        return last

    def add(self, options: JsonOptions, nodes: Iterable[GoalNode]) -> None:
        """Share goals that were expanded and solved with all that they lead to, and whose formulas refer to nothing."""
        found = self.under(options).goals
        with self._lock:
            for node in nodes:
                if node.formula not in found:
                    node.shared = True
                    found[node.formula] = node
                    self.memory_bytes += goal_bytes(node, self._counted)
            if self.memory_bytes > MAX_BYTES:
                self._forget()

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        for forgotten in self._of.values():  # others may know what they were under
            forgotten.goals.clear()
        self._of.clear()
        self._last = None
        self._counted.clear()
        self.memory_bytes = 0


SHARED = SharedGoals()
