"""Texts, expressions and grammars of others, in which names of special tokens are these tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from structgen.core.compilers import compile_naming
from structgen.core.constraints.text import (
    LarkConstraint,
    RegexConstraint,
    TextConstraint,
    WrittenGrammar,
    choice,
)
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.named_tokens import lark_by_token
from structgen.core.vocabulary.special_tokens import SpecialToken
from structgen.core.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True)
class NamedText(TextConstraint):
    """One text.

    Attributes:
        text: the text.
        names: special tokens that are meant where it holds their names.
    """

    text: str = field(repr=False)
    names: frozenset[str] = field(repr=False)

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        return compile_naming("text", self.text, self.names, vocabulary)

    def instruction(self) -> str:
        """Shows the text."""
        return f"Write exactly this text: {self.text}"


class Names:
    """Names of special tokens in what is read.

    Args:
        special_tokens: ids by name; none where strings mean text alone.
    """

    def __init__(self, special_tokens: Mapping[str, int]) -> None:
        self.ids = {name: token_id for name, token_id in special_tokens.items() if name}
        self._all = frozenset(self.ids)
        self._by_id = {token_id: name for name, token_id in reversed(self.ids.items())}

    def inside(self, text: str) -> frozenset[str]:
        """The names that a text holds."""
        return frozenset(name for name in self.ids if name in text)

    def text(self, text: str) -> TextConstraint:
        """This text."""
        names = self.inside(text)
        return NamedText(text, names) if names else choice([text])

    def token(self, token: str | int) -> TextConstraint | None:
        """A token by name or id; None: there is none of this name."""
        name = self.name_of(token)
        if name is not None:
            return NamedText(name, frozenset([name]))
        if isinstance(token, str):
            return None
        return LarkConstraint(f"start: {SpecialToken(token)}\n", dialect="llguidance")

    def name_of(self, token: str | int) -> str | None:
        """The name of a token that has one."""
        return self._by_id.get(token) if isinstance(token, int) else token if token in self.ids else None

    def regex(self, pattern: str) -> TextConstraint:
        """Text that matches an expression of Python as a whole."""
        return RegexConstraint(pattern, names=self._all)

    def grammar(self, text: str) -> TextConstraint:
        """Text of a grammar in any notation."""
        return WrittenGrammar(text, self._all) if "::=" in text else WrittenGrammar(lark_by_token(text, self.ids))
