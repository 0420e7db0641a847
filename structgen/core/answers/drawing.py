"""Documents drawn from a value graph. Every alternative of a solved graph has a value, and alternatives are plain
conjunctions, so members are drawn one by one, without going back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache

from structgen.core.answers.picking.picks import Picks
from structgen.core.answers.routes import Routes, RouteStep, Slot
from structgen.core.answers.scalars import number_text, string_text
from structgen.core.engines.json.completion.cheapest_values import Values
from structgen.core.engines.json.completion.cheapest_words import spelled
from structgen.core.engines.json.completion.completion_tables import Member, ObjectForm, Open, bits_of
from structgen.core.engines.json.value_graph.counted import numbers_of
from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.liveness import longest
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.objects import ObjectSpec
from structgen.core.engines.json.value_graph.scalars import NEVER, EnumSpec, StringSpec
from structgen.core.json_schema.formula.values import canonical
from structgen.core.json_text import loads_exact
from structgen.options import JsonOptions

EARLY = 20
"""Documents after which alternatives that were not met are gone to."""
REDRAWS = 20
"""How often an item that must be distinct is drawn again."""
MORE_ITEMS, MORE_CORNER = 4, 30
"""Items beyond the fewest; where bounds are looked for, a limit of so many more is reached."""
_CONSTANTS = (b"null", b"true", b"false")
_OPTIONAL = 0.6
_UNDECLARED = 0.15


class DocumentDrawing:
    """Draws documents of one node.

    Args:
        root: a live node.
        options: those of its graph. Members stand in declared order.
        picks: who chooses.
        size: about how many bytes optional parts may take.
    """

    def __init__(self, root: ValueNode, options: JsonOptions, picks: Picks, size: int) -> None:
        self._root, self.picks, self._size = root, picks, size
        self.values = Values(options)
        self._alternatives: dict[ValueNode, list[object]] = {}
        self._objects: dict[int, _Members] = {}  # by the spec, which the root keeps
        self._count = 0
        self._met: set[tuple[ValueNode, int]] = set()
        self._routes: Routes | None = None
        self._route: dict[ValueNode, RouteStep] = {}

    def document(self) -> str:
        """One document, as JSON text. In the manner "plain" nothing but the picks decides.

        Raises:
            CompletionTooLongError: every one is too long to be written.
        """
        self._count += 1
        if self._count > EARLY and self.picks.manner != "plain":
            self._route = dict(self.routes().next())
        return self._value(self._root, self._size, "").decode()

    def routes(self) -> Routes:
        """The alternatives that were not met, with the ways to them. One walk over the graph, when first asked for."""
        if self._routes is None:
            self._routes = Routes(self._root, self._options_of, self._slots, self._met)
        return self._routes

    def _value(self, node: ValueNode, room: int, member: str) -> bytes:
        """A text of a live node; the cheapest if none of its alternatives has room."""
        step = self._route.pop(node, None) if self._route else None
        if step is None and self.values.cost(node) >= max(room, 1) and (node.objects or node.arrays):
            return self.values.text(node)
        options = self._options_of(node)
        if not options:
            return self.values.text(node)
        index = self.picks.one(("node", id(node)), len(options)) if step is None else step.option
        if self._routes is None:
            self._met.add((node, index))
        else:
            self._routes.unmet.pop((node, index), None)
        chosen, slot = options[index], None if step is None else step.slot
        match chosen:
            case bytes():
                return chosen
            case EnumSpec():
                index = self.picks.one(("enum", id(chosen)), len(chosen.values))
                return b'"' + spelled(chosen.values[index].encode()) + b'"'
            case StringSpec():
                return b'"' + string_text(chosen, self.picks, self.values, member) + b'"'
            case ObjectSpec():
                return self._object(chosen, room, slot)
            case ArraySpec():
                return self._array(chosen, room, member, slot)
            case CountedSpec():
                return self._counted(chosen, room, member, slot)
        return number_text(chosen, self.picks, self.values)  # type: ignore[arg-type]

    def _options_of(self, node: ValueNode) -> list[object]:
        """The alternatives of a node of which a text is known."""
        options = self._alternatives.get(node)
        if options is None:
            options = [word for bit, word in enumerate(_CONSTANTS) if node.flags >> bit & 1]
            options += [*node.numbers, *node.strings]
            options += [spec for spec in node.arrays if self.values.items(spec) is not None]
            options += [spec for spec in node.objects if self._members(spec).is_known]
            self._alternatives[node] = options
        return options

    def _slots(self, option: object) -> Iterator[tuple[Slot | None, ValueNode]]:
        """The nodes in an alternative that documents can be made to have, with where they stand."""
        if isinstance(option, ObjectSpec):
            common = self._members(option)
            yield from ((None, node) for node in common.needed.values())
            for bit in common.optional:
                if common.form.nodes[bit].live and common.prices[bit] < NEVER:
                    yield ("key", bit), common.form.nodes[bit]
            if common.form.others is not None and not option.existentials:
                yield from (
                    (("other", label), node) for label, node in enumerate(common.form.others.nodes) if node.live
                )
        elif isinstance(option, ArraySpec):
            for index in range(int(min(len(option.prefix) + 1, longest(option)))):
                yield ("item", index), option.item(index)
        elif isinstance(option, CountedSpec):
            paths: dict[int, tuple[int, ...]] = {0: ()}
            for state in numbers_of(paths):
                for number, (node, after) in enumerate(option.live_choices(state)):
                    paths.setdefault(after, (*paths[state], number))
                    yield ("states", (*paths[state], number)), node

    # --- objects ---
    def _members(self, spec: ObjectSpec) -> _Members:
        common = self._objects.get(id(spec))
        if common is None:
            common = self._objects[id(spec)] = _Members(spec, self.values)
        return common

    def _object(self, spec: ObjectSpec, room: int, slot: Slot | None) -> bytes:
        """The members that must be there, then optional ones while there is room; that of the slot in any case."""
        common = self._members(spec)
        form, members, have = common.form, dict(common.needed), common.have
        most = NEVER if spec.most is None else spec.most
        left = room - common.cost
        if slot is not None and slot[0] == "key":
            more = (1 << slot[1] | form.dependents.get(slot[1], 0)) & ~have
            if not more & ~form.allowed and len(members) + more.bit_count() <= most:
                members |= {form.keys[b]: form.nodes[b] for b in bits_of(more)}
                have, left = have | more, left - sum(common.prices[bit] for bit in bits_of(more))
        elif slot is not None and slot[0] == "other" and len(members) < most:
            members |= self._undeclared(form, members, NEVER, slot[1])
        for bit in self._shuffled(common.optional):
            more = (1 << bit | form.dependents.get(bit, 0)) & ~have
            if not more:
                continue
            price = common.prices[bit] if more == 1 << bit else sum(common.prices[other] for other in bits_of(more))
            if more & ~form.allowed or len(members) + more.bit_count() > most or price > left:
                continue
            if self.picks.chance(("key", id(spec), bit), _OPTIONAL):
                members |= {form.keys[b]: form.nodes[b] for b in bits_of(more)}
                have, left = have | more, left - price
        if len(members) < most and self.picks.chance(("undeclared", id(spec)), _UNDECLARED):
            members |= self._undeclared(form, members, left)
        order = common.order
        share = max(left, 0) // max(len(members), 1)
        texts = [
            key + self._value(members[key], self.values.cost(members[key]) + share, _name(key))
            for key in sorted(members, key=lambda key: order.get(key, len(order)))
        ]
        return b"{" + b",".join(texts) + b"}"

    def _shuffled(self, bits: list[int]) -> list[int]:
        start = self.picks.number(0, max(len(bits) - 1, 0))
        return bits[start:] + bits[:start]

    def _undeclared(
        self, form: ObjectForm, members: dict[bytes, ValueNode], left: int, label: int | None = None
    ) -> dict[bytes, ValueNode]:
        """A member that is not declared, if one fits; a declared name is never one, though it may be impossible."""
        if form.others is None or form.spec.existentials:
            return {}
        label = self.picks.one(("class", id(form)), len(form.others.nodes)) if label is None else label
        node = form.others.nodes[label]
        words = form.keys_of_class(label + 1)
        for count in (len(members) + 2, REDRAWS + len(members)):  # few are cheaper to find
            for _, text, _ in words.cheapest(0, count):
                key = b'"' + spelled(text) + b'":'
                if text and text not in form.names and key not in members:
                    return {key: node} if self.values.cost(node) + len(key) <= left else {}
        return {}

    # --- arrays ---
    def _array(self, spec: ArraySpec, room: int, member: str, slot: Slot | None) -> bytes:
        most = int(min(longest(spec), spec.least + (MORE_CORNER if self.picks.manner == "corners" else MORE_ITEMS)))
        count = self.picks.number(min(spec.least, most), most)
        if self.picks.manner == "corners":
            count = (spec.least, most)[self.picks.one(("items", id(spec)), 2)]
        least = max(spec.least, slot[1] + 1) if slot is not None and slot[0] == "item" else spec.least
        nodes: list[ValueNode] = []
        for index in range(max(count, least)):
            node = spec.item(index)
            if index >= least and (not node.live or self.values.cost(node) * (index + 1) > room):
                break
            nodes.append(node)
        share = room // max(len(nodes), 1)
        texts = [self._value(node, share, member) for node in nodes]
        if spec.equal is not None:
            texts[spec.equal[1]] = texts[spec.equal[0]]
        elif spec.needs_pair:
            texts[1] = texts[0]
        elif spec.distinct:
            texts = self._distinct(spec, nodes, texts, share, member)
        return b"[" + b",".join(texts) + b"]"

    def _distinct(
        self, spec: ArraySpec, nodes: list[ValueNode], texts: list[bytes], room: int, member: str
    ) -> list[bytes]:
        """The items, drawn again where one is there twice; where that does not help, shorter, or the cheapest."""
        seen: dict[object, bytes] = {}
        for node, drawn in zip(nodes, texts, strict=True):
            text = drawn
            for _ in range(REDRAWS):
                value = canonical(loads_exact(text.decode()))
                if value not in seen:
                    seen[value] = text
                    break
                text = self._value(node, room, member)
            else:
                break
        if len(seen) >= spec.least:
            return list(seen.values())
        return self.values.distinct.texts(spec, 0, tuple(nodes[: spec.least]), 0)

    def _counted(self, spec: CountedSpec, room: int, member: str, slot: Slot | None) -> bytes:
        """A walk of its automaton, then the cheapest end."""
        state, nodes = 0, list[ValueNode]()
        for number in slot[1] if slot is not None and slot[0] == "states" else ():
            node, state = spec.live_choices(state)[number]
            nodes.append(node)
        for _ in range(self.picks.number(0, MORE_ITEMS)):
            choices = [
                choice for choice in spec.live_choices(state) if self.values.cost(choice[0]) * (len(nodes) + 1) <= room
            ]
            if not choices:
                break
            node, state = choices[self.picks.one(("counted", id(spec), state), len(choices))]
            nodes.append(node)
        nodes += self.values.items(spec, start=state) or ()
        share = room // max(len(nodes), 1)
        texts = [self._value(node, share, member) for node in nodes]
        values = {canonical(loads_exact(text.decode())) for text in texts}
        if spec.distinct and len(values) < len(texts):
            texts = self.values.distinct.texts(spec, 0, self.values.items(spec) or (), 0)
        return b"[" + b",".join(texts) + b"]"


class _Members:
    """What is the same for all objects of a spec.

    Attributes:
        is_known: whether a text of it is known.
        needed: the members that must be there; have, cost: their bits and bytes.
        optional: the bits of the others. prices: bytes of each declared member. order: of the keys.
    """

    __slots__ = ("cost", "form", "have", "is_known", "needed", "optional", "order", "prices")

    def __init__(self, spec: ObjectSpec, values: Values) -> None:
        self.form: ObjectForm = values.object_form(spec)
        plan = values.objects.plan(Open(self.form), False)
        self.is_known = plan is not None
        members: tuple[Member, ...] = () if plan is None else plan.members
        self.needed = {member.key: member.node for member in members}
        self.have = sum(1 << bit for bit, key in enumerate(self.form.keys) if key in self.needed)
        self.cost = sum(len(key) + values.cost(node) for key, node in self.needed.items())
        self.optional = list(bits_of(self.form.allowed & ~self.have))
        self.prices = [len(key) + values.cost(node) for key, node in zip(self.form.keys, self.form.nodes, strict=True)]
        self.order = {key: index for index, key in enumerate(self.form.keys)}


@lru_cache(4_096)
def _name(key: bytes) -> str:
    return str(json.loads(key[:-1]))
