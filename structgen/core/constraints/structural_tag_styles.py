"""Styles of schemas in structural tags: arguments that are written one by one, and values without quotes.

Patterns are those of the models' chat templates. Engines read what stands in them by searching for what closes a value,
so no value holds that, not in the strings of JSON either.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from structgen.core.constraints.cache import COMPILED, joined
from structgen.core.constraints.combined import Combinable
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.engines.json.members import compile_without
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.named_tokens import split_names
from structgen.core.json_schema.dialects import BY_NAME, Dialect
from structgen.core.json_schema.pointers import ROOT
from structgen.core.json_schema.references import Resource, Resources, dialect_of
from structgen.core.tool_calls.arguments import ArgumentRules
from structgen.core.tool_calls.definitions import Tool
from structgen.core.tool_calls.format_shapes import LINE, NO_LINE
from structgen.core.tool_calls.grammar import START, GrammarBuilder
from structgen.core.tool_calls.nested_formats import COFL, MINIMAX_M3
from structgen.core.tool_calls.nested_rules import NestedRules
from structgen.core.tool_calls.patterns import (
    KEY,
    TYPE,
    VALUE,
    Marker,
    NestedArguments,
    Parameters,
    Pattern,
    Piece,
    changed,
    patterns_of,
)
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import SchemaError, UnsupportedSchemaError
from structgen.options import JsonOptions
from structgen.progress import waiting

MEMBER = "value"
_MEMBER_URI = "urn:structgen:value"
"""The member that holds the value where a schema is of a value, not of arguments."""


def _between(opening: Pattern, closing: str, *after: Piece) -> Parameters:
    """An argument between two texts, whatever its value is."""
    pattern = (*opening, VALUE, closing, *after)
    return Parameters(pattern, pattern, closing.strip("\n"), True)


def _flagged(blank: str) -> Parameters:
    """DeepSeek's arguments, which say whether the value is a string."""
    closing = f"</｜DSML｜{blank}parameter>"
    string, other = (
        (f'<｜DSML｜{blank}parameter name="', KEY, f'" string="{flag}">', VALUE, closing, LINE)
        for flag in ("true", "false")
    )
    return Parameters(string, other, closing, True)


def _typed() -> Parameters:
    """Kimi K3's arguments, which say the type of the value."""
    closing = "<|close|>argument<|sep|>"
    string, other = (
        ('<|open|>argument key="', KEY, '" type="', kind, '"<|sep|>', VALUE, closing) for kind in ("string", TYPE)
    )
    return Parameters(string, other, closing, True)


@dataclass(frozen=True)
class Style:
    """How arguments are written.

    Attributes:
        parameters: an argument.
        before, after: what stands before the first and after the last.
        takes_line: whether the line feed that the end of the tag begins with belongs to the last argument.
    """

    parameters: Parameters | NestedArguments
    before: Pattern = ()
    after: Pattern = ()
    takes_line: bool = False


STYLES = {
    "qwen_xml": Style(_between((NO_LINE, "<parameter=", KEY, ">"), "</parameter>")),
    "minimax_xml": Style(_between(('<parameter name="', KEY, '">'), "</parameter>", LINE)),
    "deepseek_xml": Style(_flagged("")),
    "deepseek_v4_1_xml": Style(_flagged(" ")),
    "glm_xml": Style(
        _between(("<arg_key>", KEY, "</arg_key>", NO_LINE, "<arg_value>"), "</arg_value>", NO_LINE), (NO_LINE,)
    ),
    "kimi_k3_xml": Style(_typed()),
    "cohere_xml": Style(COFL, (NO_LINE,)),
    "minimax_m3_xml": Style(MINIMAX_M3),
}
"""By name, where the tag around says nothing else."""
_LINES = ("<parameter=", KEY, ">\n")
_QWEN_LINES = Style(_between(_LINES, "\n</parameter>", LINE))
_QWEN_BLOCK = Style(_between(_LINES, "\n</parameter>", "\n"), (), (NO_LINE,), True)


def style_in(name: str, begin: str, ends: Sequence[str]) -> Style:
    """The style of a name inside a tag: Qwen's values are on lines of their own where the tag begins with a line."""
    if name != "qwen_xml" or not begin.endswith(">\n"):
        return STYLES[name]
    return _QWEN_BLOCK if ends and all(end.startswith("\n") for end in ends) else _QWEN_LINES


