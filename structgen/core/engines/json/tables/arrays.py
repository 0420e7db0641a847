"""Value nodes as integer tables: the arrays that `structgen.core.kernels.json` reads.

Two passes: every live node that the root reaches gets its place, then the records are written after them. Linear in
the value nodes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count
from struct import pack

import numpy as np

from structgen.core.engines.json.tables.pool import AutomatonPool, class_words
from structgen.core.engines.json.value_graph.cardinality import count_values, endless_nodes
from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.key_classes import settle
from structgen.core.engines.json.value_graph.liveness import live_nodes, longest
from structgen.core.engines.json.value_graph.node import StringAlternative, ValueNode
from structgen.core.engines.json.value_graph.objects import Choice, ObjectSpec, is_live
from structgen.core.engines.json.value_graph.scalars import EnumSpec, QuoteSpec
from structgen.core.engines.json.value_graph.shared import SHARED
from structgen.core.json_schema.formula.language import INT, MAX_COUNT, Mult, Type, and_
from structgen.core.json_schema.formula.values import NUMBER
from structgen.core.json_text import utf8
from structgen.core.kernels.json import layout
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.labelled import every_text
from structgen.core.regex.lengths import Distances
from structgen.core.text_sets.sorted_texts import SortedReader
from structgen.errors import SchemaTooComplexError
from structgen.options import JsonOptions

MAX_LISTED = 64  # values of a value node, to know how many there are where only few matter
MAX_ENTRIES = 1 << 20  # a range of table entries is packed into 2 x 20 bits
MAX_COMMON = 128  # value nodes that a beginning may have; there are some 60
MAX_BEGINNINGS = 16
_INTEGERS = frozenset((and_(Type(NUMBER), Mult(1)), and_(Type(NUMBER), INT)))
_NONE = (0, 0)
_SEEN = (1 << layout.SEEN_BITS) - 1
_next_number = count(1).__next__


@dataclass(eq=False, init=False)
class JsonTables:
    """Arrays of one grammar: int32 records, int64 words (key sets), uint8 texts (keys and enumerated strings).

    ``number``: no two have the same; by it masks are kept. ``addresses``: address and length of each array, as contexts
    begin.
    """

    grammar: array[int]
    words: array[int]
    texts: array[int]
    root: int
    distinct: bool  # whether some array's items are compared, for which matchers keep their text
    places: dict[ValueNode, int]  # of live nodes, among them all that the root reaches
    sorted_texts: list[SortedReader]  # which strings may be

    def __init__(
        self, grammar: array[int], words: array[int], texts: array[int], root: int, distinct: bool,
        places: dict[ValueNode, int], sorted_texts: Sequence[SortedReader] = (),
    ) -> None:  # fmt: skip
        self.grammar, self.words, self.texts = grammar, words, texts
        self.root, self.distinct, self.places = root, distinct, places
        self.number = _next_number()
        self.sorted_texts = list(sorted_texts)
        self._sorted = array("q", [each.address for each in self.sorted_texts] or [0])
        arrays = (grammar, words, texts, self._sorted)
        self.addresses = array("q", chain.from_iterable(each.buffer_info() for each in arrays))

    @property
    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        return 4 * len(self.grammar) + 8 * len(self.words) + len(self.texts)


def write_tables(root: ValueNode, pool: AutomatonPool, options: JsonOptions) -> JsonTables:
    """The tables of a solved value node.

    They begin with nodes that nearly every schema has, copied from tables that are kept: any value, values of a type.

    Raises:
        SchemaTooComplexError: more value nodes than ``options.max_goals``, or an enumeration of over a million strings.
    """
    under = SHARED.under(options)
    beginning = pool.beginnings.get(under)
    if beginning is None:
        if len(pool.beginnings) >= MAX_BEGINNINGS:
            pool.beginnings.clear()
        beginning = pool.beginnings[under] = _head(options)
    writer = _Writer(pool, options, beginning)
    new = writer.reach(root)
    if writer.common and not writer.distinct:  # else they may hold lists that are compared, and none is kept
        begun = _Writer(pool, options, beginning if len(beginning.places) < MAX_COMMON else _head(options))
        for node in writer.common:
            begun.write(begun.reach(node))
        beginning = pool.beginnings[under] = begun.tables(node)
        writer = _Writer(pool, options, beginning)
        new = writer.reach(root)
    if writer.distinct:  # value nodes then say how many values they have
        writer = _Writer(pool, options, _head(options))
        new = writer.reach(root)
        writer.grammar[layout.H_UNIQUE] = 1
        writer.endless = endless_nodes(new)
    writer.write(new)
    return writer.tables(root)


def packed(numbers: list[int]) -> array[int]:
    """Numbers as int32: faster than the array's own way."""
    numbers_array = array("i")
    numbers_array.frombytes(pack(f"{len(numbers)}i", *numbers))
    return numbers_array


