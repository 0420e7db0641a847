"""Lazy terminals end all others: where one may stand, nothing else reads on beyond a text of it.

llguidance's lexer reads all terminals that may come next at once, and takes a lazy one as soon as it matches. Every
split of a text counts here, so that is said in automata: a terminal that stands where a lazy one may stand loses the
texts that begin with one of its texts (a lazy one those that go on after). Which terminals stand together is read off
the LR(0) automaton of the rules; where that depends on what came before, the grammar is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from structgen.core.grammars.dialects.llguidance.draft import GrammarDraft
from structgen.core.grammars.dialects.llguidance.nullable import with_empties_apart, without_endless
from structgen.core.grammars.limits import grammar_refusal
from structgen.core.grammars.normal_form import Rule
from structgen.core.regex.dfa import Dfa, difference
from structgen.core.regex.joining import alternation, with_any_ending
from structgen.core.regex.steps import check_time
from structgen.errors import GrammarError, TooComplexError

MAX_STATES = 4_000
"""States of the LR(0) automaton."""
MAX_RULES = 50_000
"""Rules that are written for it."""
_JSON_STARTS = [b for b in range(256) if chr(b) in '{["-0123456789tfn']

Item = tuple[int, int]
"""A rule and how many of its symbols are read."""
Occurrence = tuple[int, int]
"""A state and a terminal that can be read there."""


def with_laziness(draft: GrammarDraft, start: int, text: str) -> int:
    """Take from the terminals of a draft what lazy ones end; returns the nonterminal to start from.

    Raises:
        GrammarError: whether a lazy terminal may stand where another does depends on what came before.
        GrammarTooComplexError: too many states.
    """
    used = {~symbol for rule in draft.rules for symbol in rule.rhs if symbol < 0}
    precedence = _Precedence(draft, text)
    lazy = used & draft.lazy
    if not any(precedence.changes(t, frozenset([other])) for t in used for other in lazy):
        return start
    start = with_empties_apart(draft, start)
    draft.rules = without_endless(draft.rules)  # others are in no state that is ever reached
    positions = _Positions(draft.rules, start, lazy, text)
    left: dict[Occurrence, int] = {}
    for (state, terminal), neighbours in positions.neighbours().items():
        results = {precedence.of(terminal, others) for one in neighbours for others in (one.surely, one.perhaps)}
        if len(results) > 1 or -1 in results:
            precedence.fail(terminal, frozenset().union(*(one.perhaps for one in neighbours)))
        left[state, terminal] = results.pop()
    return _split_by_state(draft, start, positions, left)


def _split_by_state(draft: GrammarDraft, start: int, positions: _Positions, left: dict[Occurrence, int]) -> int:
    """Write each rule once for each state in which it begins, with what is left of its terminals there."""
    rules: dict[int, list[Rule]] = {}
    for rule in draft.rules:
        rules.setdefault(rule.lhs, []).append(rule)
    twins: dict[tuple[int, int], int] = {}
    todo: list[tuple[int, int]] = []
    draft.rules = []

    def twin(state: int, symbol: int) -> int:
        if symbol < 0:
            return ~left[state, ~symbol]
        if (state, symbol) not in twins:
            twins[state, symbol] = draft.twin(symbol, str(state)) if symbol in rules else symbol
            todo.append((state, symbol))
        return twins[state, symbol]

    first = twin(0, start)
    for state, number in todo:  # which grows on the way
        for rule in rules.get(number, ()):
            states = positions.along(state, rule.rhs)
            draft.add(
                twins[state, number],
                [twin(s, symbol) for s, symbol in zip(states, rule.rhs, strict=True)],
                rule.position,
            )
        if len(draft.rules) > MAX_RULES:
            raise grammar_refusal(positions.text)(
                "the rules around lazy terminals are too involved", "rules", MAX_RULES
            )
    return first


class _Precedence:
    """Which terminal is left of one beside lazy ones."""

    def __init__(self, draft: GrammarDraft, text: str) -> None:
        self._draft = draft
        self._text = text
        self.of = cache(self._of)

    def changes(self, terminal: int, lazy: frozenset[int]) -> bool:
        """Whether a terminal loses texts beside lazy ones."""
        return self.of(terminal, lazy) != terminal

    def _of(self, terminal: int, lazy: frozenset[int]) -> int:
        """The number of the terminal that is left; −1 if it is none that can be made smaller."""
        lazy -= {terminal}
        draft, definition = self._draft, self._draft.terminals[terminal]
        if not lazy or definition.tokens is not None:
            return terminal
        if terminal in draft.embedded or terminal in draft.references:
            starts = _JSON_STARTS if terminal in draft.embedded else range(256)
            return -1 if any(draft.terminals[t].dfa.transitions[0, list(starts)].max() >= 0 for t in lazy) else terminal
        try:
            left = self._left(definition.dfa, sorted(lazy), terminal in draft.lazy)
        except TooComplexError as error:
            refuse = grammar_refusal(self._text, definition.position.line, definition.position.column)
            raise refuse(error.message, error.budget or "size", error.limit) from None
        return terminal if left.digest == definition.dfa.digest else draft.with_terminal(terminal, left)

    def _left(self, dfa: Dfa, lazy: list[int], is_lazy: bool) -> Dfa:
        ends = alternation([self._draft.terminals[t].dfa for t in lazy])
        beyond = with_any_ending(ends, at_least=1 if is_lazy else 0)
        return difference(dfa, beyond, 20_000 + 4 * len(dfa))

    def fail(self, terminal: int, lazy: Iterable[int]) -> None:
        """Raise GrammarError: it depends on what came before, or nothing can be taken from the terminal."""
        definition = self._draft.terminals[terminal]
        is_outside = terminal in self._draft.embedded or terminal in self._draft.references
        names = ", ".join(sorted({repr(self._draft.terminals[t].name) for t in lazy if t != terminal}))
        raise GrammarError(
            f"the lazy rule {names} may begin where {definition.source} does, and ends none of its texts"
            if is_outside
            else f"whether the lazy rule {names} ends the terminal {definition.name!r} depends on what comes before it",
            line=definition.position.line,
            column=definition.position.column,
            source=self._text,
            hint="Let the lazy rule begin with what the other cannot begin with."
            if is_outside
            else "Leave out of it what the lazy rule ends with, as in TEXT & ~/(?s:.*)end(?s:.*)/.",
        )


class Neighbours(NamedTuple):
    """The lazy terminals that surely stand where a terminal stands, and those that perhaps do."""

    surely: frozenset[int]
    perhaps: frozenset[int]


class _Positions:
    """The LR(0) automaton, and which of its states are live at once."""

    def __init__(self, rules: list[Rule], start: int, lazy: set[int], text: str) -> None:
        self._rules = [*rules, Rule(-1, (start,))]
        self._lazy = lazy
        self.text = text
        self._options: dict[int, list[int]] = {}
        for number, rule in enumerate(rules):
            self._options.setdefault(rule.lhs, []).append(number)
        self._items: list[list[Item]] = []  # of each state, closed
        self._after: list[dict[int, int]] = []  # states by symbol
        self._before: list[set[int]] = []
        self._roots = [0]
        self._build()

    def _build(self) -> None:
        numbers: dict[frozenset[Item], int] = {}
        todo: list[frozenset[Item]] = []

        def reach(kernel: frozenset[Item]) -> int:
            check_time()
            check_time()
            if kernel not in numbers:
                if len(numbers) >= MAX_STATES:
                    refuse = grammar_refusal(self.text)
                    raise refuse("the rules around lazy terminals are too involved", "states", MAX_STATES)
                numbers[kernel] = len(todo)
                todo.append(kernel)
                self._before.append(set())
            return numbers[kernel]

        reach(frozenset([(len(self._rules) - 1, 0)]))
        for state, kernel in enumerate(todo):  # which grows on the way
            items = self._closed(kernel)
            moves: dict[int, set[Item]] = {}
            for rule, dot in items:
                rhs = self._rules[rule].rhs
                if dot < len(rhs):
                    moves.setdefault(rhs[dot], set()).add((rule, dot + 1))
            self._items.append(items)
            self._after.append({symbol: reach(frozenset(after)) for symbol, after in moves.items()})
            for symbol, after in self._after[state].items():
                self._before[after].add(state)
                if symbol < 0 and after not in self._roots:
                    self._roots.append(after)

    def _closed(self, kernel: frozenset[Item]) -> list[Item]:
        items, seen = list(kernel), set()
        for rule, dot in items:  # which grows on the way
            rhs = self._rules[rule].rhs
            if dot < len(rhs) and rhs[dot] >= 0 and rhs[dot] not in seen:
                seen.add(rhs[dot])
                items += [(r, 0) for r in self._options.get(rhs[dot], ())]
        return list(dict.fromkeys(items))

    def along(self, state: int, symbols: tuple[int, ...]) -> list[int]:
        """The states in which each of some symbols is read, one after the other from a state on."""
        states = [state]
        for symbol in symbols:
            states.append(self._after[states[-1]][symbol])
        return states[:-1]

    def neighbours(self) -> dict[Occurrence, set[Neighbours]]:
        """For each state and terminal, the lazy ones beside it, each time that it may be read."""
        result: dict[Occurrence, set[Neighbours]] = {}
        for root in self._roots:
            live, sure = self._live(root)
            perhaps = frozenset().union(*map(self._lazy_of, live))
            surely = frozenset().union(*map(self._lazy_of, sure))
            for state in live:
                here = Neighbours(surely | self._lazy_of(state), perhaps)
                for symbol in self._after[state]:
                    if symbol < 0:
                        result.setdefault((state, ~symbol), set()).add(here)
        return result

    def _lazy_of(self, state: int) -> frozenset[int]:
        return frozenset(~symbol for symbol in self._after[state] if symbol < 0 and ~symbol in self._lazy)

    def _live(self, root: int) -> tuple[list[int], list[int]]:
        """The states that can be live where ``root`` was reached by a terminal, and those that surely are."""
        live, sure = [root], [root]
        for state in live:  # which grows on the way
            for rule, dot in self._items[state]:
                if dot < len(self._rules[rule].rhs) or self._rules[rule].lhs < 0:
                    continue
                following = {self._after[origin][self._rules[rule].lhs] for origin in self._back(state, dot)}
                live += [after for after in following if after not in live]
                if len(following) == 1 and state in sure:
                    sure += [after for after in following if after not in sure]
        return live, sure

    def _back(self, state: int, steps: int) -> set[int]:
        result = {state}
        for _ in range(steps):
            result = {before for one in result for before in self._before[one]}
        return result
