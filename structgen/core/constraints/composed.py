"""Constraints that hold others, as values: tagged text and JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, overload

from structgen.core.compilers import compile_json_lines
from structgen.core.constraints.base import Constraint, T, instruction_of, settled_of, value_of
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.constraints.combined import Combinable
from structgen.core.constraints.json import JsonSchemaConstraint, as_constraint, json_schema
from structgen.core.constraints.parts import BYTES, compile_together
from structgen.core.constraints.sources import Source
from structgen.core.constraints.tagged_text import FoundPart, read_parts
from structgen.core.engines.capture import Captures, LazyCaptures
from structgen.core.engines.captures.capturing import captures_of, with_captures
from structgen.core.engines.composed.tag_dispatch import compile_rules
from structgen.core.engines.composed.tags import FreeText, Mark, TagRules, Tags, check_lines, pairs_of, tag_rules
from structgen.core.engines.protocols import Grammar
from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.core.vocabulary.special_tokens import SpecialToken
from structgen.core.vocabulary.vocabulary import TextVocabulary, Vocabulary
from structgen.errors import ConstraintError, GenerationError
from structgen.options import JsonOptions

if TYPE_CHECKING:
    from referencing import Registry

    from structgen.core.constraints.sources import TypeForm


@dataclass(frozen=True)
class TagPart:
    """A constrained part of tagged text.

    Attributes:
        trigger: the string that began it, or the name of the special token.
        value: what its constraint makes of its text.
        text: its text, without what begins and closes it.
        tag: the number of its tag, in the order given: tags may begin alike.
    """

    trigger: str
    value: Any
    text: str
    tag: int = field(default=0, compare=False)
    captures: Captures = field(default_factory=dict, repr=False, compare=False)


Parts: TypeAlias = "list[str | TagPart]"


@dataclass(frozen=True)
class TagDispatch(Combinable):
    """Free text in which triggers begin constrained parts. Make it with ``tag_dispatch``.

    Attributes:
        constraints: of the parts, by tag.
        rules: what delimits them, and where they may be.
    """

    constraints: tuple[Constraint, ...]
    rules: TagRules

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The grammar over ``vocabulary``; a few are kept for the process.

        Raises:
            ConstraintError: what compiling the parts' constraints raises.
        """

        def build() -> Any:
            return with_captures(compile_rules(self.rules, self._parts(vocabulary), vocabulary))

        return COMPILED.get(joined(self.content_key(), vocabulary), build)

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        return joined("tags", self.rules, *map(content_key, self.constraints))

    def _parts(self, vocabulary: Vocabulary) -> list[Grammar]:
        """The parts' grammars, each with what delimits, or the others name, named where it would be text in it.

        Raises:
            GrammarError: a part names a token by id, so that its text cannot be taken apart.
        """
        marks = [*(mark for tag in self.rules.tags for mark in tag), self.rules.stop, self.rules.separator]
        tokens = [mark for mark in marks if isinstance(mark, SpecialToken)]
        ids = [] if isinstance(vocabulary, TextVocabulary) else [vocabulary.id_of(token) for token in tokens]
        return compile_together(self.constraints, vocabulary, ids)

    def parse(self, text: str) -> Parts:
        """Free text and parts in the order of the text, without triggers, closing and stop strings.

        Empty free text is left out. Where parts can be told apart in several ways, the first is taken that reads the
        whole text, where tags are tried in their order, and a part is as long as it can be.

        Raises:
            GenerationError: the text is not as described, or the constraint of a part refuses its value.
        """
        pieces = read_parts(self.rules, self.constraints, text, is_whole=True)
        if pieces is None:
            raise GenerationError(f"The output is no tagged text as described: {text[:200]!r}", text=text)
        return self._valued(pieces, value_of)

    def parse_partial(self, text: str) -> Parts:
        """As ``parse`` of unfinished text; an unfinished part has the value of its constraint's ``parse_partial``.

        Free text at the end may hold the first characters of a trigger.
        """
        pieces = read_parts(self.rules, self.constraints, text, is_whole=False)
        return self._valued([text] if pieces is None else pieces, settled_of)

    def _valued(self, pieces: Iterable[str | FoundPart], closed: Callable[[Constraint, str], Any]) -> Parts:
        """Parts with their values; ``closed``: those of parts that are closed."""
        return [piece if isinstance(piece, str) else self._with_value(piece, closed) for piece in pieces]

    def _with_value(self, part: FoundPart, closed: Callable[[Constraint, str], Any]) -> TagPart:
        constraint = self.constraints[part.tag]
        value = constraint.parse_partial(part.text) if part.is_open else closed(constraint, part.text)

        def find() -> Captures:
            return captures_of(constraint.compile(BYTES), part.text.encode(), is_finished=not part.is_open)

        return TagPart(str(self.rules.tags[part.tag][0]), value, part.text, part.tag, LazyCaptures(find))

    def instruction(self, form: SchemaForm = "schema") -> str:
        """Says which strings begin a part, and what each part must be."""
        rules = self.rules
        lines = ["Answer in text with parts of these forms:"]
        if rules.free_text == "none":
            lines = ["Answer with parts of these forms:"]
        for (begin, end), constraint in zip(rules.tags, self.constraints, strict=True):
            inner = instruction_of(constraint, form)
            lines.append(f"{begin}...{end}" + (f" where the dots are as follows. {inner}" if inner else ""))
        if rules.min_uses or rules.max_uses is not None:
            most = "" if rules.max_uses is None else f" and at most {rules.max_uses}"
            lines.append(f"Write at least {rules.min_uses}{most} such parts.")
        if rules.separator is not None:
            lines.append(f"Write {rules.separator!s} between parts.")
        if rules.stop is not None:
            lines.append(f"End with {rules.stop}")
        return "\n".join(lines)


