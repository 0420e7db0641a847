"""Nodes that were solved for schemas before: what a node without references allows depends on its formula and the
options alone, so later schemas take it as it is. A shared value node is never changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from structgen.core.engines.json.value_graph.node import ValueNode, node_bytes
from structgen.core.json_schema.formula.language import Formula
from structgen.options import JsonOptions

MAX_BYTES = 16 << 20
"""What the shared value nodes may take, over all options; beyond it all are forgotten, and with them their formulas."""


class NodesUnder:
    """Shared value nodes under the same options by formula, to be read; another object when all were forgotten."""

    __slots__ = ("nodes", "options")

    def __init__(self, options: JsonOptions) -> None:
        self.options = options
        self.nodes: dict[Formula, ValueNode] = {}


class SharedNodes:
    """Shared value nodes by options and formula, up to a sum of bytes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[JsonOptions, NodesUnder] = {}
        self._last: NodesUnder | None = None  # what was asked for last: options are mostly one object, rarely compared
        self._counted: set[int] = set()  # automata of these value nodes, by id: many value nodes may have one
        self.memory_bytes = 0

    def __len__(self) -> int:
        return sum(len(under.nodes) for under in self._of.values())

    def under(self, options: JsonOptions) -> NodesUnder:
        """Those under some options."""
        last = self._last
        if last is None or last.options is not options:
            with self._lock:
                last = self._last = self._of.get(options) or self._of.setdefault(options, NodesUnder(options))
        return last

    def add(self, options: JsonOptions, nodes: Iterable[ValueNode]) -> None:
        """Share nodes that were expanded and solved with all that they lead to, and whose formulas refer to nothing."""
        result = self.under(options).nodes
        with self._lock:
            for node in nodes:
                if node.formula not in result:
                    node.shared = True
                    result[node.formula] = node
                    self.memory_bytes += node_bytes(node, self._counted)
            if self.memory_bytes > MAX_BYTES:
                self._forget()

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        for forgotten in self._of.values():  # others may know what they were under
            forgotten.nodes.clear()
        self._of.clear()
        self._last = None
        self._counted.clear()
        self.memory_bytes = 0


SHARED = SharedNodes()
ANSWERED = SharedNodes()
"""Those of graphs that only answer questions, which may hold what no table can say."""
