"""UTF-8 as a tree over code-point classes (RFC 3629 section 4).

The multi-byte characters, cut into segments of one class each, become a tree: the lead byte picks a node, each
continuation byte a child, the last one a class. Equal subtrees are shared, so a partition that treats all non-ASCII
characters alike needs seven nodes whatever its automaton's size.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

Segments = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False)
class Utf8Tree:
    """The shared tree, children before parents.

    ``children[i, j]`` for continuation byte ``0x80 + j`` is a class (``leaf[i]`` true) or a node; −1 is not UTF-8.
    ``uniform[i]`` is the one class below node ``i``, or −1 if there are several. ``root[j]`` is the node after lead
    byte ``0x80 + j``, or −1.
    """

    children: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.uint8]
    uniform: npt.NDArray[np.int32]
    root: npt.NDArray[np.int32]

    @cached_property
    def byte_classes(self) -> tuple[npt.NDArray[np.int32], int]:
        """For each byte from ``0x80`` on its class, and how many classes there are, numbered by first appearance: bytes
        of one class lead to the same, wherever they stand."""
        number: dict[tuple[int, ...], int] = {}
        after = self.children.T.tolist() + [()] * 64
        keys = [(lead, *nodes) for lead, nodes in zip(self.root.tolist(), after, strict=True)]
        return np.array([number.setdefault(key, len(number)) for key in keys], np.int32), len(number)


class _Builder:
    """Collects shared nodes; ``window`` keeps overlong encodings out."""

    def __init__(self, segments: Segments) -> None:
        self.all_segments = segments
        self.segments: list[tuple[int, int, int]] = []
        self.starts: list[int] = []
        self.nodes: dict[tuple[bool, tuple[int, ...]], int] = {}
        self.uniform: list[int] = []
        self.constants: dict[tuple[int, int], int] = {}  # nodes below which there is one class, by levels and class

    def window(self, low: int, high: int) -> None:
        """Read only the characters ``low..high`` from now on."""
        cut = ((max(first, low), min(last, high), name) for first, last, name in self.all_segments)
        self.segments = [segment for segment in cut if segment[0] <= segment[1]]
        self.starts = [segment[0] for segment in self.segments]

    def constant(self, low: int, high: int) -> int | None:
        """The class of all of ``low..high`` (−1: none is a character), or None if they differ."""
        index = bisect_right(self.starts, low) - 1
        if index >= 0 and low <= self.segments[index][1]:
            return self.segments[index][2] if high <= self.segments[index][1] else None
        following = self.starts[index + 1] if index + 1 < len(self.starts) else high + 1
        return -1 if high < following else None

    def node(self, low: int, levels: int) -> int:
        """The node for the ``64 ** levels`` code points from ``low`` on, −1 if none of them is a character."""
        step = 64 ** (levels - 1)
        constant = self.constant(low, low + 64 * step - 1)
        if constant == -1:
            return -1
        if constant is not None:
            number = self.constants.get((levels, constant))
            if number is None:
                row = [constant if levels == 1 else self.node(low, levels - 1)] * 64
                number = self.constants[levels, constant] = self._named(levels == 1, row)
            return number
        if levels == 1:
            return self._named(True, self._classes(low))
        return self._named(False, [self.node(low + j * step, levels - 1) for j in range(64)])

    def _classes(self, low: int) -> list[int]:
        """The classes of 64 characters, -1 where there is none."""
        row = [-1] * 64
        index = max(bisect_right(self.starts, low) - 1, 0)
        for first, last, name in self.segments[index:]:
            if first >= low + 64:
                break
            for point in range(max(first, low), min(last, low + 63) + 1):
                row[point - low] = name
        return row

    def _named(self, leaf: bool, row: list[int]) -> int:
        """The node with these children."""
        key = (leaf, tuple(row))
        index = self.nodes.get(key)
        if index is None:
            index = self.nodes[key] = len(self.nodes)
            below = {child if leaf else self.uniform[child] for child in row if child >= 0}
            self.uniform.append(below.pop() if len(below) == 1 else -1)
        return index


@lru_cache(maxsize=256)
def utf8_tree(segments: Segments) -> Utf8Tree:
    """The tree of ``segments`` (``(first, last, class)``, ascending; ASCII is not looked at)."""
    builder = _Builder(segments)
    root = [-1] * 128
    builder.window(0x80, 0x7FF)
    for lead in range(0xC2, 0xE0):
        root[lead - 0x80] = builder.node((lead & 0x1F) << 6, 1)
    builder.window(0x800, 0xFFFF)
    for lead in range(0xE0, 0xF0):
        root[lead - 0x80] = builder.node((lead & 0x0F) << 12, 2)
    builder.window(0x10000, 0x10FFFF)
    for lead in range(0xF0, 0xF5):
        root[lead - 0x80] = builder.node((lead & 0x07) << 18, 3)
    count = len(builder.nodes)
    children = np.full((count, 64), -1, np.int32)
    leaf = np.zeros(count, np.uint8)
    for (is_leaf, row), index in builder.nodes.items():
        children[index] = row
        leaf[index] = is_leaf
    return Utf8Tree(children, leaf, np.array(builder.uniform, np.int32), np.array(root, np.int32))
