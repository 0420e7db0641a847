"""Steps of sets of configurations: by a text, and into what may begin where one stands."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import cast

from structgen.core.engines.cfg.matcher import CfgMatcher
from structgen.core.engines.composed.answers import Answers
from structgen.core.engines.composed.composition import Composition
from structgen.core.engines.composed.configuration import Configuration
from structgen.core.engines.composed.content import Content

MAX_CONFIGURATIONS = 64
"""So many configurations are kept, and one more for each embedded grammar; others are given up and counted."""


class ConfigurationSteps:
    """The steps of one matcher's configurations.

    Attributes:
        composition: the parts of its grammar.
        answers: what monitors say of its text; None: there are none.
        dropped: configurations that were given up.
    """

    def __init__(self, composition: Composition, answers: Answers | None) -> None:
        self.composition, self.answers = composition, answers
        self.dropped = 0

    def start(self) -> list[Configuration]:
        """The configurations before all text."""
        outer = Configuration(self.composition.start(), None, None, self.composition.ends)
        return self._distinct([outer, *self._entries(outer, b"")])

    def advance(
        self, configurations: Sequence[Configuration], data: bytes, token: int = -1, text: bytes = b""
    ) -> list[Configuration]:
        """The configurations after a text (not empty); those of ``configurations`` that take it move. None: no change.

        Args:
            configurations: where to start, all at the same place.
            data: the text.
            token: its id, which is faster; -1: no token.
            text: before it, where monitors are asked.
        """
        waiting = {0: list(configurations)}
        results: list[Configuration] = []
        while waiting:
            start = min(waiting)
            fresh = waiting.pop(start)
            for configuration in self._distinct(fresh) if start else fresh:
                self._advance_configuration(configuration, data, start, token, waiting, results, text)
        return self._distinct(results)

    def exits(self, configuration: Configuration, text: bytes) -> list[Configuration]:
        """The configurations that begin where ``configuration`` stands: embedded texts, or what comes after one.

        ``text``: all that is before them, where monitors are asked."""
        if configuration.content is None:
            return list(self._entries(configuration, text))
        if configuration.after is None or not configuration.matcher.is_accepting():
            return []
        outer = Configuration(configuration.after.copy(), None, None, self.composition.ends)
        return [outer, *self._entries(outer, text)]

    def survives(self, configurations: Sequence[Configuration], data: bytes, text: bytes) -> bool:
        """Whether some configuration takes the text; nothing changes."""
        before = [(configuration, configuration.steps) for configuration in configurations]
        dropped = self.dropped
        survivors = self.advance(configurations, data, text=text)
        for configuration, steps in before:
            configuration.go_back(steps)
        self.dropped = dropped
        return bool(survivors)

    def _advance_configuration(
        self,
        configuration: Configuration,
        data: bytes,
        start: int,
        token: int,
        waiting: dict[int, list[Configuration]],
        results: list[Configuration],
        text: bytes,
    ) -> None:
        """Read ``data[start:]`` by one configuration; ``waiting``: what begins inside; ``results``: what lives on."""
        marks = data.translate(configuration.ends)
        offset, steps, matcher = start, 0, configuration.matcher
        cut = marks.find(1, start, -1)
        while cut >= 0:
            if not matcher.accept_bytes(data[offset : cut + 1]):
                break
            offset, steps = cut + 1, steps + 1
            fresh = self.exits(configuration, text + data[:offset])
            if fresh:
                waiting.setdefault(offset, []).extend(fresh)
            cut = marks.find(1, offset, -1)
        else:
            whole = token >= 0 and offset == 0
            if matcher.accept_token(token) if whole else matcher.accept_bytes(data[offset:]):
                configuration.go_on(steps + 1, len(data) - start)
                results.append(configuration)
                if marks[-1]:
                    results += self.exits(configuration, text + data)
                return
        if steps:
            matcher.rollback(steps)

    def _entries(self, configuration: Configuration, text: bytes) -> Iterator[Configuration]:
        """The embedded texts that may begin where a configuration of the grammar around stands, after ``text``."""
        outer = cast(CfgMatcher, configuration.matcher)  # which all configurations without content have
        terminals = outer.embedded_here()
        contents: Mapping[int, Content] = self.composition.contents
        if self.answers is not None and terminals:
            contents = self.answers.contents(outer, terminals, text)
        for terminal in sorted(terminals.intersection(contents)):
            content = contents[terminal]
            yield Configuration(content.grammar.matcher(), content, outer.after_embedded(terminal), content.ends)

    def _distinct(self, configurations: list[Configuration]) -> list[Configuration]:
        """Without those that another has the future of, and no more than are kept."""
        if len(configurations) < 2:
            return configurations
        kept: dict[Hashable, Configuration] = {}
        for configuration in configurations:
            key = configuration.key()
            same = kept.setdefault(id(configuration) if key is None else key, configuration)
            if configuration.size > same.size and self.composition.has_regions:
                kept[key] = configuration  # what began first has most tokens
        most = MAX_CONFIGURATIONS + len(self.composition.contents)  # all may begin at one place, as after a trigger
        self.dropped += max(0, len(kept) - most)
        return list(kept.values())[:most]
