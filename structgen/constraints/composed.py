"""Constraints that hold others, as values: tagged text and JSON lines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from referencing import Registry

from structgen.compilers import compile_json_lines, compile_tag_dispatch
from structgen.constraints.base import Constraint
from structgen.constraints.cache import COMPILED, content_key, joined
from structgen.constraints.json import JsonSchemaConstraint, as_constraint, json_schema
from structgen.engines.capture import Captures, LazyCaptures
from structgen.engines.captures.capturing import captures_of
from structgen.engines.composed.json_lines import check_lines
from structgen.engines.composed.tag_dispatch import FreeText, Mark, Tag, check_options, check_tags
from structgen.engines.protocols import Grammar
from structgen.errors import ConstraintError, GenerationError
from structgen.options import JsonOptions
from structgen.vocabulary.special_tokens import SpecialToken
from structgen.vocabulary.vocabulary import TextVocabulary, Vocabulary

# Outputs are taken apart by matchers over bytes.
_BYTES = TextVocabulary()


@dataclass(frozen=True)
class TagPart:
    """A constrained part of tagged text.

    Attributes:
        trigger: the string that began it, or the name of the special token.
        value: what its constraint makes of its text.
        text: its text, without trigger and closing string.
        captures: the named parts of its text.
    """

    trigger: str
    value: Any
    text: str
    captures: Captures = field(default_factory=dict, repr=False, compare=False)


Parts: TypeAlias = "list[str | TagPart]"


@dataclass(frozen=True)
class TagDispatch:
    """Free text in which triggers begin constrained parts. Make it with ``tag_dispatch``.

    Attributes:
        tags: trigger, closing string or token ("" for none) and constraint of each tag.
        min_uses, max_uses, stop, free_text: see ``compile_tag_dispatch``.
    """

    tags: tuple[tuple[Mark, Mark, Constraint], ...]
    min_uses: int
    max_uses: int | None
    stop: Mark | None
    free_text: FreeText

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The ``ComposedGrammar`` over ``vocabulary``; a few are kept for the process.

        Raises:
            ConstraintError: what compiling the parts' constraints raises.
        """

        def build() -> Any:
            return compile_tag_dispatch(
                {(tag[0], tag[1]): part for tag, part in zip(self.tags, self._parts(vocabulary), strict=True)},
                vocabulary,
                min_uses=self.min_uses,
                max_uses=self.max_uses,
                stop=self.stop,
                free_text=self.free_text,
            )

        return COMPILED.get(joined(self.content_key(), vocabulary), build)

    def content_key(self) -> Hashable:
        """See `structgen.constraints.cache.content_key`."""
        counts = (self.min_uses, self.max_uses, self.stop, self.free_text)
        tags = [joined(trigger, end, content_key(constraint)) for trigger, end, constraint in self.tags]
        return joined("tags", counts, *tags)

    def _parts(self, vocabulary: Vocabulary) -> list[Grammar]:
        """The parts' grammars, each with what delimits, or the others name, named where it would be text in it.

        Raises:
            GrammarError: a part names a token by id, so that its text cannot be taken apart.
        """
        marks = [mark for tag in self.tags for mark in tag[:2]] + [self.stop]
        tokens = [mark for mark in marks if isinstance(mark, SpecialToken)]
        own = [] if isinstance(vocabulary, TextVocabulary) else [vocabulary.id_of(token) for token in tokens]
        within = vocabulary
        while True:
            parts = [constraint.compile(within) for _, _, constraint in self.tags]
            wanted = vocabulary.within(
                vocabulary.naming([*own, *(token for part in parts for token in part.vocabulary.named)])
            )
            if wanted.named == within.named:
                break
            within = wanted
        for (_, _, constraint), part in zip(self.tags, parts, strict=True):
            if part.vocabulary.named - within.named:
                constraint.compile(_BYTES)  # so will `parse`: what text cannot show is refused before it is written
        return parts

    def parse(self, text: str) -> Parts:
        """Free text and parts in the order of the text, without triggers, closing and stop strings.

        Empty free text is left out. A part that can end in several places (a number) is as long as it can be.

        Raises:
            GenerationError: the text is not as described, or the constraint of a part refuses its value.
        """
        found = self._read(text.encode(errors="replace"))
        if found is None:
            raise GenerationError(f"The output is no tagged text as described: {text[:200]!r}")
        return [
            piece if isinstance(piece, str) else _part(piece[0], piece[1], piece[0][2].parse(piece[1]))
            for piece in found
        ]

    def parse_partial(self, text: str) -> Parts:
        """As ``parse`` of unfinished text; an unfinished part has the value of its constraint's ``parse_partial``.

        Free text at the end may hold the first characters of a trigger.
        """
        data, at = text.encode(errors="replace"), 0
        parts: Parts = []
        while True:
            free, tag = self._next(data, at)
            if free > at:
                parts.append(data[at:free].decode(errors="ignore"))
            if tag is None:
                return parts
            begin = free + len(_data(tag[0]))
            ends, is_open = _ends(tag, data, begin)
            if is_open or not ends:
                inside = data[begin:].decode(errors="ignore")
                return [*parts, _part(tag, inside, tag[2].parse_partial(inside), is_finished=False)]
            inside = data[begin : ends[-1]].decode()
            parts.append(_part(tag, inside, tag[2].parse(inside)))
            at = ends[-1] + len(_data(tag[1]))

    def captures(self, text: str) -> Captures:
        """The named parts of all parts of a text, in its order.

        Raises:
            GenerationError: it is no tagged text as described. CapturesTooComplexError: see there.
        """
        return captures_of(self.compile(_BYTES), text.encode(errors="replace"))

    def instruction(self) -> str:
        """Says which strings begin a part, and what each part must be."""
        lines = ["Answer in text with parts of these forms:"]
        for trigger, end, constraint in self.tags:
            told = constraint.instruction()
            lines.append(f"{trigger}...{end}" + (f" where the dots are as follows. {told}" if told else ""))
        if self.min_uses or self.max_uses is not None:
            most = "" if self.max_uses is None else f" and at most {self.max_uses}"
            lines.append(f"Write at least {self.min_uses}{most} such parts.")
        if self.stop is not None:
            lines.append(f"End with {self.stop}")
        return "\n".join(lines)

    # --- reading an output ---
    def _read(self, data: bytes) -> list[Any] | None:
        """Free text, and (tag, text) of parts; depth first over the places where parts can end, the last one first."""
        waiting: list[tuple[int, int, Any]] = [(0, 0, None)]  # place, parts before it, (what was before it, the last)
        while waiting:
            at, used, pieces = waiting.pop()
            free, tag = self._next(data, at)
            if free > at:
                if self.free_text == "none" or (self.free_text == "before" and used == self.max_uses):
                    continue
                pieces = pieces, data[at:free].decode()
            if tag is not None and used != self.max_uses:
                begin = free + len(_data(tag[0]))
                for end in _ends(tag, data, begin)[0]:
                    after = end + len(_data(tag[1]))
                    if after <= len(data):
                        waiting.append((after, used + 1, (pieces, (tag, data[begin:end].decode()))))
            elif tag is None and used >= self.min_uses and data[free:] == _data(self.stop or ""):
                return _in_order(pieces)
        return None

    def _next(self, data: bytes, at: int) -> tuple[int, tuple[Mark, Mark, Constraint] | None]:
        """Where free text ends, and the tag whose trigger follows (None: the stop string, or nothing)."""
        found: list[tuple[int, int, Any]] = []  # end of the string, its start, the tag
        for tag in self.tags:
            start = data.find(_data(tag[0]), at)
            found += [(start + len(_data(tag[0])), start, tag)] if start >= 0 else []
        if self.stop is not None and (start := data.find(_data(self.stop), at)) >= 0:
            found.append((start + len(_data(self.stop)), start, None))
        _, start, first = min(found, key=lambda entry: entry[0], default=(0, len(data), None))
        return start, first


