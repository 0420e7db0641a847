"""The cheapest members that complete an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from structgen.core.engines.json.completion.cheapest_words import Words, any_text, spelled
from structgen.core.engines.json.completion.completion_tables import (
    Member,
    ObjectForm,
    Open,
    ValuePlan,
    bits_of,
    key_hash,
)
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.objects import Choice
from structgen.core.engines.json.value_graph.scalars import NEVER
from structgen.core.regex.labelled import every_text

Costs = Callable[[ValueNode], int]
MAX_PARTS = 1 << 14
"""Containers with more parts are not written to complete an output."""


class ObjectPlans:
    """Plans of members for the objects of one grammar.

    Args:
        cost: bytes of the shortest text of a node; what is asked with another takes its place.
        ordered: whether members come in declared order.
        around: bytes of what stands around a member: colon, line break and indent.
    """

    def __init__(self, cost: Costs, ordered: bool, around: int) -> None:
        self._cost = cost
        self._ordered = ordered
        self._around = around

    def plan(self, state: Open, forced: bool, cost: Costs | None = None) -> ValuePlan | None:
        """The cheapest members that complete an object; at least one if ``forced``. None if it cannot be done."""
        cost = cost or self._cost
        form, spec = state.form, state.form.spec
        early = (1 << state.seen.bit_length()) - 1 if self._ordered else 0
        free = 0 if self._ordered and state.others else form.allowed & ~state.seen & ~early
        add = form.missing(state.seen)
        if add & ~free:
            return None
        size = state.size + add.bit_count()
        if spec.most is not None and size > spec.most:
            return None
        least = max(spec.least, state.size + 1 if forced else 0)
        if least - state.size > MAX_PARTS:
            return None
        members: list[Member] = []
        choices = self._meeting(state, free, add, cost) if spec.existentials else {}
        if choices is None:
            return None
        for key, chosen in choices.items():
            if isinstance(key, int):
                add |= 1 << key
            else:
                members.append(Member(key, chosen))
        add |= form.missing(state.seen | add)
        size = state.size + add.bit_count() + len(members)
        if add & ~free or (spec.most is not None and size > spec.most):
            return None
        fresh = (entry for entry in self.undeclared(state, cost) if entry[1].key not in choices)
        following = next(fresh, None) if size < least else None
        while size < least:
            limit = NEVER if spec.most is None else spec.most - size
            price, more = self._filler(form, free & ~add, state.seen | add, limit, least - size, cost)
            if following is not None and following[0] <= price:
                members.append(following[1])
                size += 1
                following = next(fresh, None)
            elif more:
                add |= more
                size += more.bit_count()
            else:
                return None
        declared = [Member(form.keys[bit], choices.get(bit, form.nodes[bit])) for bit in bits_of(add)]
        total = sum(len(key) + cost(node) + self._around for key, node in (*declared, *members))
        if total >= NEVER:
            return None
        return ValuePlan(total, (*declared, *members), not members, bool(choices))

    def _meeting(self, state: Open, free: int, add: int, cost: Costs) -> dict[int | bytes, ValueNode] | None:
        """Members that meet the existentials left: the node by key bit or spelled undeclared key. None: impossible.

        For each existential in turn the cheapest; if the object has no room for these, those that meet the most at
        once, as far as some have room.
        """
        spec = state.form.spec
        unmet = (1 << spec.existentials) - 1 & ~state.met
        room = NEVER if spec.most is None else spec.most - state.size - add.bit_count()

        def takes_room(key: int | bytes) -> bool:
            return not (isinstance(key, int) and add >> key & 1)

        def search(
            left: int, room: int, together: bool, taken: dict[int | bytes, ValueNode]
        ) -> dict[int | bytes, ValueNode] | None:
            if not left:
                return taken
            options = self._options(state, free, add, left & -left, set(taken), cost)
            for _, key, choice in sorted(options, key=lambda one: ((one[2][1] & left).bit_count() * -together, one[0])):
                remaining = room - takes_room(key)
                chosen = {**taken, key: choice[0]}
                members = search(left & ~choice[1], remaining, together, chosen) if remaining >= 0 else None
                if members is not None:
                    return members
            return None

        cheapest = search(unmet, NEVER, False, {})
        if cheapest is None or sum(map(takes_room, cheapest)) <= room:
            return cheapest
        return search(unmet, room, True, {})

    def _options(
        self, state: Open, free: int, add: int, existential: int, taken: set[int | bytes], cost: Costs
    ) -> list[tuple[int, int | bytes, Choice]]:
        """Members that meet an existential, but those ``taken``: (price, key, choice)."""
        form, spec = state.form, state.form.spec
        names = list(spec.keys)
        options: list[tuple[int, int | bytes, Choice]] = []
        for bit in bits_of(free):
            for choice in spec.choices[names[bit]]:
                if bit not in taken and choice[1] & existential and choice[0].live:
                    price = cost(choice[0]) + (0 if add >> bit & 1 else len(form.keys[bit]))
                    options.append((price, bit, choice))
        options += self._undeclared_choices(state, existential, taken, cost)
        return [option for option in options if option[0] < NEVER]

    def _undeclared_choices(
        self, state: Open, existential: int, taken: set[int | bytes], cost: Costs
    ) -> Iterator[tuple[int, bytes, Choice]]:
        """For each class of undeclared keys, a fresh one whose value meets an existential: (price, key, choice)."""
        form = state.form
        if form.others is None:
            return
        used = state.used()
        for label, choices in enumerate(form.others.choices, 1):
            choices = [choice for choice in choices if choice[1] & existential and choice[0].live]
            if choices:
                for _, text, _ in form.keys_of_class(label).by_cost(0):
                    key = b'"' + spelled(text) + b'":'
                    if text not in form.names and key_hash(text) not in used and key not in taken:
                        for choice in choices:
                            yield cost(choice[0]) + len(key), key, choice
                        break

    def price(self, form: ObjectForm, bits: int, cost: Costs | None = None) -> int:
        """Bytes of some declared members, without separators."""
        cost = cost or self._cost
        return sum(len(form.keys[bit]) + cost(form.nodes[bit]) for bit in bits_of(bits))

    def by_price(self, form: ObjectForm, bits: list[int], seen: int, missing: int) -> list[int]:
        """The optional ones among ``bits``, by what each adds with the keys that it asks for."""
        free = form.allowed & ~seen & ~missing
        optional = [bit for bit in bits if free >> bit & 1]
        added = {bit: (1 << bit | form.dependents.get(bit, 0)) & free for bit in optional}
        return sorted(optional, key=lambda bit: self.price(form, added[bit]))

    def _filler(self, form: ObjectForm, free: int, have: int, room: int, need: int, cost: Costs) -> tuple[float, int]:
        """The cheapest further declared key (for each that counts) with the keys it asks for; (price, set of bits)."""
        best: tuple[float, int] = (NEVER, 0)
        for bit in bits_of(free):
            more = (1 << bit | form.dependents.get(bit, 0)) & ~have
            size = more.bit_count()
            if more & ~free or size > room:
                continue
            price = self.price(form, more, cost) / min(size, need)
            if price < best[0]:
                best = (price, more)
        return best

    def undeclared(self, state: Open, cost: Costs) -> Iterator[tuple[int, Member]]:
        """Undeclared members that may be added, with their price, cheapest first."""
        form = state.form
        if form.others is None:
            return
        used = state.used()
        for price, text, label in self.other_keys(form, 0, cost):
            node = form.others.nodes[label - 1]
            if text not in form.names and key_hash(text) not in used:
                yield price + 3, Member(b'"' + spelled(text) + b'":', node)

    def other_keys(self, form: ObjectForm, state: int, cost: Costs | None = None) -> Iterator[tuple[int, bytes, int]]:
        """Rests of undeclared keys from a state of their automaton, cheapest first: (cost with the value, rest, class).

        Declared names and keys that the object has already are among them.
        """
        assert form.others is not None
        for price, text, end in self._other_words(form, cost or self._cost).by_cost(state):
            yield price, text, int(form.others.automaton.labels[end])

    def cheapest_keys(self, form: ObjectForm, state: int, count: int) -> list[tuple[int, bytes, int]]:
        """The first of `other_keys`, ``count`` of them or more, if there are."""
        assert form.others is not None
        cheapest = self._other_words(form, self._cost).cheapest(state, count)
        return [(price, text, int(form.others.automaton.labels[end])) for price, text, end in cheapest]

    def _other_words(self, form: ObjectForm, cost: Costs) -> Words:
        classes = form.others
        assert classes is not None
        prices = (NEVER, *map(cost, classes.nodes))
        cached = form.words
        if cached is None or cached[0] != prices:
            automaton = classes.automaton
            final: npt.NDArray[np.int64] = np.array(prices, np.int64)[automaton.labels]
            words = any_text(prices[1]) if automaton is every_text() else Words(automaton.transitions, final)
            cached = form.words = (prices, words)
        return cached[1]
