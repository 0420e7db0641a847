"""How many values nodes have, as far as it matters for arrays of distinct items.

``endless``: more values than could ever be written (a bounded integer with a million values counts as endless too).
Of other nodes values are counted up to what is needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.objects import Live
from structgen.core.engines.json.value_graph.value_enumeration import FewValues


def is_endless(node: ValueNode, endless: Live) -> bool:
    """Whether a live node has endlessly many values, given which others have."""
    return (
        any(choice.is_endless for choice in node.numbers)
        or any(spec.is_endless for spec in node.strings)
        or any(spec.is_endless(endless) for spec in node.objects)
        or any(spec.is_endless(endless) for spec in node.arrays)
    )


def endless_nodes(nodes: Iterable[ValueNode]) -> set[ValueNode]:
    """The live nodes with endlessly many values: the least fixpoint."""
    waiting = [node for node in nodes if node.live]
    endless: set[ValueNode] = set()
    changed = True
    while changed:
        changed = False
        for node in list(waiting):
            if is_endless(node, endless.__contains__):
                endless.add(node)
                waiting.remove(node)
                changed = True
    return endless


def count_values(node: ValueNode, enough: int, endless: Live, live: Live, listed: int) -> tuple[int, bool]:
    """(how many values a node has at least, up to ``enough``; whether that is exact).

    At most ``listed`` values are listed, of objects and arrays and where alternatives may overlap.
    """
    if endless(node):
        return enough, True
    total, exact = node.flags.bit_count(), True
    for counts in ([choice.count() for choice in node.numbers], [spec.count() for spec in node.strings]):
        total += max((count for count, _ in counts), default=0)
        exact = exact and len(counts) < 2 and all(is_exact for _, is_exact in counts)
    if total < enough and (node.objects or node.arrays or not exact):
        few = FewValues(live)
        limit = min(enough, listed)
        if not exact:
            scalars, exact = few.scalars(node, limit)
            total = max(total, len(scalars))
        compounds, all_listed = few.compounds(node, limit)
        total, exact = total + len(compounds), exact and all_listed
    return min(total, enough), exact or total >= enough
