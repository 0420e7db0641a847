"""Which keywords refuse a document, or a text so far: those without which the schema allows it.

That is also the definition: keyword occurrence k forbids a text if and only if the schema without k allows it. So each
occurrence is silenced in turn, and the edited schema asked; where none helps by itself, a least set of them is looked
for (QuickXplain).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from structgen.core.answers.applied import applied
from structgen.core.answers.occurrences import (
    Occurrence,
    Path,
    anything_in,
    dialect_for,
    occurrences,
    responsible,
    without,
)
from structgen.core.answers.sources import schema_of
from structgen.core.json_schema.dialects import Dialect
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.lowering import Lowered
from structgen.core.json_text import loads_exact
from structgen.errors import (
    GenerationError,
    PatternError,
    SchemaError,
    TooComplexError,
    UnsatisfiableSchemaError,
)
from structgen.options import JsonOptions, checked_options

if TYPE_CHECKING:
    from referencing import Registry

MAX_TOGETHER = 64
"""Occurrences among which a set that helps together is looked for."""
MAX_EDITS = 600
"""Occurrences that are tried one by one; of texts that are not whole, `MAX_COMPILED`."""
MAX_COMPILED = 120


@dataclass(frozen=True)
class Reasons:
    """What forbids a text.

    Attributes:
        alone: occurrences each of which would do: without any of them the schema allows the text.
        together: where there is none, a least set without which it does.
    """

    alone: tuple[Occurrence, ...] = ()
    together: tuple[Occurrence, ...] = ()

    @property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """Those of the two that there are."""
        return self.alone or self.together

    def __bool__(self) -> bool:
        return bool(self.occurrences)


def reasons(
    constraint: Any,
    text: str,
    token: str = "",
    *,
    is_whole: bool | None = None,
    options: JsonOptions | None = None,
    registry: Registry[Any] | None = None,
) -> Reasons:
    """The keyword occurrences that refuse a document, or ``token`` after an output so far. Nothing, if it is allowed.

    Args:
        constraint: a schema, JSON text, file, Python type or tool definition.
        text: a whole document, or an output so far.
        token: what was to come next.
        is_whole: whether ``text`` is a whole document; None: where it is JSON and no token is given.
        options, registry: as of `structgen.compare`; any order of members and any whitespace is taken.

    Raises:
        SchemaError: the schema is malformed, or a text so far is asked of one that cannot be compiled.
    """
    schema = schema_of(constraint)
    options = replace(
        checked_options(options),
        key_order="any",
        whitespace="any",
        max_whitespace_run=None,
        string_escapes="any",
        max_number_length=None,
    )
    value = _value(text) if not token and is_whole is not False else _NO_VALUE
    if value is not _NO_VALUE:
        return refusing(schema, value, options, registry)
    data = (text + token).encode()
    return forbidding(schema, lambda edited: _takes(edited, data, options, registry), options, registry, MAX_COMPILED)


_NO_VALUE = object()


def _value(text: str) -> Any:
    try:
        return loads_exact(text)
    except GenerationError:
        return _NO_VALUE


def holds(schema: Any, value: Any, options: JsonOptions, registry: Registry[Any] | None) -> bool:
    """Whether a value is one of a schema's.

    Raises:
        SchemaError: it is malformed. PatternError, TooComplexError: a pattern in it cannot be read.
    """
    lowered = Lowered(schema, options, registry)
    return evaluate(lowered.root, value, lowered.refs)


def refusing(schema: Any, value: Any, options: JsonOptions, registry: Registry[Any] | None) -> Reasons:
    """The occurrences of a plain schema that refuse a value. Errors as `forbidding`."""
    return forbidding(
        schema,
        lambda edited: holds(edited, value, options, registry),
        options,
        registry,
        MAX_EDITS,
        lambda dialect: applied(schema, value, dialect),
    )


def _takes(schema: Any, data: bytes, options: JsonOptions, registry: Registry[Any] | None) -> bool:
    """Whether a text may begin so."""
    from structgen.core.engines.json.compiled import compile_json_schema  # a quarter of what the module takes to load
    from structgen.core.vocabulary.vocabulary import TextVocabulary

    try:
        return bool(compile_json_schema(schema, TextVocabulary(), options, registry).matcher().accept_bytes(data))
    except UnsatisfiableSchemaError:
        return False


def forbidding(
    schema: Any,
    allows: Callable[[Any], bool],
    options: JsonOptions,
    registry: Registry[Any] | None,
    most: int,
    paths: Callable[[Dialect], set[Path] | None] = lambda _: None,
) -> Reasons:
    """The occurrences of a plain schema without which ``allows`` is true of it; single keywords before subschemas.

    Args:
        most: occurrences that are tried one by one; of a schema with more, nothing is said.
        paths: those of the subschemas whose keywords may be among them; None: all.

    Raises:
        SchemaError: the schema as it is cannot be asked.
    """
    if allows(schema):
        return Reasons()
    dialect = dialect_for(schema, options, registry)
    anything = anything_in(dialect)
    listed, within = occurrences(schema, dialect), paths(dialect)
    if within is not None:
        listed = [one for one in listed if one.path[: one.depth] in within]
    if len(listed) > most:
        return Reasons()

    def helps(silent: Sequence[Occurrence]) -> bool:
        try:
            return allows(without(schema, silent, anything))
        except (SchemaError, PatternError, TooComplexError, RecursionError):
            return False

    single = [one for one in listed if not one.is_container]
    alone, together = responsible(single, helps, MAX_TOGETHER)
    if not alone and not together:
        containers = sorted((one for one in listed if one.is_container), key=lambda one: -len(one.path))
        alone, together = responsible(containers, helps, MAX_TOGETHER)
        alone = alone[:1]
        if not alone and not together:  # some of both kinds, as a type and a `not` that refuse by themselves
            _, together = responsible([*single, *containers], helps, MAX_TOGETHER)
    return Reasons(tuple(alone), tuple(together))
