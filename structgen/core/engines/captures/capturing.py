"""Compiled grammars that name parts of their texts, for any engine: matchers that keep the text besides."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar

import numpy as np
import numpy.typing as npt

from structgen.core.engines.capture import Captures
from structgen.core.engines.captures.reader import CaptureReader, reader_of
from structgen.core.engines.draft_trees import DraftTrees, fill_trees_of
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.regions import PartialParse
from structgen.core.vocabulary.vocabulary import Vocabulary

GrammarT = TypeVar("GrammarT", bound=Grammar)
P = ParamSpec("P")
_Chain = tuple[Any, bytes] | None
"""A text: what was before the last step, and that step."""


class CapturingGrammar(Generic[GrammarT]):
    """A compiled grammar with captures. Masks, steps and all else are the grammar's.

    Attributes:
        grammar: the compiled grammar.
        capture_reader: finds the captures of its texts.
    """

    def __init__(self, grammar: GrammarT, reader: CaptureReader) -> None:
        self.grammar = grammar
        self.capture_reader = reader

    def __reduce__(self) -> tuple[Any, ...]:
        """The reader is made anew, when it is used."""
        return with_captures, (self.grammar,)

    def captures(self, data: bytes, *, is_finished: bool = True) -> Captures:
        """The captures of a text of the grammar (or, not finished, of the beginning of one), special tokens in it as
        their stand-ins.

        Raises:
            GenerationError: it is no such text.
            CapturesTooComplexError: it would take too many steps.
        """
        return self.capture_reader.captures(data, self.vocabulary, is_finished=is_finished)

    def matcher(self) -> CapturingMatcher:
        """See `Grammar.matcher`."""
        return CapturingMatcher(self, self.grammar.matcher(), None)

    @property
    def vocabulary(self) -> Vocabulary:
        """See `Grammar.vocabulary`."""
        return self.grammar.vocabulary

    @property
    def is_outdated(self) -> bool:
        """See `Grammar.is_outdated`."""
        return self.grammar.is_outdated

    @property
    def memory_bytes(self) -> int:
        """See `Grammar.memory_bytes`."""
        return self.grammar.memory_bytes

    @property
    def completions_are_shortest(self) -> bool:
        """See `Grammar.completions_are_shortest`."""
        return self.grammar.completions_are_shortest

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`."""
        return self.grammar.last_bytes()

    def normal_form(self) -> tuple[ContextFreeGrammar, Mapping[int, Grammar]] | None:
        """See `Grammar.normal_form`: none where a capture could not tell what is ignored around it any more."""
        form = self.grammar.normal_form()
        return None if form is None or (form[0].ignored and form[0].captures) else form


