"""Sorted texts compiled for a vocabulary, names and quotes of documents, and their matcher."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from structgen.core.engines.byte_sets import byte_set
from structgen.core.engines.shared_machine import SharedMachine
from structgen.core.engines.sorted.machine import KEPT_FROM, SortedMachine
from structgen.core.engines.state_matcher import StateMatcher
from structgen.core.grammars.spelling import unspellable, warn_narrowed
from structgen.core.kernels.sorted import calls as k
from structgen.core.text_sets.corpus import Corpus
from structgen.core.text_sets.names import NameSet
from structgen.core.text_sets.sorted_texts import SortedTexts
from structgen.core.vocabulary.vocabulary import Vocabulary, check_vocabulary
from structgen.errors import EmptyLanguageError


class SortedMatcher(StateMatcher["SortedGrammar"]):
    """One output in progress. Make one with `SortedGrammar.matcher`. Its state is an interval of entries."""

    __slots__ = ()

    _grammar: SortedGrammar
    _run = staticmethod(k.run)

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, out: int) -> None:
        kept, width = self._machine.kept(self._state), self._machine.width
        if kept is None:
            lock = self._lock
            lock.acquire()  # half the time of ``with``
            try:
                seen = self._run(self._root, k.FILL, self._state, out, 0)
            finally:
                lock.release()
            if seen < KEPT_FROM and bitmask.shape[-1] == width:
                return
        mask = bitmask[index] if bitmask.ndim == 2 else bitmask
        mask[width:] = 0
        if kept is not None:
            mask[:width] = kept
        elif seen >= KEPT_FROM:
            self._machine.keep(self._state, mask[:width].copy())

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`: of names a shortest one, of quotes the nearest end of some places."""
        if self._terminated or self.is_accepting():
            return b""
        completion: bytes = self._machine.completion(self._state)
        return completion


class SortedGrammar(SharedMachine[SortedMachine]):
    """Names, or quotes of documents, as token-level automaton over a vocabulary. Make one with `compile_sorted`.

    Attributes:
        texts: the names or documents, without what the vocabulary cannot spell.
        vocabulary: the model's tokens.
        least, most: code points of a quote; None: no limit.
    """

    def __init__(self, texts: SortedTexts, vocabulary: Vocabulary, least: int, most: int | None) -> None:
        self.vocabulary, self.least, self.most = vocabulary, least, most
        missing = [byte for byte in vocabulary.missing_bytes if byte in _bytes_of(texts)]
        self.texts = _spelled(texts, missing, vocabulary) if missing else texts
        self._is_cut = bool(missing)
        self._begin()
        matcher = self.matcher()
        if not (matcher.next_bytes().any() or matcher.is_accepting()):
            limits = f"from {least:,} to {'any number of' if most is None else f'{most:,}'} characters"
            error = EmptyLanguageError(f"no part of the documents can be quoted with {limits}")
            raise unspellable(error, vocabulary, "") from None

    def matcher(self) -> SortedMatcher:
        """See `Grammar.matcher`. O(1)."""
        return SortedMatcher(self)

    @cached_property
    def _last_bytes(self) -> int:
        texts = self.texts
        if texts.kind == k.NAMES:
            ends = texts.starts[1:][np.diff(texts.starts) > 0]
            return byte_set(np.unique(texts.text[ends - 1]).tolist())
        return byte_set(byte for byte in _bytes_of(texts) if byte < 0xC0)

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`: exact of names, of quotes those that end characters of the documents."""
        return self._last_bytes

    def normal_form(self) -> None:
        """See `Grammar.normal_form`: there is none."""

    @property
    def completions_are_shortest(self) -> bool:
        """See `Grammar.completions_are_shortest`."""
        return self.texts.kind == k.NAMES

    @property
    def memory_bytes(self) -> int:
        """Bytes of the texts and their index."""
        return self.texts.memory_bytes

    def _new_machine(self) -> SortedMachine:
        return SortedMachine(self.texts, self.least, self.most, self.vocabulary, self._is_cut)


def compile_sorted(
    texts: NameSet | Corpus, vocabulary: Vocabulary, least: int = 1, most: int | None = None
) -> SortedGrammar:
    """Compile names or documents for a vocabulary. O(1): their index is there.

    Raises:
        EmptyLanguageError: no quote has as many characters, or the vocabulary spells none of the texts.
    """
    check_vocabulary(vocabulary)
    return SortedGrammar(texts, vocabulary, least, most)


def _bytes_of(texts: SortedTexts) -> set[int]:
    """The bytes that texts have."""
    return set(np.flatnonzero(np.bincount(texts.text, minlength=256)).tolist())


def _spelled(texts: SortedTexts, missing: list[int], vocabulary: Vocabulary) -> SortedTexts:
    """The texts without those, or the parts, that have bytes which are no tokens."""
    kept: SortedTexts | None
    if isinstance(texts, NameSet):
        warn_narrowed(missing)
        kept = texts.without_bytes(missing)
    else:
        assert isinstance(texts, Corpus)
        kept = texts.without_bytes(missing)
    if kept is None:
        shown = bytes(missing).decode("latin-1")
        raise unspellable(EmptyLanguageError("the vocabulary spells none of the texts"), vocabulary, shown)
    return kept
