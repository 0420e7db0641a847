"""Shortest JSON texts of goals: what each value costs at least in bytes, and which choices that takes.

Costs are the least solution of a system of equations over the nodes (Knuth's generalisation of Dijkstra's algorithm:
the cost of an object or array is more than that of any of its members), solved for the nodes that a question leads to
and kept. They are exact but for a few things: of optional members that only fill an object up to ``minProperties``
the cheapest each are taken, and of those that meet obligations the cheapest for one after the other; where both a
pattern and a length bind, characters are counted instead of bytes; an indented line counts as if it were
``USUAL_DEPTH`` deep; and that items must be distinct is left to the caller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from itertools import count, islice, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structgen.automata.dfa import Dfa, universal
from structgen.engines.json.completion.cheapest_words import NEVER, Words, code_points, shortest_of_length, spelled
from structgen.engines.json.goals.key_classes import settle
from structgen.engines.json.goals.liveness import array_live, is_live, object_live
from structgen.engines.json.goals.node import GoalNode
from structgen.engines.json.goals.number_values import value_texts
from structgen.engines.json.goals.specs import (
    ArraySpec,
    Choice,
    CountedSpec,
    EnumSpec,
    KeyClasses,
    ObjectSpec,
    StringSpec,
)
from structgen.engines.json.tables.arrays import utf8
from structgen.errors import CompletionTooLongError
from structgen.kernels.json.layout import HASH_PRIME, HASH_START
from structgen.options import JsonOptions

USUAL_DEPTH = 2
# Strings with more characters, and containers with more parts, are not written to complete an output.
MAX_CHARACTERS, MAX_PARTS = 1 << 20, 1 << 14
MAX_WORDS = 10_000  # of a pattern, that are tried where items must be distinct: most may have the wrong length
_WORD = 1 << 64

Costs = Callable[[GoalNode], int]
Items = tuple[GoalNode, ...]


class DistinctItems(tuple[GoalNode, ...]):
    """Items no two of which may be equal."""

    __slots__ = ()


def key_hash(text: bytes, start: int = HASH_START) -> int:
    """The hash by which the machine remembers undeclared keys: FNV-1a as int64, continued from ``start``."""
    value = start % _WORD
    for byte in text:
        value = (value ^ byte) * HASH_PRIME % _WORD
    return value - _WORD if value >= _WORD >> 1 else value


class EnumForm:
    """An enumeration as its table has it: UTF-8 in byte order, and how long each is when spelled."""

    def __init__(self, spec: EnumSpec) -> None:
        self.texts = sorted(value.encode() for value in spec.values)
        self.lengths = np.array([len(spelled(text)) for text in self.texts], np.int64)

    def rest(self, lo: int, hi: int, at: int) -> bytes:
        """The shortest rest (spelled, without the quote) of the strings ``lo`` to ``hi`` - 1 behind byte ``at``."""
        return spelled(self.texts[lo + int(self.lengths[lo:hi].argmin())][at:])


class ObjectForm:
    """An object spec with its keys as bits: bit i is the i-th key in declared order.

    Attributes:
        keys: ``"name":`` as JSON spells it; ``texts`` the names in UTF-8; ``nodes`` their values' nodes.
        entries: bits by name in byte order, as in the machine's table. ``others``: the undeclared keys, if any.
        allowed, required: sets of bits; ``dependents[bit]`` is the set that the key asks for.
    """

    def __init__(self, spec: ObjectSpec, max_states: int) -> None:
        self.spec = spec
        self.others = settle(spec, max_states)
        self.texts = [utf8(name) or b"" for name in spec.keys]
        self.nodes = list(spec.keys.values())
        self.keys = [b'"' + spelled(text) + b'":' for text in self.texts]
        bits = {name: bit for bit, name in enumerate(spec.keys)}
        spellable = [bits[name] for name in spec.keys if utf8(name) is not None]
        self.entries = sorted(spellable, key=self.texts.__getitem__)
        self.allowed = sum(1 << bit for name, bit in bits.items() if name not in spec.forbidden and bit in spellable)
        self.required = sum(1 << bits[name] for name in spec.required)
        self.dependents = {bits[k]: sum(1 << bits[name] for name in names) for k, names in spec.dependents.items()}
        self.words: tuple[tuple[int, ...], Words] | None = None
        self._of_class: dict[int, Words] = {}

    def keys_of_class(self, label: int) -> Words:
        """The undeclared keys of one class."""
        words = self._of_class.get(label)
        if words is None:
            assert self.others is not None
            final = np.where(self.others.labels == label, 0, NEVER).astype(np.int64)
            words = self._of_class[label] = Words(self.others.transitions, final)
        return words

    def begun(self, text: bytes) -> int:
        """The state of the automaton of undeclared keys after the beginning of a key; -1: none begins so."""
        place = -1 if self.others is None else 0
        for byte in text:
            place = int(self.others.transitions[place, byte]) if self.others is not None and place >= 0 else -1
        return place

    @cached_property
    def names(self) -> frozenset[bytes]:
        """The declared names."""
        return frozenset(self.texts)

    def ways(self, bit: int) -> list[Choice]:
        """The plain value of a declared key, then those that meet obligations."""
        choices = self.spec.choices.get(list(self.spec.keys)[bit], []) if self.spec.duties else []
        return [(self.nodes[bit], 0), *(way for way in choices if way[0].live)]

    def other_ways(self, label: int) -> list[Choice]:
        """The same of a class of undeclared keys, numbered from 1."""
        assert self.others is not None
        choices = self.others.choices[label - 1] if self.spec.duties else []
        return [(self.others.nodes[label - 1], 0), *(way for way in choices if way[0].live)]

    def missing(self, seen: int) -> int:
        """Required keys that are not ``seen``, by the schema or by a key that is."""
        need = self.required
        for bit, names in self.dependents.items():
            if seen >> bit & 1:
                need |= names
        return need & ~seen


class Open(NamedTuple):
    """An object under way: members so far, declared keys seen, whether there are undeclared ones, their hashes."""

    form: ObjectForm
    size: int = 0
    seen: int = 0
    others: bool = False
    met: int = 0  # obligations
    used: Callable[[], Collection[int]] = frozenset


class Member(NamedTuple):
    """A member to write: ``"key":`` and the node of its value."""

    key: bytes
    node: GoalNode


class ValuePlan(NamedTuple):
    """Members that complete an object, what they cost with their separators, whether all are declared ones.

    ``obliged``: whether some are there to meet obligations.
    """

    cost: int
    members: tuple[Member, ...]
    declared: bool
    obliged: bool


class Values:
    """Costs and texts of the nodes of one grammar. Threads may share it: a race computes the same thing twice."""

    def __init__(self, options: JsonOptions) -> None:
        self._max_states = options.max_automaton_states
        self._indent = options.whitespace if isinstance(options.whitespace, int) else None
        self.ordered = options.key_order == "declared"
        self._line = 0 if self._indent is None else 1 + USUAL_DEPTH * self._indent
        self.colon = b":" if self._indent is None else b": "
        self._found: dict[GoalNode, tuple[int, bytes | Items | ValuePlan]] = {}
        self._texts: dict[tuple[GoalNode, int], bytes] = {}
        self._words: dict[bytes, Words] = {}
        self._forms: dict[int, ObjectForm] = {}
        self._enums: dict[int, EnumForm] = {}

    # --- layout ---
    def line(self, depth: int) -> bytes:
        """What stands before a member, item or closing bracket at a depth: nothing, or a newline and its indent."""
        return b"" if self._indent is None else b"\n" + b" " * (self._indent * depth)

    def object_form(self, spec: ObjectSpec) -> ObjectForm:
        """The form of a spec (by identity)."""
        form = self._forms.get(id(spec))
        if form is None:
            form = self._forms[id(spec)] = ObjectForm(spec, self._max_states)
        return form

    def enum_form(self, spec: EnumSpec) -> EnumForm:
        """The form of a spec (by identity)."""
        form = self._enums.get(id(spec))
        if form is None:
            form = self._enums[id(spec)] = EnumForm(spec)
        return form

    # --- values ---
    def cost(self, node: GoalNode) -> int:
        """Bytes of the shortest text of a node; `NEVER` if it has none."""
        found = self._found.get(node)
        if found is None:
            self._solve(node)
            found = self._found.get(node)
        return found[0] if found else NEVER

    def text(self, node: GoalNode, depth: int = 0) -> bytes:
        """The shortest text of a live node whose container is at ``depth`` (0: none)."""
        key = (node, 0 if self._indent is None else depth)
        text = self._texts.get(key)
        if text is None:
            if self.cost(node) >= NEVER:
                raise CompletionTooLongError("every value that fits here is too long to be written to the end")
            text = self._texts[key] = self._write(self._found[node][1], depth)
        return text

    def is_sure(self, node: GoalNode) -> bool:
        """Whether the shortest text of a node is surely valid: no items must differ, no member meets obligations."""
        found, met = [node], {node}
        for child in found:
            choice = self._found[child][1]
            if isinstance(choice, DistinctItems) and len(choice) > 1:
                return False
            if isinstance(choice, ValuePlan) and choice.obliged:
                return False
            if not isinstance(choice, bytes):
                parts = [member.node for member in choice.members] if isinstance(choice, ValuePlan) else choice
                found += {*parts} - met
                met.update(parts)
        return True

    def _write(self, choice: bytes | Items | ValuePlan, depth: int) -> bytes:
        if isinstance(choice, bytes):
            return choice
        if isinstance(choice, ValuePlan):
            parts = [self.member(member, depth + 1) for member in choice.members]
        elif isinstance(choice, DistinctItems):
            parts = self.distinct_texts(choice, depth + 1)
        else:
            parts = [self.text(node, depth + 1) for node in choice]
        opening, closing = (b"{", b"}") if isinstance(choice, ValuePlan) else (b"[", b"]")
        return self._bracketed(opening, parts, closing, depth) if parts else opening + closing

    def member(self, member: Member, depth: int) -> bytes:
        """A member of an object at ``depth``."""
        return member.key + self.colon[1:] + self.text(member.node, depth)

    def distinct(self, node: GoalNode, depth: int = 0) -> Iterator[bytes]:
        """Texts of a node's values, short ones first of each type: all scalars, then objects and arrays that differ in
        a part from the shortest. Hardly any twice; of objects and arrays, some may not satisfy all that the node asks.
        """
        yield from (word for bit, word in enumerate((b"null", b"true", b"false")) if node.flags >> bit & 1)
        for choice in node.numbers:
            yield from value_texts(choice.automaton)
        for spec in node.strings:
            yield from (b'"' + spelled(text) + b'"' for text in self._strings(spec))
        yield self.text(node, depth)
        for array in node.arrays:
            if array_live(array, is_live):
                yield from self._other_arrays(array, depth)
        for members in node.objects:
            if object_live(members, is_live):
                yield from self._other_objects(members, depth)

    def distinct_texts(self, nodes: Items, depth: int) -> list[bytes]:
        """Texts of items that must differ; where there seem to be too few, the shortest is repeated."""
        values: dict[GoalNode, Iterator[bytes]] = {}
        used: dict[bytes, None] = {}
        for node in nodes:
            shortest = self.text(node, depth)
            if shortest in used:
                more = islice(values.setdefault(node, self.distinct(node, depth)), len(used) + MAX_PARTS)
                shortest = next((text for text in more if text not in used), shortest)
            used[shortest] = None
        return list(used) if len(used) == len(nodes) else [self.text(node, depth) for node in nodes]

    def _other_arrays(self, spec: ArraySpec | CountedSpec, depth: int) -> Iterator[bytes]:
        """The shortest array with an item more, or with another last one."""
        items = self.items(spec)
        if items is None:
            return
        texts = self.distinct_texts(items, depth + 1) if spec.distinct else [self.text(n, depth + 1) for n in items]
        if isinstance(spec, ArraySpec) and (spec.most is None or spec.most > len(items)):
            following = item(spec, len(items))
            if following.live:
                for text in self.distinct(following, depth + 1):
                    yield self._bracketed(b"[", [*texts, text], b"]", depth)
        if items:
            for text in self.distinct(items[-1], depth + 1):
                yield self._bracketed(b"[", [*texts[:-1], text], b"]", depth)

    def _other_objects(self, spec: ObjectSpec, depth: int) -> Iterator[bytes]:
        """The shortest object with a member more, or with another value of a member."""
        form = self.object_form(spec)
        plan = self.plan(Open(form), False)
        if plan is None:
            return
        members = [self.member(member, depth + 1) for member in plan.members]
        taken = {member.key for member in plan.members}
        if spec.most is None or spec.most > len(members):
            for bit in bits_of(form.allowed):
                if form.keys[bit] not in taken:
                    for text in islice(self.distinct(form.nodes[bit], depth + 1), MAX_WORDS):
                        yield self._bracketed(b"{", [*members, form.keys[bit] + self.colon[1:] + text], b"}", depth)
            for _, member in self._undeclared(Open(form), self.cost):
                if member.key not in taken:
                    yield self._bracketed(b"{", [*members, self.member(member, depth + 1)], b"}", depth)
        for place, member in enumerate(plan.members):
            for text in self.distinct(member.node, depth + 1):
                changed = member.key + self.colon[1:] + text
                yield self._bracketed(b"{", [*members[:place], changed, *members[place + 1 :]], b"}", depth)

    def _bracketed(self, opening: bytes, parts: list[bytes], closing: bytes, depth: int) -> bytes:
        line = self.line(depth + 1)
        return opening + line + (b"," + line).join(parts) + self.line(depth) + closing

    def _strings(self, spec: EnumSpec | StringSpec) -> Iterator[bytes]:
        """The strings of a spec (decoded)."""
        if isinstance(spec, EnumSpec):
            form = self.enum_form(spec)
            yield from (form.texts[i] for i in np.argsort(form.lengths, kind="stable").tolist())
        elif spec.dfa is None:
            yield from lettered(spec.least, spec.most)
        else:
            least, most = spec.least, NEVER if spec.most is None else spec.most
            texts = (text for _, text, _ in islice(self.words(spec.dfa).by_cost(0), MAX_WORDS))
            yield from (text for text in texts if least <= code_points(text) <= most)

    def _solve(self, root: GoalNode) -> None:
        """Costs of ``root`` and of what it needs: from infinity down until nothing changes."""
        nodes = [root]
        parents: dict[GoalNode, list[GoalNode]] = {root: []}
        for node in nodes:
            for child in set(_needed(node)):
                if child not in self._found and child.live:
                    if child not in parents:
                        parents[child] = []
                        nodes.append(child)
                    parents[child].append(node)
        trial: dict[GoalNode, tuple[int, bytes | Items | ValuePlan]] = {}
        for node in nodes:
            scalar = self._scalar(node)
            if scalar is not None:
                trial[node] = (len(scalar), scalar)

        def cost(node: GoalNode) -> int:
            found = self._found.get(node) or trial.get(node)
            return found[0] if found else NEVER

        work = deque(reversed(nodes))
        while work:
            node = work.popleft()
            choice = self._compound(node, cost)
            if choice is not None and choice[0] < cost(node):
                trial[node] = choice
                work.extend(parents[node])
        self._found.update(trial)

    def _scalar(self, node: GoalNode) -> bytes | None:
        """The shortest text that is no object and no array."""
        texts = [word for bit, word in enumerate((b"null", b"true", b"false")) if node.flags >> bit & 1]
        texts += [choice.automaton.shortest(choice.automaton.start) for choice in node.numbers]
        for spec in node.strings:
            if isinstance(spec, EnumSpec):
                form = self.enum_form(spec)
                texts.append(b'"' + form.rest(0, len(form.texts), 0) + b'"')
            elif spec.least <= MAX_CHARACTERS:
                texts.append(b'"' + self.string_rest(spec, 0, 0) + b'"')
        return min(texts, key=len, default=None)

    def _compound(self, node: GoalNode, cost: Costs) -> tuple[int, Items | ValuePlan] | None:
        """The cheapest object or array, as far as ``cost`` knows its parts."""
        best: tuple[int, Items | ValuePlan] | None = None
        for array in node.arrays:
            if array_live(array, is_live):
                items = self.items(array, cost)
                total = NEVER if items is None else 2 + self._items_cost(items, cost)
                if items is not None and total < (best[0] if best else NEVER):
                    best = (total, DistinctItems(items) if array.distinct else items)
        for spec in node.objects:
            if object_live(spec, is_live):
                plan = self.plan(Open(self.object_form(spec)), False, cost)
                if plan is not None:
                    total = 2 + plan.cost + (self._line - 1 if plan.members else 0)
                    if total < (best[0] if best else NEVER):
                        best = (total, plan)
        return best

    def items(self, spec: ArraySpec | CountedSpec, cost: Costs | None = None, start: int = 0) -> Items | None:
        """The nodes of the fewest (cheapest) items that complete an array, from ``start`` items or that state on."""
        if isinstance(spec, CountedSpec):
            return self._counted_items(spec, cost or self.cost, start)
        if spec.least - start > MAX_PARTS:
            return None
        return tuple(item(spec, index) for index in range(start, spec.least))

    def _counted_items(self, spec: CountedSpec, cost: Costs, start: int) -> Items | None:
        """The cheapest way from a state of a counted array to one where it may close (Dijkstra's algorithm)."""
        heap: list[tuple[int, int, int, Items]] = [(0, 0, start, ())]
        order = count()
        done: set[int] = set()
        while heap:
            price, _, state, nodes = heappop(heap)
            if state in done:
                continue
            done.add(state)
            if spec.states[state].closes:
                return nodes
            for node, after in spec.states[state].choices:
                step = cost(node) if node.live and spec.live[after] else NEVER
                if step < NEVER and after not in done:
                    heappush(heap, (price + step + 1 + self._line, next(order), after, (*nodes, node)))
        return None

    def _items_cost(self, items: Items, cost: Costs) -> int:
        if not items:
            return 0
        return sum(map(cost, items)) + (1 + self._line) * len(items) - 1 + self._line

    # --- strings ---
    def words(self, dfa: Dfa | None) -> Words:
        """The texts of an automaton (None: any text)."""
        if dfa is None:
            return _any_text(0)
        words = self._words.get(dfa.digest)
        if words is None:
            words = self._words[dfa.digest] = Words(dfa.transitions, np.where(dfa.accepting, 0, NEVER))
        return words

    def string_rest(self, spec: StringSpec, state: int, length: int) -> bytes:
        """What completes a string (spelled, without the quote) from a state of its automaton, ``length`` read."""
        if spec.least - length > MAX_CHARACTERS:
            missing = spec.least - length
            raise CompletionTooLongError(f"the string needs {missing} more characters, too many to be written")
        text = self.words(spec.dfa).suffix(state)
        total = length + code_points(text)
        if total < spec.least and spec.distances is None:
            text += b"a" * (spec.least - total)
        elif spec.distances is not None and not spec.least <= total <= (total if spec.most is None else spec.most):
            assert spec.dfa is not None
            text = shortest_of_length(spec.dfa, spec.distances, state, max(spec.least - length, 0))
        return spelled(text)

    # --- objects ---
    def plan(self, state: Open, forced: bool, cost: Costs | None = None) -> ValuePlan | None:
        """The cheapest members that complete an object; at least one if ``forced``. None if it cannot be done."""
        cost = cost or self.cost
        form, spec = state.form, state.form.spec
        early = (1 << state.seen.bit_length()) - 1 if self.ordered else 0
        free = 0 if self.ordered and state.others else form.allowed & ~state.seen & ~early
        add = form.missing(state.seen)
        if add & ~free:
            return None
        size = state.size + add.bit_count()
        if spec.most is not None and size > spec.most:
            return None
        least = max(spec.least, state.size + 1 if forced else 0)
        if least - state.size > MAX_PARTS:
            return None
        members: list[tuple[int, Member]] = []
        ways = self._meeting(state, free, add, cost) if spec.duties else {}
        if ways is None:
            return None
        for key, chosen in ways.items():
            if isinstance(key, int):
                size += 0 if add >> key & 1 else 1
                add |= 1 << key
            else:
                members.append((cost(chosen) + len(key), Member(key, chosen)))
                size += 1
        fresh = (found for found in self._undeclared(state, cost) if found[1].key not in ways)
        following = next(fresh, None) if size < least else None
        while size < least:
            limit = NEVER if spec.most is None else spec.most - size
            price, more = self._filler(form, free & ~add, state.seen | add, limit, least - size, cost)
            if following is not None and following[0] <= price:
                members.append(following)
                size += 1
                following = next(fresh, None)
            elif more:
                add |= more
                size += more.bit_count()
            else:
                return None
        declared = [Member(form.keys[bit], ways.get(bit, form.nodes[bit])) for bit in bits_of(add)]
        total = sum(price for price, _ in members) + self.price(form, add, cost)
        total += (size - state.size) * (len(self.colon) + self._line)
        if total >= NEVER:
            return None
        return ValuePlan(total, (*declared, *[member for _, member in members]), not members, bool(ways))

    def _meeting(self, state: Open, free: int, add: int, cost: Costs) -> dict[int | bytes, GoalNode] | None:
        """Members that meet the obligations left: the node by key bit or spelled undeclared key. None: impossible.

        For each obligation the cheapest; if the object has no room for these, those that meet the most at once.
        """
        most = state.form.spec.most
        room = NEVER if most is None else most - state.size - add.bit_count()
        for together in (False, True):
            found = self._chosen(state, free, add, cost, together)
            if found is None:
                return None
            if sum(not (isinstance(key, int) and add >> key & 1) for key in found) <= room:
                return found
        return None

    def _chosen(
        self, state: Open, free: int, add: int, cost: Costs, together: bool
    ) -> dict[int | bytes, GoalNode] | None:
        """Members that meet the obligations left, one after the other; None if one cannot be met."""
        form, spec = state.form, state.form.spec
        unmet = (1 << spec.duties) - 1 & ~state.met
        names = list(spec.keys)
        found: dict[int | bytes, GoalNode] = {}
        while unmet:
            duty = unmet & -unmet
            options: list[tuple[int, int | bytes, Choice]] = []
            for bit in bits_of(free):
                for way in spec.choices[names[bit]]:
                    if bit not in found and way[1] & duty and way[0].live:
                        price = cost(way[0]) + (0 if add >> bit & 1 else len(form.keys[bit]))
                        options.append((price, bit, way))
            options += self._undeclared_ways(state, duty, set(found), cost)
            options = [option for option in options if option[0] < NEVER]
            if not options:
                return None
            _, key, way = min(options, key=lambda option: ((option[2][1] & unmet).bit_count() * -together, option[0]))
            found[key] = way[0]
            unmet &= ~way[1]
        return found

    def _undeclared_ways(
        self, state: Open, duty: int, taken: set[int | bytes], cost: Costs
    ) -> Iterator[tuple[int, bytes, Choice]]:
        """For each class of undeclared keys, a fresh one whose value meets an obligation: (price, key, way)."""
        form = state.form
        if form.others is None:
            return
        used = state.used()
        for label, ways in enumerate(form.others.choices, 1):
            ways = [way for way in ways if way[1] & duty and way[0].live]
            if ways:
                for _, text, _ in form.keys_of_class(label).by_cost(0):
                    key = b'"' + spelled(text) + b'":'
                    if text not in form.names and key_hash(text) not in used and key not in taken:
                        for way in ways:
                            yield cost(way[0]) + len(key), key, way
                        break

    def price(self, form: ObjectForm, bits: int, cost: Costs | None = None) -> int:
        """Bytes of some declared members, without separators."""
        cost = cost or self.cost
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

    def _undeclared(self, state: Open, cost: Costs) -> Iterator[tuple[int, Member]]:
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
        for price, text, end in self._other_words(form, cost or self.cost).by_cost(state):
            yield price, text, int(form.others.labels[end])

    def cheapest_keys(self, form: ObjectForm, state: int, count: int) -> list[tuple[int, bytes, int]]:
        """The first of `other_keys`, ``count`` of them or more, if there are."""
        assert form.others is not None
        found = self._other_words(form, self.cost).cheapest(state, count)
        return [(price, text, int(form.others.labels[end])) for price, text, end in found]

    def _other_words(self, form: ObjectForm, cost: Costs) -> Words:
        classes = form.others
        assert classes is not None
        prices = (NEVER, *map(cost, classes.nodes))
        known = form.words
        if known is None or known[0] != prices:
            is_any = classes.transitions is universal().transitions
            final: npt.NDArray[np.int64] = np.array(prices, np.int64)[classes.labels]
            known = form.words = (prices, _any_text(prices[1]) if is_any else Words(classes.transitions, final))
        return known[1]


@lru_cache(64)
def _any_text(price: int) -> Words:
    """All texts, each at this price more."""
    dfa = universal()
    return Words(dfa.transitions, np.where(dfa.accepting, price, NEVER))


def lettered(least: int, most: int | None) -> Iterator[bytes]:
    """Strings of lower-case letters within a length, shortest first."""
    for length in count(least):
        if most is not None and length > most:
            return
        for letters in product(b"abcdefghijklmnopqrstuvwxyz", repeat=length):
            yield bytes(letters)


def bits_of(mask: int) -> Iterator[int]:
    """The places of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def item(spec: ArraySpec, index: int) -> GoalNode:
    """The node of an array's item."""
    return spec.prefix[index] if index < len(spec.prefix) else spec.rest


def _needed(node: GoalNode) -> Iterator[GoalNode]:
    """The nodes that the cost of a node may depend on."""
    for array in node.arrays:
        if isinstance(array, CountedSpec):
            for state in array.states:
                yield from (child for child, _ in state.choices)
            continue
        yield from array.prefix[: array.least]
        if array.least > len(array.prefix):
            yield array.rest
    for spec in node.objects:
        for ways in (*spec.choices.values(), *spec.other_choices):
            yield from (child for child, _ in ways)
        if spec.least > len(spec.required) or spec.duties:
            yield from spec.keys.values()
            if isinstance(spec.others, KeyClasses):
                yield from spec.others.nodes
            elif spec.others is not None:
                yield spec.others
        else:
            yield from (spec.keys[name] for name in spec.required)


__all__ = ["EnumForm", "Member", "ObjectForm", "Open", "ValuePlan", "Values", "bits_of", "item", "key_hash"]
