"""Constraints on plain text, as values: grammars, regular expressions, choices. The value of an output is its text."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from structgen.core.compilers import (
    LARK_OPTIONS,
    LEXERS,
    LarkDialect,
    Syntax,
    Terminals,
    choice_texts,
    compile_choice,
    compile_gbnf,
    compile_lark_source,
    compile_naming,
    compile_regex,
)
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.constraints.combined import Combinable
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.captured import Captured, CapturesOption, checked_captures
from structgen.core.grammars.lark_options import refuse_lark_options, refuse_lexer
from structgen.core.grammars.limits import load_text, named_file
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, OptionsError
from structgen.options import JsonOptions

if TYPE_CHECKING:
    from structgen.core.grammars.gbnf import GbnfDialect


class TextConstraint(Combinable):
    """A constraint whose value is the text itself. Make one with ``lark``, ``gbnf``, ``regex`` or ``choice``."""

    def compile(self, vocabulary: Vocabulary) -> Grammar:
        """The compiled form over ``vocabulary``; a few are kept for the process, but not of files, which may change.

        Raises:
            ConstraintError: what ``compile_lark`` and its like raise.
        """
        grammar: Grammar = COMPILED.get(joined(self.content_key(), vocabulary), lambda: self._compiled(vocabulary))
        return grammar

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`: the constraint itself, and nothing for a file."""
        return None if isinstance(getattr(self, "source", None), Path) else self

    @abstractmethod
    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        """The compiled form, made anew."""

    def parse(self, text: str) -> str:
        """The text."""
        return text

    def parse_partial(self, text: str) -> str:
        """The text so far."""
        return text

    @abstractmethod
    def instruction(self) -> str:
        """Asks for such a text and shows the constraint, which has one form only."""


