"""Terminals whose texts a monitor narrows where they begin, by the text before them.

The answer is a part of the terminal's names. An empty one closes the terminal there, where the grammar can go on
without: by another terminal that is open, or without any that is monitored. Where it cannot, all names of the terminal
are allowed, and counted: so a monitor never leads into a dead end.
"""

from __future__ import annotations

from collections.abc import Callable

from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.monitors.protocol import TerminalMonitor
from structgen.core.text_sets.names import NameSet
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError


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
