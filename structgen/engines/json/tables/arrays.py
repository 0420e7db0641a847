"""Goals as integer tables: the arrays that `structgen.kernels.json` reads.

Two passes: every live node that the root reaches gets its place, then the records are written behind them. Linear in
the goals.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import count

import numpy as np

from structgen.automata.dfa import Dfa
from structgen.automata.lengths import Distances
from structgen.engines.json.goals.cardinality import count_values, endless_nodes, endless_states
from structgen.engines.json.goals.key_classes import settle
from structgen.engines.json.goals.liveness import children, is_live, longest
from structgen.engines.json.goals.node import GoalNode
from structgen.engines.json.goals.shared import SHARED
from structgen.engines.json.goals.specs import ArraySpec, Choice, CountedSpec, EnumSpec, ObjectSpec, StringSpec
from structgen.engines.json.tables.pool import AutomatonPool, class_words
from structgen.errors import SchemaTooComplexError
from structgen.formula.language import MAX_COUNT, TRUE
from structgen.kernels.json import layout
from structgen.options import JsonOptions

MAX_TEMPLATES = 16
MAX_LISTED = 64  # values of a goal, to know how many there are where only few matter
MAX_ENTRIES = 1 << 20  # a range of table entries is packed into 2 x 20 bits


@dataclass(eq=False)
class JsonTables:
    """Arrays of one grammar: int32 records, int64 words (key sets), uint8 texts (keys and enumerated strings)."""

    grammar: array[int]
    words: array[int]
    texts: array[int]
    root: int
    distinct: bool  # whether some array's items are compared, for which matchers keep their text
    places: dict[GoalNode, int] = field(default_factory=dict)  # of the live nodes that the root reaches
    number: int = field(default_factory=count(1).__next__, init=False)  # no two have the same; by it masks are kept

    @cached_property
    def addresses(self) -> array[int]:
        """Address and length of each array, as contexts begin."""
        return array("q", [*self.grammar.buffer_info(), *self.words.buffer_info(), *self.texts.buffer_info()])

    @property
    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        return 4 * len(self.grammar) + 8 * len(self.words) + len(self.texts)


def write_tables(root: GoalNode, pool: AutomatonPool, options: JsonOptions) -> JsonTables:
    """The tables of a solved goal.

    Raises:
        SchemaTooComplexError: more goals than ``options.max_goals``, or an enumeration of over a million strings.
    """
    return _Writer(pool, options).write(root)


class _Writer:
    def __init__(self, pool: AutomatonPool, options: JsonOptions) -> None:
        self.pool = pool
        self.options = options
        self.grammar: list[int] = list(header(options))
        self.head = array("i")  # what it begins with, where that is known
        self.words: list[int] = []
        self.texts = bytearray()
        self._entries: dict[tuple[str, tuple[tuple[bytes, int, int], ...]], int] = {}
        self._strings: dict[int, int] = {}  # the root keeps the specs alive
        self._endless: set[GoalNode] = set()
        self._distinct = False
        self._places: dict[GoalNode, int] = {}

    def write(self, root: GoalNode) -> JsonTables:
        nodes = self._reached(root)
        self._distinct = any([spec.distinct or _is_paired(spec) for node in nodes for spec in node.arrays])
        if self._distinct:
            self.grammar[layout.H_UNIQUE] = 1
            self._endless = endless_nodes(nodes)
        else:
            self._begin(nodes, root)
        place, places = len(self.grammar), self._places
        new = [node for node in nodes if node not in places]
        for node in new:
            places[node] = place
            place += layout.NODE_SIZE
        self.grammar.extend([0] * (layout.NODE_SIZE * len(new)))
        for node in new:
            self._node(node)
        return JsonTables(
            self.head + array("i", self.grammar[len(self.head) :]),
            array("q", self.words or [0]),
            array("B", bytes(self.texts) or b"\0"),
            self._places[root],
            self._distinct,
            self._places,
        )

    def _begin(self, nodes: dict[GoalNode, None], root: GoalNode) -> None:
        """Begin with the records of the goal of any value, which nearly every schema has, where they are kept."""
        every = SHARED.under(self.options).get(TRUE)
        if every is None or every is root or every not in nodes:
            return
        known = self.pool.templates.get(every)
        if known is None:
            known = _Writer(self.pool, self.options)
            known.head = known.write(every).grammar
            if len(self.pool.templates) >= MAX_TEMPLATES:
                self.pool.templates.clear()
            self.pool.templates[every] = known
        self.grammar, self.words, self.texts = known.grammar.copy(), known.words.copy(), known.texts.copy()
        self.head = known.head
        self._entries, self._strings, self._places = known._entries.copy(), known._strings.copy(), known._places.copy()

    def _reached(self, root: GoalNode) -> dict[GoalNode, None]:
        """The live nodes that the root reaches, itself first."""
        max_goals = self.options.max_goals
        found, waiting = {root: None}, [root]
        for node in waiting:
            if node.objects or node.arrays:
                for child in children(node):
                    if child.live and child not in found:
                        found[child] = None
                        waiting.append(child)
                if len(waiting) > max_goals:
                    raise SchemaTooComplexError("the schema has too many goals", budget="max_goals", limit=max_goals)
        return found

    def _node(self, node: GoalNode) -> None:
        grammar, place = self.grammar, self._places[node]
        grammar[place] = node.flags | self._amount(node) if self._distinct else node.flags
        if node.strings:
            strings = self._strings  # specs are shared between goals, so records are
            records = [strings.get(id(spec)) or self._string(spec) for spec in node.strings]
            self._alternatives(place + layout.NODE_STRINGS, records)
        if node.numbers:
            numbers = [self.pool.add_number(choice.automaton) for choice in node.numbers]
            self._alternatives(place + layout.NODE_NUMBERS, numbers)
        if node.objects:
            self._alternatives(place + layout.NODE_OBJECTS, [self._object(spec) for spec in node.objects])
        if node.arrays:
            arrays = [record for spec in node.arrays for record in self._array(spec)]
            self._alternatives(place + layout.NODE_ARRAYS, arrays)

    def _amount(self, node: GoalNode) -> int:
        """How many values a node has, as its flags tell it, for arrays of distinct items."""
        if node in self._endless:
            return layout.ENDLESS_FLAG | layout.MAX_VALUES << layout.VALUES_SHIFT
        count, _ = count_values(node, layout.MAX_VALUES, self._endless.__contains__, is_live, MAX_LISTED)
        return count << layout.VALUES_SHIFT

    def _alternatives(self, field: int, records: list[int]) -> None:
        self.grammar[field] = len(self.grammar)
        self.grammar[field + 1] = len(records)
        self.grammar.extend(records)

    def _record(self, *fields: int) -> int:
        place = len(self.grammar)
        self.grammar.extend(fields)
        return place

    def _string(self, spec: EnumSpec | StringSpec) -> int:
        """The record of a string, new."""
        place = self._strings[id(spec)] = self._write_string(spec)
        return place

    def _write_string(self, spec: EnumSpec | StringSpec) -> int:
        if isinstance(spec, EnumSpec):
            entries = self._table("word", [(value.encode(), 0, 0) for value in spec.values])
            return self._record(layout.S_ENUM, 0, 0, -1, 0, entries, len(spec.values))
        if spec.dfa is None:
            start, distances = self.pool.universal, 0
        else:
            start, distances = self.pool.add_dfa(spec.dfa), 0
            if spec.distances is not None:
                table = spec.distances
                distances = self._record(start, table.nxt.shape[1], table.period, slack(table, spec.dfa))
                self.grammar.extend(table.nxt.ravel().tolist())
        most = -1 if spec.most is None else spec.most
        return self._record(layout.S_DFA, start, spec.least, most, distances, 0, 0)

    def _table(self, kind: str, rows: list[tuple[bytes, int, int]]) -> int:
        """Write a sorted table of (text, child, bit) rows; equal tables of one kind are shared."""
        rows.sort()
        key = (kind, tuple(rows))
        known = self._entries.get(key)
        if known is not None:
            return known
        if len(rows) >= MAX_ENTRIES:
            raise SchemaTooComplexError(f"an enumeration of {MAX_ENTRIES:,} strings or more", limit=MAX_ENTRIES)
        place = self._entries[key] = len(self.grammar)
        at, grammar = len(self.texts), self.grammar
        for text, child, bit in rows:
            grammar += (at, len(text), child, bit)
            at += len(text)
        self.texts += b"".join([row[0] for row in rows])
        return place

    def _object(self, spec: ObjectSpec) -> int:
        keys, places, needed = spec.keys, self._places, spec.required
        words = max(1, -(-len(keys) // layout.SEEN_BITS)) + (1 if spec.duties else 0)
        if spec.duties or spec.forbidden:
            rows = self._key_rows(spec)
        else:
            rows = [(name.encode(), places[node], bit) for bit, (name, node) in enumerate(keys.items())]
        entries = self._table("obliged key" if spec.duties else "key", rows)
        required = self._mask([bit for bit, name in enumerate(keys) if name in needed] if needed else [], words)
        dependent: list[int] = []
        if spec.dependents:
            bits = {name: bit for bit, name in enumerate(keys)}
            for name, names in spec.dependents.items():
                dependent += (bits[name], self._mask([bits[other] for other in names], words))
        kind, start, child, classes, counts, narrow = self._others(spec)
        dependents = len(self.grammar)
        self.grammar.extend(dependent)
        most = -1 if spec.most is None else spec.most
        return self._record(
            layout.R_OBJECT, entries, len(rows), words, required, spec.least, most,
            kind, start, child, dependents, len(dependent) // 2, narrow, (1 << spec.duties) - 1, classes,
            counts,
        )  # fmt: skip

    def _key_rows(self, spec: ObjectSpec) -> list[tuple[bytes, int, int]]:
        """The rows of keys of which some cannot be there, or some meet obligations."""
        rows = []
        for bit, (name, node) in enumerate(spec.keys.items()):
            text = utf8(name)
            if text is not None:
                child = -1 if name in spec.forbidden else self._places[node]
                if spec.duties and child >= 0:
                    child = self._choices(node, spec.choices[name])
                rows.append((text, child, bit))
        return rows

    def _others(self, spec: ObjectSpec) -> tuple[int, int, int, int, int, int]:
        """Kind, start state, node (or choices), number, word counts of the undeclared keys; whether they are narrow."""
        if isinstance(spec.others, GoalNode) and not spec.duties:
            if spec.others.live:
                return layout.ONE_CLASS, self.pool.universal, self._places[spec.others], 1, 0, 0
            return layout.NO_OTHERS, 0, 0, 0, 0, 0
        others = settle(spec, self.options.max_automaton_states)
        if others is None:
            return layout.NO_OTHERS, 0, 0, 0, 0, 0
        if isinstance(spec.others, GoalNode):
            return layout.ONE_CLASS, self.pool.universal, self._choices(spec.others, others.choices[0]), 1, 0, 0
        start = self.pool.add_key_classes(others)
        places = [self._places[node] for node in others.nodes]
        counts = 0
        if spec.duties:
            counts = self._record(*class_words(others).ravel().tolist())
            places = [self._choices(node, ways) for node, ways in zip(others.nodes, others.choices, strict=True)]
        return layout.CLASSES, start, self._record(0, *places), len(places), counts, int(others.narrow)

    def _mask(self, bits: list[int], words: int) -> int:
        place = len(self.words)
        self.words.extend([0] * words)
        for bit in bits:
            self.words[place + bit // layout.SEEN_BITS] |= 1 << (bit % layout.SEEN_BITS)
        return place

    def _choices(self, node: GoalNode, ways: list[Choice]) -> int:
        """Choices of a member's value: the plain one, then those that meet obligations."""
        live = [(node, 0), *((child, bits) for child, bits in ways if child.live)]
        return self._record(len(live), *[field for child, bits in live for field in (self._places[child], bits)])

    def _array(self, spec: ArraySpec | CountedSpec) -> list[int]:
        """The records that an array of the spec may begin with."""
        if isinstance(spec, CountedSpec):
            return self._counted(spec)
        most = longest(spec, is_live)
        prefix = self._record(*[self._places.get(node, -1) for node in spec.prefix])
        rest = self._places[spec.rest] if spec.rest.live else -1
        limit = -1 if most == math.inf else int(most)
        fields = (layout.R_ARRAY, prefix, len(spec.prefix), rest, spec.least, limit)
        if spec.distinct is False:
            return [self._record(*fields, layout.PAIRED, self._record(*fields, 0, 0))]
        return [self._record(*fields, layout.DISTINCT if spec.distinct else 0, 0)]

    def _counted(self, spec: CountedSpec) -> list[int]:
        """Records of the states; the first has one for each choice, since no comma stands before a first item."""
        endless = endless_states(spec, self._endless.__contains__)
        live = [number for number, alive in enumerate(spec.live) if alive]
        records = {number: self._record(*[0] * layout.A_SIZE) for number in live}
        first: list[int] = []
        for number in live:
            ways = [way for way in spec.states[number].choices if way[0].live and spec.live[way[1]]]
            choices = [(self._places[node], records[after]) for node, after in ways]
            head = (layout.R_COUNTED, int(spec.states[number].closes), int(endless[number]))
            tail = (0, layout.DISTINCT if spec.distinct else 0, 0)
            place = self._record(*[field for choice in choices for field in choice])
            self.grammar[records[number] : records[number] + layout.A_SIZE] = [*head, len(choices), place, *tail]
            if number == 0:
                first = [self._record(*head, 1, place + 2 * i, *tail) for i in range(len(choices))] or [records[0]]
        return first


