"""Compiled grammars: a context-free grammar for a vocabulary, shared by all its matchers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from structgen.core.engines.byte_sets import EVERY_BYTE
from structgen.core.engines.cfg.analysis import analyse
from structgen.core.engines.cfg.completion import CfgCompletions
from structgen.core.engines.cfg.last_bytes import last_bytes_of
from structgen.core.engines.cfg.machine import CfgAutomata, CfgMachine
from structgen.core.engines.cfg.matcher import CfgMatcher
from structgen.core.engines.cfg.token_index import lexicon
from structgen.core.engines.protocols import Grammar
from structgen.core.engines.shared_machine import SharedMachine
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.grammars.spelling import spellable, unspellable, warn_narrowed
from structgen.core.grammars.token_spelling import marked
from structgen.core.grammars.token_terminals import resolved
from structgen.core.vocabulary.vocabulary import Vocabulary, check_vocabulary
from structgen.errors import EmptyLanguageError

MASK_BYTES = STATE_BYTES = 128 << 20


class CfgGrammar(SharedMachine[CfgMachine]):
    """A context-free grammar as token-level automaton over a vocabulary. Make one with `compile_grammar`.

    Attributes:
        source: the normal form, without what the vocabulary cannot spell.
        vocabulary: as given to the compiler; where the grammar names special tokens, the one that names them.
        narrowed: bytes of texts that the vocabulary spells, but only by longer tokens, and that were left out.
        mark: a byte that `source` has after each token, where longer tokens spell what single bytes do not; else -1.
        tables: the trimmed grammar in numbers.
        automata: the terminals' automata.
    """

    def __init__(
        self,
        source: ContextFreeGrammar,
        vocabulary: Vocabulary,
        embedded: frozenset[int],
        mask_bytes: int,
        state_bytes: int,
    ) -> None:
        source, vocabulary = resolved(source, vocabulary)
        spelled = spellable(source, vocabulary, embedded)
        self._given, self.narrowed, self.mark = source, spelled.narrowed, spelled.mark
        self.source = source = spelled.grammar
        if self.narrowed:
            warn_narrowed(self.narrowed)
        self.vocabulary = vocabulary
        try:
            self.tables = analyse(source, embedded)
        except EmptyLanguageError as error:
            raise unspellable(error, vocabulary, self._given) from None
        self.automata = CfgAutomata(source, self.tables)
        self._limits = mask_bytes, state_bytes
        self._begin()

    def matcher(self) -> CfgMatcher:
        """See `Grammar.matcher`. O(1)."""
        return CfgMatcher(self)

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`. O(grammar)."""
        return EVERY_BYTE if self.tables.embedded else last_bytes_of(self._given if self.mark >= 0 else self.source, {})

    def normal_form(self) -> tuple[ContextFreeGrammar, dict[int, Grammar]] | None:
        """See `Grammar.normal_form`: none where who reads some terminals is known outside only."""
        return None if self.tables.embedded else (self._given, {})

    @property
    def completions_are_shortest(self) -> bool:
        """See `Grammar.completions_are_shortest`: always, but for texts that others read."""
        return not self.tables.embedded

    @property
    def memory_bytes(self) -> int:
        """Bytes of the terminals' automata, tables, states and masks, as far as they have been used."""
        return self._table_bytes + self._machine.memory_bytes

    @cached_property
    def _table_bytes(self) -> int:
        """What it takes from the start. The automata are the most of it: a kilobyte a state."""
        automata = self.automata
        tables = automata.edge.nbytes + automata.edges.nbytes + automata.classes.nbytes + automata.accepts.nbytes
        terminals = {id(terminal.dfa): terminal.dfa for terminal in self.source.terminals}
        return tables + sum(dfa.held_bytes for dfa in terminals.values())

    @cached_property
    def completions(self) -> CfgCompletions:
        """Shortest texts, for closing an output."""
        return CfgCompletions(self.source, self.tables, self.automata)

    def _new_machine(self) -> CfgMachine:
        vocabulary = self.vocabulary if self.mark < 0 else marked(self.vocabulary, self.mark)
        return CfgMachine(self.tables, self.automata, lexicon(vocabulary), *self._limits)


def compile_grammar(
    grammar: ContextFreeGrammar,
    vocabulary: Vocabulary,
    *,
    embedded: Iterable[int] = (),
    mask_bytes: int = MASK_BYTES,
    state_bytes: int = STATE_BYTES,
) -> CfgGrammar:
    """Compile a context-free grammar in normal form for a vocabulary. O(grammar); all else is found when needed.

    Args:
        grammar: rules over terminals; see `ContextFreeGrammar`.
        vocabulary: the model's tokens.
        embedded: terminals (ids) whose text another matcher reads: `CfgMatcher.embedded_here` tells where one may
            begin, `CfgMatcher.after_embedded` goes on after it. Their automata are not looked at.
        mask_bytes: bound of the memory for masks; they are forgotten when it is reached.
        state_bytes: states of more than this are left to the matchers that use them, and new matchers start afresh.

    Raises:
        EmptyLanguageError: no text is in the language, or none that the vocabulary can spell.
        GrammarError: the grammar is too large for the machine, or a terminal can be empty.
        TokenizerError: the vocabulary is too large for the machine.
    """
    check_vocabulary(vocabulary)
    return CfgGrammar(grammar, vocabulary, frozenset(embedded), mask_bytes, state_bytes)
