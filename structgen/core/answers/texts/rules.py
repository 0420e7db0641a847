"""The rules of a text constraint, as questions about grammars read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from structgen.core.constraints.text import LarkConstraint, TextConstraint
from structgen.core.engines.cfg.intersection import rules_of
from structgen.core.grammars.normal_form import ContextFreeGrammar, Terminal
from structgen.core.regex.dfa import Dfa, shortest
from structgen.core.regex.joining import alternation, repetition
from structgen.core.vocabulary.vocabulary import TextVocabulary
from structgen.errors import ConstraintError

Bodies: TypeAlias = "list[list[tuple[int, ...]]]"
"""Of each nonterminal the right sides of its rules: nonterminal n as n, terminal t as ~t."""
NEVER = 1 << 60


def contextual_lexer(constraint: Any) -> bool:
    """Whether a constraint is read by Lark's parser with its contextual lexer, which reads each text one way."""
    return isinstance(constraint, LarkConstraint) and constraint.lexer == "contextual"


def grammar_of(constraint: Any) -> ContextFreeGrammar:
    """The rules of a constraint; of one with the contextual lexer those of all splits into terminals, a superset.

    Raises:
        ConstraintError: it is no text constraint, has parts without rules (JSON, tags, names), or cannot be compiled.
    """
    if not isinstance(constraint, TextConstraint):
        raise ConstraintError(f"a grammar, an expression or a choice is needed here, not {constraint!r:.100}")
    if isinstance(constraint, LarkConstraint) and constraint.lexer == "contextual":
        constraint = replace(constraint, lexer="dynamic")
    rules = rules_of(constraint.compile(TextVocabulary()))
    if rules is None:
        raise ConstraintError(
            "this constraint has parts without rules (a JSON schema, names, tags, a declared terminal); "
            "ask of its parts"
        )
    return rules


@dataclass(frozen=True)
class GrammarRules:
    """The rules of a grammar that lead to texts and are reached from its start.

    Attributes:
        names: of nonterminals. bodies: see `Bodies`. start: the first nonterminal.
        terminals: the automata, and their names in the grammar.
        gap: the terminal for ignored text, as much as there is at once; None: nothing is ignored.
    """

    names: Sequence[str]
    bodies: Bodies
    start: int
    terminals: Sequence[Terminal]
    gap: Dfa | None

    @cached_property
    def words(self) -> list[bytes]:
        """A shortest text of each terminal."""
        return [shortest(terminal.dfa) or b"" for terminal in self.terminals]

    @cached_property
    def costs(self) -> list[int]:
        """Bytes of a shortest text of each nonterminal, without ignored text."""
        costs = [NEVER] * len(self.bodies)
        changed = True
        while changed:
            changed = False
            for number, bodies in enumerate(self.bodies):
                best = min((self.cost(body, costs) for body in bodies), default=NEVER)
                if best < costs[number]:
                    costs[number], changed = best, True
        return costs

    def cost(self, body: Sequence[int], costs: Sequence[int] | None = None) -> int:
        """Bytes of a shortest text of some symbols."""
        costs = self.costs if costs is None else costs
        return min(NEVER, sum(costs[symbol] if symbol >= 0 else len(self.words[~symbol]) for symbol in body))

    def cheapest(self, symbols: Sequence[int]) -> list[int]:
        """The terminals of a shortest text of some symbols."""
        read, todo = list[int](), list(reversed(symbols))
        while todo:
            symbol = todo.pop()
            if symbol < 0:
                read.append(~symbol)
            else:
                cheapest = min(self.bodies[symbol], key=lambda body: self.cost(body))
                todo += reversed(cheapest)
        return read

    def path(self, symbol: int) -> list[tuple[int, tuple[int, ...], int]]:
        """How a symbol comes into a shortest text of the start that has it: (nonterminal, right side, place in it),
        from the symbol up."""
        prices = {self.start: 0}
        came: dict[int, tuple[int, tuple[int, ...], int]] = {}
        todo = [self.start]
        while todo:
            owner = min(todo, key=prices.__getitem__)
            todo.remove(owner)
            for body in self.bodies[owner]:
                for index, inner in enumerate(body):
                    price = prices[owner] + self.cost(body) - self.cost((inner,))
                    if price < prices.get(inner, NEVER):
                        prices[inner] = price
                        came[inner] = owner, body, index
                        todo += [inner] if inner >= 0 and inner not in todo else []
        steps = []
        while symbol != self.start:
            steps.append(came[symbol])
            symbol = came[symbol][0]
        return steps


def name_of(rules: GrammarRules, symbol: int) -> str:
    """What the grammar calls a symbol."""
    return rules.names[symbol] if symbol >= 0 else rules.terminals[~symbol].name


def rules_for(grammar: ContextFreeGrammar) -> GrammarRules:
    """The rules that lead to texts and are reached; equal ones once."""
    alive = [not terminal.dfa.is_empty for terminal in grammar.terminals]
    bodies: list[dict[tuple[int, ...], None]] = [{} for _ in grammar.nonterminals]
    for rule in grammar.rules:
        bodies[rule.lhs][rule.rhs] = None
    productive: set[int] = set()
    changed = True
    while changed:
        changed = False
        for number, alternatives in enumerate(bodies):
            if number not in productive and any(
                all(s in productive if s >= 0 else alive[~s] for s in body) for body in alternatives
            ):
                productive.add(number)
                changed = True
    kept: Bodies = [
        [body for body in alternatives if all(s in productive if s >= 0 else alive[~s] for s in body)]
        for alternatives in bodies
    ]
    reached, todo = {grammar.start}, [grammar.start]
    while todo:
        for body in kept[todo.pop()]:
            new = {symbol for symbol in body if symbol >= 0} - reached
            reached |= new
            todo += new
    kept = [alternatives if number in reached else [] for number, alternatives in enumerate(kept)]
    ignored = [grammar.terminals[t].dfa for t in dict.fromkeys(grammar.ignored) if alive[t]]
    gap = repetition(alternation(ignored), 1, None) if ignored else None
    return GrammarRules(grammar.nonterminals, kept, grammar.start, grammar.terminals, gap)
