"""What monitors have said of one text, and what reads their terminals there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from structgen.core.engines.cfg.matcher import CfgMatcher
from structgen.core.engines.composed.composition import Composition
from structgen.core.engines.composed.content import Content
from structgen.core.engines.composed.monitored import MonitoredTerminal
from structgen.core.monitors.protocol import asked, new_stats
from structgen.core.text_sets.names import NameSet
from structgen.errors import GenerationError


class Answers:
    """What monitors have said, by text: of one output and its forks, so that an answer stays what it was."""

    def __init__(self, composition: Composition) -> None:
        self.stats = new_stats()
        self._composition = composition
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
        if contents or outer.completes_with(self._composition.outer.closed):
            return contents
        if text not in self._emptied:
            self._emptied.add(text)
            self.stats["empty_suggestions"] += 1
        return self._composition.contents

    def _content(self, terminal: int, text: bytes) -> Content | None:
        """What reads a terminal after a text; None: nothing may."""
        whole = self._composition.contents[terminal]
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
        content: Content | None = self._composition.recall(key)
        if content is None:
            content = whole.narrowed(grammar, key)
            self._composition.remember(key, content)
        return content
