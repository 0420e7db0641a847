"""Texts of values that differ, for arrays of which no two items may be equal.

The shortest text of a value node is one of `cheapest_values`. Others are made here: of arrays and objects those that
differ from the shortest in a part or have a part more, and where these are few, all that there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, islice, product
from typing import Protocol

import numpy as np

from structgen.core.engines.json.completion.cheapest_words import Words, code_points, spelled
from structgen.core.engines.json.completion.completion_tables import EnumForm, ObjectForm, Open, bits_of
from structgen.core.engines.json.completion.object_plans import MAX_PARTS, Costs, ObjectPlans
from structgen.core.engines.json.numbers.values import value_texts
from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.node import StringAlternative, ValueNode
from structgen.core.engines.json.value_graph.objects import ObjectSpec
from structgen.core.engines.json.value_graph.scalars import NEVER, EnumSpec, QuoteSpec
from structgen.core.regex.dfa import Dfa

Items = tuple[ValueNode, ...]

MAX_WORDS = 10_000
"""Words of a pattern, or values of a member, that are tried: most may have the wrong length."""
MAX_LISTED = 5_000
"""Steps of a list of all arrays or objects of a spec, and (MAX_VALUES) values of each part in it."""
MAX_VALUES = 64


class ShortestValues(Protocol):
    """What is needed of `cheapest_values.Values`."""

    colon: bytes
    objects: ObjectPlans

    def cost(self, node: ValueNode) -> int: ...
    def text(self, node: ValueNode, depth: int = 0) -> bytes: ...
    def items(self, spec: ArraySpec | CountedSpec, cost: Costs | None = None, start: int = 0) -> Items | None: ...
    def bracketed(self, opening: bytes, parts: list[bytes], closing: bytes, depth: int) -> bytes: ...
    def object_form(self, spec: ObjectSpec) -> ObjectForm: ...
    def enum_form(self, spec: EnumSpec) -> EnumForm: ...
    def words(self, dfa: Dfa | None) -> Words: ...


class DistinctValues:
    """Values of nodes, in different texts. ``values``: the shortest."""

    def __init__(self, values: ShortestValues) -> None:
        self.values = values

    def of(self, node: ValueNode, depth: int = 0) -> Iterator[bytes]:
        """Texts of a node's values, short ones first of each type: all scalars, then objects and arrays, each once."""
        yield from (word for bit, word in enumerate((b"null", b"true", b"false")) if node.flags >> bit & 1)
        for choice in node.numbers:
            yield from value_texts(choice.automaton)
        for spec in node.strings:
            yield from (b'"' + spelled(text) + b'"' for text in self._strings(spec))
        if not (node.arrays or node.objects):
            return
        seen: set[bytes] = set()
        arrays = (self._arrays(spec, depth) for spec in node.arrays)
        for text in chain([self.values.text(node, depth)], *arrays, *(self._objects(s, depth) for s in node.objects)):
            if text not in seen:
                seen.add(text)
                yield text

    def texts(self, spec: ArraySpec | CountedSpec, start: int, nodes: Items, depth: int) -> list[bytes]:
        """Texts of items that must differ: of ``nodes``, which complete an array from ``start`` on (see
        `cheapest_values.Values.items`); where these have too few values, of others that do. Where there seem to be
        none, the shortest is repeated."""
        new = _NewTexts(self, depth)
        if all(map(new.take, nodes)):
            return list(new.used)
        if isinstance(spec, CountedSpec):
            new = _NewTexts(self, depth)
            if new.close(spec, start):
                return list(new.used)
        return [self.values.text(node, depth) for node in nodes]

    # --- arrays ---
    def _arrays(self, spec: ArraySpec | CountedSpec, depth: int) -> Iterator[bytes]:
        """Arrays with all values of one item after the other; then any."""
        equal = (spec.equal or ()) if isinstance(spec, ArraySpec) else ()
        for nodes, index in self._lists(spec):
            texts = self._items(spec, nodes, depth + 1)
            if texts is not None:
                yield self._bracketed(texts, depth)
                if index not in equal and (not spec.needs_pair or index > 1):  # items that are equal stay so
                    for text in self.of(nodes[index], depth + 1):
                        if not (spec.distinct and text in texts):
                            yield self._bracketed([*texts[:index], text, *texts[index + 1 :]], depth)
        if not (spec.needs_pair or equal):
            yield from self._all_arrays(spec, depth)

    def _bracketed(self, parts: list[bytes], depth: int) -> bytes:
        return self.values.bracketed(b"[", parts, b"]", depth)

    def _lists(self, spec: ArraySpec | CountedSpec) -> Iterator[tuple[Items, int]]:
        """Items that an array may have, and one of them that is to vary."""
        if isinstance(spec, CountedSpec):
            yield from self._counted_items(spec)
            return
        nodes = self.values.items(spec)
        longest = max(spec.least, len(spec.prefix)) + (1 if spec.distinct else MAX_PARTS)
        while nodes is not None:
            yield from ((nodes, index) for index in reversed(range(len(nodes))))
            following = [node for node, _ in spec.following(len(nodes)) if node.live]
            nodes = (*nodes, *following) if following and len(nodes) < longest else None

    def _counted_items(self, spec: CountedSpec) -> Iterator[tuple[Items, int]]:
        """Each choice of each state, after the fewest items that lead there; then again and again."""
        paths: dict[int, Items] = {0: ()}
        loops = []
        for state in chain([0], _growing(paths)):
            for node, after in spec.live_choices(state):
                remaining = self.values.items(spec, start=after)
                if remaining is None:
                    continue
                paths.setdefault(after, (*paths[state], node))
                yield (*paths[state], node, *remaining), len(paths[state])
                if after == state and not spec.distinct:
                    loops.append((paths[state], node, remaining))
        for times in range(2, MAX_PARTS if loops else 0):
            for before, node, remaining in loops:
                yield (*before, *[node] * times, *remaining), len(before)

    def _items(self, spec: ArraySpec | CountedSpec, nodes: Items, depth: int) -> list[bytes] | None:
        if not spec.distinct:
            return [self.values.text(node, depth) for node in nodes]
        new = _NewTexts(self, depth)
        return list(new.used) if all(map(new.take, nodes)) else None

    def _all_arrays(self, spec: ArraySpec | CountedSpec, depth: int) -> Iterator[bytes]:
        """All arrays, as far as the steps for it go."""
        listed: dict[ValueNode, list[bytes]] = {}
        waiting: list[tuple[tuple[bytes, ...], int]] = [((), 0)]
        for items, state in islice(waiting, MAX_LISTED):
            if spec.may_close(state):
                yield self._bracketed(list(items), depth)
            for node, after in spec.following(state):
                if node not in listed:
                    listed[node] = list(islice(self.of(node, depth + 1), MAX_VALUES)) if node.live else []
                if len(waiting) < MAX_LISTED:
                    waiting += [
                        ((*items, text), after) for text in listed[node] if not (spec.distinct and text in items)
                    ]

    # --- objects ---
    def _objects(self, spec: ObjectSpec, depth: int) -> Iterator[bytes]:
        """The shortest object with a member more, or with another value of a member; then any."""
        values = self.values
        form = values.object_form(spec)
        plan = values.objects.plan(Open(form), False)
        if plan is None:
            return
        members = {member.key: member.node for member in plan.members}
        have = sum(1 << bit for bit, key in enumerate(form.keys) if key in members)
        yield from self._larger_objects(form, members, have, depth)
        for key, node in members.items():
            for text in self.of(node, depth + 1):
                yield self._written(form, members, {key: text}, depth)
        if not spec.existentials:
            yield from self._all_objects(form, depth)

    def _larger_objects(
        self, form: ObjectForm, members: dict[bytes, ValueNode], have: int, depth: int
    ) -> Iterator[bytes]:
        spec, values = form.spec, self.values
        most = NEVER if spec.most is None else spec.most
        for bit in bits_of(form.allowed & ~have):
            more = (1 << bit | form.dependents.get(bit, 0)) & ~have
            larger = members | {form.keys[other]: form.nodes[other] for other in bits_of(more)}
            if more & ~form.allowed or len(larger) > most or not all(node.live for node in larger.values()):
                continue
            for text in islice(self.of(form.nodes[bit], depth + 1), MAX_WORDS):
                yield self._written(form, larger, {form.keys[bit]: text}, depth)
        if len(members) < most:
            undeclared = (member for _, member in values.objects.undeclared(Open(form), values.cost))
            first = None
            for member in islice((member for member in undeclared if member.key not in members), MAX_WORDS):
                first = first or member
                yield self._written(form, members | {member.key: member.node}, {}, depth)
            if first is not None:
                for text in self.of(first.node, depth + 1):
                    yield self._written(form, members | {first.key: first.node}, {first.key: text}, depth)

    def _written(
        self, form: ObjectForm, members: dict[bytes, ValueNode], other: dict[bytes, bytes], depth: int
    ) -> bytes:
        """An object of members with their shortest values, but for those in ``other``; declared keys in their order."""
        values = self.values
        order = {key: index for index, key in enumerate(form.keys)}
        parts = [
            key + values.colon[1:] + (other.get(key) or values.text(members[key], depth + 1))
            for key in sorted(members, key=lambda key: order.get(key, len(order)))
        ]
        return values.bracketed(b"{", parts, b"}", depth)

    def _all_objects(self, form: ObjectForm, depth: int) -> Iterator[bytes]:
        """All objects of declared members, as far as the steps for it go."""
        spec = form.spec
        bits = [bit for bit in bits_of(form.allowed) if form.nodes[bit].live]
        waiting: list[tuple[int, int, tuple[bytes, ...]]] = [(0, 0, ())]
        for index, have, parts in islice(waiting, MAX_LISTED):
            if index == len(bits):
                needed = form.required
                for bit in bits_of(have):
                    needed |= form.dependents.get(bit, 0)
                if needed & ~have == 0 and spec.least <= len(parts) <= (NEVER if spec.most is None else spec.most):
                    yield self.values.bracketed(b"{", list(parts), b"}", depth)
                continue
            bit = bits[index]
            if not form.required >> bit & 1:
                waiting.append((index + 1, have, parts))
            key = form.keys[bit] + self.values.colon[1:]
            for text in islice(self.of(form.nodes[bit], depth + 1), MAX_VALUES):
                if len(waiting) >= MAX_LISTED:
                    break
                waiting.append((index + 1, have | 1 << bit, (*parts, key + text)))

    # --- strings ---
    def _strings(self, spec: StringAlternative) -> Iterator[bytes]:
        """The strings of a spec (decoded)."""
        if isinstance(spec, EnumSpec):
            form = self.values.enum_form(spec)
            yield from (form.texts[i] for i in np.argsort(form.lengths, kind="stable").tolist())
        elif isinstance(spec, QuoteSpec):
            yield from (text.encode() for text in islice(spec.corpus.some_quotes(spec.least, spec.most), MAX_WORDS))
        elif spec.dfa is None:
            yield from lettered(spec.least, spec.most)
        else:
            least, most = spec.least, NEVER if spec.most is None else spec.most
            texts = (text for _, text, _ in islice(self.values.words(spec.dfa).by_cost(0), MAX_WORDS))
            yield from (text for text in texts if least <= code_points(text) <= most)


