"""JSON that satisfies a schema or reads as a Python type, as a constraint."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import os
import re
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast, overload

from structgen.core.bounded_cache import Same
from structgen.core.compilers import check_arguments, compile_json_schema
from structgen.core.constraints.base import Constraint, T, is_constraint
from structgen.core.constraints.cache import COMPILED, joined
from structgen.core.constraints.combined import Combinable
from structgen.core.constraints.phrases import PhraseConstraint
from structgen.core.constraints.sources import Source
from structgen.core.constraints.text import choice, compiled_regex
from structgen.core.json_prefix import loads_partial
from structgen.core.json_schema.keyword import X_STRUCTGEN
from structgen.core.json_schema.keywords_data import (
    WITHOUT,
    with_conditions,
    with_sources,
    without_sources,
    written_out,
)
from structgen.core.json_schema.loading import load_schema
from structgen.core.json_schema.lowering import may_be_open, open_objects
from structgen.core.json_schema.phrases import POINTERS, SOME, STRINGS
from structgen.core.json_schema.plain import plain_json
from structgen.core.json_schema.prompt_forms import FORMS, SchemaForm
from structgen.core.json_schema.regions import has_regions
from structgen.core.json_schema.report import Report
from structgen.core.json_text import loads_exact
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, OptionsError, RefusedValueError, SchemaError, SchemaTooComplexError
from structgen.options import JsonOptions, checked_options

if TYPE_CHECKING:
    import pydantic
    from referencing import Registry

    from structgen.core.constraints.sources import TypeForm
    from structgen.core.python_types.partials import PartialReader
    from structgen.core.python_types.schemas import Derived

Schema: TypeAlias = "Mapping[str, Any] | bool"
Sources: TypeAlias = "Mapping[str, Any] | None"


@dataclass(frozen=True)
class JsonSchemaConstraint(Combinable, Generic[T]):
    """JSON that satisfies a schema. Make it with ``json_schema``. Equal if schema, options and type are.

    Attributes:
        options: how the JSON may be spelled, see ``JsonOptions``.
        type: the type that values are instances of; None: plain JSON values.
        registry: where references to other documents are looked up.
        report: of a type, where the schema is narrower than what pydantic reads, and what pydantic may still refuse
            when a value is read (``report.checked``); of a schema, nothing.
    """

    options: JsonOptions
    _schema: Schema = field(repr=False, compare=False)
    _key: str
    type: Any = None
    _adapter: pydantic.TypeAdapter[Any] | None = field(default=None, repr=False, compare=False)
    registry: Registry[Any] | None = field(default=None, repr=False)
    report: Report = field(default_factory=lambda: Report([]), repr=False, compare=False)
    _shown: Schema | None = field(default=None, repr=False, compare=False)

    @property
    def schema(self) -> Schema:
        """The JSON Schema (a copy; numbers with a fraction may be ``Decimal``), with what its sources hold."""
        return cast(Schema, written_out(self._schema))

    @cached_property
    def has_field_regions(self) -> bool:
        """Whether the schema says of parts how they are written. Looked for once, where the keyword is."""
        return X_STRUCTGEN in self._key and has_regions(self._schema)

    def without(self, values: Sequence[Any]) -> JsonSchemaConstraint[T]:
        """The same constraint without some values, each in all its spellings; equal as JSON Schema has it."""
        return self._with(WITHOUT, values)

    def _with(self, word: str, conditions: Sequence[Any]) -> JsonSchemaConstraint[T]:
        schema = with_conditions(self._schema, word, conditions)
        return self if schema is self._schema else replace(self, _schema=schema, _key=_key_of(schema))

    def with_strings(
        self, phrases: PhraseConstraint, pointers: Iterable[str] | None = None, *, some: bool = False
    ) -> JsonSchemaConstraint[T]:
        """The same constraint, of whose strings some hold phrases, or do not. Names of members are not meant.

        Args:
            phrases: made by ``including`` or ``avoiding``.
            pointers: of the strings; a part ``*`` of a JSON Pointer is any member and any item. None: all strings.
            some: whether one string at these pointers is enough, and must be there.

        Raises:
            ConstraintError: ``phrases`` is no such constraint. OptionsError: ``some`` without ``pointers``.
        """
        if not isinstance(phrases, PhraseConstraint):
            raise ConstraintError(f"strings are given phrases by including(...) or avoiding(...), not {phrases!r:.100}")
        if some and pointers is None:
            raise OptionsError("some needs pointers: of the strings of which one is meant", option="pointers")
        places = {} if pointers is None else {POINTERS: [pointers] if isinstance(pointers, str) else list(pointers)}
        condition = phrases.search.keyword() | places | ({SOME: True} if some else {})
        return self._with(STRINGS, [condition])

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The ``JsonGrammar`` of this schema over ``vocabulary``; a few are kept for the process.

        Raises:
            SchemaError: the schema is illegal, unsupported, unsatisfiable or too complex (subclasses say which).
        """
        check_arguments(vocabulary, self.registry)

        def build() -> Any:
            return compile_json_schema(self._schema, vocabulary, self.options, self.registry)

        return COMPILED.get(joined(self.content_key(), vocabulary), build)

    def open_objects(self) -> list[str]:
        """JSON Pointers of the schemas in it that declare members and allow others, since nothing says that they do
        not: those that ``additional_members="closed"`` would close. About as much work as reading the schema.

        Raises:
            SchemaError: it cannot be read, or closing it is too much work.
        """
        if self.options.additional_members == "closed" or (self.registry is None and not may_be_open(self._schema)):
            return []
        return open_objects(self._schema, self.options, self.registry)

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`; a registry, which may look documents up, is itself."""
        return "json", self._key, self.options, None if self.registry is None else Same(self.registry)

    def parse(self, text: str) -> T:
        """The value of a finished output: an instance of the given type, or plain JSON values with exact numbers.

        Raises:
            GenerationError: the text is no JSON.
            RefusedValueError: the type's own validators refuse it.
        """
        if self._adapter is None:
            return cast(T, loads_exact(text))
        try:
            return cast(T, self._adapter.validate_json(text))
        except Exception as error:  # a user's validators may raise anything
            raise RefusedValueError(
                f"The type's own validators refuse the output: {error}\nThe output: {text}",
                text=text,
                value=loads_exact(text),
            ) from error

    def parse_partial(self, text: str) -> Any:
        """The value of unfinished text: strings as far as they go, other scalars once they are whole.

        Of a type, the type's own objects: what of it is whole as pydantic reads it; what is still open without its
        validators: models, dataclasses and named tuples with None for what is not yet known
        (``model_fields_set`` has what is), typed dictionaries and other containers with what there is, of a union the
        first choice that fits. Else plain JSON values.
        """
        return loads_partial(text) if self._adapter is None else self._partials.read(text)

    @cached_property
    def _partials(self) -> PartialReader:
        assert self._adapter is not None
        from structgen.core.python_types.partials import PartialReader

        return PartialReader(self._adapter)

    def instruction(self, form: SchemaForm = "schema") -> str:
        """Asks for JSON and shows the schema, in this form."""
        shown = self._schema if self._shown is None else self._shown
        return FORMS[form](without_sources(shown), self.registry)


@overload
def json_schema(
    source: Source[T],
    options: JsonOptions | None = None,
    *,
    registry: Registry[Any] | None = None,
    sources: Sources = None,
) -> JsonSchemaConstraint[T]: ...


@overload
def json_schema(
    source: TypeForm[T],
    options: JsonOptions | None = None,
    *,
    registry: Registry[Any] | None = None,
    sources: Sources = None,
) -> JsonSchemaConstraint[T]: ...


@overload
def json_schema(
    source: Any, options: JsonOptions | None = None, *, registry: Registry[Any] | None = None, sources: Sources = None
) -> JsonSchemaConstraint[Any]: ...


def json_schema(
    source: Any, options: JsonOptions | None = None, *, registry: Registry[Any] | None = None, sources: Sources = None
) -> Any:
    """JSON that satisfies a schema.

    Args:
        source: a schema (dict or bool), its JSON text, a path to it (``Path``, or a string that is no JSON), or a
            type: pydantic model, dataclass, TypedDict, enum, ``Literal``, ``list[int]``, ``TypeAdapter``: whatever
            pydantic reads. With a type, values are instances of it, and undeclared members are not written unless
            it keeps them (``extra="allow"``). A function stands for its arguments: a dict of them by name.
        options: how the JSON may be spelled; None: ``JsonOptions()``.
        registry: where references to other documents are looked up.
        sources: what the names in ``"x-structgen": {"quoteOf": "<name>"}`` and ``{"oneOf": "<name>"}`` stand for: a
            text, texts by name or a `Corpus`; a list of names or a `NameSet`.

    Raises:
        SchemaError: unreadable file, no JSON.
        ConstraintError: ``source`` is none of these.
    """
    options = checked_options(options)
    if not (sources is None or isinstance(sources, Mapping)):
        raise ConstraintError(f"sources are given by their names, in a dict, not as {type(sources).__name__}")
    if isinstance(source, JsonSchemaConstraint):
        if sources:
            raise ConstraintError("the constraint is made already: give sources with its schema, or its type")
        return source
    if isinstance(source, (Mapping, bool, str, bytes, os.PathLike)):
        kind, adapter, written, shown, report = None, None, read_schema(source), None, Report([])
    else:
        from structgen.core.python_types.schemas import readable_options

        kind = source
        adapter, (written, shown, report) = _from_type(source)
        options = readable_options(options)
    try:
        schema = copy.deepcopy(plain_json(with_sources(written, sources or {})))  # the caller's dict may change later
        return JsonSchemaConstraint(
            options, schema, _key_of(schema), kind, adapter, registry, report, plain_json(shown)
        )
    except (RecursionError, ValueError):  # ValueError: json found a circle
        limit = sys.getrecursionlimit()
        raise SchemaTooComplexError("the schema is nested too deeply", limit=limit) from None


def as_constraint(source: Any, options: JsonOptions | None = None) -> Constraint | None:
    """A constraint as it is, None as None, ``re.compile(...)`` as ``regex``, a list of strings as ``choice``; anything
    else as ``json_schema`` reads it, with these options."""
    if source is None or is_constraint(source):
        return source
    if isinstance(source, re.Pattern):
        return compiled_regex(source)
    if isinstance(source, (list, tuple)):
        if not all(isinstance(option, str) for option in source):
            kinds = [option.__name__ for option in source if isinstance(option, type)]
            meant = f"For a list of such values, give list[{' | '.join(kinds)}]; for " if kinds else "For "
            raise ConstraintError(
                f"A list of options holds strings, not {source!r:.200}. {meant}other values, give Literal[...], an "
                'enum or {"enum": [...]}.'
            )
        return choice(source)
    return json_schema(source, options)


def read_schema(source: Any) -> Schema:
    """A schema that is given as such: parsed, as JSON text, or in a file. A string that cannot be JSON is a path.

    Raises:
        SchemaError: it cannot be read, or is no JSON.
    """
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not is_json(source)):
        source = Path(source)
    try:
        return cast(Schema, load_schema(source))
    except (OSError, ValueError) as error:  # ValueError: a string that no file can be named by
        reason = getattr(error, "strerror", None) or error
        raise SchemaError(
            f"cannot read the schema from {str(source)!r:.200}: {reason}",
            hint="A string is read as JSON text if it starts with '{', else as a path; choice([...]) takes texts.",
        ) from error


def is_json(text: str) -> bool:
    """Whether a string that a program gives as a schema is its JSON text; else it is a path."""
    return text.lstrip().startswith(("{", "[", '"')) or text.strip() in ("true", "false", "null", "")


def _from_type(source: Any) -> tuple[pydantic.TypeAdapter[Any], Derived]:
    """Pydantic's reading of a type."""
    import pydantic
    from pydantic_core import SchemaError as SchemaBuildError

    from structgen.core.python_types.schemas import derive
    from structgen.core.python_types.signatures import arguments_type

    try:
        if inspect.isroutine(source):  # of which pydantic would read a call, and make it
            source = arguments_type(source)
        adapter = source if isinstance(source, pydantic.TypeAdapter) else pydantic.TypeAdapter(source)
        return adapter, derive(adapter)
    except (
        pydantic.errors.PydanticUserError,  # also "no JSON Schema for this type" and unread annotations
        SchemaBuildError,
        TypeError,
        NameError,
        AttributeError,
        ImportError,  # EmailStr needs a package
    ) as error:
        if type(source).__module__ != "typing" and _has_fields(type(source)):
            raise ConstraintError(f"{source!r:.200} is a value; give its class, {type(source).__name__}.") from error
        reason = str(getattr(error, "message", None) or error).partition(". ")[0].rstrip(".")
        first, last = reason.splitlines()[0], reason.splitlines()[-1]
        reason = f"{first} {last.strip()}" if isinstance(error, SchemaBuildError) else first
        reason = "" if reason.startswith("Unable to generate pydantic-core schema") else f": {reason}"
        advice = "" if isinstance(error, ImportError) else f" {_advice(source)}"
        raise ConstraintError(f"Cannot read {source!r:.200} as a constraint{reason}.{advice}") from error


def _advice(source: Any) -> str:
    """What to give in place of something that is no type."""
    if isinstance(source, re.Pattern):
        return f"Give {{'type': 'string', 'pattern': {source.pattern!r}}}; or give regex(...) to generate."
    if isinstance(source, (list, tuple)) and source:
        shown = repr(list(source))[1:-1]
        if all(isinstance(one, str) for one in source) and len(shown) < 100:
            return f"Give Literal[{shown}]; or give choice([{shown}]) to generate."
        if all(isinstance(one, type) for one in source):
            kind, between = ("list", " | ") if isinstance(source, list) else ("tuple", ", ")
            return f"Give {kind}[{between.join(one.__name__ for one in source)}]."
    return (
        "Expected a JSON Schema (dict, bool, JSON text or path) or a type that pydantic reads: "
        "a model, dataclass, TypedDict, enum, Literal, list[int], ..."
    )


def _has_fields(kind: type) -> bool:
    """Whether values of the class are made of fields, as those of models and dataclasses are."""
    return hasattr(kind, "__pydantic_fields__") or dataclasses.is_dataclass(kind)


def _key_of(schema: Schema) -> str:
    """Equal for schemas that are written alike, in numbers too (1, 1.0 and true are three, a ``Decimal`` is no text).

    Raises:
        ValueError: the schema holds itself.
    """
    json.dumps(schema, default=str)
    return repr(schema)