def tag_dispatch(
    tags: Tags[Any],
    *,
    min_uses: int = 0,
    max_uses: int | None = None,
    stop: Mark | None = None,
    free_text: FreeText = "anywhere",
    triggers: Iterable[Mark] | None = None,
    excludes: Iterable[str] = (),
    separator: Mark | None = None,
    json_options: JsonOptions | None = None,
) -> TagDispatch:
    """Free text in which triggers begin constrained parts, such as tool calls; its value is a list of both.

    Args:
        tags: constraints (or what ``json_schema`` takes) by what begins the part, or by that and the string that
            closes it: ``{("<tool>", "</tool>"): schema}``. Strings, or special tokens by name, which text shows by it.
            As pairs ``[(tag, constraint), ...]`` where tags are the same.
        min_uses, max_uses, stop, free_text, triggers, excludes, separator: see ``compile_tag_dispatch``.
        json_options: how JSON may be spelled where a tag is given as what ``json_schema`` takes.

    Raises:
        ConstraintError: no tags, an empty or malformed string, one that holds another, or a bad constraint.
        OptionsError: counts that cannot be met, another ``free_text``, or options that contradict each other.
    """
    pairs = list(pairs_of(tags))
    rules = tag_rules(
        [tag for tag, _ in pairs],
        min_uses=min_uses,
        max_uses=max_uses,
        stop=stop,
        free_text=free_text,
        triggers=triggers,
        excludes=excludes,
        separator=separator,
    )
    checked = []
    for (begin, _), (_, source) in zip(rules.tags, pairs, strict=True):
        constraint = as_constraint(source, json_options)
        if constraint is None:
            raise ConstraintError(f"the tag {begin!r} has no constraint; for any JSON value use True")
        checked.append(constraint)
    for mark in (*(mark for tag in rules.tags for mark in tag), rules.stop, rules.separator):
        if isinstance(mark, SpecialToken) and not isinstance(mark.token, str):
            raise ConstraintError(
                f"SpecialToken({mark.token}) has no name to find it by in the text of an output; give the token's "
                "name (compile_tag_dispatch takes ids)"
            )
    return TagDispatch(tuple(checked), rules)


@dataclass(frozen=True)
class JsonLines(Combinable, Generic[T]):
    """JSON lines. Make it with ``json_lines``.

    Attributes:
        item: the constraint of each line.
        min_lines, max_lines: see ``compile_json_lines``.
    """

    item: JsonSchemaConstraint[T]
    min_lines: int
    max_lines: int | None

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The ``ComposedGrammar`` over ``vocabulary``; a few are kept for the process.

        Raises:
            SchemaError: the schema is illegal, unsupported, unsatisfiable or too complex (subclasses say which).
        """
        item = self.item

        def build() -> Any:
            return compile_json_lines(
                item.schema,
                vocabulary,
                min_lines=self.min_lines,
                max_lines=self.max_lines,
                options=item.options,
                registry=item.registry,
            )

        return COMPILED.get(joined(self.content_key(), vocabulary), build)

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        return joined("lines", (self.min_lines, self.max_lines), self.item.content_key())

    def parse(self, text: str) -> list[T]:
        """The values.

        Raises:
            GenerationError: a line is no JSON, or the type's own validators refuse it.
        """
        return [self.item.parse(line) for line in text.split("\n") if line]

    def parse_partial(self, text: str) -> list[Any]:
        """The values so far, the last one as far as it goes."""
        *whole, last = text.split("\n")
        unfinished = self.item.parse_partial(last)
        return [*(settled_of(self.item, line) for line in whole), *([] if unfinished is None else [unfinished])]

    def instruction(self, form: SchemaForm = "schema") -> str:
        """Asks for JSON lines and shows the schema."""
        most = "" if self.max_lines is None else f", at most {self.max_lines}"
        least = f", at least {self.min_lines}" if self.min_lines else ""
        return f"Answer with one JSON value a line{least}{most}. {self.item.instruction(form)}"


@overload
def json_lines(
    source: Source[T],
    options: JsonOptions | None = None,
    *,
    min_lines: int = 0,
    max_lines: int | None = None,
    registry: Registry[Any] | None = None,
) -> JsonLines[T]: ...


@overload
def json_lines(
    source: TypeForm[T],
    options: JsonOptions | None = None,
    *,
    min_lines: int = 0,
    max_lines: int | None = None,
    registry: Registry[Any] | None = None,
) -> JsonLines[T]: ...


@overload
def json_lines(
    source: Any,
    options: JsonOptions | None = None,
    *,
    min_lines: int = 0,
    max_lines: int | None = None,
    registry: Registry[Any] | None = None,
) -> JsonLines[Any]: ...


def json_lines(
    source: Any,
    options: JsonOptions | None = None,
    *,
    min_lines: int = 0,
    max_lines: int | None = None,
    registry: Registry[Any] | None = None,
) -> Any:
    """JSON values of a schema or type, one a line; its value is the list of them.

    Args:
        source, options, registry: as ``json_schema`` takes them; ``whitespace`` must be "single" or "compact".
        min_lines, max_lines: how many there must and may be (None: any number).

    Raises:
        SchemaError, ConstraintError: as ``json_schema``.
        OptionsError: counts that cannot be met, or whitespace with line feeds.
    """
    item = json_schema(source, options, registry=registry)
    check_lines(min_lines, max_lines, item.options)
    return JsonLines(item, min_lines, max_lines)
