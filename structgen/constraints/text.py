"""Constraints on plain text, as values: grammars, regular expressions, choices. The value of an output is its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from structgen import compilers
from structgen.constraints.json import COMPILED
from structgen.errors import ConstraintError
from structgen.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True)
class TextConstraint:
    """A constraint whose value is the text itself. Make it with ``lark``, ``gbnf``, ``regex`` or ``choice``.

    Attributes:
        kind: "lark", "gbnf", "regex" or "choice".
        source: the grammar, the expression or the options.
        options: the rest of what ``compile_lark`` and its like take, as pairs.
    """

    kind: str
    source: str | Path | tuple[str, ...] = field(repr=False)
    options: tuple[tuple[str, str], ...] = ()

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The ``CfgGrammar`` over ``vocabulary``; a few are kept for the process.

        Raises:
            ConstraintError: what ``compile_lark`` and its like raise.
        """
        compiler: Any = getattr(compilers, f"compile_{self.kind}")

        def build() -> Any:
            return compiler(self.source, vocabulary, **dict(self.options))

        if isinstance(self.source, Path):  # the file may change
            return build()
        return COMPILED.get((self, vocabulary), build)

    def parse(self, text: str) -> str:
        """The text."""
        return text

    def parse_partial(self, text: str) -> str:
        """The text so far."""
        return text

    def instruction(self) -> str:
        """Asks for such a text and shows the constraint."""
        if isinstance(self.source, tuple):
            return "Answer with exactly one of these texts:\n" + "\n".join(self.source)
        if self.kind == "regex":
            return f"Answer with a text that matches this regular expression:\n{self.source}"
        text = self.source.read_text(encoding="utf-8") if isinstance(self.source, Path) else self.source
        return f"Answer with a text of this grammar ({self.kind.upper() if self.kind == 'gbnf' else 'Lark'}):\n{text}"


def lark(source: str | Path, start: str = "start", lexer: str = "dynamic") -> TextConstraint:
    """Text of a Lark grammar (its text, or a path); see ``compile_lark``."""
    if isinstance(source, str) and "\n" not in source.strip() and source.strip().endswith(".lark"):
        source = Path(source.strip())
    return TextConstraint("lark", source, (("start", start), ("lexer", lexer)))


def gbnf(source: str | Path, start: str = "root") -> TextConstraint:
    """Text of a GBNF grammar (its text, or a ``Path``); see ``compile_gbnf``."""
    return TextConstraint("gbnf", source, (("start", start),))


def regex(pattern: str, syntax: compilers.Syntax = "python") -> TextConstraint:
    """Text that matches a regular expression as a whole; see ``compile_regex``."""
    return TextConstraint("regex", pattern, (("syntax", syntax),))


def choice(options: Iterable[str]) -> TextConstraint:
    """One of these texts; see ``compile_choice``."""
    if not isinstance(options, Iterable):
        raise ConstraintError(f"a choice needs texts, not {options!r:.100}")
    return TextConstraint("choice", (options,) if isinstance(options, str) else tuple(options))
