"""Constraints united and one after the other, as values: ``a | b`` and ``a + b``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from structgen.core.compilers import compile_choice, compile_intersection
from structgen.core.constraints.base import Constraint, instruction_of, is_constraint, settled_of
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.constraints.parts import BYTES, compile_together
from structgen.core.engines.capture import Captures
from structgen.core.engines.captures.capturing import captures_of, with_captures
from structgen.core.engines.captures.ends import text_ends
from structgen.core.engines.composed.grammar import embed
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.core.regex.dfa import empty
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, GenerationError


class Combinable(ABC):
    """What constraints of this library have in common: they unite by ``|``, follow each other by ``+``, and name parts.

    The other operand is a constraint, or a string, which stands for itself.
    """

    @abstractmethod
    def compile(self, vocabulary: Vocabulary) -> Any:
        """See `structgen.core.constraints.base.Constraint.compile`."""

    def captures(self, text: str) -> Captures:
        """The named parts of a text of the constraint, wherever it comes from; none where no grammar in it names any.

        Raises:
            GenerationError: it is no such text. CapturesTooComplexError: see there.
        """
        return captures_of(self.compile(BYTES), text.encode(errors="replace"))

    def __or__(self, other: Constraint | str) -> UnionConstraint:
        return _combined(UnionConstraint, self, other)

    def __ror__(self, other: Constraint | str) -> UnionConstraint:
        return _combined(UnionConstraint, other, self)

    def __add__(self, other: Constraint | str) -> ConcatConstraint:
        return _combined(ConcatConstraint, self, other)

    def __and__(self, other: Constraint | str) -> IntersectionConstraint:
        return _combined(IntersectionConstraint, self, other)

    def __rand__(self, other: Constraint | str) -> IntersectionConstraint:
        return _combined(IntersectionConstraint, other, self)

    def __radd__(self, other: Constraint | str) -> ConcatConstraint:
        return _combined(ConcatConstraint, other, self)


@dataclass(frozen=True)
class _Exactly(Combinable):
    """This text. Its value is the text."""

    text: str

    def compile(self, vocabulary: Vocabulary) -> Grammar:
        """The grammar of one text."""
        return compile_choice([self.text], vocabulary)

    def parse(self, text: str) -> str:
        """The text."""
        return text

    def parse_partial(self, text: str) -> str:
        """The text so far."""
        return text

    def instruction(self) -> str:
        """Shows the text."""
        return f"Write exactly this text: {self.text}"


@dataclass(frozen=True)
class _Combination(Combinable):
    """Constraints that make a constraint.

    Attributes:
        parts: the constraints; none of them is of the same kind as this one.
    """

    parts: tuple[Constraint, ...]
    _name: ClassVar[str]

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The grammar over ``vocabulary``; a few are kept for the process.

        Raises:
            ConstraintError: what compiling the parts raises.
        """
        return COMPILED.get(joined(self.content_key(), vocabulary), lambda: self._compiled(vocabulary))

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        return joined(self._name, *map(content_key, self.parts))

    @abstractmethod
    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        """The compiled form, made anew."""


class _Embedding(_Combination):
    """Constraints whose grammars are embedded in one, as its terminals."""

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        numbers = range(len(self.parts))
        terminals = tuple(Terminal(f"PART_{number}", empty()) for number in numbers)
        source = ContextFreeGrammar(terminals, ("start",), self._rules(), 0)
        parts = compile_together(self.parts, vocabulary)
        return with_captures(embed(source, dict(zip(numbers, parts, strict=True)), vocabulary))

    @abstractmethod
    def _rules(self) -> tuple[Rule, ...]:
        """The rules of the grammar around, whose terminals are the parts."""