@dataclass(frozen=True)
class ArgumentTexts(Combinable):
    """Arguments one by one, or a value without quotes. Its value is the text.

    Attributes:
        style: how arguments are written.
        tool: whose arguments.
        is_value: whether it is the value of the argument ``MEMBER`` alone.
        options: how JSON in it may be spelled.
        names: special tokens that are meant where the style's texts hold their names.
    """

    style: Style
    tool: Tool
    is_value: bool
    options: JsonOptions
    names: frozenset[str]

    @waiting("compiling the tools")
    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        builder = GrammarBuilder(vocabulary)
        style, given = self.style, changed(self.style.parameters, self._marked)
        if isinstance(given, NestedArguments):
            symbols = NestedRules(builder, given, self.tool, self.options).symbols()
        else:
            given = replace(given, string=(VALUE,), other=(VALUE,)) if self.is_value else given
            rules = ArgumentRules(builder, given, self.tool, self.options, self.names)
            symbols = rules.value(MEMBER) if self.is_value else rules.symbols()
        builder.rule(START, *builder.pieces((*style.before, symbols, *style.after)))
        return builder.compile()

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The grammar over ``vocabulary``; a few are kept for the process.

        Raises:
            SchemaError: the schema cannot be used, or not be written so.
        """
        return COMPILED.get(joined(self.content_key(), vocabulary), lambda: self._compiled(vocabulary))

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        return "arguments", self

    def parse(self, text: str) -> str:
        """The text."""
        return text

    def parse_partial(self, text: str) -> str:
        """The text so far."""
        return text

    def instruction(self) -> str:
        """Shows the schema."""
        return f"Answer with arguments of this JSON Schema, one by one: {dict(self.tool.parameters)}"

    def _marked(self, pattern: Pattern) -> Pattern:
        """A pattern with special tokens where it holds names of these."""
        names = self.names
        result: list[Piece] = []
        for piece in pattern:
            if isinstance(piece, str):
                result += [Marker(part) if part in names else part for part in split_names(piece, names)]
            else:
                result.append(piece)
        return tuple(result)


@dataclass(frozen=True)
class JsonWithout(Combinable):
    """JSON of a schema in which no string and no key holds some texts. Its value is the text.

    Attributes:
        item: JSON of the schema.
        texts: what is not held.
    """

    item: JsonSchemaConstraint[Any]
    texts: tuple[str, ...]

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The grammar over ``vocabulary``; a few are kept for the process. Raises as that of the schema."""
        return COMPILED.get(
            joined(self.content_key(), vocabulary),
            lambda: compile_without(self.item.schema, self.texts, self.item.options, vocabulary),
        )

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        return joined("without", self.texts, self.item.content_key())

    def parse(self, text: str) -> Any:
        """The value."""
        return self.item.parse(text)

    def parse_partial(self, text: str) -> Any:
        """The value so far."""
        return self.item.parse_partial(text)

    def instruction(self) -> str:
        """Shows the schema."""
        return self.item.instruction()


def arguments(
    style: Style, schema: Any, options: JsonOptions, names: frozenset[str], ends: Sequence[str], excluded: Sequence[str]
) -> ArgumentTexts:
    """Arguments of a schema, or a value of one that is of no objects.

    Args:
        style: how arguments are written.
        schema: an object or a boolean.
        options: how JSON may be spelled.
        names: special tokens.
        ends: what the tag around ends with.
        excluded: what no string and no name holds.

    Raises:
        UnsupportedSchemaError: a style in which members of objects are written one by one, too, takes arguments alone,
            and no ``excluded``.
    """
    given = style.parameters
    default = BY_NAME[options.dialect]
    resources = Resources(schema, dialect_of(schema, default, None), default, None)
    is_value = _is_of_values(schema, resources.root, resources)
    if isinstance(given, Parameters):
        closing = ends[0] if is_value and ends else given.closing
        style = replace(style, parameters=replace(given, closing=closing, excluded=tuple(dict.fromkeys(excluded))))
    elif is_value or excluded:
        what = "excludes cannot be enforced" if excluded else "values that are no objects cannot be written"
        raise UnsupportedSchemaError(
            f"{what} in the style of a structural tag that writes members of objects one by one, too",
            hint="Use the style json, or say it in the schema.",
        )
    if is_value:
        schema = _as_member(schema, resources.root.dialect)
        style = replace(style, before=(), after=())
    anything: dict[str, Any] = {"type": "object"} if schema else {"not": {}}
    parameters = schema if isinstance(schema, dict) else anything
    tool = Tool("", parameters, {}, "", False, repr(parameters))
    held = frozenset(name for name in names if any(name in text for text in _texts(style, parameters)))
    return ArgumentTexts(style, tool, is_value, options, held)


def _texts(style: Style, schema: Any) -> list[str]:
    """The texts that may hold names of special tokens: of a style, and those that a schema lists."""
    result = [piece for pattern in patterns_of(style.parameters) for piece in pattern if isinstance(piece, str)]
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            result.append(part)
        elif isinstance(part, Mapping):
            todo += part.values()
        elif isinstance(part, list):
            todo += part
    return result


def _as_member(schema: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """The schema of an object with a value of a schema. That is a resource of its own: "#" in it means what it did."""
    whole = {word: schema[word] for word in ("$schema",) if word in schema}
    if dialect.overriding_ref and "$ref" in schema:  # which would hide the identifier
        others = {word: said for word, said in schema.items() if not dialect.is_effective(word)}
        schema = {**others, "allOf": [{"$ref": schema["$ref"]}]}
    member = {dialect.identifier: _MEMBER_URI, **schema}
    return whole | {"type": "object", "properties": {MEMBER: member}, "required": [MEMBER]}


def _is_of_values(schema: Any, around: Resource, resources: Resources, seen: tuple[Any, ...] = ()) -> bool:
    """Whether a schema is of values that are no objects, as far as its first words say, and what they refer to."""
    if not isinstance(schema, dict) or "properties" in schema or any(schema is one for one in seen):
        return False
    around = resources.enter(schema, ROOT, around)
    schema, seen = around.dialect.read_of(schema), (*seen, schema)

    def inner(part: Any, resource: Resource = around) -> bool:
        return _is_of_values(part, resource, resources, seen)

    kinds = schema.get("type")
    if kinds is not None:
        return "object" not in (kinds if isinstance(kinds, list) else [kinds])
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(listed, list):
        return not any(isinstance(value, dict) for value in listed)
    if isinstance(schema.get("$ref"), str):
        with suppress(SchemaError):  # which compiling it says
            target, _, resource = resources.resolve(schema["$ref"], around, ROOT)
            if inner(target, resource):
                return True
    if isinstance(schema.get("allOf"), list) and any(map(inner, schema["allOf"])):
        return True
    parts = schema.get("anyOf") or schema.get("oneOf")
    return isinstance(parts, list) and all(map(inner, parts))