def _growing(table: dict[int, Items]) -> Iterator[int]:
    """The keys of a table but the first, those that are added meanwhile too."""
    given = 1
    while given < len(table):
        yield from list(table)[given : (given := len(table))]


class _NewTexts:
    """Texts of items, each of which differs from those before.

    Attributes:
        used: the texts, in order.
    """

    def __init__(self, distinct: DistinctValues, depth: int) -> None:
        self._distinct, self._depth = distinct, depth
        self._more: dict[ValueNode, Iterator[bytes]] = {}
        self._next: dict[ValueNode, bytes] = {}
        self.used: dict[bytes, None] = {}

    def take(self, node: ValueNode) -> bool:
        """Use a new text of a node; False: there seems to be none."""
        text = self.new(node)
        if text is not None:
            self.used[text] = None
        return text is not None

    def new(self, node: ValueNode) -> bytes | None:
        """A text of a node that is not used."""
        text = self._next.get(node) or self._distinct.values.text(node, self._depth)
        if text in self.used:
            more = self._more.get(node)
            if more is None:
                more = self._more[node] = self._distinct.of(node, self._depth)
            tried = islice(more, len(self.used) + MAX_PARTS)
            text = next((text for text in tried if text not in self.used), text)
        self._next[node] = text
        return None if text in self.used else text

    def close(self, spec: CountedSpec, state: int) -> bool:
        """Use new items that lead from a state to one where the array may close. Of a solved spec each state has one
        that leads nearer to it, whatever is used already (`CountedSpec.is_live`)."""
        distance = spec.distances(lambda node: node.live)
        while distance[state]:
            nearer = [choice for choice in spec.live_choices(state) if distance[choice[1]] < distance[state]]
            texts = [(text, after) for node, after in nearer if (text := self.new(node)) is not None]
            if not texts:
                return False
            text, state = min(texts, key=lambda choice: len(choice[0]))
            self.used[text] = None
        return True


def lettered(least: int, most: int | None) -> Iterator[bytes]:
    """Strings of lower-case letters within a length, shortest first."""
    for length in count(least):
        if most is not None and length > most:
            return
        for letters in product(b"abcdefghijklmnopqrstuvwxyz", repeat=length):
            yield bytes(letters)
