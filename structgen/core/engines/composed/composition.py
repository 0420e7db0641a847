"""The parts of a composed grammar: the grammar around, what reads its embedded terminals, where tokens may cross."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.byte_sets import flags
from structgen.core.engines.cfg.analysis import CfgTables
from structgen.core.engines.cfg.compiled import MASK_BYTES, STATE_BYTES, CfgGrammar
from structgen.core.engines.cfg.completion import CfgCompletions
from structgen.core.engines.cfg.last_bytes import bytes_before, last_bytes_of
from structgen.core.engines.cfg.machine import CfgAutomata, CfgMachine
from structgen.core.engines.cfg.matcher import CfgMatcher
from structgen.core.engines.composed.configuration import Configuration
from structgen.core.engines.composed.content import Content
from structgen.core.engines.composed.crossings import crossing_index
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule
from structgen.core.kernels.cfg.layout import FAR
from structgen.core.regions import Region
from structgen.core.vocabulary.vocabulary import Vocabulary


class Composition:
    """The parts of a composed grammar, and what texts have shown of them; shared by its matchers.

    Attributes:
        source: the normal form of the grammar around.
        vocabulary: the tokens that masks are over.
        outer: the grammar around.
        contents: what reads each embedded terminal.
        before: bytes that can stand right before an embedded text, as a set.
        ends: bytes[256], 1 for these bytes.
        first: bytes that embedded texts can begin with, as a set.
        crossings: the places inside the tokens.
        end_bits: word and bit of each end of sequence in a row.
        has_regions: whether it, or one inside, says of some texts how they are written.
        is_monitored: whether monitors narrow some terminals.

    Args:
        regions: terminals whose texts are regions.
    """

    def __init__(
        self,
        source: ContextFreeGrammar,
        contents: Mapping[int, Grammar],
        vocabulary: Vocabulary,
        regions: Mapping[int, Region] | None = None,
    ) -> None:
        shared: dict[int, Content] = {}
        self.source = source
        self.vocabulary = vocabulary
        regions = regions or {}
        self.contents = {
            t: shared.setdefault(id(g), Content(g, region=regions.get(t))) for t, g in sorted(contents.items())
        }
        self.has_regions = bool(regions) or any(g.matcher().partial_parses() is not None for g in contents.values())
        monitored = {t for t, content in self.contents.items() if content.asked is not None}
        self.is_monitored = bool(monitored)
        source = _with_empty_texts(source, {t for t, content in self.contents.items() if content.is_nullable})
        words = {t: content.shortest for t, content in self.contents.items()}
        self.outer: _Outer = _Outer(source, vocabulary, words, monitored)
        self.before = bytes_before(source, contents)
        self._last = last_bytes_of(source, {t: content.last for t, content in self.contents.items()})
        self.ends: bytes = flags(self.before)
        self.first = 0
        for content in self.contents.values():
            self.first |= content.first
        bits = (np.uint32(1) << np.arange(32, dtype=np.uint32)).view(np.int32)
        self.end_bits = [(token >> 5, bits[token & 31]) for token in vocabulary.eos_token_ids]
        self._begin()

    def _begin(self) -> None:
        """What is found while texts are read, or of the vocabulary alone."""
        self.crossings = crossing_index(self.vocabulary.text_only)  # a special token is in one text only
        self._memo: dict[Hashable, Any] = {}
        self._machine: CfgMachine | None = None
        self._lock = threading.Lock()
        self._scratch = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        """All but what is found while texts are read."""
        return {name: value for name, value in vars(self).items() if name not in _FOUND}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The same grammar, of which nothing was read."""
        vars(self).update(state)
        self._begin()

    def start(self) -> CfgMatcher:
        """The grammar around, before all text. What is known of an old machine's configurations says nothing of a new
        one's."""
        machine = self.outer.machine()
        if machine is not self._machine:
            with self._lock:
                self._memo, self._machine = {}, machine
        return self.outer.matcher()

    def is_wide(self, configuration: Configuration) -> bool:
        """Whether what a configuration reads can end nearly everywhere, such as a line of text."""
        return (self.before if configuration.content is None else configuration.content.last).bit_count() > WIDE

    def scratch(self, rows: int) -> npt.NDArray[np.int32]:
        """A bitmask of so many rows or more for the thread that asks, the same each time while it is large enough."""
        buffers: npt.NDArray[np.int32] | None = getattr(self._scratch, "rows", None)
        if buffers is None or len(buffers) < rows:
            buffers = self._scratch.rows = np.empty((2 * rows, -(-self.vocabulary.size // 32)), np.int32)
        return buffers

    def recall(self, key: Hashable) -> Any:
        """What was remembered under a key, or None."""
        return self._memo.get(key)

    def remember(self, key: Hashable, value: Any) -> None:
        """Keep a value until there are too many."""
        if len(self._memo) >= MOST_REMEMBERED:
            self._memo = {}
        self._memo[key] = value


_FOUND = ("crossings", "_memo", "_machine", "_lock", "_scratch")
MOST_REMEMBERED = 1 << 14
WIDE = 64
"""A text that can end with more bytes than this crosses in so many tokens that those allowed anyway are left out."""


def _with_empty_texts(source: ContextFreeGrammar, nullable: set[int]) -> ContextFreeGrammar:
    """The grammar with these embedded terminals made optional: their empty text is left to the rules."""
    if not nullable:
        return source
    optional = {~t: len(source.nonterminals) + i for i, t in enumerate(sorted(nullable))}
    names = tuple(f"{source.terminals[~symbol].name}?" for symbol in optional)
    rules = [Rule(r.lhs, tuple(optional.get(symbol, symbol) for symbol in r.rhs), r.position) for r in source.rules]
    for symbol, number in optional.items():
        rules += [Rule(number, (symbol,)), Rule(number, ())]
    return replace(source, nonterminals=source.nonterminals + names, rules=tuple(rules))


class _Outer(CfgGrammar):
    """A grammar with embedded terminals that knows their shortest texts, and which of them monitors may close."""

    def __init__(
        self, source: ContextFreeGrammar, vocabulary: Vocabulary, words: Mapping[int, bytes], monitored: set[int]
    ) -> None:
        super().__init__(source, vocabulary, frozenset(words), MASK_BYTES, STATE_BYTES)
        self._words = {self.tables.embedded[t]: word for t, word in words.items() if t in self.tables.embedded}
        self._monitored = {self.tables.embedded[t] for t in monitored if t in self.tables.embedded}

    @cached_property
    def completions(self) -> CfgCompletions:
        """Shortest texts, embedded ones included."""
        return _OuterCompletions(self.source, self.tables, self.automata, self._words)

    @cached_property
    def closed(self) -> CfgCompletions:
        """The same where no monitored terminal may begin."""
        words = dict.fromkeys(self._monitored)
        return _OuterCompletions(self.source, self.tables, self.automata, {**self._words, **words})


class _OuterCompletions(CfgCompletions):
    def __init__(
        self, grammar: ContextFreeGrammar, tables: CfgTables, automata: CfgAutomata, words: Mapping[int, bytes | None]
    ) -> None:
        super().__init__(grammar, tables, automata)
        self._of_embedded = words

    def class_word(self, kind: int) -> bytes:
        """A shortest text of a class of terminals."""
        word = self._of_embedded.get(kind)
        return super().class_word(kind) if word is None else word

    def class_length(self, kind: int) -> int:
        """Bytes of `class_word`."""
        if kind not in self._of_embedded:
            return super().class_length(kind)
        word = self._of_embedded[kind]
        return FAR if word is None else len(word)
