"""The derivation of a text that is chosen; `structgen.core.engines.captures` says which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from structgen.core.engines.captures.chart import Chart
from structgen.core.engines.captures.ends import BETWEEN, INSIDE, NONE, Ends, has_place, places, places_down
from structgen.core.engines.captures.network import Edge, Kind

OPEN_INSIDE, OPEN_BETWEEN = -1, -2
"""Targets of rules that shall not end before the text goes on; others are the places where they shall end."""
_OPEN = {OPEN_INSIDE: INSIDE, OPEN_BETWEEN: BETWEEN}


@dataclass(slots=True)
class CapturedPart:
    """A part of the derivation that is shown: a symbol and the bytes that it stands for.

    Attributes:
        symbol: as in rules.
        only: the one terminal that it holds, if that is all.
        is_complete: whether it has ended.
    """

    symbol: int
    start: int
    end: int
    only: int | None
    is_complete: bool


class _Frame(NamedTuple):
    """A rule in progress: its nonterminal, where it began, where it shall end, and those around it with that text."""

    symbol: int
    begin: int
    target: int
    around: frozenset[int]


class _Leaf(NamedTuple):
    terminal: int
    start: int
    end: int
    is_complete: bool


@dataclass(slots=True)
class _Step:
    """What was chosen at a node: to end the rule or the walk, a terminal, or a nonterminal that shall end somewhere."""

    edge: Edge | None  # None: nothing more was begun
    start: int = 0
    end: int = 0
    is_complete: bool = True
    frame: _Frame | None = None


class Derivation:
    """Walks down the derivation that is chosen. O(its size), but for what the chart finds. Make one for each walk."""

    def __init__(self, chart: Chart) -> None:
        self._chart, self._network = chart, chart.network
        self._leaves: list[_Leaf] = []
        self._parts: list[CapturedPart] = []
        self._shown: list[tuple[int, int]] = []  # parts in progress: their place in the list, the leaves before them

    def parts(self, *, is_finished: bool) -> list[CapturedPart] | None:
        """The captured symbols and embedded texts, outer ones first; None for no text of the grammar.

        Args:
            is_finished: whether the text is whole. If it is not, and can go on, it is read as one that does.
        """
        network = self._network
        root = network.begin[network.start]
        if root < 0:
            return None
        ends = self._chart.ends(root + network.size, 0)
        if not is_finished and ends[2]:
            target = OPEN_INSIDE if ends[2] & INSIDE else OPEN_BETWEEN
        elif ends[1]:
            target = next(places_down(ends))
        else:
            return None
        self._walk(root + network.size, _Frame(network.start, 0, target, frozenset()))
        return self._parts

    def _walk(self, node: int, frame: _Frame) -> None:
        waiting: list[tuple[int, int, _Frame]] = [(node, 0, frame)]  # a node (-1: the rule's end), a place, the rule
        self._begin(frame.symbol, 0)
        while waiting:
            node, offset, frame = waiting.pop()
            step = None if node < 0 else self._choose(node, offset, frame)
            if step is not None and step.edge is None:
                break
            if step is None or step.edge is None or step.edge.kind == Kind.END:
                self._finish(frame.symbol)
            elif step.frame is None:
                self._leaf(~step.edge.symbol, step)
                if not step.is_complete:
                    break
                waiting.append((step.edge.child, step.end, frame))
            else:
                inner = step.frame
                waiting.append((-1 if step.edge.is_last else step.edge.child, inner.target, frame))
                if self._is_skipped(inner):
                    if inner.target > inner.begin:
                        # It may be more than one terminal, for all we know.
                        self._leaves += [_Leaf(-1, inner.begin, inner.target, True)] * 2
                    if inner.target in _OPEN:
                        break
                else:
                    self._begin(inner.symbol, offset)
                    waiting.append((step.edge.called, offset, inner))
        while self._shown:
            if self._shown[-1][1] == len(self._leaves):  # it was not begun
                del self._parts[self._shown.pop()[0]]
            else:
                self._close(is_complete=False)

    # --- what is shown ---
    def _is_skipped(self, frame: _Frame) -> bool:
        """Whether nothing in a rule is shown, nor what it holds needed for a part around it."""
        if frame.symbol in self._network.shows:
            return False
        return not self._shown or not (frame.target in _OPEN or self._network.ignored)

    def _begin(self, symbol: int, offset: int) -> None:
        if symbol in self._network.names:
            self._shown.append((len(self._parts), len(self._leaves)))
            self._parts.append(CapturedPart(symbol, offset, offset, None, True))

    def _finish(self, symbol: int) -> None:
        if symbol in self._network.names:
            self._close(is_complete=True)

    def _close(self, *, is_complete: bool) -> None:
        index, first = self._shown.pop()
        part, leaves = self._parts[index], self._leaves
        part.is_complete = is_complete
        if first < len(leaves):
            part.start, part.end = leaves[first].start, leaves[-1].end
            if len(leaves) == first + 1:
                part.only = leaves[first].terminal

    def _leaf(self, terminal: int, step: _Step) -> None:
        self._leaves.append(_Leaf(terminal, step.start, step.end, step.is_complete))
        if ~terminal in self._network.shows:
            self._parts.append(CapturedPart(~terminal, step.start, step.end, terminal, step.is_complete))

    # --- what is chosen ---
    def _choose(self, node: int, offset: int, frame: _Frame) -> _Step:
        """The first way on that leads to the frame's target, and the longest there is of what it begins with."""
        if frame.target in _OPEN and offset == self._chart.size:
            return _Step(None)
        allowed = self._allowed_empties(offset, frame)
        for edge in self._network.edges[node]:
            if edge.kind == Kind.END:
                step = _Step(edge) if self._holds(self._by_edge(node, edge, offset), frame.target) else None
            elif allowed is not None:
                step = self._empty(edge, offset, frame, allowed)
            elif edge.kind == Kind.CALL:
                step = self._call(edge, offset, frame)
            else:
                step = self._terminal(edge, offset, frame)
            if step is not None:
                return step
        raise AssertionError("the chart says that there is a derivation")

    def _by_edge(self, node: int, edge: Edge, offset: int) -> Ends:
        if offset == self._chart.size:
            return (offset, 1, 0) if edge.kind == Kind.END else NONE
        return self._chart.ends_of_edge(node, edge, offset)

    def _holds(self, ends: Ends, target: int) -> bool:
        if target in _OPEN:
            return bool(ends[2] & _OPEN[target])
        return has_place(ends, target)

    def _leads(self, node: int, offset: int, target: int) -> bool:
        self._chart.count(1)
        return self._holds(self._chart.ends(node, offset), target)

    def _terminal(self, edge: Edge, offset: int, frame: _Frame) -> _Step | None:
        """The longest text of a terminal that leaves the rest possible; of equally long ones the one begun first."""
        chart, target = self._chart, frame.target
        if offset == chart.size:
            is_empty = self._network.is_nullable(edge.symbol) and self._remainder_leads(edge, offset, frame)
            return _Step(edge, offset, offset) if is_empty else None
        starts, is_skipping = chart.starts(offset)
        best: _Step | None = None
        for start in starts:
            if start == chart.size:
                break
            text_ends = chart.text_ends(~edge.symbol, start)
            if text_ends.is_open and target == OPEN_INSIDE:
                return _Step(edge, start, chart.size, False)
            for end in reversed(text_ends.ends):
                if best is not None and end <= best.end:
                    break
                if (end > start or start == offset) and self._remainder_leads(edge, end, frame):
                    best = _Step(edge, start, end)
                    break
        if best is None and target == OPEN_BETWEEN and (is_skipping or starts[-1] == chart.size):
            return _Step(None)
        return best

    def _call(self, edge: Edge, offset: int, frame: _Frame) -> _Step | None:
        """The longest text of a nonterminal that leaves the rest possible; longest is one that is open, as all is."""
        target = frame.target
        called = self._chart.ends(edge.called, offset)
        if (target in _OPEN or edge.is_last) and self._holds(called, target):
            inner = self._inner(edge, offset, target, frame)
            if inner is not None:
                return _Step(edge, frame=inner)
        if edge.is_last:
            return None
        for end in places_down(called, None if target in _OPEN else target):
            if self._remainder_leads(edge, end, frame):
                inner = self._inner(edge, offset, end, frame)
                if inner is not None:
                    return _Step(edge, frame=inner)
        return None

    # --- no rule contains itself over the same text ---
    def _inner(self, edge: Edge, offset: int, target: int, frame: _Frame) -> _Frame | None:
        """The rule inside a frame, if it does not need those around it over the same text."""
        if offset != frame.begin or target != frame.target:
            return _Frame(edge.symbol, offset, target, frozenset())
        around = frame.around | {frame.symbol}
        if self._is_looped(edge.symbol, target, around):
            if edge.symbol in around:
                return None
            if target == offset:
                if edge.symbol not in self._network.empties_without(around):
                    return None
            elif not self._escapes(edge.called, offset, target, around | {edge.symbol}):
                return None
        return _Frame(edge.symbol, offset, target, around)

    def _remainder_leads(self, edge: Edge, end: int, frame: _Frame) -> bool:
        """Whether what follows a symbol leads to the target, without the rules around it if it has all of the text."""
        if not self._leads(edge.child, end, frame.target):
            return False
        around = frame.around | {frame.symbol}
        if end != frame.begin or not self._is_looped(frame.symbol, frame.target, around):
            return True
        return self._escapes(edge.child, end, frame.target, around)

    def _is_looped(self, symbol: int, target: int, around: frozenset[int]) -> bool:
        """Whether a nonterminal may lead back to one of those around it over the same text."""
        loops = self._network.opens if target in _OPEN else self._network.same
        loop = loops[symbol]
        return loop >= 0 and any(loops[other] == loop for other in around)

    def _escapes(self, node: int, offset: int, target: int, without: frozenset[int]) -> bool:
        """Whether a rule can go on from a node to a target so that no nonterminal of some has all of that text."""
        seen = set(without)
        todo = [node]
        while todo:
            for inner in self._wholes(todo.pop(), offset, target):
                if inner is None:
                    return True
                if inner.symbol not in seen:
                    seen.add(inner.symbol)
                    todo.append(inner.called)
        return False

    def _wholes(self, node: int, offset: int, target: int) -> Iterator[Edge | None]:
        """The nonterminals that may be all of the text of a rule; None where it can be made of more than one part."""
        nodes, seen = [node], {node}
        while nodes:
            node = nodes.pop()
            for edge in self._network.edges[node]:
                is_after = edge.kind != Kind.END and not edge.is_last and self._network.is_nullable(edge.symbol)
                if is_after and edge.child not in seen:
                    seen.add(edge.child)
                    nodes.append(edge.child)
                if edge.kind == Kind.CALL:
                    yield from self._whole(edge, offset, target)
                elif edge.kind != Kind.EMBED or not self._network.is_nullable(edge.symbol):
                    if self._holds(self._by_edge(node, edge, offset), target):
                        yield None
                elif offset < self._chart.size:
                    text_ends = self._chart.text_ends(~edge.symbol, offset)
                    if text_ends.is_open and target == OPEN_INSIDE:
                        yield None
                    if any(end > offset and self._leads(edge.child, end, target) for end in text_ends.ends):
                        yield None

    def _whole(self, edge: Edge, offset: int, target: int) -> Iterator[Edge | None]:
        called = self._chart.ends(edge.called, offset)
        if (edge.is_last or target in _OPEN) and self._holds(called, target):
            yield edge
        for end in () if edge.is_last else places(called):
            if end > offset and self._leads(edge.child, end, target):
                yield edge if end == target else None

    def _allowed_empties(self, offset: int, frame: _Frame) -> frozenset[int] | None:
        """What may be empty in a rule that is, where rules can lead to themselves; None: this is no such rule."""
        if frame.target != offset or frame.begin != offset or self._network.same[frame.symbol] < 0:
            return None
        return self._network.empties_without(frame.around | {frame.symbol})

    def _empty(self, edge: Edge, offset: int, frame: _Frame, allowed: frozenset[int]) -> _Step | None:
        if edge.symbol not in allowed or not self._is_empty(edge.child, allowed):
            return None
        if edge.symbol < 0:
            return _Step(edge, offset, offset)
        return _Step(edge, frame=_Frame(edge.symbol, offset, offset, frame.around | {frame.symbol}))

    def _is_empty(self, node: int, allowed: frozenset[int]) -> bool:
        nodes = [node]
        while nodes:
            for edge in self._network.edges[nodes.pop()]:
                if edge.kind == Kind.END:
                    return True
                if edge.symbol in allowed:
                    nodes.append(edge.child)
        return False
