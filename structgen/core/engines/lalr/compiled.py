"""Grammars for Lark's LALR parser and contextual lexer, compiled for a vocabulary and shared by their matchers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from structgen.core.engines.byte_sets import EVERY_BYTE
from structgen.core.engines.lalr.liveness import FAR_STEPS
from structgen.core.engines.lalr.liveness_tables import prove, with_dead_ends
from structgen.core.engines.lalr.machine import LalrMachine
from structgen.core.engines.lalr.matcher import LalrMatcher
from structgen.core.engines.lalr.tables import LalrTables, read_tables
from structgen.core.engines.shared_machine import SharedMachine
from structgen.core.grammars.spelling import (
    bytes_apart,
    held_characters,
    missing_characters,
    unspellable,
    warn_narrowed,
)
from structgen.core.kernels.lalr import machine as k
from structgen.core.regex import charset
from structgen.core.vocabulary.vocabulary import Vocabulary, check_vocabulary
from structgen.errors import EmptyLanguageError, GrammarTooComplexError

MASK_BYTES = ROW_BYTES = 128 << 20
LEAST_BYTES = 80 << 10  # what a grammar takes besides its tables and what its machine tells; measured


class LalrGrammar(SharedMachine[LalrMachine]):
    """A grammar as Lark's LALR parser with its contextual lexer reads it. Make one with `compile_contextual`.

    Attributes:
        vocabulary: as given to the compiler.
        tables: the parser and its lexers in numbers.
        narrowed: bytes of texts that the vocabulary spells, but only by longer tokens, and that were left out.
    """

    def __init__(
        self, source: str | Path, vocabulary: Vocabulary, start: str, import_paths: Iterable[str | Path] = ()
    ) -> None:
        self.vocabulary = vocabulary
        self.tables = with_dead_ends(read_tables(source, start, import_paths, missing_characters(vocabulary)))
        self.narrowed = _narrowed(vocabulary, lambda: read_tables(source, start, import_paths))
        if self.narrowed:
            warn_narrowed(self.narrowed)
        self._liveness_tables = prove(self.tables)
        self._begin()
        machine, text = self._machine, self.tables.text
        if machine.live(machine.start) != k.YES and not machine.liveness.is_live(machine.start):
            if not machine.liveness.undecided:
                raise unspellable(EmptyLanguageError("no text is in the language", source=text), vocabulary, text)
            if not machine.liveness.search_far(machine.start):
                message = "the search found no text of the language, and did not prove that there is none"
                raise GrammarTooComplexError(message, budget="search steps", limit=FAR_STEPS, source=text)

    def matcher(self) -> LalrMatcher:
        """See `Grammar.matcher`. O(1)."""
        return LalrMatcher(self)

    def machine_after(self, outgrown: LalrMachine) -> LalrMachine:
        """The machine that a matcher of one that is outgrown may move to."""
        with self._lock:
            if self._machine is outgrown or self._machine.is_outgrown:
                self._machine = self._new_machine()
            return self._machine

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`: nothing is known."""
        return EVERY_BYTE

    def normal_form(self) -> None:
        """See `Grammar.normal_form`: it has none."""

    @property
    def completions_are_shortest(self) -> bool:
        """See `Grammar.completions_are_shortest`: mostly they are."""
        return False

    @property
    def memory_bytes(self) -> int:
        """Bytes of tables, proofs, states and masks, as far as they have been used."""
        tables, liveness_tables = self.tables, {} if self._liveness_tables is None else self._liveness_tables.arrays
        arrays = (tables.action, tables.goto, tables.retyped, tables.automata.transitions, *liveness_tables.values())
        return LEAST_BYTES + sum(array.nbytes for array in arrays) + self._machine.memory_bytes

    def _new_machine(self) -> LalrMachine:
        return LalrMachine(self.tables, self._liveness_tables, self.vocabulary, MASK_BYTES, ROW_BYTES)


def _narrowed(vocabulary: Vocabulary, read: Callable[[], LalrTables]) -> tuple[int, ...]:
    """Bytes that are no tokens, but in longer ones, of characters that were left out; ``read`` gives the tables with
    all."""
    held = held_characters(vocabulary)
    if not held:
        return ()
    automata = read().automata
    used = np.flatnonzero((automata.transitions > 1).any(axis=0)).tolist()
    characters = charset.normalise((low, high) for low, high, name in automata.segments if name in used)
    return bytes_apart(vocabulary, charset.intersection(characters, held))


def compile_contextual(
    source: str | Path, vocabulary: Vocabulary, start: str = "start", import_paths: Iterable[str | Path] = ()
) -> LalrGrammar:
    """Compile what ``lark.Lark(source, parser="lalr", lexer="contextual")`` accepts.

    A grammar that declares ``_INDENT`` and ``_DEDENT`` is read with an indenter as Lark's ``PythonIndenter``.
    ``structgen.compile_lark(..., lexer="contextual")`` is the same. Most of the time is Lark's own.

    Raises:
        GrammarError: not a legal grammar, not LALR(1), or a terminal looks too far around itself.
        EmptyLanguageError: no text is in the language, or none that the vocabulary can spell.
        GrammarTooComplexError: it is too large, or a bounded search does not tell whether it has a text.
        ConstraintError: the package lark is missing, or the file cannot be read.
    """
    check_vocabulary(vocabulary)
    return LalrGrammar(source, vocabulary, start, import_paths)
