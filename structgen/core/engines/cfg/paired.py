"""Compiled intersections of a context-free grammar and an automaton, and their matchers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from structgen.core.engines.cfg.compiled import CfgGrammar
from structgen.core.engines.cfg.pairs import PairMachine, run
from structgen.core.engines.cfg.relations import Relations
from structgen.core.engines.protocols import Grammar
from structgen.core.engines.shared_machine import SharedMachine
from structgen.core.engines.state_matcher import StateMatcher
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.grammars.regular_product import ByteAutomaton, ProductBounds, ProductTooLarge, product_grammar
from structgen.core.regex.dfa import Dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import CompletionTooLongError, EmptyLanguageError

WRITTEN = ProductBounds(1 << 14, 1 << 12, 1 << 17)
"""Of a product that is written as rules, for a grammar around it."""


class PairedGrammar(SharedMachine[PairMachine]):
    """The texts of a context-free grammar that an automaton accepts, as token-level automaton over a vocabulary.

    Args:
        grammar: the grammar, compiled for a vocabulary that spells all its texts byte by byte.
        dfa: the automaton.

    Raises:
        EmptyLanguageError: there is no such text.
        TooComplexError: the automaton has too many states for the grammar.
    """

    completions_are_shortest = False

    def __init__(self, grammar: CfgGrammar, dfa: Dfa) -> None:
        self.grammar, self.dfa = grammar, dfa
        self._begin()
        if not self._machine.start:
            raise EmptyLanguageError("no text is allowed by all constraints of the intersection")

    def matcher(self) -> PairedMatcher:
        """See `Grammar.matcher`. O(1)."""
        return PairedMatcher(self)

    @property
    def vocabulary(self) -> Vocabulary:
        """See `Grammar.vocabulary`."""
        return self.grammar.vocabulary

    @cached_property
    def relations(self) -> Relations:
        """What the grammar's parts do to the automaton's states."""
        return Relations(self.grammar.tables, self.grammar.automata, self.dfa)

    @property
    def memory_bytes(self) -> int:
        """See `Grammar.memory_bytes`."""
        return self.grammar.memory_bytes + self.relations.memory_bytes + self._machine.memory_bytes

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`: the grammar's."""
        return self.grammar.last_bytes()

    def normal_form(self) -> tuple[ContextFreeGrammar, dict[int, Grammar]] | None:
        """See `Grammar.normal_form`: the product written as rules, if it is small. What it ignores is in terminals
        then, so captures could not tell it any more."""
        return None if self._written is None else (self._written, {})

    def capture_form(self) -> ContextFreeGrammar:
        """The rules that say what a text captures: the grammar's."""
        return self._source

    @property
    def _source(self) -> ContextFreeGrammar:
        form = self.grammar.normal_form()
        assert form is not None, "nothing is embedded"
        return form[0]

    @cached_property
    def _written(self) -> ContextFreeGrammar | None:
        if self._source.ignored and self._source.captures:
            return None
        try:
            return product_grammar(self._source, ByteAutomaton(self.dfa.transitions, self.dfa.accepting), WRITTEN)
        except ProductTooLarge:
            return None

    def _new_machine(self) -> PairMachine:
        return PairMachine(self.grammar, self.dfa, self.relations)

    def __getstate__(self) -> dict[str, Any]:
        """All that is not found again."""
        return {name: value for name, value in super().__getstate__().items() if name in ("grammar", "dfa")}


class PairedMatcher(StateMatcher[PairedGrammar]):
    """One output in progress. Make one with `PairedGrammar.matcher`."""

    __slots__ = ()

    _grammar: PairedGrammar
    _run = staticmethod(run)

    @property
    def stats(self) -> dict[str, int]:
        """Nothing is ever given up."""
        return {"dropped_alternatives": 0}

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`: a short text, not always a shortest one.

        Raises:
            CompletionTooLongError: none was found in bounded time.
        """
        if self._terminated or self.is_accepting():
            return b""
        with self._lock:
            text = self._machine.completions.text(self._state)
        if text is None:
            raise CompletionTooLongError("no text that completes the output was found in bounded time")
        return text
