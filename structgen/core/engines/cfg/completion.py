"""Shortest texts that complete an output: shortest words of terminals, least derivations, cheapest continuations."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from structgen.core.engines.cfg.analysis import CfgTables
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.kernels.cfg import machine as k
from structgen.core.regex.dfa import shortest

if TYPE_CHECKING:
    from structgen.core.engines.cfg.machine import CfgAutomata, CfgMachine


class CfgCompletions:
    """Shortest completions of one grammar's configurations."""

    def __init__(self, grammar: ContextFreeGrammar, tables: CfgTables, automata: CfgAutomata) -> None:
        self._grammar = grammar
        self._tables = tables
        self._automata = automata
        self._bases = [position for position, _ in automata.first]
        self._words: dict[int, bytes] = {}
        self._of_suffixes: dict[int, bytes] = {}

    def complete(self, machine: CfgMachine, configs: int) -> bytes:
        """A shortest text after which ``configs`` may stop.

        O(positions of the lexer state + n log n) for n continuations in reach, which are the open brackets.
        """
        remaining, (_, position, after) = self._cheapest(machine, configs)
        word = b"" if position >= self._automata.positions else self._word_from(position)
        return word + remaining.text(after)

    def length(self, machine: CfgMachine, configs: int) -> int:
        """Bytes of `complete`; `FAR` or more where nothing completes it."""
        return self._cheapest(machine, configs)[1][0]

    def _cheapest(self, machine: CfgMachine, configs: int) -> tuple[_Remainders, tuple[int, int, int]]:
        """What is nearest to an end: bytes, a position, the item set after its terminal."""
        remaining, best = _Remainders(machine, self), (k.FAR, -1, 0)
        for items, d in machine.configurations(configs):
            nearest: dict[int, int] = {}  # the best position of each class; -1: back to the item set
            for p in machine.lexer(d)[1]:
                kind = int(self._automata.classes[p]) if p < self._automata.positions else -1
                if kind not in nearest or self.position_lengths[p] < self.position_lengths[nearest[kind]]:
                    nearest[kind] = p
            for kind, p in nearest.items():
                after = items if kind < 0 else machine.call(k.GOTO_ITEMS, items, kind, 0)
                best = min(best, (self.position_lengths[p] + remaining.of_items(after)[0], p, after))
        return remaining, best

    # --- words ---
    def suffix_word(self, suffix: int) -> bytes:
        """A shortest text of a suffix."""
        word = self._of_suffixes.get(suffix)
        if word is None:
            parts, todo = [], [suffix]
            while todo:
                suffix_here = todo.pop()
                if self.suffix_lengths[suffix_here]:  # else nothing is written, however it is derived
                    symbol = self._tables.first[suffix_here]
                    todo += (self._tables.next[suffix_here], self._derivations[symbol] if symbol >= 0 else 0)
                    if symbol < 0:
                        parts.append(self.class_word(~symbol))
            word = self._of_suffixes[suffix] = b"".join(parts)
        return word

    def class_word(self, kind: int) -> bytes:
        """A shortest text of a class of terminals; none for embedded ones."""
        if kind >= len(self._tables.classes) - len(self._tables.embedded):
            return b""
        return self._word_from(min(self._automata.starts[kind], key=lambda p: self.position_lengths[p]))

    def _word_from(self, position: int) -> bytes:
        """A shortest text that completes a terminal from a position on."""
        word = self._words.get(position)
        if word is None:
            base, terminal = self._automata.first[bisect_right(self._bases, position) - 1]
            automaton_word = shortest(self._grammar.terminals[terminal].dfa, position - base)
            assert automaton_word is not None, "automata are trim"
            word = self._words[position] = automaton_word
        return word

    # --- lengths ---
    @cached_property
    def position_lengths(self) -> list[int]:
        """Bytes of a shortest text from each position of the terminals' automata; none for embedded ones.

        Breadth first, backwards from all that accept: O(edges).
        """
        automata = self._automata
        sources = np.repeat(np.arange(len(automata.edges)), np.diff(automata.edges, append=len(automata.edge) // 3))
        targets = automata.edge[2::3]
        order = np.argsort(targets, kind="stable")
        into, before = sources[order], np.searchsorted(targets[order], np.arange(len(automata.edges) + 1))
        lengths = np.where(automata.accepts > 0, 0, k.FAR)
        layer, steps = np.flatnonzero(automata.accepts), 0
        while len(layer):
            steps += 1
            counts = before[layer + 1] - before[layer]
            first = np.repeat(before[layer] - np.cumsum(counts) + counts, counts)
            reached = np.unique(into[first + np.arange(len(first))])
            layer = reached[lengths[reached] == k.FAR]
            lengths[layer] = steps
        return lengths.tolist()

    def class_length(self, kind: int) -> int:
        """Bytes of `class_word`."""
        return min((self.position_lengths[p] for p in self._automata.starts[kind]), default=0)

    @cached_property
    def suffix_lengths(self) -> list[int]:
        """Bytes of a shortest text of each suffix; no more than FAR."""
        lengths, tables = [0], self._tables
        for symbol, after in zip(tables.first[1:], tables.next[1:], strict=True):  # tails are numbered first
            symbol_length = self._least[symbol][0] if symbol >= 0 else self._class_lengths[~symbol]
            lengths.append(min(symbol_length + lengths[after], k.FAR))
        return lengths

    @cached_property
    def _class_lengths(self) -> list[int]:
        return [self.class_length(kind) for kind in range(len(self._tables.classes))]

    @cached_property
    def _derivations(self) -> list[int]:
        """The rule of a shortest text of each nonterminal, as a suffix."""
        return [suffix for _, suffix in self._least]

    @cached_property
    def _least(self) -> list[tuple[int, int]]:
        """Bytes of a shortest text of each nonterminal, and the rule that it begins with, as a suffix.

        Knuth's generalisation of Dijkstra's algorithm.
        """
        rules = [(y, suffix) for y, alternatives in enumerate(self._tables.rules) for suffix in alternatives]
        symbols = [self._symbols(suffix) for _, suffix in rules]
        uses: dict[int, list[int]] = {}
        for i, body in enumerate(symbols):
            for s in body:
                if s >= 0:
                    uses.setdefault(s, []).append(i)
        missing = [sum(s >= 0 for s in body) for body in symbols]
        least: list[tuple[int, int] | None] = [None] * len(self._tables.rules)
        queue: list[tuple[int, int, int]] = []

        def push(i: int) -> None:
            symbol_words = (least[s] or (0, 0) if s >= 0 else (self._class_lengths[~s], 0) for s in symbols[i])
            heapq.heappush(queue, (min(sum(length for length, _ in symbol_words), k.FAR), rules[i][0], i))

        for i in range(len(rules)):
            if not missing[i]:
                push(i)
        while queue:
            length, y, i = heapq.heappop(queue)
            if least[y] is None:
                least[y] = length, rules[i][1]
                for j in uses.get(y, []):
                    missing[j] -= 1
                    if not missing[j]:
                        push(j)
        return [pair or (0, 0) for pair in least]

    def _symbols(self, suffix: int) -> list[int]:
        symbols = []
        while suffix:
            symbols.append(self._tables.first[suffix])
            suffix = self._tables.next[suffix]
        return symbols


class _Remainders:
    """Shortest texts that item sets and continuations of one machine need to the end of the output."""

    def __init__(self, machine: CfgMachine, words: CfgCompletions) -> None:
        self._machine = machine
        self._words = words
        self._lengths = words.suffix_lengths
        self._end = int(machine.heap[k.H_END])
        self._best: dict[int, tuple[int, int, int]] = {self._end: (0, 0, 0)}  # length, suffix, next continuation

    def of_items(self, items: int) -> tuple[int, int]:
        """Bytes, and the item that needs no more."""
        best = k.FAR, k.END_ITEM
        for item in self._machine.key(items, k.ITEMS_KEY):
            if item == k.END_ITEM:
                return 0, item
            suffix, continuation = item >> k.K_BITS, item & k.K_MASK
            if continuation not in self._best:
                self._search(continuation)
            best = min(best, (self._lengths[suffix] + self._best[continuation][0], item))
        return best

    def text(self, items: int) -> bytes:
        """A shortest text from an item set to the end."""
        item = self.of_items(items)[1]
        suffix, continuation = (item >> k.K_BITS, item & k.K_MASK) if item != k.END_ITEM else (0, self._end)
        parts = [self._words.suffix_word(suffix)]
        while continuation != self._end:
            _, suffix, continuation = self._best[continuation]
            parts.append(self._words.suffix_word(suffix))
        return b"".join(parts)

    def _search(self, start: int) -> None:
        """Dijkstra's algorithm from the end backwards over the continuations in reach of ``start``."""
        into: dict[int, list[tuple[int, int]]] = {}
        stack, seen = [start], {start}
        queue: list[tuple[int, int, int, int]] = []
        while stack:
            continuation = stack.pop()
            for item in self._machine.key(continuation, k.CONT_KEY):
                suffix, after = item >> k.K_BITS, item & k.K_MASK
                if item == k.END_ITEM:
                    after = self._end
                into.setdefault(after, []).append((continuation, suffix))
                if after not in seen:
                    seen.add(after)
                    if after in self._best:
                        queue.append((self._best[after][0], after, 0, -1))
                    else:
                        stack.append(after)
        heapq.heapify(queue)
        while queue:
            length, continuation, suffix, after = heapq.heappop(queue)
            if after >= 0:
                if continuation in self._best:
                    continue
                self._best[continuation] = length, suffix, after
            for before, between in into.get(continuation, []):
                if before not in self._best:
                    heapq.heappush(queue, (length + self._lengths[between], before, between, continuation))
