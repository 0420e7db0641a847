"""Shortest JSON texts of value nodes: what each value costs at least in bytes, and which choices that takes.

Costs are the least solution of a system of equations over the nodes (Knuth's generalisation of Dijkstra's algorithm:
the cost of an object or array is more than that of any of its members), solved for the nodes that a question leads to
and kept. They are exact but for a few things: of optional members that only fill an object up to ``minProperties``
the cheapest each are taken, and of those that meet existentials the cheapest for one after the other; where both a
pattern and a length bind, characters are counted instead of bytes; an indented line counts as if it were
``USUAL_DEPTH`` deep; and that items must be distinct is left to the caller.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from structgen.core.engines.json.completion.cheapest_words import (
    Words,
    any_text,
    code_points,
    shortest_of_length,
    spelled,
)
from structgen.core.engines.json.completion.completion_tables import (
    EnumForm,
    Member,
    ObjectForm,
    Open,
    QuoteForm,
    ValuePlan,
)
from structgen.core.engines.json.completion.distinct_values import DistinctValues, Items
from structgen.core.engines.json.completion.object_plans import Costs, ObjectPlans
from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.objects import ObjectSpec
from structgen.core.engines.json.value_graph.scalars import NEVER, EnumSpec, QuoteSpec, StringSpec
from structgen.core.kernels.sorted.layout import START
from structgen.core.regex.dfa import Dfa
from structgen.errors import CompletionTooLongError
from structgen.options import JsonOptions

USUAL_DEPTH = 2
# Strings with more characters are not written to complete an output.
MAX_CHARACTERS = 1 << 20
# Values with more bytes are not written, nor are longer completions: long strings and arrays multiply where they nest.
MAX_BYTES = 1 << 23


class DistinctItems(tuple[ValueNode, ...]):
    """Items no two of which may be equal, of the array that they complete."""

    spec: ArraySpec | CountedSpec

    @classmethod
    def of(cls, spec: ArraySpec | CountedSpec, items: Items) -> DistinctItems:
        """The items that complete an array of a spec."""
        made = cls(items)
        made.spec = spec
        return made


class Values:
    """Costs and texts of the nodes of one grammar. Threads may share it: a race computes the same thing twice.

    Attributes:
        bytes: of the texts that are kept.
        distinct: other values than the shortest, for items that must differ.
    """

    def __init__(self, options: JsonOptions) -> None:
        self._max_states = options.max_automaton_states
        self._indent = options.whitespace if isinstance(options.whitespace, int) else None
        self.ordered = options.key_order == "declared"
        self._line = 0 if self._indent is None else 1 + USUAL_DEPTH * self._indent
        self.colon = b":" if self._indent is None else b": "
        self.objects = ObjectPlans(self.cost, self.ordered, len(self.colon) + self._line)
        self._found: dict[ValueNode, tuple[int, bytes | Items | ValuePlan]] = {}
        self._texts: dict[tuple[ValueNode, int], bytes] = {}
        self.bytes = 0
        self.distinct = DistinctValues(self)
        self._words: dict[bytes, Words] = {}
        self._forms: dict[int, ObjectForm] = {}
        self._enums: dict[int, EnumForm] = {}
        self._quotes: dict[int, QuoteForm] = {}

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

    def string_form(self, spec: EnumSpec | QuoteSpec) -> EnumForm | QuoteForm:
        """The form of a spec (by identity)."""
        if isinstance(spec, EnumSpec):
            return self.enum_form(spec)
        form = self._quotes.get(id(spec))
        if form is None:
            form = self._quotes[id(spec)] = QuoteForm(spec)
        return form

    # --- values ---
    def cost(self, node: ValueNode) -> int:
        """Bytes of the shortest text of a node; `NEVER` if it has none."""
        priced = self._found.get(node)
        if priced is None:
            self._solve(node)
            priced = self._found.get(node)
        return priced[0] if priced else NEVER

    def text(self, node: ValueNode, depth: int = 0) -> bytes:
        """The shortest text of a live node whose container is at ``depth`` (0: none)."""
        key = (node, 0 if self._indent is None else depth)
        text = self._texts.get(key)
        if text is None:
            if self.cost(node) > MAX_BYTES:
                raise CompletionTooLongError("every value that fits here is too long to be written to the end")
            text = self._texts[key] = self._write(self._found[node][1], depth)
            self.bytes += len(text)
        return text

    def is_sure(self, node: ValueNode) -> bool:
        """Whether the shortest text of a node is surely valid: no items must differ, no member meets existentials."""
        reached, met = [node], {node}
        for child in reached:
            choice = self._found[child][1]
            if isinstance(choice, DistinctItems) and len(choice) > 1:
                return False
            if isinstance(choice, ValuePlan) and choice.existential:
                return False
            if not isinstance(choice, bytes):
                parts = [member.node for member in choice.members] if isinstance(choice, ValuePlan) else choice
                reached += {*parts} - met
                met.update(parts)
        return True

    def _write(self, choice: bytes | Items | ValuePlan, depth: int) -> bytes:
        if isinstance(choice, bytes):
            return choice
        if isinstance(choice, ValuePlan):
            parts = [self.member(member, depth + 1) for member in choice.members]
        elif isinstance(choice, DistinctItems):
            parts = self.distinct.texts(choice.spec, 0, choice, depth + 1)
        else:
            parts = [self.text(node, depth + 1) for node in choice]
        opening, closing = (b"{", b"}") if isinstance(choice, ValuePlan) else (b"[", b"]")
        return self.bracketed(opening, parts, closing, depth)

    def member(self, member: Member, depth: int) -> bytes:
        """A member of an object at ``depth``."""
        return member.key + self.colon[1:] + self.text(member.node, depth)

    def bracketed(self, opening: bytes, parts: list[bytes], closing: bytes, depth: int) -> bytes:
        """An array or object of parts."""
        if not parts:
            return opening + closing
        line = self.line(depth + 1)
        return opening + line + (b"," + line).join(parts) + self.line(depth) + closing

    def _solve(self, root: ValueNode) -> None:
        """Costs of ``root`` and of what it needs: from infinity down until nothing changes."""
        nodes = [root]
        parents: dict[ValueNode, list[ValueNode]] = {root: []}
        for node in nodes:
            for child in {child for spec in (*node.objects, *node.arrays) for child in spec.needed()}:
                if child not in self._found and child.live:
                    if child not in parents:
                        parents[child] = []
                        nodes.append(child)
                    parents[child].append(node)
        trial: dict[ValueNode, tuple[int, bytes | Items | ValuePlan]] = {}
        for node in nodes:
            scalar = self._scalar(node)
            if scalar is not None:
                trial[node] = (len(scalar), scalar)

        def cost(node: ValueNode) -> int:
            priced = self._found.get(node) or trial.get(node)
            return priced[0] if priced else NEVER

        work = deque(reversed(nodes))
        while work:
            node = work.popleft()
            choice = self._compound(node, cost)
            if choice is not None and choice[0] < cost(node):
                trial[node] = choice
                work.extend(parents[node])
        self._found.update(trial)

    def _scalar(self, node: ValueNode) -> bytes | None:
        """The shortest text that is no object and no array."""
        texts = [word for bit, word in enumerate((b"null", b"true", b"false")) if node.flags >> bit & 1]
        texts += [choice.automaton.shortest(choice.automaton.start) for choice in node.numbers]
        for spec in node.strings:
            if isinstance(spec, EnumSpec):
                form = self.enum_form(spec)
                texts.append(b'"' + form.remaining(0, len(form.texts), 0) + b'"')
            elif isinstance(spec, QuoteSpec):
                quote = self.string_form(spec)
                assert isinstance(quote, QuoteForm)
                texts.append(b'"' + quote.completion(START) + b'"')
            elif spec.least <= MAX_CHARACTERS:
                texts.append(b'"' + self.string_remainder(spec, 0, 0) + b'"')
        return min(texts, key=len, default=None)

    def _compound(self, node: ValueNode, cost: Costs) -> tuple[int, Items | ValuePlan] | None:
        """The cheapest object or array, as far as ``cost`` knows its parts."""
        best: tuple[int, Items | ValuePlan] | None = None
        for array in node.arrays:
            items = self.items(array, cost)
            total = NEVER if items is None else 2 + self._items_cost(items, cost)
            if items is not None and total < (best[0] if best else NEVER):
                best = (total, DistinctItems.of(array, items) if array.distinct else items)
        for spec in node.objects:
            plan = self.objects.plan(Open(self.object_form(spec)), False, cost)
            if plan is not None:
                total = 2 + plan.cost + (self._line - 1 if plan.members else 0)
                if total < (best[0] if best else NEVER):
                    best = (total, plan)
        return best

    def items(self, spec: ArraySpec | CountedSpec, cost: Costs | None = None, start: int = 0) -> Items | None:
        """The nodes of the fewest (cheapest) items that complete an array, from ``start`` items or that state on."""
        return spec.completion(start, cost or self.cost, 1 + self._line)

    def _items_cost(self, items: Items, cost: Costs) -> int:
        if not items:
            return 0
        return sum(map(cost, items)) + (1 + self._line) * len(items) - 1 + self._line

    # --- strings ---
    def words(self, dfa: Dfa | None) -> Words:
        """The texts of an automaton (None: any text)."""
        if dfa is None:
            return any_text(0)
        words = self._words.get(dfa.digest)
        if words is None:
            words = self._words[dfa.digest] = Words(dfa.transitions, np.where(dfa.accepting, 0, NEVER))
        return words

    def string_remainder(self, spec: StringSpec, state: int, length: int) -> bytes:
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
