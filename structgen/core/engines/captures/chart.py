"""What a text can be: where rules and terminals that begin at a place of it can end.

Each node of the network has, at each place of the text where it is asked for, the set of the places where its rule can
end. Sets are computed from the right to the left, each once, as sets of bits; terminals are read through their
automata, whose states have sets of their own, so that runs which come together are read once. That takes O(n³ / 64)
steps at worst for a text of n bytes, and about n for grammars that leave little open. No recursion: work that waits
for other work is kept on a list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Protocol

from structgen.core.engines.captures.ends import (
    BETWEEN,
    INSIDE,
    NONE,
    Ends,
    TextEnds,
    has_place,
    joined,
    places,
    without,
)
from structgen.core.engines.captures.network import Edge, Kind, Network
from structgen.errors import CapturesTooComplexError

MAX_STEPS = 10_000_000
"""Steps of automata and joins of sets for one text, a join counted by its size."""
MAX_SETS = 3_000_000
"""Sets that are kept for one text, each some 200 bytes; a large one counts by its size."""
_STEP_BITS, _SET_BITS = 1 << 9, 1 << 10


class TextReader(Protocol):
    """A grammar that reads a terminal."""

    def text_ends(self, data: bytes, offset: int) -> TextEnds:
        """Where its texts can end that begin at a place."""
        ...


class Chart:
    """The sets of one text. Make one for each text."""

    def __init__(self, network: Network, data: bytes, readers: Mapping[int, TextReader]) -> None:
        self.network = network
        self.data = data
        self.size = len(data)
        self._readers = readers
        self._width = len(data) + 1
        self._sets: dict[int, Ends] = {}
        self._loops: dict[tuple[int, int], _Loop] = {}
        self._after: dict[tuple[int, int, int], Ends] = {}
        self._skips: dict[int, tuple[tuple[int, ...], bool]] = {}
        self._texts: dict[tuple[int, int], TextEnds] = {}
        self._automata = network.automata
        # Sets of automaton states are numbered after those of nodes: by the node after the terminal, then the state.
        self._base, self._after_bases, self._bases = network.bases
        self._kinds: list[Ends] = [(self.size, is_end, flag) for flag in (0, BETWEEN) for is_end in (0, 1)]
        self._steps = self._kept = 0

    # --- what is asked of it ---
    def ends(self, node: int, offset: int) -> Ends:
        """Where the rule can end, from a node on that is reached at a place."""
        result = self._known(node, offset)
        if result is None:
            self._solve(node * self._width + offset)
            result = self._sets[node * self._width + offset]
        return result

    def ends_of_edge(self, node: int, edge: Edge, offset: int) -> Ends:
        """The same by one edge that is a terminal, or the end of the rule."""
        self.ends(node, offset)
        ends = self._by_edge(node, edge, offset)
        assert not isinstance(ends, list)
        return ends

    def text_ends(self, terminal: int, offset: int) -> TextEnds:
        """Where a terminal can end that begins at a place before the end of the text."""
        if terminal in self._readers:
            ends_here = self._texts.get((terminal, offset))
            if ends_here is None:
                ends_here = self._texts[terminal, offset] = self._readers[terminal].text_ends(self.data, offset)
                self.count(len(self.data) - offset if ends_here.is_open else (ends_here.ends or [offset])[-1] - offset)
            return ends_here
        automaton, state, ends = self._automata[terminal], 0, list[int]()
        for end in range(offset, self.size):
            state = automaton.row(state)[self.data[end]]
            if state < 0:
                return TextEnds(ends, False)
            if automaton.accepting[state]:
                ends.append(end + 1)
        return TextEnds(ends, automaton.goes_on[state])

    def starts(self, offset: int) -> tuple[tuple[int, ...], bool]:
        """Where a terminal can begin after what is ignored at a place, that place included; and whether the text ends
        inside of what is ignored."""
        if not self.network.ignored:
            return (offset,), False
        skipped = self._skips.get(offset)
        if skipped is None:
            skipped = self._skips[offset] = self._skip(offset)
        return skipped

    def _skip(self, offset: int) -> tuple[tuple[int, ...], bool]:
        begun = {(t, 0) for t in self.network.ignored}
        places, active = [offset], set(begun)
        for position in range(offset, self.size):
            self.count(len(active))
            byte = self.data[position]
            active = {(t, state) for t, s in active if (state := self._automata[t].row(s)[byte]) >= 0}
            if not active:
                return tuple(places), False
            if position + 1 < self.size and any(self._automata[t].accepting[state] for t, state in active):
                places.append(position + 1)
                active |= begun
        if any(self._automata[t].accepting[state] for t, state in active):
            places.append(self.size)
        return tuple(places), offset < self.size and any(self._automata[t].goes_on[state] for t, state in active)

    # --- evaluation ---
    def _known(self, node: int, offset: int) -> Ends | None:
        """A set that is there, or that needs no work."""
        network = self.network
        if offset == self.size:
            return self._kinds[network.nullable[node] + 2 * network.goes_on[node]]
        if not network.first[node][self.data[offset]]:
            return (offset, 1, 0) if node < network.size and network.nullable[node] else NONE
        return self._sets.get(node * self._width + offset)

    def _solve(self, key: int) -> None:
        """Compute a set, and before it all that it needs."""
        waiting = [key]
        first_state = 2 * self.network.size * self._width
        while waiting:
            key = waiting[-1]
            if key in self._sets:
                waiting.pop()
                continue
            if key >= first_state:
                missing = self._read(key)
            else:
                node, offset = divmod(key, self._width)
                is_loop = self.network.is_looped[self.network.component[node]]
                missing = self._loop(node, offset) if is_loop else self._node(node, offset)
            self.count(1 + len(missing))
            waiting += missing

    def _keep(self, key: int, ends: Ends) -> None:
        self._sets[key] = ends
        self._kept += 1 + ends[1].bit_length() // _SET_BITS

    def count(self, steps: int) -> None:
        """Count steps. Raises CapturesTooComplexError where there are too many."""
        self._steps += steps
        for budget, count, limit in (("steps", self._steps, MAX_STEPS), ("sets", self._kept, MAX_SETS)):
            if count > limit:
                raise CapturesTooComplexError(
                    f"finding captures in a text of {self.size:,} bytes", budget=budget, limit=limit
                )

    def _node(self, node: int, offset: int) -> list[int]:
        """Compute the set of a node that does not need itself; gives what must be known before."""
        ends, missing = NONE, list[int]()
        for edge in self.network.edges[node]:
            if edge.kind == Kind.CALL:
                called = self._known(edge.called, offset)
                if called is None:
                    missing.append(edge.called * self._width + offset)
                    continue
                more: Ends | list[int] = called if edge.is_last else self._followed(called, edge.child)
            else:
                more = self._by_edge(node, edge, offset)
            if isinstance(more, list):
                missing += more
            else:
                ends = joined(ends, more)
        if not missing:
            self._keep(node * self._width + offset, ends)
        return missing

    def _followed(self, ends: Ends, child: int) -> Ends | list[int]:
        """The ends of a node after each of some ends, or what must be known before.

        Where a part can end nearly anywhere, so can the one that begins a byte later: what was found for that one lacks
        one end, mostly.
        """
        if ends[1] & (ends[1] - 1):
            shift = (ends[1] >> 1 & -(ends[1] >> 1)).bit_length()
            remaining = self._after.get((child, ends[0] + shift, ends[1] >> shift))
            if remaining is not None:
                first = self._known(child, ends[0])
                if first is None:
                    return [child * self._width + ends[0]]
                ends_after = joined(joined(remaining, first), (0, 0, ends[2]))
                self.count(1 + ends_after[1].bit_length() // _STEP_BITS)
                self._after[child, ends[0], ends[1]] = ends_after
                self._kept += 1
                return ends_after
        ends_after, missing = (0, 0, ends[2]), list[int]()
        steps = 0
        for end in places(ends):
            steps += 1
            more = self._known(child, end)
            if more is None:
                missing.append(child * self._width + end)
            elif more is not NONE:
                ends_after = joined(ends_after, more)
                steps += ends_after[1].bit_length() // _STEP_BITS
        self.count(steps)
        if not missing and steps > 1:
            self._after[child, ends[0], ends[1]] = ends_after
            self._kept += 1
        return missing or ends_after

    def _by_edge(self, node: int, edge: Edge, offset: int) -> Ends | list[int]:
        """The ends by a terminal, or by the end of the rule; or what must be known before."""
        starts, is_skipping = self.starts(offset)
        if edge.kind == Kind.END:
            if node < self.network.size:
                return offset, 1, 0
            return offset, int(starts[-1] == self.size), BETWEEN if is_skipping else 0
        ends, missing = (0, 0, BETWEEN if is_skipping else 0), list[int]()
        for start in starts:
            more: Ends | list[int] | None
            if start == self.size:
                more = (0, 0, BETWEEN)
            elif edge.kind == Kind.EMBED:
                more = self._embedded(edge, start, start == offset)
            elif self._automata[~edge.symbol].row(0)[self.data[start]] < 0:
                continue
            else:
                key = self._base[edge.child] * self._width + start
                more = self._sets.get(key, [key])
            if isinstance(more, list):
                missing += more
            else:
                ends = joined(ends, more)
        return missing or ends

    def _embedded(self, edge: Edge, offset: int, may_be_empty: bool) -> Ends | list[int]:
        """The same by a terminal that another grammar reads; after ignored text its empty text is not looked for."""
        text_ends = self.text_ends(~edge.symbol, offset)
        ends_after, missing = (0, 0, INSIDE if text_ends.is_open else 0), list[int]()
        for end in text_ends.ends:
            if end == offset and not may_be_empty:
                continue
            more = self._known(edge.child, end)
            if more is None:
                missing.append(edge.child * self._width + end)
            else:
                ends_after = joined(ends_after, more)
        return missing or ends_after

    def _read(self, key: int) -> list[int]:
        """Compute the sets of an automaton's states along the text, up to one that is known."""
        width, data, size = self._width, self.data, self.size
        number, offset = divmod(key, width)
        index = bisect_right(self._bases, number) - 1
        base = self._bases[index]
        child, terminal = self._after_bases[index]
        automaton = self._automata[terminal]
        state, accepting = number - base, automaton.accepting
        chain: list[tuple[int, Ends | None]] = []
        missing: list[int] = []
        while True:
            key = (base + state) * width + offset
            last = self._sets.get(key)
            if last is not None:
                break
            after = None
            if accepting[state]:
                after = self._known(child, offset)
                if after is None:
                    missing.append(child * width + offset)
            chain.append((key, after))
            if offset == size:
                last = (0, 0, INSIDE if automaton.goes_on[state] else 0)
                break
            state = automaton.row(state)[data[offset]]
            if state < 0:
                last = NONE
                break
            offset += 1
        self.count(len(chain))
        if missing:
            return missing
        steps = 0
        for key, after in reversed(chain):
            if after is not None and after is not NONE:
                last = joined(last, after)
                steps += 1 + last[1].bit_length() // _STEP_BITS
            self._sets[key] = last
        self.count(steps)
        self._kept += len(chain) + steps * _STEP_BITS // _SET_BITS
        return []

    def _loop(self, node: int, offset: int) -> list[int]:
        """Compute the sets of nodes that need each other at the same place; gives what must be known before."""
        component = self.network.component[node]
        loop = self._loops.get((component, offset))
        if loop is None:
            loop = self._loops[component, offset] = _Loop({n: NONE for n in self.network.members[component]})
        missing = self._grow(loop, offset)
        if not missing:
            for member, ends in loop.ends.items():
                self._keep(member * self._width + offset, ends)
            del self._loops[component, offset]
        return missing

    def _grow(self, loop: _Loop, offset: int) -> list[int]:
        """Let the sets of a loop grow as far as they do; what is known is looked at once."""
        missing: list[int] = []
        is_growing = True
        while is_growing and not missing:
            is_growing = False
            for node, before in loop.ends.items():
                ends = before
                for index, edge in enumerate(self.network.edges[node]):
                    more = self._new_ends(loop, node, index, edge, offset)
                    if isinstance(more, list):
                        missing += more
                    else:
                        ends = joined(ends, more)
                if ends != before:
                    loop.ends[node] = ends
                    is_growing = True
        return missing

    def _new_ends(self, loop: _Loop, node: int, index: int, edge: Edge, offset: int) -> Ends | list[int]:
        """What an edge adds to its node since it was last looked at; or what must be known before."""
        if edge.kind != Kind.CALL:
            if (node, index) in loop.seen:
                return NONE
            more = self._by_edge_within(loop, node, edge, offset)
            if not isinstance(more, list) and not self._is_inner_empty(loop, edge):
                loop.seen[node, index] = NONE
            return more
        called = loop.ends.get(edge.called)
        if called is None:
            called = self._known(edge.called, offset)
            if called is None:
                return [edge.called * self._width + offset]
        if edge.is_last:
            return called
        seen = loop.seen.get((node, index), NONE)
        ends, missing = (0, 0, called[2]), list[int]()
        steps = 1
        for end in places(without(called, seen)):
            steps += 1 + ends[1].bit_length() // _STEP_BITS
            after = loop.ends.get(edge.child) if end == offset else None
            after = self._known(edge.child, end) if after is None else after
            if after is None:
                missing.append(edge.child * self._width + end)
            else:
                ends = joined(ends, after)
        if edge.child in loop.ends and has_place(called, offset):  # after nothing: it may grow
            ends = joined(ends, loop.ends[edge.child])
        self.count(steps)
        if not missing:
            loop.seen[node, index] = called
        return missing or ends

    def _by_edge_within(self, loop: _Loop, node: int, edge: Edge, offset: int) -> Ends | list[int]:
        """`_by_edge`, where the node after an empty embedded text may belong to the loop."""
        if not self._is_inner_empty(loop, edge):
            return self._by_edge(node, edge, offset)
        self._sets[edge.child * self._width + offset] = loop.ends[edge.child]
        ends = self._by_edge(node, edge, offset)
        del self._sets[edge.child * self._width + offset]
        return ends

    def _is_inner_empty(self, loop: _Loop, edge: Edge) -> bool:
        return edge.kind == Kind.EMBED and edge.child in loop.ends


class _Loop:
    """Sets that grow together, and what was looked at of each edge: the ends of what it calls."""

    __slots__ = ("ends", "seen")

    def __init__(self, ends: dict[int, Ends]) -> None:
        self.ends = ends
        self.seen: dict[tuple[int, int], Ends] = {}
