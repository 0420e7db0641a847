"""Goals that were solved for schemas before: what a goal without references allows depends on its formula and the
options alone, so later schemas take it as it is. A shared goal is never changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from structgen.engines.json.goals.node import GoalNode
from structgen.engines.json.goals.specs import CountedSpec, KeyClasses, StringSpec
from structgen.formula.language import Formula
from structgen.options import JsonOptions

MAX_BYTES = 32 << 20
"""What the shared goals may take, over all options; beyond it all are forgotten, and with them their formulas."""
LEAST_BYTES, ENTRY_BYTES = 1_024, 128  # of a goal; of a key or item in one


class SharedGoals:
    """Shared goals by options and formula, up to a sum of bytes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[JsonOptions, dict[Formula, GoalNode]] = {}
        self.memory_bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def under(self, options: JsonOptions) -> dict[Formula, GoalNode]:
        """Those under some options, to be read; the same dictionary until all are forgotten."""
        with self._lock:
            return self._of.setdefault(options, {})

    def add(self, options: JsonOptions, nodes: Iterable[GoalNode]) -> None:
        """Share goals that were expanded and solved with all that they lead to, and whose formulas refer to nothing."""
        with self._lock:
            found = self._of.setdefault(options, {})
            for node in nodes:
                if node.formula not in found:
                    node.shared = True
                    found[node.formula] = node
                    self.memory_bytes += _bytes(node)
            if self.memory_bytes > MAX_BYTES:
                self._of.clear()
                self.memory_bytes = 0


def _bytes(node: GoalNode) -> int:
    """About what a goal takes; arrays exactly."""
    size = LEAST_BYTES
    for string in node.strings:
        if isinstance(string, StringSpec):
            size += 0 if string.dfa is None else string.dfa.transitions.nbytes
        else:
            size += ENTRY_BYTES * len(string.values)
    for spec in node.objects:
        size += ENTRY_BYTES * len(spec.keys)
        if isinstance(spec.others, KeyClasses):
            size += 2 * spec.others.automaton.transitions.nbytes  # as it is, and settled
    for array in node.arrays:
        size += ENTRY_BYTES * len(array.states if isinstance(array, CountedSpec) else array.prefix)
    return size


SHARED = SharedGoals()