@dataclass(frozen=True)
class UnionConstraint(_Embedding):
    """A text of any of some constraints. Make it with ``a | b`` or ``union``."""

    _name = "union"

    def _rules(self) -> tuple[Rule, ...]:
        return tuple(Rule(0, (~number,)) for number in range(len(self.parts)))

    def parse(self, text: str) -> Any:
        """The value of the first constraint whose grammar has the text.

        Raises:
            GenerationError: none has it, or the constraint refuses the value.
        """
        for part in self.parts:
            matcher = part.compile(BYTES).matcher()
            if matcher.accept_bytes(text.encode(errors="replace")) and matcher.is_accepting():
                return part.parse(text)
        raise GenerationError(f"No constraint of the union allows the output: {text[:200]!r}", text=text)

    def parse_partial(self, text: str) -> Any:
        """The value, as far as it goes, of the first constraint that has a text that begins so; None if none has."""
        for part in self.parts:
            if part.compile(BYTES).matcher().accept_bytes(text.encode(errors="replace")):
                return part.parse_partial(text)
        return None

    def instruction(self, form: SchemaForm = "schema") -> str:
        """Says that it is one of these, and what each is."""
        instructions = [text for part in self.parts if (text := instruction_of(part, form))]
        return "\n".join(["Answer in one of these ways:", *(f"{i}. {each}" for i, each in enumerate(instructions, 1))])


@dataclass(frozen=True)
class ConcatConstraint(_Embedding):
    """A text of each of some constraints, one after the other. Make it with ``a + b`` or ``concat``."""

    _name = "concat"

    def _rules(self) -> tuple[Rule, ...]:
        return (Rule(0, tuple(~number for number in range(len(self.parts)))),)

    def parse(self, text: str) -> tuple[Any, ...]:
        """The value of each part. Of several ways to cut the text, the first part is as long as it can be, then the
        second, and so on.

        Raises:
            GenerationError: the text is not as described, or a constraint refuses its value.
        """
        data = text.encode(errors="replace")
        cuts = _cuts(self.parts, data, is_whole=True)
        if not cuts:
            raise GenerationError(
                f"The output is not a text of the first constraint followed by texts of the next ones: {text[:200]!r}",
                text=text,
            )
        return tuple(part.parse(data[a:b].decode()) for part, (a, b, _) in zip(self.parts, cuts, strict=True))

    def parse_partial(self, text: str) -> tuple[Any, ...]:
        """As ``parse`` of unfinished text; the last value there is is as far as it goes."""
        data = text.encode(errors="replace")
        values = []
        for part, (begin, end, is_whole) in zip(self.parts, _cuts(self.parts, data, is_whole=False), strict=False):
            piece = data[begin:end].decode(errors="ignore")
            values.append(settled_of(part, piece) if is_whole else part.parse_partial(piece))
        return tuple(values)

    def instruction(self, form: SchemaForm = "schema") -> str:
        """Says what the parts are, in their order."""
        instructions = [text for part in self.parts if (text := instruction_of(part, form))]
        return "\n".join(
            [
                "Answer with these parts, one right after the other:",
                *(f"{i}. {each}" for i, each in enumerate(instructions, 1)),
            ]
        )


@dataclass(frozen=True)
class IntersectionConstraint(_Combination):
    """A text that all of some constraints allow. Make it with ``a & b`` or ``intersect``. Its value is the first's.

    It is compiled as one grammar: see ``intersect`` for what can be, and for the errors.
    """

    _name = "intersection"

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        from structgen.core.constraints.filtered_names import compile_filtered_names  # deferred: it loads an engine

        parts = [compile_together([part], vocabulary)[0] for part in self.parts]
        named = compile_filtered_names(self.parts, parts, vocabulary)
        return named or compile_intersection(parts, vocabulary, [type(part).__name__ for part in self.parts])

    def parse(self, text: str) -> Any:
        """The value of the first part."""
        return self.parts[0].parse(text)

    def parse_partial(self, text: str) -> Any:
        """The value of the first part, as far as it goes."""
        return self.parts[0].parse_partial(text)

    def instruction(self, form: SchemaForm = "schema") -> str:
        """Says what each part asks for."""
        asked = [text for part in self.parts if (text := instruction_of(part, form))]
        return "\n".join(
            ["Answer with one text that does all of this:", *(f"{i}. {t}" for i, t in enumerate(asked, 1))]
        )


def union(*constraints: Constraint | str) -> UnionConstraint:
    """Any of some constraints: ``a | b``. Strings stand for themselves.

    The value of an output is that of the first constraint whose grammar has it.

    Raises:
        ConstraintError: no constraints, or something that is none.
    """
    return UnionConstraint(_parts(UnionConstraint, constraints))