def _is_paired(spec: ArraySpec | CountedSpec) -> bool:
    return isinstance(spec, ArraySpec) and spec.distinct is False


@lru_cache(64)
def header(options: JsonOptions) -> tuple[int, ...]:
    """The head of a grammar array: how text may be spelled."""
    fields = [0] * layout.H_SIZE
    run = options.max_whitespace_run
    if isinstance(options.whitespace, int):
        fields[layout.H_WHITESPACE], fields[layout.H_INDENT] = layout.INDENT, options.whitespace
    else:
        fields[layout.H_WHITESPACE] = {"compact": layout.COMPACT, "single": layout.SINGLE, "any": layout.ANY}[
            options.whitespace
        ]
    fields[layout.H_RUN] = -1 if run is None or run > MAX_COUNT else run
    fields[layout.H_ESCAPES] = int(options.string_escapes == "any")
    fields[layout.H_ORDER] = int(options.key_order == "declared")
    return tuple(fields)


def slack(distances: Distances, dfa: Dfa) -> int:
    """How much longer than asked for a completion may have to be, in any state after a byte; -1: without bound."""
    later = distances.nxt if (dfa.transitions == 0).any() else distances.nxt[1:]  # 0: the start
    if not len(later) or (later < 0).any():
        return -1
    return int((later - np.arange(later.shape[1])).max())


def utf8(text: str) -> bytes | None:
    """The UTF-8 of a string; None if it holds a lone surrogate, which no JSON text can spell in UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None
