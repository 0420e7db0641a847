"""A recogniser to judge the machine by: textbook Earley over bytes, with lookahead of nothing and memory of all."""

from __future__ import annotations

from structgen.grammar.normal_form import ContextFreeGrammar


class Reference:
    """Earley's algorithm over characters: terminals are automata, scanned byte by byte as rules of their own.

    A chart item is ``(rule, dot, origin, terminal state)``; the terminal state is -1 between symbols. ``alive`` is
    exact because unproductive rules are removed first: whatever item there is can be completed.
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
        """Whether some completion of ``text`` is in the language, and whether ``text`` is."""
        # lexeme-level boundaries: boundary[i] is the set of items if a lexeme (or ignored text) may begin at i
        ends: list[set[tuple[int, int, int]]] = [set() for _ in range(len(text) + 1)]
        ends[0].add((len(self.rules) - 1, 0, 0))
        alive = accepted = False
        charts: list[set[tuple[int, int, int]]] = []
        for at in range(len(text) + 1):
            chart = self._close(ends[at], at, charts)
            charts.append(chart)
            if not chart:
                continue
            complete = any(i == len(self.rules) - 1 and dot == 1 and origin == 0 for i, dot, origin in chart)
            scans: dict[int, set[tuple[int, int, int]]] = {}
            for i, dot, origin in chart:
                rhs = self.rules[i][1]
                if dot < len(rhs) and rhs[dot] < 0:
                    scans.setdefault(~rhs[dot], set()).add((i, dot + 1, origin))
            if at == len(text):
                alive = alive or bool(scans) or complete
                accepted = complete
            for t, following in scans.items():
                alive |= self._scan(t, text, at, ends, following)
            if scans or complete:
                for t in self.grammar.ignored:
                    alive |= self._scan(t, text, at, ends, ends[at] | chart)
        return alive, accepted

    def _scan(self, t: int, text: bytes, at: int, ends: list[set], following: set) -> bool:
        """Whether the terminal may go on beyond the text."""
        dfa, state = self.grammar.terminals[t].dfa, 0
        for end in range(at, len(text)):
            state = int(dfa.transitions[state, text[end]])
            if state < 0:
                return False
            if dfa.accepting[state]:
                ends[end + 1] |= following
        return True

    def _close(self, kernel: set, at: int, charts: list[set]) -> set:
        chart = set(kernel)
        while True:
            new = set()
            for i, dot, origin in chart:
                lhs, rhs = self.rules[i]
                if dot < len(rhs):
                    if rhs[dot] >= 0:
                        new |= {(j, 0, at) for j in self.by_lhs.get(rhs[dot], [])}
                else:
                    for j, d, o in chart if origin == at else charts[origin]:
                        body = self.rules[j][1]
                        if d < len(body) and body[d] == lhs:
                            new.add((j, d + 1, o))
            if new <= chart:
                return chart
            chart |= new
