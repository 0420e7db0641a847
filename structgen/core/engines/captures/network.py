"""A grammar as a network of nodes: what may come next in a rule, in the order written, common beginnings shared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np

from structgen.core.engines.byte_sets import byte_set, flags
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.json_schema.formula.components import strong_components
from structgen.core.regex.dfa import Dfa

_Options = dict[int | None, int]
"""The child after each symbol, in the order written; None: the rule ends here."""
MOST_KEPT = 256
_Rules = list[list[tuple[int, ...]]]


class Kind(IntEnum):
    """What an edge of the network stands for."""

    END = 0  # the rule ends here
    READ = 1  # a terminal
    EMBED = 2  # a terminal that another grammar reads
    CALL = 3  # a nonterminal


class Edge(NamedTuple):
    """One way on from a node.

    Attributes:
        symbol: as in rules.
        called: the node where the nonterminal begins.
        child: the node after the symbol.
        is_last: whether nothing follows the nonterminal.
    """

    kind: Kind
    symbol: int = 0
    called: int = -1
    child: int = -1
    is_last: bool = False


class Automaton:
    """An automaton whose rows are lists."""

    def __init__(self, dfa: Dfa) -> None:
        self._transitions = dfa.transitions
        self._rows: list[list[int] | None] = [None] * len(dfa)
        self.accepting: list[bool] = dfa.accepting.tolist()
        self.goes_on: list[bool] = np.any(dfa.transitions >= 0, axis=1).tolist()

    def row(self, state: int) -> list[int]:
        """The states after one, by byte."""
        row = self._rows[state]
        if row is None:
            row = self._rows[state] = self._transitions[state].tolist()
        return row


class EmbeddedTexts(Protocol):
    """What the network needs to know of a grammar that reads a terminal."""

    @property
    def first(self) -> int:
        """The bytes that its texts can begin with, as a set."""
        ...

    @property
    def is_nullable(self) -> bool:
        """Whether the empty text is one of its texts."""
        ...

    @property
    def most(self) -> Mapping[str, int]:
        """How often each name can occur in one of its texts: 0, 1, or 2 for more."""
        ...

    @property
    def has_meaning(self) -> bool:
        """Whether its texts have values."""
        ...


class Network:
    """The static part of finding captures. Linear in the grammar, but for what is found by fixpoints.

    Nodes are numbered 0 to ``size`` - 1. Node n + ``size`` is node n where the text must end with the rule, but for
    what is ignored: of the rule's ends only such are looked for, which keeps the sets of long lists small.

    Attributes:
        edges: of each node, in the order written.
        nullable: whether the rule may end at a node without more text.
        first: bytes[256] of each node, 1 for those that can come next in the rule, ignored text included.
        component, members, is_looped: of the nodes that need each other at the same place of the text.
        begin: the node where each nonterminal begins (-1: it has no text, or is never used).
        names: the names of captured symbols.
        most: how often each name can occur in one text: 0, 1, or 2 for more.
        shows: nonterminals in which something is captured, or a text has a value.
        same: of each nonterminal, the loop of those that can be all of each other's text; -1: none.
        opens: likewise, of those that can begin each other's text.
        goes_on: whether more text can come in the rule.
        dfas, automata: of the terminals; ``ignored`` are those between them.
    """

    def __init__(self, grammar: ContextFreeGrammar, embedded: Mapping[int, EmbeddedTexts]) -> None:
        self.dfas: list[Dfa] = [terminal.dfa for terminal in grammar.terminals]
        self.automata = [Automaton(dfa) for dfa in self.dfas]
        self.ignored = [t for t in dict.fromkeys(grammar.ignored) if not self.dfas[t].is_empty]
        self.start = grammar.start
        self._embedded = embedded
        self.names: dict[int, list[str]] = {}
        named = [(symbol, name) for symbol, name in grammar.captures if isinstance(name, str)]
        for symbol, name in named:
            self.names.setdefault(symbol, []).append(name)
        self.rules = _usable_rules(grammar, embedded)
        self._empty_terminals = frozenset(~t for t, texts in embedded.items() if texts.is_nullable)
        self._empties: dict[frozenset[int], frozenset[int]] = {}
        self._empty = self.empties_without(frozenset())
        self._build()
        self.shows = self._showing()
        calls = [[s for rhs in alternatives for s in rhs if s >= 0] for alternatives in self.rules]
        self._callers = strong_components(calls, [True] * len(calls))
        self.most = self._counts({name for _, name in named})
        units = [[s for rhs in alternatives for s in self._alone(rhs)] for alternatives in self.rules]
        corners = [[s for rhs in alternatives for s in self._leading(rhs)] for alternatives in self.rules]
        self.same, self.opens = _loops(units), _loops(corners)

    # --- nodes ---
    def _build(self) -> None:
        options: list[_Options] = []

        def node() -> int:
            options.append({})
            return len(options) - 1

        self.begin = [node() if alternatives else -1 for alternatives in self.rules]
        for number, alternatives in enumerate(self.rules):
            for rhs in alternatives:
                trie_node = self.begin[number]
                for symbol in rhs:
                    if symbol not in options[trie_node]:
                        options[trie_node][symbol] = node()
                    trie_node = options[trie_node][symbol]
                options[trie_node][None] = -1
        self.size = len(options)
        self.edges = [
            self._edges(options, trie_node, shift) for shift in (0, self.size) for trie_node in range(self.size)
        ]
        self.nullable = [False] * self.size
        for trie_node in reversed(range(self.size)):  # children have higher numbers
            self.nullable[trie_node] = any(
                symbol is None or (self.is_nullable(symbol) and self.nullable[child])
                for symbol, child in options[trie_node].items()
            )
        self.nullable *= 2
        self.bases = self._bases()
        needs = [list(self._needs(edges)) for edges in self.edges]
        self.members = strong_components(needs, [True] * len(needs))
        self.component = [0] * len(needs)
        for component, nodes in enumerate(self.members):
            for trie_node in nodes:
                self.component[trie_node] = component
        self.is_looped = [
            len(alternatives) > 1 or alternatives[0] in needs[alternatives[0]] for alternatives in self.members
        ]
        self.first = [flags(members) for members in self._first_bytes()]

    def _edges(self, options: Sequence[_Options], node: int, shift: int) -> list[Edge]:
        edges = []
        for symbol, child in options[node].items():
            if symbol is None:
                edges.append(Edge(Kind.END))
            elif symbol < 0:
                kind = Kind.EMBED if ~symbol in self._embedded else Kind.READ
                edges.append(Edge(kind, symbol, -1, child + shift))
            else:
                is_last = options[child] == {None: -1}
                called = self.begin[symbol] + (shift if is_last else 0)
                edges.append(Edge(Kind.CALL, symbol, called, child + shift, is_last))
        return edges

    def _bases(self) -> tuple[dict[int, int], list[tuple[int, int]], list[int]]:
        """A number for each state of a terminal, in front of each node that stands after one: the first number by
        node, the node and the terminal by place in the list of first numbers, and that list."""
        by_node: dict[int, int] = {}
        owners: list[tuple[int, int]] = []
        count = 2 * self.size
        for edges in self.edges:
            for edge in edges:
                if edge.kind == Kind.READ:
                    by_node[edge.child] = count
                    owners.append((edge.child, ~edge.symbol))
                    count += len(self.dfas[~edge.symbol])
        return by_node, owners, list(by_node.values())

    def _needs(self, edges: Iterable[Edge]) -> Iterable[int]:
        """The nodes whose ends a node needs at its own place."""
        for edge in edges:
            if edge.kind == Kind.CALL:
                yield edge.called
            if edge.kind != Kind.END and self.is_nullable(edge.symbol) and not edge.is_last:
                yield edge.child

    def is_nullable(self, symbol: int) -> bool:
        """Whether a symbol may be empty."""
        return symbol in self._empty

    def empties_without(self, without: frozenset[int]) -> frozenset[int]:
        """The symbols that may be empty without using some nonterminals."""
        empties = self._empties.get(without)
        if empties is None:
            rules = [[] if number in without else alternatives for number, alternatives in enumerate(self.rules)]
            empties = frozenset(_derivable(rules, self._empty_terminals)) | self._empty_terminals
            self._empties = (
                {without: empties} if len(self._empties) > MOST_KEPT else {**self._empties, without: empties}
            )
        return empties

    def _first_bytes(self) -> list[int]:
        skipped = 0
        for t in self.ignored:
            skipped |= _first_of(self.dfas[t])
        of_terminals = [_first_of(dfa) for dfa in self.dfas]
        for t, texts in self._embedded.items():
            of_terminals[t] = texts.first
        first_bytes = [0] * self.size
        for component in reversed(self.members):  # what is called comes first
            before = None
            while component[0] < self.size and before != [first_bytes[node] for node in component]:
                before = [first_bytes[node] for node in component]
                for node in component:
                    for edge in self.edges[node]:
                        if edge.kind != Kind.END:
                            first_bytes[node] |= (
                                of_terminals[~edge.symbol] if edge.symbol < 0 else first_bytes[edge.called]
                            )
                            first_bytes[node] |= first_bytes[edge.child] if self.is_nullable(edge.symbol) else 0
        self.goes_on = [bool(members) for members in first_bytes] * 2
        return [members and members | skipped for members in first_bytes] + [
            members | skipped for members in first_bytes
        ]

    # --- what is captured ---
    def _showing(self) -> frozenset[int]:
        """The symbols in which something is captured, or a text has a value."""
        showing = set(self.names)
        showing.update(~t for t, texts in self._embedded.items() if texts.has_meaning or any(texts.most.values()))
        users: dict[int, set[int]] = {}
        for number, alternatives in enumerate(self.rules):
            for symbol in {symbol for rhs in alternatives for symbol in rhs}:
                users.setdefault(symbol, set()).add(number)
        todo = list(showing)
        while todo:
            more = users.get(todo.pop(), set()) - showing
            showing |= more
            todo += more
        return frozenset(showing)

    def _counts(self, own_names: set[str]) -> dict[str, int]:
        reached = {self.start}
        todo = [self.start]
        while todo:
            more = {s for rhs in self.rules[todo.pop()] for s in rhs} - reached
            reached |= more
            todo += [s for s in more if s >= 0]
        inner = {n for t, texts in self._embedded.items() if ~t in reached for n in texts.most}
        return {name: self._count(name) for name in sorted(own_names | inner)}

    def _count(self, name: str) -> int:
        """How often a name can occur in one text: 0, 1, or 2 for more."""

        def count(symbol: int) -> int:
            own_count = self.names.get(symbol, []).count(name)
            if symbol >= 0:
                return own_count + counts[symbol]
            return own_count + (self._embedded[~symbol].most.get(name, 0) if ~symbol in self._embedded else 0)

        counts = [0] * len(self.rules)
        for own_count in reversed(self._callers):
            before = None
            while before != [counts[number] for number in own_count]:
                before = [counts[number] for number in own_count]
                for number in own_count:
                    counts[number] = max((min(2, sum(map(count, rhs))) for rhs in self.rules[number]), default=0)
        return min(2, count(self.start))

    # --- loops ---
    def _alone(self, rhs: tuple[int, ...]) -> Iterable[int]:
        """The nonterminals that may be all of what a rule derives."""
        solid = [s for s in rhs if not self.is_nullable(s)]
        if not solid:
            return [s for s in rhs if s >= 0]
        return solid if len(solid) == 1 and solid[0] >= 0 else []

    def _leading(self, rhs: tuple[int, ...]) -> Iterable[int]:
        """The nonterminals that may begin what a rule derives."""
        for symbol in rhs:
            if symbol >= 0:
                yield symbol
            if not self.is_nullable(symbol):
                return


def _first_of(dfa: Dfa) -> int:
    return 0 if dfa.is_empty else byte_set(np.flatnonzero(dfa.transitions[0] >= 0).tolist())


def _loops(edges: list[list[int]]) -> list[int]:
    """Of each node, its strong component if that is a loop; else -1."""
    loops = [-1] * len(edges)
    for number, members in enumerate(strong_components(edges, [True] * len(edges))):
        if len(members) > 1 or members[0] in edges[members[0]]:
            for node in members:
                loops[node] = number
    return loops


def _usable_rules(grammar: ContextFreeGrammar, embedded: Mapping[int, EmbeddedTexts]) -> _Rules:
    """The right sides of each nonterminal that have texts, in the order written, repetitions from the left."""
    terminals = {~t for t, terminal in enumerate(grammar.terminals) if t in embedded or not terminal.dfa.is_empty}
    written: list[dict[tuple[int, ...], None]] = [{} for _ in grammar.nonterminals]
    for rule in grammar.rules:
        written[rule.lhs][rule.rhs] = None
    usable = _derivable([list(alternatives) for alternatives in written], terminals) | terminals
    rules = [[rhs for rhs in alternatives if usable.issuperset(rhs)] for alternatives in written]
    for number, name in enumerate(grammar.nonterminals):
        if is_generated(name):
            _turn_repetition(rules, number)
    return rules


def _derivable(rules: _Rules, terminals: Collection[int]) -> set[int]:
    """The nonterminals that have a derivation into some terminals. Linear in the rules."""
    waiting: dict[int, list[tuple[int, tuple[int, ...]]]] = {}  # rules by a symbol that they wait for
    derivable: set[int] = set()
    todo = [(number, rhs) for number, alternatives in enumerate(rules) for rhs in alternatives]
    while todo:
        number, rhs = todo.pop()
        if number in derivable:
            continue
        missing = next((s for s in rhs if s not in derivable and s not in terminals), None)
        if missing is not None:
            waiting.setdefault(missing, []).append((number, rhs))
        else:
            derivable.add(number)
            todo += waiting.pop(number, [])
    return derivable


def is_generated(name: str) -> bool:
    """Whether a front end made the rule of a part of another, which has no name in the grammar's text."""
    return ":" in name or name.startswith("__")


def _turn_repetition(rules: _Rules, number: int) -> None:
    """Make a repetition that is written from the right, ``R: a | R b``, one from the left: ``R: a L``, ``L: b L |``."""
    rounds = [rhs[1:] for rhs in rules[number] if rhs[:1] == (number,) and len(rhs) > 1]
    if not rounds or any(number in rhs for rhs in rounds):
        return
    many = len(rules)
    rules[number] = [(*rhs, many) for rhs in rules[number] if rhs[:1] != (number,)]
    rules.append([*((*rhs, many) for rhs in rounds), ()])
