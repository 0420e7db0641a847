"""Which nodes of a graph lead back to each other."""

from __future__ import annotations

from collections.abc import Sequence


def strong_components(edges: Sequence[Sequence[int]], used: Sequence[bool]) -> list[list[int]]:
    """Strongly connected components of the used nodes, predecessors first (Tarjan's algorithm without recursion)."""
    size = len(edges)
    index, low = [-1] * size, [0] * size
    on_stack = [False] * size
    stack: list[int] = []
    components: list[list[int]] = []
    counter = 0
    for root in range(size):
        if index[root] >= 0 or not used[root]:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = counter
        counter += 1
        stack.append(root)
        on_stack[root] = True
        while work:
            y, successors = work[-1]
            for z in successors:
                if index[z] < 0:
                    index[z] = low[z] = counter
                    counter += 1
                    stack.append(z)
                    on_stack[z] = True
                    work.append((z, iter(edges[z])))
                    break
                if on_stack[z]:
                    low[y] = min(low[y], index[z])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[y])
                if low[y] == index[y]:
                    start = stack.index(y) if len(stack) < 8 else len(stack) - 1 - stack[::-1].index(y)
                    component = stack[start:]
                    del stack[start:]
                    for z in component:
                        on_stack[z] = False
                    components.append(sorted(component))
    return components[::-1]