def _part(tag: tuple[Mark, Mark, Constraint], text: str, value: Any, *, is_finished: bool = True) -> TagPart:
    def find() -> Captures:
        return captures_of(tag[2].compile(_BYTES), text.encode(), is_finished=is_finished)

    return TagPart(str(tag[0]), value, text, LazyCaptures(find))


def _data(mark: Mark) -> bytes:
    """What text shows of a mark."""
    return str(mark).encode()


def _ends(tag: tuple[Mark, Mark, Constraint], data: bytes, begin: int) -> tuple[list[int], bool]:
    """Where a part that begins at ``begin`` can end, ascending, and whether more of it may follow the data.

    The closing string is behind each end, as far as the data goes.
    """
    closing = _data(tag[1])
    matcher = tag[2].compile(_BYTES).matcher()
    ends = []
    for at in range(begin, len(data) + 1):
        rest = data[at : at + len(closing)]
        if matcher.is_accepting() and (rest == closing or (at + len(rest) == len(data) and closing.startswith(rest))):
            ends.append(at)
        if at < len(data) and not matcher.accept_bytes(data[at : at + 1]):
            return ends, False
    return ends, bool(matcher.next_bytes().any())


def _in_order(pieces: Any) -> list[Any]:
    found = []
    while pieces is not None:
        pieces, piece = pieces
        found.append(piece)
    return found[::-1]


