"""A recogniser to judge the machine by: textbook Earley over bytes, with lookahead of nothing and memory of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from structgen.core.grammars.normal_form import ContextFreeGrammar

Item: TypeAlias = tuple[int, int, int]
"""A rule, how much of it was read, and where that began."""
Chart: TypeAlias = Mapping[int | None, set[Item]]
Scans: TypeAlias = dict[tuple[int, int], frozenset[Item]]
"""By terminal and state of its automaton: the items that wait for its end."""


class Place(NamedTuple):
    """What is known behind a text."""

    charts: tuple[Chart, ...]
    scans: Scans
    alive: bool
    accepted: bool


class Reference:
    """Earley's algorithm over characters: terminals are automata, scanned byte by byte as rules of their own.

    ``alive`` is exact because unproductive rules are removed first: whatever item there is can be completed.
    """

    def __init__(self, grammar: ContextFreeGrammar) -> None:
        self.grammar = grammar
        self.rules: list[tuple[int, tuple[int, ...]]] = self._productive()
        # "ignored" text may stand before every terminal and at the end: one more symbol of its own kind
        self.by_lhs: dict[int, list[int]] = {}
        for i, (lhs, _) in enumerate(self.rules):
            self.by_lhs.setdefault(lhs, []).append(i)
        self.start = len(grammar.nonterminals)
        self.rules.append((self.start, (grammar.start,)))
        self.by_lhs[self.start] = [len(self.rules) - 1]
        self._read = {b"": self._place([(len(self.rules) - 1, 0, 0)], (), {})}

    def _productive(self) -> list[tuple[int, tuple[int, ...]]]:
        live: set[int] = set()
        while True:
            found = {
                rule.lhs
                for rule in self.grammar.rules
                if all(s in live if s >= 0 else not self.grammar.terminals[~s].dfa.is_empty for s in rule.rhs)
            }
            if found == live:
                break
            live = found
        return [
            (rule.lhs, rule.rhs)
            for rule in self.grammar.rules
            if all(s in live if s >= 0 else not self.grammar.terminals[~s].dfa.is_empty for s in rule.rhs)
        ]

    def run(self, text: bytes) -> tuple[bool, bool]:
        """Whether some completion of ``text`` is in the language, and whether ``text`` is.

        What was read of a text is kept: judges are asked about each token after each text.
        """
        known = len(text)
        while text[:known] not in self._read:
            known -= 1
        place = self._read[text[:known]]
        for end in range(known, len(text)):
            place = self._read[text[: end + 1]] = self._after(place, text[end])
        return place.alive, place.accepted

    def _after(self, place: Place, byte: int) -> Place:
        """One byte further: scans that can take it go on, and those that may end there lead into the next chart."""
        scans: Scans = {}
        kernel: set[Item] = set()
        for (t, state), following in place.scans.items():
            dfa = self.grammar.terminals[t].dfa
            target = int(dfa.transitions[state, byte])
            if target >= 0:
                scans[t, target] = scans.get((t, target), frozenset()) | following
                if dfa.accepting[target]:
                    kernel |= following
        return self._place(kernel, place.charts, scans)

    def _place(self, kernel: Iterable[Item], before: tuple[Chart, ...], scans: Scans) -> Place:
        """Behind a text: its charts, with the one of the kernel's items, and the scans that go on or begin."""
        chart = self._close(kernel, before)
        complete = (len(self.rules) - 1, 1, 0) in chart.get(None, ())
        begun = {
            ~symbol: {(i, dot + 1, o) for i, dot, o in items}
            for symbol, items in chart.items()
            if symbol is not None and symbol < 0
        }
        if begun or complete:  # else the chart is empty
            everything = {item for items in chart.values() for item in items}
            begun |= {t: begun.get(t, set()) | everything for t in self.grammar.ignored}
        for t, following in begun.items():
            scans[t, 0] = scans.get((t, 0), frozenset()) | following
        return Place((*before, chart), scans, bool(scans) or complete, complete)

    def _close(self, kernel: Iterable[Item], before: tuple[Chart, ...]) -> Chart:
        """Prediction and completion: the items by the symbol that comes next (None: at the end)."""
        at, chart, pending = len(before), dict[int | None, set[Item]](), list(kernel)
        while pending:
            i, dot, origin = item = pending.pop()
            lhs, rhs = self.rules[i]
            symbol = rhs[dot] if dot < len(rhs) else None
            if item in chart.setdefault(symbol, set()):
                continue
            chart[symbol].add(item)
            if symbol is None:
                waiting = chart if origin == at else before[origin]
                pending += [(j, d + 1, o) for j, d, o in waiting.get(lhs, ())]
            elif symbol >= 0:
                pending += [(j, 0, at) for j in self.by_lhs.get(symbol, [])]
                if any(self.rules[j][0] == symbol and o == at for j, _, o in chart.get(None, ())):
                    pending.append((i, dot + 1, origin))  # it was found empty before this item asked for it
        return chart
