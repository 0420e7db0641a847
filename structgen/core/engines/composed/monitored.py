"""Terminals whose texts a monitor narrows where they begin, by the text before them.

The answer is a part of the terminal's names. An empty one closes the terminal there, where the grammar can go on
without: by another terminal that is open, or without any that is monitored. Where it cannot, all names of the terminal
are allowed, and counted: so a monitor never leads into a dead end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.monitors.protocol import TerminalMonitor, asked, new_stats
from structgen.core.text_sets.names import NameSet
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, GenerationError

if TYPE_CHECKING:
    from structgen.core.engines.cfg.matcher import CfgMatcher
    from structgen.core.engines.composed.grammar import ComposedGrammar, Content


class MonitoredTerminal:
    """A grammar of all names of a monitor, to be embedded as a terminal.

    Attributes:
        monitor: what narrows it.
        vocabulary: the tokens.
    """

    completions_are_shortest = False

    def __init__(self, monitor: TerminalMonitor, vocabulary: Vocabulary, read: Callable[..., Grammar]) -> None:
        self.monitor, self.vocabulary = monitor, vocabulary
        self._read, self._names = read, read(monitor.names, vocabulary)

    @property
    def memory_bytes(self) -> int:
        """See `Grammar.memory_bytes`."""
        return self._names.memory_bytes

    @property
    def is_outdated(self) -> bool:
        """See `Grammar.is_outdated`."""
        return self._names.is_outdated

    def matcher(self) -> Matcher:
        """See `Grammar.matcher`."""
        return self._names.matcher()

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`."""
        return self._names.last_bytes()

    def normal_form(self) -> None:
        """See `Grammar.normal_form`: it stays by itself."""

    def suggested(self, names: frozenset[str] | NameSet) -> tuple[str, Grammar] | None:
        """The digest and the grammar of those names that are the monitor's and can be spelled; None: of none."""
        kept = sorted(name for name in names if name in self.monitor.names)
        if not kept:
            return None
        chosen = names if isinstance(names, NameSet) and len(names) == len(kept) else NameSet.build(kept)
        try:
            return chosen.digest, self._read(chosen, self.vocabulary)
        except EmptyLanguageError:
            return None


class Answers:
    """What monitors have said, by text: of one output and its forks, so that an answer stays what it was."""

    def __init__(self, grammar: ComposedGrammar) -> None:
        self.stats = new_stats()
        self._grammar = grammar
        self._by_text: dict[tuple[int, bytes], Content | None] = {}
        self._emptied: set[bytes] = set()
        self._error: GenerationError | None = None

    def check(self) -> None:
        """Raise what a monitor has raised since this was last asked."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def contents(self, outer: CfgMatcher, terminals: Iterable[int], text: bytes) -> Mapping[int, Content]:
        """What reads those terminals that are open after ``text``, where ``outer`` stands."""
        answers = {t: self._content(t, text) for t in terminals}
        contents = {t: content for t, content in answers.items() if content is not None}
        if contents or outer.completes_with(self._grammar.outer.closed):
            return contents
        if text not in self._emptied:
            self._emptied.add(text)
            self.stats["empty_suggestions"] += 1
        return self._grammar.contents

    def _content(self, terminal: int, text: bytes) -> Content | None:
        """What reads a terminal after a text; None: nothing may."""
        whole = self._grammar.contents[terminal]
        key = id(whole), text
        if whole.asked is None:
            return whole
        if key not in self._by_text:
            try:
                names = asked(whole.asked.monitor, text, self.stats)
            except GenerationError as error:  # raised when no step is half made
                self._error = error
                return whole
            self._by_text[key] = whole if names is None else self._narrowed(whole, whole.asked, names)
        return self._by_text[key]

    def _narrowed(self, whole: Content, asked: MonitoredTerminal, names: frozenset[str] | NameSet) -> Content | None:
        suggested = asked.suggested(names)
        if suggested is None:
            return None
        digest, grammar = suggested
        key = "narrowed", whole.key, digest
        content: Content | None = self._grammar.recall(key)
        if content is None:
            content = whole.narrowed(grammar, key)
            self._grammar.remember(key, content)
        return content