class CapturingMatcher:
    """A matcher that keeps its text; see `core.engines.protocols.Matcher`. Made by `CapturingGrammar.matcher`.

    The text is a chain of steps that forks and copies share. Nothing is looked for before `captures` is asked.
    """

    __slots__ = ("_grammar", "_known", "_matcher", "_text")

    def __init__(self, grammar: CapturingGrammar[Any], matcher: Matcher, text: _Chain) -> None:
        self._grammar, self._matcher, self._text = grammar, matcher, text
        self._known: tuple[_Chain, bool, Captures] | None = None

    def captures(self) -> Captures:
        """See `Matcher.captures`. A parse of the text so far, once for each state."""
        is_finished = self._matcher.is_terminated()
        if self._known is None or self._known[0] is not self._text or self._known[1] != is_finished:
            captures_found = self._grammar.captures(self._bytes(), is_finished=is_finished)
            self._known = self._text, is_finished, captures_found
        return self._known[2]

    def _bytes(self) -> bytes:
        pieces, text = [], self._text
        while text is not None:
            text, piece = text
            pieces.append(piece)
        return b"".join(reversed(pieces))

    # --- steps ---
    def accept_token(self, token_id: int) -> bool:
        """See `Matcher.accept_token`."""
        if not self._matcher.accept_token(token_id):
            return False
        self._text = self._text, self._grammar.vocabulary.tokens[token_id]
        return True

    def advance_and_fill(self, token_id: int, bitmask: npt.NDArray[np.int32], index: int = 0) -> bool:
        """See `Matcher.advance_and_fill`."""
        if not self._matcher.advance_and_fill(token_id, bitmask, index):
            return False
        self._text = self._text, self._grammar.vocabulary.tokens[token_id]
        return True

    @classmethod
    def fill_all(cls, matchers: Sequence[Self], bitmask: npt.NDArray[np.int32], rows: Sequence[int]) -> None:
        """See `Matcher.fill_all`."""
        for matcher, row in zip(matchers, rows, strict=True):
            matcher.fill_next_token_bitmask(bitmask, row)

    @classmethod
    def fill_trees(
        cls, matchers: Sequence[Self], trees: DraftTrees, bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> npt.NDArray[np.bool_]:
        """See `Matcher.fill_trees`."""
        return fill_trees_of([matcher._matcher for matcher in matchers], trees, bitmask, rows)

    @classmethod
    def advance_and_fill_all(
        cls, matchers: Sequence[Self], token_ids: Sequence[int], bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> list[bool]:
        """See `Matcher.advance_and_fill_all`."""
        steps = zip(matchers, token_ids, rows, strict=True)
        return [matcher.advance_and_fill(token_id, bitmask, row) for matcher, token_id, row in steps]

    def accept_bytes(self, data: bytes) -> bool:
        """See `Matcher.accept_bytes`."""
        if not self._matcher.accept_bytes(data):
            return False
        self._text = self._text, bytes(data)
        return True

    def rollback(self, steps: int = 1) -> None:
        """See `Matcher.rollback`. O(steps) besides."""
        self._matcher.rollback(steps)
        for _ in range(steps):
            assert self._text is not None
            self._text = self._text[0]

    def reset(self) -> None:
        """See `Matcher.reset`."""
        self._matcher.reset()
        self._text = None

    def fork(self) -> Self:
        """See `Matcher.fork`."""
        return type(self)(self._grammar, self._matcher.fork(), self._text)

    def copy(self) -> Self:
        """See `Matcher.copy`."""
        return type(self)(self._grammar, self._matcher.copy(), self._text)

    # --- the matcher's own ---
    @property
    def grammar(self) -> CapturingGrammar[Any]:
        """See `Matcher.grammar`."""
        return self._grammar

    @property
    def stats(self) -> dict[str, int]:
        """See `Matcher.stats`."""
        return self._matcher.stats

    @property
    def state_is_shared(self) -> bool:
        """See `Matcher.state_is_shared`."""
        return self._matcher.state_is_shared

    def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        """See `Matcher.fill_next_token_bitmask`."""
        self._matcher.fill_next_token_bitmask(bitmask, index)

    def is_accepting(self) -> bool:
        """See `Matcher.is_accepting`."""
        return self._matcher.is_accepting()

    def is_terminated(self) -> bool:
        """See `Matcher.is_terminated`."""
        return self._matcher.is_terminated()

    def next_bytes(self) -> npt.NDArray[np.bool_]:
        """See `Matcher.next_bytes`."""
        return self._matcher.next_bytes()

    def forced_bytes(self) -> bytes:
        """See `Matcher.forced_bytes`."""
        return self._matcher.forced_bytes()

    def likely_texts(self, written: bytes) -> list[bytes]:
        """See `Matcher.likely_texts`."""
        return self._matcher.likely_texts(written)

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`."""
        return self._matcher.shortest_completion()

    def completion_bound(self) -> int:
        """See `Matcher.completion_bound`."""
        return self._matcher.completion_bound()

    def completion_is_spelled(self) -> bool:
        """See `Matcher.completion_is_spelled`."""
        return self._matcher.completion_is_spelled()

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        """See `Matcher.state_key`: what is captured is no part of the future."""
        return self._matcher.state_key(same_matcher=same_matcher)

    def partial_parses(self) -> list[PartialParse] | None:
        """See `Matcher.partial_parses`."""
        return self._matcher.partial_parses()

    def bytes_to_stop(self) -> int:
        """See `Matcher.bytes_to_stop`."""
        return self._matcher.bytes_to_stop()


def captures_of(grammar: Grammar, data: bytes, *, is_finished: bool = True) -> Captures:
    """See `CapturingGrammar.captures`; of grammars that name nothing there are none."""
    if not names_captures(grammar):
        return {}
    reader = reader_of(grammar)
    assert reader is not None
    return reader.captures(data, grammar.vocabulary, is_finished=is_finished)


def names_captures(grammar: Grammar) -> bool:
    """Whether a compiled grammar names parts of its texts. O(1)."""
    return hasattr(grammar, "capture_reader")


def with_captures(grammar: GrammarT) -> GrammarT | CapturingGrammar[GrammarT]:
    """A compiled grammar with the captures that its rules, or those of grammars inside it, name; as it is without."""
    reader = None if names_captures(grammar) else reader_of(grammar)
    return CapturingGrammar(grammar, reader) if reader is not None and reader.has_names else grammar


def captured_alike(grammar: Any, make: Callable[[Any], GrammarT]) -> GrammarT | CapturingGrammar[GrammarT]:
    """What is made of a grammar for some of its texts, with the grammar's captures."""
    if not names_captures(grammar):
        return make(grammar)
    return CapturingGrammar(make(grammar.grammar), grammar.capture_reader)


def capturing(compiler: Callable[P, GrammarT]) -> Callable[P, GrammarT | CapturingGrammar[GrammarT]]:
    """A compiler whose grammars have captures where they name any."""

    @wraps(compiler)
    def compile_capturing(*args: P.args, **options: P.kwargs) -> GrammarT | CapturingGrammar[GrammarT]:
        return with_captures(compiler(*args, **options))

    return compile_capturing