def _head(options: JsonOptions) -> JsonTables:
    """Tables without value nodes."""
    return JsonTables(array("i", header(options)), array("q", (0,)), array("B", (0,)), 0, False, {})


class _Writer:
    """Writes value nodes after the tables ``known``, which it copies.

    Attributes:
        places: of value nodes that are written, or will be.
        common: value nodes that were met and should be among the known ones.
        distinct: whether some array's items are to be compared.
        endless: value nodes with endlessly many values, if so.
    """

    def __init__(self, pool: AutomatonPool, options: JsonOptions, beginning: JsonTables) -> None:
        self.pool, self.options = pool, options
        self.grammar, self.words, self.texts = beginning.grammar[:], beginning.words[:], beginning.texts[:]
        self.places, self.sorted_texts = beginning.places.copy(), beginning.sorted_texts.copy()
        self._cells: list[int] = []  # what comes after the grammar array, at ``_base``
        self._base = len(self.grammar)
        self.common: list[ValueNode] = []
        self.distinct = False
        self.endless: set[ValueNode] = set()
        self._entries: dict[tuple[object, ...], int] = {}  # tables of keys and words, by what they hold
        self._strings: dict[int, int] = {}  # the root keeps the specs alive

    def tables(self, root: ValueNode) -> JsonTables:
        """What was written."""
        return JsonTables(
            self.grammar, self.words, self.texts, self.places[root], self.distinct, self.places, self.sorted_texts
        )

    def reach(self, root: ValueNode) -> list[ValueNode]:
        """The live nodes that a node reaches and that have no place yet, itself first. They get places here."""
        places, grammar = self.places, self.grammar
        if root in places:
            return []
        position, reached, most = len(grammar), [root], self.options.max_goals - len(places)
        places[root] = position
        for node in reached:
            formula = node.formula
            if node.shared and (formula.__class__ is Type or formula in _INTEGERS):
                self.common.append(node)
            if node.objects or node.arrays:
                for child in node.children():
                    if child.live and child not in places:
                        position += layout.NODE_SIZE
                        places[child] = position
                        reached.append(child)
                for spec in node.arrays:
                    if spec.distinct or (spec.distinct is False and spec.__class__ is ArraySpec):
                        self.distinct = True
        if len(reached) > most:
            self._check_nodes(root)
        grammar.frombytes(bytes(4 * layout.NODE_SIZE * len(reached)))
        self._base = len(grammar)
        return reached

    def _check_nodes(self, root: ValueNode) -> None:
        """Count the live nodes that the root reaches, those that are known included."""
        limit = self.options.max_goals
        if len(live_nodes(root)) > limit:
            raise SchemaTooComplexError("the schema has too many value nodes", budget="max_goals", limit=limit)

    def write(self, nodes: list[ValueNode]) -> None:
        """Write the nodes that were reached, which stand side by side."""
        strings, pool = self._strings, self.pool
        heads: list[int] = []
        for node in nodes:
            heads.append(node.flags | self._amount(node) if self.distinct else node.flags)
            if node.strings:  # specs are shared between value nodes, so records are
                heads += self._alternatives([strings.get(id(spec)) or self._string(spec) for spec in node.strings])
            else:
                heads += _NONE
            if node.numbers:
                heads += self._alternatives([pool.add_number(choice.automaton) for choice in node.numbers])
            else:
                heads += _NONE
            if node.objects:
                heads += self._alternatives([self._object(spec) for spec in node.objects])
            else:
                heads += _NONE
            if node.arrays:
                heads += self._alternatives([record for spec in node.arrays for record in self._array(spec)])
            else:
                heads += _NONE
        self._settle()
        if nodes:
            position = self.places[nodes[0]]
            self.grammar[position : position + len(heads)] = packed(heads)

    def _settle(self) -> None:
        """Put what was written after the array into it."""
        self.grammar += packed(self._cells)
        self._cells.clear()
        self._base = len(self.grammar)

    def _amount(self, node: ValueNode) -> int:
        """How many values a node has, as its flags tell it, for arrays of distinct items."""
        if node in self.endless:
            return layout.ENDLESS_FLAG | layout.MAX_VALUES << layout.VALUES_SHIFT
        count, _ = count_values(node, layout.MAX_VALUES, self.endless.__contains__, is_live, MAX_LISTED)
        return count << layout.VALUES_SHIFT

    def _alternatives(self, records: list[int]) -> tuple[int, int]:
        """Place and number of the alternatives of a kind."""
        position = self._base + len(self._cells)
        self._cells += records
        return position, len(records)

    def _record(self, *fields: int) -> int:
        position = self._base + len(self._cells)
        self._cells += fields
        return position

    def _string(self, spec: StringAlternative) -> int:
        """The record of a string, new."""
        position = self._strings[id(spec)] = self._write_string(spec)
        return position

    def _write_string(self, spec: StringAlternative) -> int:
        if isinstance(spec, EnumSpec):
            entries = self._entries.get(spec.values)
            if entries is None:
                rows = [(value.encode(), 0, 0) for value in spec.values]
                entries = self._entries[spec.values] = self._table(rows)
            return self._record(layout.S_ENUM, 0, 0, -1, 0, entries, len(spec.values))
        if isinstance(spec, QuoteSpec):
            self.sorted_texts.append(spec.corpus.reader(spec.least, spec.most))
            return self._record(layout.S_SORTED, 0, 0, -1, 0, len(self.sorted_texts) - 1, 0)
        if spec.dfa is None:
            start, distances = self.pool.universal, 0
        else:
            start, distances = self.pool.add_dfa(spec.dfa), 0
            if spec.distances is not None:
                table = spec.distances
                distances = self._record(start, table.nxt.shape[1], table.period, slack(table, spec.dfa))
                self._settle()
                self.grammar.frombytes(table.nxt.astype(np.int32).tobytes())
                self._base = len(self.grammar)
        most = -1 if spec.most is None else spec.most
        return self._record(layout.S_DFA, start, spec.least, most, distances, 0, 0)

    def _table(self, rows: list[tuple[bytes, int, int]]) -> int:
        """Write rows (text, child, bit) as a sorted table."""
        if len(rows) >= MAX_ENTRIES:
            raise SchemaTooComplexError(f"an enumeration of {MAX_ENTRIES:,} strings or more", limit=MAX_ENTRIES)
        position = self._base + len(self._cells)
        if rows:
            rows.sort()
            texts, children, bits = zip(*rows, strict=True)
            lengths = [*map(len, texts)]
            begins = accumulate(lengths, initial=len(self.texts))
            self._cells += chain.from_iterable(zip(begins, lengths, children, bits, strict=False))
            self.texts.frombytes(b"".join(texts))
        return position

    def _object(self, spec: ObjectSpec) -> int:
        keys, places, needed = spec.keys, self.places, spec.required
        number, words = len(keys), -(-len(keys) // layout.SEEN_BITS) or 1
        if spec.existentials or spec.forbidden:
            rows = self._key_rows(spec)
            number, entries = len(rows), self._table(rows)
            words += 1 if spec.existentials else 0
        else:
            held = (*keys, *keys.values())
            entry_table = self._entries.get(held)
            if entry_table is None:
                rows = [(name.encode(), places[node], bit) for bit, (name, node) in enumerate(keys.items())]
                entry_table = self._entries[held] = self._table(rows)
            entries = entry_table
        present = (1 << len(keys)) - 1 if len(needed) == len(keys) else 0
        if needed and not present:
            present = sum([1 << bit for bit, name in enumerate(keys) if name in needed])
        required = self._mask(present, words)
        dependent: list[int] = []
        if spec.dependents:
            bits = {name: 1 << bit for bit, name in enumerate(keys)}
            for name, names in spec.dependents.items():
                dependent += (bits[name].bit_length() - 1, self._mask(sum([bits[other] for other in names]), words))
        kind, start, child, classes, counts, narrow = self._others(spec)
        cells = self._cells
        dependents = self._base + len(cells)
        cells += dependent
        position = self._base + len(cells)
        cells += (
            layout.R_OBJECT, entries, number, words, required, spec.least, -1 if spec.most is None else spec.most,
            kind, start, child, dependents, len(dependent) // 2, narrow, (1 << spec.existentials) - 1, classes,
            counts,
        )  # fmt: skip
        return position

    def _key_rows(self, spec: ObjectSpec) -> list[tuple[bytes, int, int]]:
        """The rows of keys of which some cannot be there, or some meet existentials."""
        rows = []
        for bit, (name, node) in enumerate(spec.keys.items()):
            text = utf8(name)
            if text is not None:
                child = -1 if name in spec.forbidden else self.places[node]
                if spec.existentials and child >= 0:
                    child = self._choices(node, spec.choices[name])
                rows.append((text, child, bit))
        return rows

    def _others(self, spec: ObjectSpec) -> tuple[int, int, int, int, int, int]:
        """Kind, start state, node (or choices), number, word counts of the undeclared keys; whether they are narrow."""
        others = settle(spec, self.options.max_automaton_states)
        if others is None:
            return layout.NO_OTHERS, 0, 0, 0, 0, 0
        if others.automaton is every_text():
            node = others.nodes[0]
            child = self._choices(node, others.choices[0]) if spec.existentials else self.places[node]
            return layout.ONE_CLASS, self.pool.universal, child, 1, 0, 0
        start = self.pool.add_key_classes(others)
        places = [self.places[node] for node in others.nodes]
        counts = 0
        if spec.existentials:
            counts = self._record(*class_words(others).ravel().tolist())
            places = [self._choices(node, choices) for node, choices in zip(others.nodes, others.choices, strict=True)]
        return layout.CLASSES, start, self._record(0, *places), len(places), counts, int(others.narrow)

    def _mask(self, bits: int, words: int) -> int:
        """Write a set of keys, given as bits."""
        position = len(self.words)
        for _ in range(words):
            self.words.append(bits & _SEEN)
            bits >>= layout.SEEN_BITS
        return position

    def _choices(self, node: ValueNode, choices: list[Choice]) -> int:
        """Choices of a member's value: the plain one, then those that meet existentials."""
        live = [(node, 0), *((child, bits) for child, bits in choices if child.live)]
        return self._record(len(live), *[field for child, bits in live for field in (self.places[child], bits)])

    def _array(self, spec: ArraySpec | CountedSpec) -> list[int]:
        """The records that an array of the spec may begin with."""
        if isinstance(spec, CountedSpec):
            return self._counted(spec)
        most = longest(spec)
        prefix = self._record(*[self.places.get(node, -1) for node in spec.prefix])
        remaining = self.places[spec.remaining] if spec.remaining.live else -1
        limit = -1 if most == math.inf else int(most)
        fields = (layout.R_ARRAY, prefix, len(spec.prefix), remaining, spec.least, limit)
        if spec.distinct is False:
            return [self._record(*fields, layout.PAIRED, self._record(*fields, 0, 0))]
        return [self._record(*fields, layout.DISTINCT if spec.distinct else 0, 0)]

    def _counted(self, spec: CountedSpec) -> list[int]:
        """Records of the states; the first has one for each choice, since no comma stands before a first item."""
        endless = spec.endless_states(self.endless.__contains__)
        live = [number for number, alive in enumerate(spec.live) if alive]
        records = {number: self._record(*[0] * layout.A_SIZE) for number in live}
        first: list[int] = []
        for number in live:
            choices = [(self.places[node], records[after]) for node, after in spec.live_choices(number)]
            head = (layout.R_COUNTED, int(spec.states[number].closes), int(endless[number]))
            tail = (0, layout.DISTINCT if spec.distinct else 0, 0)
            position = self._record(*[field for choice in choices for field in choice])
            self._settle()
            record = packed([*head, len(choices), position, *tail])
            self.grammar[records[number] : records[number] + layout.A_SIZE] = record
            if number == 0:
                first = [self._record(*head, 1, position + 2 * i, *tail) for i in range(len(choices))] or [records[0]]
        return first


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
