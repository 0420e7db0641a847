"""What reads an embedded terminal."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

import numpy as np

from structgen.core.engines.byte_sets import byte_set, flags
from structgen.core.engines.composed.monitored import MonitoredTerminal
from structgen.core.engines.protocols import Grammar
from structgen.core.regions import Region


class Content:
    """A grammar that reads a terminal of another.

    Attributes:
        grammar: the grammar.
        last: bytes that its texts can end with, as a set.
        ends: bytes[256], 1 for these bytes.
        first: bytes that its texts can begin with, as a set.
        is_nullable: whether the empty text is one of its texts; then the rules around may leave it out.
        shortest: a shortest text.
        region: how its texts are written, where that is said of them.
        key: equal for the same content.
        asked: the monitor that narrows it where it begins; None: nothing does.
    """

    def __init__(self, grammar: Grammar, key: Hashable = None, region: Region | None = None) -> None:
        start = grammar.matcher()
        self.grammar, self.region = grammar, region
        self.last = grammar.last_bytes()
        self.ends = flags(self.last)
        self.first = byte_set(np.flatnonzero(start.next_bytes()).tolist())
        self.is_nullable = start.is_accepting()
        self.shortest = start.shortest_completion()
        self.key = id(self) if key is None else key
        self.asked = cast(MonitoredTerminal, grammar) if hasattr(grammar, "suggested") else None

    def narrowed(self, grammar: Grammar, key: Hashable) -> Content:
        """This content with fewer texts. The bytes that texts end with stay as they are, which index crossings."""
        content = Content(grammar, key)
        content.last, content.ends = self.last, self.ends
        return content
