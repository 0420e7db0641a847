"""Short completions of an output from any state of its matcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from structgen.machine.goals import Node
from structgen.options import JsonOptions

if TYPE_CHECKING:
    from structgen.matcher import GrammarMatcher


class Completions:
    """Shortest values per goal."""

    def __init__(self, root: Node, options: JsonOptions) -> None:
        self._root = root
        self._options = options

    def complete(self, matcher: GrammarMatcher) -> bytes:
        """A text that completes the output."""
        raise NotImplementedError