def tag_dispatch(
    tags: Mapping[Tag, Any],
    *,
    min_uses: int = 0,
    max_uses: int | None = None,
    stop: Mark | None = None,
    free_text: FreeText = "anywhere",
    json_options: JsonOptions | None = None,
) -> TagDispatch:
    """Free text in which triggers begin constrained parts, such as tool calls; its value is a list of both.

    Args:
        tags: constraints (or what ``json_schema`` takes) by trigger, or by trigger and the string that closes the part:
            ``{("<tool>", "</tool>"): schema}``. Strings, or special tokens by name, which text shows by it.
        min_uses, max_uses, stop, free_text: see ``compile_tag_dispatch``.
        json_options: how JSON may be spelled where a tag is given as what ``json_schema`` takes.

    Raises:
        ConstraintError: no tags, an empty or malformed string, one that holds another, or a bad constraint.
        OptionsError: counts that cannot be met, or another ``free_text``.
    """
    check_options(min_uses, max_uses, free_text)
    checked = []
    for (trigger, end), source in zip(check_tags(tags, stop), tags.values(), strict=True):
        constraint = as_constraint(source, json_options)
        if constraint is None:
            raise ConstraintError(f"the tag {trigger!r} has no constraint; for any JSON value use True")
        _check_named(trigger, end, stop)
        checked.append((trigger, end, constraint))
    return TagDispatch(tuple(checked), min_uses, max_uses, stop, free_text)


def _check_named(*marks: Mark | None) -> None:
    """Raise ConstraintError where a special token has no name that text would show."""
    for mark in marks:
        if isinstance(mark, SpecialToken) and not isinstance(mark.token, str):
            raise ConstraintError(
                f"SpecialToken({mark.token}) has no name to find it by in the text of an output; give the token's "
                "name (compile_tag_dispatch takes ids)"
            )


@dataclass(frozen=True)
class JsonLines:
    """JSON lines. Make it with ``json_lines``.

    Attributes:
        item: the constraint of each line.
        min_lines, max_lines: see ``compile_json_lines``.
    """

    item: JsonSchemaConstraint
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
        """See `structgen.constraints.cache.content_key`."""
        return joined("lines", (self.min_lines, self.max_lines), self.item.content_key())

    def parse(self, text: str) -> list[Any]:
        """The values.

        Raises:
            GenerationError: a line is no JSON, or the type's own validators refuse it.
        """
        return [self.item.parse(line) for line in text.split("\n") if line]

    def parse_partial(self, text: str) -> list[Any]:
        """The values so far, the last one as far as it goes."""
        *whole, last = text.split("\n")
        unfinished = self.item.parse_partial(last)
        return [*map(self.item.parse, whole), *([] if unfinished is None else [unfinished])]

    def instruction(self) -> str:
        """Asks for JSON lines and shows the schema."""
        most = "" if self.max_lines is None else f", at most {self.max_lines}"
        least = f", at least {self.min_lines}" if self.min_lines else ""
        return f"Answer with one JSON value a line{least}{most}. {self.item.instruction()}"


def json_lines(
    source: Any,
    options: JsonOptions | None = None,
    *,
    min_lines: int = 0,
    max_lines: int | None = None,
    registry: Registry[Any] | None = None,
) -> JsonLines:
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
