"""From a compiled grammar and a text to captures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np

from structgen.core.engines.byte_sets import byte_set
from structgen.core.engines.capture import Capture, Captures
from structgen.core.engines.captures.chart import Chart
from structgen.core.engines.captures.derivation import Derivation
from structgen.core.engines.captures.ends import TextEnds, text_ends
from structgen.core.engines.captures.network import Network
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError


@runtime_checkable
class ReadsAsValue(Protocol):
    """A grammar whose texts have values, such as JSON."""

    def parse(self, text: str) -> Any:
        """The value of a text."""
        ...

    def parse_partial(self, text: str) -> Any:
        """The value of an unfinished text, as far as it goes; None where there is none yet."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """A capture in bytes.

    Attributes:
        meaning: the grammar that says its value; None: it is the text.
    """

    name: str
    start: int
    end: int
    is_complete: bool
    meaning: ReadsAsValue | None


class CaptureReader:
    """Finds the captures of texts of one grammar. O(grammar) to make, when it is first used.

    Args:
        grammar: the normal form.
        contents: the compiled grammars that read some of its terminals.
    """

    def __init__(self, grammar: ContextFreeGrammar, contents: Mapping[int, Grammar]) -> None:
        self._grammar = grammar
        self.contents = {terminal: _Embedded(content) for terminal, content in contents.items()}

    @cached_property
    def _network(self) -> Network:
        return Network(self._grammar, self.contents)

    @cached_property
    def has_names(self) -> bool:
        """Whether anything is captured."""
        is_named = any(isinstance(name, str) for _, name in self._grammar.captures)
        return is_named or any(content.has_names for content in self.contents.values())

    @property
    def most(self) -> Mapping[str, int]:
        """How often each name can occur in one text: 0, 1, or 2 for more."""
        return self._network.most

    def find(self, data: bytes, *, is_finished: bool) -> list[Found] | None:
        """Captures in the order of the text, outer ones first; None for no text of the grammar.

        Raises:
            CapturesTooComplexError: see there.
        """
        chart = Chart(self._network, data, self.contents)
        parts = Derivation(chart).parts(is_finished=is_finished)
        if parts is None:
            return None
        captures = []
        for part in parts:
            content = None if part.only is None else self.contents.get(part.only)
            meaning = None if content is None else content.meaning
            for name in self._network.names.get(part.symbol, ()):
                captures.append(Found(name, part.start, part.end, part.is_complete, meaning))
            if part.symbol < 0 and content is not None:
                captures += content.find_within(data, part.start, part.end, part.is_complete)
        return captures

    def captures(self, data: bytes, vocabulary: Vocabulary, *, is_finished: bool) -> Captures:
        """The captures of a text of the grammar, or of the beginning of one.

        Raises:
            GenerationError: it is none.
            CapturesTooComplexError: it would take too many steps.
        """
        captures_found = self.find(data, is_finished=is_finished)
        if captures_found is None:
            start = bytes(vocabulary.rendered(data[:200])).decode(errors="replace")
            raise GenerationError(f"Only texts of the grammar have captures, and this is none: {start!r}")
        shown = _Shown(data, vocabulary, captures_found)
        result: dict[str, Any] = {}
        for name, most in self.most.items():
            values = [shown.capture(each) for each in captures_found if each.name == name]
            result[name] = values if most > 1 else values[0] if values else None
        return result


class _Embedded:
    """A grammar that reads a terminal: see `structgen.core.engines.captures.network.EmbeddedTexts`."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._reader = reader_of(grammar)
        self.meaning = grammar if isinstance(grammar, ReadsAsValue) else None

    @cached_property
    def first(self) -> int:
        return byte_set(np.flatnonzero(self._grammar.matcher().next_bytes()).tolist())

    @cached_property
    def is_nullable(self) -> bool:
        return self._grammar.matcher().is_accepting()

    @property
    def has_meaning(self) -> bool:
        return self.meaning is not None

    @property
    def has_names(self) -> bool:
        """Whether anything is captured in its texts."""
        return self._reader is not None and self._reader.has_names

    @property
    def most(self) -> Mapping[str, int]:
        return self._reader.most if self._reader is not None and self.has_names else {}

    def text_ends(self, data: bytes, offset: int) -> TextEnds:
        """See `structgen.core.engines.captures.chart.TextReader`."""
        return text_ends(self._grammar, data, offset)

    def find_within(self, data: bytes, start: int, end: int, is_complete: bool) -> list[Found]:
        """The captures in one of its texts."""
        if self._reader is None or not self.has_names:
            return []
        inner = self._reader.find(data[start:end], is_finished=is_complete) or []
        return [Found(f.name, f.start + start, f.end + start, f.is_complete, f.meaning) for f in inner]


class _Shown:
    """Text and offsets, in characters, of bytes."""

    def __init__(self, data: bytes, vocabulary: Vocabulary, captures: list[Found]) -> None:
        cuts = sorted({0, len(data), *(f.start for f in captures), *(f.end for f in captures)})
        self._text, self._offsets = "", {0: 0}
        for start, end in pairwise(cuts):
            self._text += bytes(vocabulary.rendered(data[start:end])).decode(errors="ignore")
            self._offsets[end] = len(self._text)

    def capture(self, capture_found: Found) -> Capture:
        """A capture in characters, with its value."""
        start, end = self._offsets[capture_found.start], self._offsets[capture_found.end]
        text = self._text[start:end]
        value: Any = text
        if capture_found.meaning is not None:
            value = (
                capture_found.meaning.parse(text)
                if capture_found.is_complete
                else capture_found.meaning.parse_partial(text)
            )
        return Capture(text, value, start, end, capture_found.is_complete)


def reader_of(grammar: Grammar) -> CaptureReader | None:
    """The reader of a compiled grammar; None for engines whose grammars have no rules."""
    reader = getattr(grammar, "capture_reader", None)
    if isinstance(reader, CaptureReader):
        return reader
    around: Callable[[], ContextFreeGrammar] | None = getattr(grammar, "capture_form", None)
    form = (around(), {}) if around is not None else grammar.normal_form()
    return None if form is None else CaptureReader(*form)
