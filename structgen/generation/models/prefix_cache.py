"""Prefixes that sequences have read, as a radix tree over token ids: keys and values for sequences that begin alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Layers: TypeAlias = "dict[int, tuple[Any, Any]]"
"""Keys and values of some tokens by layer: tensors [heads, tokens, width]."""


class _Node:
    """Tokens after those of the node above, with their keys and values."""

    __slots__ = ("children", "layers", "parent", "tokens", "used")

    def __init__(self, tokens: tuple[int, ...], layers: Layers, parent: _Node | None) -> None:
        self.tokens, self.layers, self.parent = tokens, layers, parent
        self.children: dict[int, _Node] = {}
        self.used = 0

    @property
    def bytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for pair in self.layers.values() for tensor in pair)


class PrefixTree:
    """Keys and values by the tokens that they are of; the least recently used leave first.

    Each salt has a tree of its own: what one tenant has sent is nothing that another could find out by timing.

    Args:
        max_bytes: what all may take.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.bytes = max_bytes, 0
        self._roots: dict[str, _Node] = {}
        self._clock = 0

    def match(self, tokens: Sequence[int], salt: str) -> list[tuple[int, Layers]]:
        """The pieces of the longest known prefix of ``tokens``: how many tokens, and their keys and values (views).
        O(tokens)."""
        pieces = []
        for node, count in self._path(tokens, salt):
            self._clock += 1
            node.used = self._clock
            pieces.append((count, node.layers if count == len(node.tokens) else _cut(node.layers, 0, count)))
        return pieces

    def known(self, tokens: Sequence[int], salt: str) -> int:
        """How many tokens ``match`` would find."""
        return sum(count for _, count in self._path(tokens, salt))

    def texts(self, salt: str) -> list[Sequence[int]]:
        """All texts of a salt that are no beginnings of others. From any thread. O(their tokens)."""
        whole_texts: list[Sequence[int]] = []
        waiting = [((), self._roots[salt])] if salt in self._roots else list[tuple[tuple[int, ...], _Node]]()
        while waiting:
            above, node = waiting.pop()
            whole, children = (*above, *node.tokens), list(node.children.values())
            waiting += [(whole, child) for child in children]
            if not children:
                whole_texts.append(whole)
        return whole_texts

    def add(self, tokens: Sequence[int], layers: Layers, salt: str) -> None:
        """Keep a copy of the keys and values of ``tokens``, as far as they are not known. O(tokens). Nothing is kept of
        what is too much for the tree."""
        path = self._path(tokens, salt)
        length = sum(count for _, count in path)
        child = _Node(tuple(tokens[length:]), _cut(layers, length, None), None)
        if not child.tokens or child.bytes > self.max_bytes:
            return
        node = path[-1][0] if path else self._roots.setdefault(salt, _Node((), {}, None))
        if path and path[-1][1] < len(node.tokens):
            node = self._split(*path[-1])
        child.parent, child.layers = node, _copied(child.layers)
        node.children[child.tokens[0]] = child
        self._clock += 1
        child.used = self._clock
        self.bytes += child.bytes
        self.shrink(self.max_bytes)

    def shrink(self, max_bytes: int) -> None:
        """Forget what was not used for longest until no more than this is left."""
        while self.bytes > max_bytes:
            leaf = min(self._leaves(), key=lambda node: node.used)
            self.bytes -= leaf.bytes
            assert leaf.parent is not None
            del leaf.parent.children[leaf.tokens[0]]
            if leaf.parent.parent is None and not leaf.parent.children:
                self._roots = {salt: root for salt, root in self._roots.items() if root is not leaf.parent}

    def _path(self, tokens: Sequence[int], salt: str) -> list[tuple[_Node, int]]:
        """The nodes along ``tokens``, with how many of each node's tokens agree; only the last may not agree whole."""
        node, start, path = self._roots.get(salt), 0, []
        while node is not None and start < len(tokens) and (child := node.children.get(tokens[start])) is not None:
            count = common(child.tokens, tokens[start : start + len(child.tokens)])
            path.append((child, count))
            node, start = (child if count == len(child.tokens) else None), start + count
        return path

    def _split(self, node: _Node, count: int) -> _Node:
        """Cut a node in two after ``count`` tokens; the upper one."""
        assert node.parent is not None
        upper = _Node(node.tokens[:count], _copied(_cut(node.layers, 0, count)), node.parent)
        upper.used = node.used
        node.parent.children[node.tokens[0]] = upper
        node.tokens, node.layers, node.parent = node.tokens[count:], _copied(_cut(node.layers, count, None)), upper
        upper.children[node.tokens[0]] = node
        return upper

    def _leaves(self) -> list[_Node]:
        leaves, waiting = [], [child for root in self._roots.values() for child in root.children.values()]
        while waiting:
            node = waiting.pop()
            waiting += node.children.values()
            if not node.children:
                leaves.append(node)
        return leaves


def _cut(layers: Layers, start: int, end: int | None) -> Layers:
    """Views of the keys and values of some of the tokens."""
    return {layer: (keys[:, start:end], values[:, start:end]) for layer, (keys, values) in layers.items()}


def _copied(layers: Layers) -> Layers:
    """The same in memory of their own: a view would keep the whole alive."""
    return {layer: (keys.clone(), values.clone()) for layer, (keys, values) in layers.items()}


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their start. O(n log n) of comparing memory."""
    one, other = tuple(one), tuple(other)
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
