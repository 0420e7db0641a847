"""How much of the compiler's budgets do real schemas use? The defaults of `JsonOptions` come from this.

    python benchmarks/budgets.py DATA        DATA: a folder of MaskBench files

Prints, over all schemas that compile: alternatives of one value, states of one automaton, nodes; median to maximum.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from structgen import JsonOptions
from structgen.benchmarking.table import markdown_table
from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.engines.json.value_graph.items import CountedSpec
from structgen.core.engines.json.value_graph.liveness import reachable
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.scalars import StringSpec
from structgen.core.json_schema.lowering import lower
from structgen.errors import ConstraintError

SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)


def automata(node: ValueNode) -> Iterator[int]:
    """States of the automata of one value node."""
    for string in node.strings:
        if isinstance(string, StringSpec) and string.dfa is not None:
            yield len(string.dfa)
    for spec in node.objects:
        if spec.others is not None and not spec.others.is_one:
            yield len(spec.others.automaton.labels)
    for array in node.arrays:
        if isinstance(array, CountedSpec):
            yield len(array.states)


def main(folder: Path) -> None:
    """Measure and print a table."""
    options = JsonOptions.exact()
    alternatives, states, graphs, refused = [], [], [], 0
    for path in sorted(folder.glob("*.json")):
        try:
            lowered = lower(json.loads(path.read_text(encoding="utf-8"))["schema"], options, None)
            nodes = reachable(ValueGraph(lowered, options).compile(lowered.root))
        except ConstraintError:
            refused += 1
            continue
        alternatives.append(max(max(len(n.objects), len(n.arrays), len(n.strings), len(n.numbers)) for n in nodes))
        states.append(max((count for node in nodes for count in automata(node)), default=0))
        graphs.append(len(nodes))
    print(f"{len(graphs):,} schemas, {refused} refused")
    rows = []
    for name, values, budget in (
        ("alternatives of one value", alternatives, options.max_alternatives),
        ("states of one automaton", states, options.max_automaton_states),
        ("value nodes", graphs, options.max_goals),
    ):
        cells = [f"{np.quantile(values, share, method='higher'):,}" for share in SHARES]
        rows.append([name, *cells, f"{budget:,}"])
    print(markdown_table(["", *("most" if share == 1 else f"p{100 * share:g}" for share in SHARES), "budget"], rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