@dataclass(frozen=True)
class LarkConstraint(TextConstraint):
    """Text of a Lark grammar. Attributes as ``compile_lark`` takes them; ``captured``: its ``captures`` in pairs.

    ``source`` is text if it is a string, and no path: what others wrote becomes a constraint by this class, not by
    ``lark``.
    """

    source: str | Path = field(repr=False)
    start: str = "start"
    lexer: str = "dynamic"
    json_options: JsonOptions | None = None
    captured: Captured = ()
    dialect: LarkDialect = "lark"
    grammars: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    terminals: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`; that of constraints in ``grammars`` is part of it."""
        if isinstance(self.source, Path):
            return None
        others = [
            joined(name, given if isinstance(given, str) else content_key(given)) for name, given in self.grammars
        ]
        others += [joined(name, content_key(given)) for name, given in self.terminals]
        parts = (self.source, self.start, self.lexer, self.json_options, self.captured, self.dialect)
        return joined("lark", parts, *others)

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        return compile_lark_source(
            self.source,
            vocabulary,
            self.start,
            self.lexer,
            json_options=self.json_options,
            captures=self.captured,
            dialect=self.dialect,
            grammars=dict(self.grammars),
            terminals=dict(self.terminals),
        )

    def instruction(self) -> str:
        """Asks for a text of the grammar and shows it."""
        return f"Answer with a text of this grammar (Lark):\n{load_text(self.source)[0]}"


@dataclass(frozen=True)
class GbnfConstraint(TextConstraint):
    """Text of a GBNF grammar. Attributes as ``compile_gbnf`` takes them; ``captured``: its ``captures`` in pairs;
    ``names``: special tokens that are meant where a literal holds their names."""

    source: str | Path = field(repr=False)
    start: str = "root"
    max_repetitions: int | None = None
    captured: Captured = ()
    dialect: GbnfDialect = "llama.cpp"
    terminals: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    names: frozenset[str] = field(default=frozenset(), repr=False)

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        if self.names:
            return compile_naming(self.dialect, load_text(self.source)[0], self.names, vocabulary, self.captured)
        return compile_gbnf(
            self.source,
            vocabulary,
            self.start,
            max_repetitions=self.max_repetitions,
            captures=self.captured,
            dialect=self.dialect,
            terminals=dict(self.terminals),
        )

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        if isinstance(self.source, Path):
            return None
        others = [joined(name, content_key(given)) for name, given in self.terminals]
        about = (self.source, self.start, self.max_repetitions, self.captured, self.dialect, self.names)
        return joined("gbnf", about, *others)

    def instruction(self) -> str:
        """Asks for a text of the grammar and shows it."""
        name = "GBNF" if self.dialect == "llama.cpp" else "XGrammar's EBNF"
        return f"Answer with a text of this grammar ({name}):\n{load_text(self.source)[0]}"


@dataclass(frozen=True)
class WrittenGrammar(TextConstraint):
    """A grammar in the notation that its text is written in, which is told when it is compiled: with ``::=`` XGrammar's
    EBNF, else llama.cpp's GBNF; without, Lark's, else llguidance's. The first that reads it; where none does, the error
    is the first's. ``names``: special tokens that are meant where a literal of GBNF or EBNF holds their names.
    ``captured``: as of the others.
    """

    text: str = field(repr=False)
    names: frozenset[str] = field(default=frozenset(), repr=False)
    captured: Captured = ()

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        (first, reads_first), (second, reads_second) = self._readings()
        try:
            return first._compiled(vocabulary)
        except ConstraintError as error:
            if getattr(error, "budget", None) == "seconds" or reads_first() or not reads_second():
                raise
        return second._compiled(vocabulary)

    def _readings(self) -> list[tuple[TextConstraint, Callable[[], bool]]]:
        """Constraints that it may be, and what tells whether each can be read."""
        from structgen.core.grammars.dialects.llguidance.reader import read_llguidance
        from structgen.core.grammars.gbnf import read_gbnf
        from structgen.core.grammars.lark_reader import read_lark

        text, captured = self.text, self.captured
        if "::=" in text:
            return [
                (
                    GbnfConstraint(text, dialect="xgrammar", names=self.names, captured=captured),
                    lambda: _reads(read_gbnf, text, dialect="xgrammar"),
                ),
                (GbnfConstraint(text, names=self.names, captured=captured), lambda: _reads(read_gbnf, text)),
            ]
        return [
            (LarkConstraint(text, captured=captured), lambda: _reads(read_lark, text)),
            (LarkConstraint(text, dialect="llguidance", captured=captured), lambda: _reads(read_llguidance, text)),
        ]

    def instruction(self) -> str:
        """Asks for a text of the grammar and shows it."""
        name = "EBNF" if "::=" in self.text else "Lark"
        return f"Answer with a text of this grammar ({name}):\n{self.text}"


@dataclass(frozen=True)
class RegexConstraint(TextConstraint):
    """Text that matches an expression as a whole. Attributes as ``compile_regex`` takes them; ``names``: special tokens
    that are meant where a literal run of the expression (of Python) is their name."""

    pattern: str = field(repr=False)
    syntax: Syntax = "python"
    names: frozenset[str] = field(default=frozenset(), repr=False)

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        if self.names:
            return compile_naming("regex", self.pattern, self.names, vocabulary)
        return compile_regex(self.pattern, vocabulary, self.syntax)

    def instruction(self) -> str:
        """Asks for a text that matches and shows the expression."""
        return f"Answer with a text that matches this regular expression:\n{self.pattern}"


@dataclass(frozen=True)
class ChoiceConstraint(TextConstraint):
    """One of some texts."""

    options: tuple[str, ...] = field(repr=False)

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        return compile_choice(self.options, vocabulary)

    def instruction(self) -> str:
        """Asks for one of the texts and lists them."""
        return "Answer with exactly one of these texts:\n" + "\n".join(self.options)


def lark(
    source: str | Path,
    start: str = "start",
    lexer: str = "dynamic",
    *,
    json_options: JsonOptions | None = None,
    captures: CapturesOption = (),
    dialect: LarkDialect = "lark",
    grammars: Mapping[str, Any] | None = None,
    terminals: Terminals | None = None,
    **unknown: Never,
) -> LarkConstraint:
    """Text of a Lark grammar (its text, or a path); see ``compile_lark``. ``grammars`` are texts or constraints."""
    if unknown:
        refuse_lark_options(unknown, LARK_OPTIONS)
    if lexer not in LEXERS:
        refuse_lexer(lexer)
    others, given = tuple((grammars or {}).items()), _checked_terminals(terminals)
    captured = checked_captures(captures)
    return LarkConstraint(named_file(source), start, lexer, json_options, captured, dialect, others, given)


def gbnf(
    source: str | Path,
    start: str = "root",
    *,
    max_repetitions: int | None = None,
    captures: CapturesOption = (),
    dialect: GbnfDialect = "llama.cpp",
    terminals: Terminals | None = None,
) -> GbnfConstraint:
    """Text of a GBNF grammar (its text, or a ``Path``), or of one in XGrammar's EBNF; see ``compile_gbnf``."""
    given = _checked_terminals(terminals)
    return GbnfConstraint(source, start, max_repetitions, checked_captures(captures), dialect, given)


def _checked_terminals(given: Terminals | None) -> tuple[tuple[str, Any], ...]:
    if not (given is None or isinstance(given, Mapping)):
        raise OptionsError(
            f"terminals are given by their names, in a dict, not as {type(given).__name__}",
            option="terminals", value=given,
        )  # fmt: skip
    return tuple((given or {}).items())


def regex(pattern: str, syntax: Syntax = "python") -> RegexConstraint:
    """Text that matches a regular expression as a whole; see ``compile_regex``."""
    return RegexConstraint(pattern, syntax)


def compiled_regex(pattern: re.Pattern[Any]) -> RegexConstraint:
    """The same of ``re.compile(...)``, with its flags.

    Raises:
        ConstraintError: an expression for bytes.
    """
    if not isinstance(pattern.pattern, str):
        raise ConstraintError(f"Outputs are text; {pattern!r:.100} is an expression for bytes.")
    letters = "".join(letter for letter, flag in _FLAGS.items() if pattern.flags & flag)
    return RegexConstraint(f"(?{letters}){pattern.pattern}" if letters else pattern.pattern)


def choice(options: Iterable[str]) -> ChoiceConstraint:
    """One of these texts; see ``compile_choice``.

    Raises:
        ConstraintError: something is no text, or there is none.
    """
    return ChoiceConstraint(tuple(choice_texts(options)))


def _reads(read: Callable[..., Any], text: str, **options: Any) -> bool:
    """Whether a grammar can be read."""
    try:
        read(text, **options)
    except ConstraintError:
        return False
    return True


_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
