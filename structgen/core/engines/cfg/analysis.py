"""From the normal form of a grammar to the static tables of the machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule
from structgen.core.json_schema.formula.components import strong_components
from structgen.errors import EmptyLanguageError, GrammarError

MAX_CLASSES, MAX_SUFFIXES = 1 << 15, 1 << 20


@dataclass(frozen=True)
class CfgTables:
    """A trimmed grammar in numbers; what `structgen.core.kernels.cfg` calls by the same names.

    Terminals that the grammar cannot tell apart (each the whole of one alternative of the same rule, and used nowhere
    else) are one class: a choice of 10,000 words is one edge of a row.

    Attributes:
        first, next, nullable: of each suffix; suffix 0 is the empty one. A symbol is a nonterminal or ``~class``.
        empty: of each nonterminal, whether it derives the empty text.
        component: of each nonterminal, its component of the left-corner graph, predictors first.
        members: nonterminals of each component.
        loops: of each component, whether its members predict each other (or themselves).
        corners: of each nonterminal, ``(nonterminal, suffix after it)`` at its left corners.
        scans: likewise ``(class, suffix after it)``.
        classes: terminals (ids of the normal form) of each class; first those read as text, then ``embedded`` ones.
        embedded: the class of each embedded terminal.
        start: suffix of the start symbol alone.
        ignored: ignored terminals that have a text.
        rules: those that are left, by nonterminal, as suffixes.
    """

    first: list[int]
    next: list[int]
    nullable: list[int]
    empty: list[int]
    component: list[int]
    members: list[list[int]]
    loops: list[int]
    corners: list[list[tuple[int, int]]]
    scans: list[list[tuple[int, int]]]
    classes: list[list[int]]
    embedded: dict[int, int]
    start: int
    ignored: list[int]
    rules: list[list[int]]


@dataclass
class _Suffixes:
    """Interned tails of rules."""

    empty: list[int]
    first: list[int] = field(default_factory=lambda: [0])
    next: list[int] = field(default_factory=lambda: [0])
    nullable: list[int] = field(default_factory=lambda: [1])
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, symbols: Iterable[int]) -> int:
        """The suffix of these symbols, given last to first."""
        suffix = 0
        for symbol in symbols:
            suffix_number = self.numbers.get((symbol, suffix))
            if suffix_number is None:
                suffix_number = self.numbers[symbol, suffix] = len(self.first)
                self.nullable.append(int(symbol >= 0 and bool(self.empty[symbol]) and bool(self.nullable[suffix])))
                self.first.append(symbol)
                self.next.append(suffix)
            suffix = suffix_number
        return suffix


def analyse(grammar: ContextFreeGrammar, embedded: frozenset[int] = frozenset()) -> CfgTables:
    """Trim a grammar and number what is left. Linear in its size.

    Args:
        grammar: the normal form.
        embedded: terminals that stand for text read by another matcher; their automata are not looked at.

    Raises:
        EmptyLanguageError: no text is in the language.
        GrammarError: too many terminals or rules for the machine, or a terminal that can be empty.
    """
    usable = [t in embedded or not terminal.dfa.is_empty for t, terminal in enumerate(grammar.terminals)]
    for t, terminal in enumerate(grammar.terminals):
        if t not in embedded and usable[t] and terminal.dfa.accepting[0]:
            raise GrammarError(
                f"terminal {terminal.name} can be empty", line=terminal.position.line, column=terminal.position.column
            )
    rules = _trim(grammar, usable)
    of = _class_of(grammar, rules, embedded)
    count = len({c for t, c in of.items() if t not in embedded})
    order = {c: i for i, c in enumerate(sorted(set(of.values()), key=lambda c: (c in embedded and of.get(c) == c, c)))}
    classes: list[list[int]] = [[] for _ in order]
    for t in sorted(of):
        classes[order[of[t]]].append(t)
    assert all((c >= count) == (members[0] in embedded) for c, members in enumerate(classes))
    bodies = [
        sorted({tuple(s if s >= 0 else ~order[of[~s]] for s in r.rhs) for r in alternatives}) for alternatives in rules
    ]
    empty = _nullable(bodies)
    suffixes = _Suffixes(empty)
    numbered = [[suffixes.add(reversed(rhs)) for rhs in alternatives] for alternatives in bodies]
    start = suffixes.add([grammar.start])
    if len(classes) + 1 >= MAX_CLASSES or len(suffixes.first) >= MAX_SUFFIXES:
        raise GrammarError(
            f"the grammar is too large: {len(classes)} kinds of terminals and {len(suffixes.first)} tails of rules, "
            f"at most {MAX_CLASSES - 2} and {MAX_SUFFIXES - 1} are possible"
        )
    corners, scans = _left_corners(numbered, suffixes)
    members = strong_components(
        [[z for z, _ in alternatives] for alternatives in corners], [bool(alternatives) for alternatives in bodies]
    )
    component = [0] * len(bodies)
    for c, own_members in enumerate(members):
        for y in own_members:
            component[y] = c
    loops = [
        int(any(component[z] == c for y in alternatives for z, _ in corners[y]))
        for c, alternatives in enumerate(members)
    ]
    return CfgTables(
        suffixes.first,
        suffixes.next,
        suffixes.nullable,
        empty,
        component,
        members,
        loops,
        corners,
        scans,
        classes,
        {members[0]: c for c, members in enumerate(classes) if members[0] in embedded},
        start,
        [t for t in dict.fromkeys(grammar.ignored) if not grammar.terminals[t].dfa.is_empty],
        numbered,
    )


def _trim(grammar: ContextFreeGrammar, usable: list[bool]) -> list[list[Rule]]:
    """The rules by nonterminal without those that derive no text or are not reached from the start."""
    size = len(grammar.nonterminals)
    waiting: list[list[int]] = [[] for _ in range(size)]
    missing = [0] * len(grammar.rules)
    productive = [False] * size
    ready: list[int] = []
    for i, rule in enumerate(grammar.rules):
        if any(s < 0 and not usable[~s] for s in rule.rhs):
            missing[i] = -1
            continue
        for s in rule.rhs:
            if s >= 0:
                missing[i] += 1
                waiting[s].append(i)
        if not missing[i]:
            ready.append(i)
    while ready:
        lhs = grammar.rules[ready.pop()].lhs
        if not productive[lhs]:
            productive[lhs] = True
            for i in waiting[lhs]:
                if missing[i] > 0:
                    missing[i] -= 1
                    if not missing[i]:
                        ready.append(i)
    if not productive[grammar.start]:
        raise EmptyLanguageError(
            f"the grammar derives no text from {grammar.nonterminals[grammar.start]}: every alternative needs a rule "
            "that never ends or a terminal that matches nothing"
        )
    by_lhs: list[list[Rule]] = [[] for _ in range(size)]
    for i, rule in enumerate(grammar.rules):
        if missing[i] == 0:
            by_lhs[rule.lhs].append(rule)
    reached = [False] * size
    reached[grammar.start] = True
    stack = [grammar.start]
    while stack:
        for rule in by_lhs[stack.pop()]:
            for s in rule.rhs:
                if s >= 0 and not reached[s]:
                    reached[s] = True
                    stack.append(s)
    return [alternatives if reached[y] else [] for y, alternatives in enumerate(by_lhs)]


def _class_of(grammar: ContextFreeGrammar, rules: list[list[Rule]], embedded: frozenset[int]) -> dict[int, int]:
    """The first terminal of the class of each terminal in use."""
    uses: dict[int, int] = {}
    alone: dict[int, int] = {}
    for lhs_rules in rules:
        for rule in lhs_rules:
            for s in rule.rhs:
                if s < 0:
                    uses[~s] = uses.get(~s, 0) + 1
            if len(rule.rhs) == 1 and rule.rhs[0] < 0:
                alone[~rule.rhs[0]] = rule.lhs
    leader: dict[int, int] = {}
    result = {}
    for t in uses:
        if uses[t] == 1 and t in alone and t not in embedded:
            result[t] = leader.setdefault(alone[t], t)
        else:
            result[t] = t
    return result


def _nullable(bodies: list[list[tuple[int, ...]]]) -> list[int]:
    """Which nonterminals derive the empty text."""
    empty = [0] * len(bodies)
    waiting: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    stack = [(y, rhs) for y, alternatives in enumerate(bodies) for rhs in alternatives if all(s >= 0 for s in rhs)]
    while stack:
        y, rhs = stack.pop()
        if empty[y]:
            continue
        blocking = next((s for s in rhs if not empty[s]), None)
        if blocking is None:
            empty[y] = 1
            stack.extend(waiting.pop(y, []))
        else:
            waiting.setdefault(blocking, []).append((y, rhs))
    return empty


_Corners = list[list[tuple[int, int]]]


def _left_corners(numbered: list[list[int]], suffixes: _Suffixes) -> tuple[_Corners, _Corners]:
    """What each nonterminal predicts and scans first, after prefixes that may be empty too."""
    corners: _Corners = []
    scans: _Corners = []
    for alternatives in numbered:
        predicted: dict[tuple[int, int], None] = {}
        scanned: dict[tuple[int, int], None] = {}
        for suffix in alternatives:
            while suffix:
                symbol, after = suffixes.first[suffix], suffixes.next[suffix]
                if symbol < 0:
                    scanned[~symbol, after] = None
                    break
                predicted[symbol, after] = None
                if not suffixes.empty[symbol]:
                    break
                suffix = after
        corners.append(list(predicted))
        scans.append(list(scanned))
    return corners, scans