def concat(*constraints: Constraint | str) -> ConcatConstraint:
    """Constraints one after the other: ``a + b``. Strings stand for themselves.

    The value of an output is the tuple of their values; of several ways to cut the text, the one in which the first
    part is as long as it can be, then the second, and so on.

    Raises:
        ConstraintError: no constraints, or something that is none.
    """
    return ConcatConstraint(_parts(ConcatConstraint, constraints))


def intersect(*constraints: Constraint | str) -> IntersectionConstraint:
    """What all of some constraints allow: ``a & b``. Strings stand for themselves. The value is the first's.

    One of the constraints may be a grammar with recursion (Lark with the dynamic lexer, GBNF, EBNF); the others are
    regular: expressions, choices, phrases, grammars without recursion, and what unites or joins these. Beside names
    (``one_of``, a choice of 1,000 options or more) any constraints may be: of the names those stay that all allow.

    Raises:
        ConstraintError: no constraints, or something that is none; when compiled: JSON, tools, contextual Lark and
            special tokens, which are not intersected, and two grammars with recursion, for which it is undecidable.
        EmptyLanguageError: when compiled: no text is allowed by all.
        TooComplexError: when compiled: the grammar of what all allow is too large.
    """
    return IntersectionConstraint(_parts(IntersectionConstraint, constraints))


def _combined(kind: Any, *operands: Any) -> Any:
    """The combination, or NotImplemented where an operand is no constraint."""
    return kind(_parts(kind, operands)) if all(map(_is_operand, operands)) else NotImplemented


def _is_operand(value: Any) -> bool:
    return isinstance(value, str) or is_constraint(value)


def _parts(kind: type[_Combination], constraints: Sequence[Constraint | str]) -> tuple[Constraint, ...]:
    """The constraints as parts of a combination, those of the same kind taken apart."""
    parts: list[Constraint] = []
    for constraint in constraints:
        if not _is_operand(constraint):
            raise ConstraintError(
                f"{constraint!r:.100} is no constraint; make one of a schema or type with json_schema(...)"
            )
        if isinstance(constraint, str):
            if any(0xD800 <= ord(c) < 0xE000 for c in constraint):
                raise ConstraintError(f"{constraint!r:.100} holds half of a surrogate pair, which is not a character")
            parts.append(_Exactly(constraint))
        elif isinstance(constraint, kind):
            parts += constraint.parts
        else:
            parts.append(constraint)
    if not parts:
        raise ConstraintError("at least one constraint is needed")
    return tuple(parts)


# --- reading an output ---
_Cut: TypeAlias = tuple[int, int, bool]
"""Where a piece begins and ends, and whether it is whole."""


def _cuts(constraints: Sequence[Constraint], data: bytes, *, is_whole: bool) -> list[_Cut]:
    """The pieces of data that are texts of constraints, one after the other; none where there is no such cut.

    Depth first, the longest piece first, and each place once for each constraint.

    Args:
        constraints: of the pieces.
        data: the text.
        is_whole: whether the text is finished; else its last piece may go on.
    """
    chosen: list[_Cut] = []
    waiting = [_pieces(constraints[0], data, 0, is_whole=is_whole)]
    seen: set[tuple[int, int]] = set()
    while waiting:
        piece = next(waiting[-1], None)
        if piece is None:
            waiting.pop()
            del chosen[-1:]
            continue
        number, end = len(waiting), piece[1]
        if end == len(data) and (not is_whole or number == len(constraints)):
            return [*chosen, piece]
        if number < len(constraints) and (number, end) not in seen:
            seen.add((number, end))
            chosen.append(piece)
            waiting.append(_pieces(constraints[number], data, end, is_whole=is_whole))
    return []


def _pieces(constraint: Constraint, data: bytes, begin: int, *, is_whole: bool) -> Iterator[_Cut]:
    """Texts of a constraint from a place on, the longest first; before them the one that goes on after the data."""
    ends, is_open = text_ends(constraint.compile(BYTES), data, begin)
    if is_open and not is_whole:
        yield begin, len(data), False
    for end in reversed(ends):
        yield begin, end, True
