"""Rules and terminals while they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from structgen.core.grammars.dialects.llguidance.tokens import GrammarText
from structgen.core.grammars.embedded_schema import EmbeddedSchema
from structgen.core.grammars.limits import MAX_STATES
from structgen.core.grammars.normal_form import Place, Rule, Terminal
from structgen.core.grammars.regular import without_empty
from structgen.core.grammars.token_terminals import TokenPattern
from structgen.core.regex.dfa import Dfa, empty
from structgen.core.regex.steps import check_time
from structgen.core.regions import Region

FEW = 16
"""Copies of a symbol that are written one by one; more are written by powers of two."""


@dataclass
class Ending:
    """A terminal whose texts are a value and an ending, told apart by captures.

    Attributes:
        body, ending: automata of both, as the grammar gives them.
        value, tail: the nonterminals for both.
        at: the offset of the rule.
    """

    body: Dfa
    ending: Dfa
    value: int
    tail: int
    source: GrammarText
    offset: int


@dataclass
class GrammarDraft:
    """A grammar while it is written; attributes as of `structgen.core.grammars.normal_form.ContextFreeGrammar`, and

    Attributes:
        layers: of each terminal, the ignoring grammar that it belongs to (a number of ``skips``); −1: none.
        skips: what stands between the terminals of each ignoring grammar, as an automaton.
        capture_layers: of each captured nonterminal, the layer of its grammar.
        borders: nonterminals before whose first terminal nothing is ignored: grammars inside of others.
        lazy: terminals that end as soon as they can.
        endings: lazy terminals of which parts are captured.
        embedded: JSON Schemas of terminals.
        references: names of grammars that terminals are read by.
    """

    nonterminals: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    terminals: list[Terminal] = field(default_factory=list)
    captures: list[tuple[int, str | Region]] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    skips: list[Dfa] = field(default_factory=list)
    capture_layers: dict[int, int] = field(default_factory=dict)
    borders: set[int] = field(default_factory=set)
    lazy: set[int] = field(default_factory=set)
    endings: dict[int, Ending] = field(default_factory=dict)
    embedded: dict[int, EmbeddedSchema] = field(default_factory=dict)
    references: dict[int, str] = field(default_factory=dict)
    _known: dict[object, int] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _solid: dict[bytes, Dfa] = field(default_factory=dict)
    _states: int = 0

    def nonterminal(self, name: str) -> int:
        """A new one; its number is added to a name that is taken."""
        number = len(self.nonterminals)
        self.nonterminals.append(name if name not in self._names else f"{name}:{number}")
        self._names.add(self.nonterminals[number])
        return number

    def fresh(self, near: int) -> int:
        """A new one, named after another."""
        return self.nonterminal(f"{self.nonterminals[near].partition(':')[0]}:{len(self.nonterminals)}")

    def twin(self, number: int, kind: str) -> int:
        """A new one that stands for some texts of another: captured and bordered as it is."""
        twin = self.nonterminal(f"{self.nonterminals[number]}:{kind}")
        for captured, name in [pair for pair in self.captures if pair[0] == number]:
            self.capture(twin, name, self.capture_layers[captured])
        if number in self.borders:
            self.borders.add(twin)
        return twin

    def add(self, lhs: int, rhs: Sequence[int], position: Place) -> None:
        check_time()
        """A rule."""
        check_time()
        self.rules.append(Rule(lhs, tuple(rhs), position))

    def terminal(self, terminal: Terminal, layer: int, key: object = None) -> int:
        """The number of a terminal; those of equal keys are one."""
        number = self._known.get((key, layer)) if key is not None else None
        if number is None:
            number = len(self.terminals)
            self.terminals.append(terminal)
            self.layers.append(layer)
            if key is not None:
                self._known[key, layer] = number
        return number

    def outside(
        self,
        name: str,
        source: str,
        position: Place,
        layer: int,
        tokens: TokenPattern | None = None,
        key: object = None,
    ) -> int:
        """A terminal that is no automaton: a special token, or what another grammar reads."""
        return self.terminal(Terminal(name, empty(), source, 0, position, tokens), layer, key and (source, key))

    def capture(self, number: int, name: str | Region, layer: int) -> None:
        """Note that a nonterminal of a grammar of some layer is captured, or how its texts are written."""
        self.captures.append((number, name))
        self.capture_layers[number] = layer

    def text(self, dfa: Dfa, name: str, source: GrammarText, offset: int, layer: int) -> list[int]:
        """The symbols for a regular language: nothing, a terminal, or one that may be left out.

        Raises:
            GrammarTooComplexError: all automata together are too large.
        """
        position = source.position(offset)
        if dfa.is_empty:
            return [self.nonterminal(f"{name}:none")]  # no rules, no texts
        solid = self._solid.get(dfa.digest)
        if solid is None:
            solid = self._solid[dfa.digest] = without_empty(dfa)
        if solid.is_empty:
            return []
        before = len(self.terminals)
        number = self.terminal(Terminal(name, solid, name, 0, position), layer, solid.digest)
        if number == before:
            self._count(len(solid), source, offset)
        if not dfa.accepting[0]:
            return [~number]
        optional = self.nonterminal(f"{name}?")
        self.add(optional, (), position)
        self.add(optional, (~number,), position)
        return [optional]

    def _count(self, states: int, source: GrammarText, offset: int) -> None:
        self._states += states
        if self._states > MAX_STATES:
            raise source.refusal(offset)("the automata of all terminals are too large in sum", "states", MAX_STATES)

    def with_terminal(self, number: int, dfa: Dfa) -> int:
        """Another terminal that differs in its texts only."""
        lazy_number = self.terminal(replace(self.terminals[number], dfa=dfa), self.layers[number], (number, dfa.digest))
        if number in self.lazy:
            self.lazy.add(lazy_number)
        if number in self.endings:
            self.endings[lazy_number] = self.endings[number]
        return lazy_number

    def repeated(self, near: int, symbols: list[int], low: int, high: int | None, position: Place) -> list[int]:
        """Symbols for ``low`` to ``high`` times some symbols. O(log high) rules, each count in one way."""
        if len(symbols) != 1:
            body = self.fresh(near)
            self.add(body, symbols, position)
        else:
            (body,) = symbols
        most = low if high is None else high
        powers = [body]
        while most > FEW and len(powers) < most.bit_length():
            powers.append(self.fresh(near))
            self.add(powers[-1], (powers[-2], powers[-2]), position)
        required = [body] * low if low <= FEW else [p for bit, p in enumerate(powers) if low >> bit & 1]
        if high is not None:
            return required + self._up_to(near, powers, high - low, position)
        many = self.fresh(near)
        self.add(many, (), position)
        self.add(many, (many, body), position)
        return [*required, many]

    def _up_to(self, near: int, powers: list[int], count: int, position: Place) -> list[int]:
        """At most so many times the first of its powers of two."""
        remaining: list[int] = []
        if count <= FEW:
            for _ in range(count):
                optional = self.fresh(near)
                self.add(optional, (), position)
                self.add(optional, (powers[0], *remaining), position)
                remaining = [optional]
            return remaining
        fewer: list[list[int]] = [[]]  # than each power
        for power in powers:
            less = self.fresh(near)
            self.add(less, fewer[-1], position)
            self.add(less, (power, *fewer[-1]), position)
            fewer.append([less])
        for bit, power in enumerate(powers):  # less than this power, or it and then up to what the lower bits say
            if count >> bit & 1:
                some = self.fresh(near)
                self.add(some, fewer[bit], position)
                self.add(some, (power, *remaining), position)
                remaining = [some]
        return remaining
