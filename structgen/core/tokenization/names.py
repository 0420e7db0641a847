"""Names of added tokens, which a tokenizer finds in a text before it spells any of it: no canonical text has one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from structgen.core.vocabulary.sorted_tokens import SortedTokens

Pending: TypeAlias = frozenset[tuple[bytes, int]]
"""Names and how many of their bytes a text ends with."""
NAMELESS: Pending = frozenset()


class NamesInText:
    """Where the names begin and end in texts over a vocabulary.

    Args:
        tokens: bytes of each id; empty for ids that are no text.
        names: none of them empty.
        spelled: ids that are names and text.

    Attributes:
        longest: bytes of the longest name.
    """

    def __init__(self, tokens: Sequence[bytes], names: Iterable[bytes], spelled: frozenset[int] = frozenset()) -> None:
        self._tokens, self._names = tokens, sorted(names)
        self.longest = max(map(len, self._names), default=0)
        self._sorted = SortedTokens(tokens if self._names else ())
        self._inside = self._holding() - spelled
        self._begun: dict[int, Pending] = {}

    def completing(self, pending: Pending) -> list[int]:
        """The tokens with which a text would hold a whole name."""
        result = sorted(self._inside)
        for name, length in pending:
            result += self._sorted.beginning_with(name[length:]).tolist()
        return result

    def completes(self, pending: Pending, token: int) -> bool:
        """Whether a text would hold a whole name with this token."""
        text = self._tokens[token] if token < len(self._tokens) else b""
        return token in self._inside or any(text.startswith(name[length:]) for name, length in pending if text)

    def after(self, pending: Pending, token: int) -> Pending:
        """Names that the text ends with the beginnings of, after a token."""
        text = self._tokens[token]
        begun = self._begun.get(token)
        if begun is None:
            begun = self._begun[token] = frozenset(self._ends(text))
        if not pending:
            return begun
        longer = {(name, n + len(text)) for name, n in pending if name[n:].startswith(text) and name[n:] != text}
        return begun | longer

    def _ends(self, text: bytes) -> Iterable[tuple[bytes, int]]:
        for name in self._names:
            for length in range(1, min(len(name) - 1, len(text)) + 1):
                if text.endswith(name[:length]):
                    yield name, length

    def _holding(self) -> set[int]:
        """Tokens with a whole name in them: looked for in all their bytes at once."""
        joined = b"".join(self._tokens)
        if not any(name in joined for name in self._names):
            return set()
        return {i for i, text in enumerate(self._tokens) if any(name in text for name in self._names)}
