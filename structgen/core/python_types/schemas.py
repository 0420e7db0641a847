"""JSON Schemas of Python types, such that what satisfies the schema is what pydantic reads as the type.

Pydantic's own schemas say less than its validators ask for: a date of the year 0000 is one to RFC 3339 but not to
Python, a float just below an exclusive limit is rounded to it, keys of ``dict[int, ...]`` are any strings.
`TypeSchemas` derives the schema from pydantic's core schema with what is missing: a method for each type of it, named
as pydantic's extension point asks. Where the schema is narrower than the validator, or the validator is more than a
schema can say, a note says; `derive` collects them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pydantic

from structgen.core.json_schema.report import Report
from structgen.core.python_types.containers import Containers
from structgen.core.python_types.notes import without_notes
from structgen.core.python_types.numbers import Numbers
from structgen.core.python_types.objects import Objects
from structgen.core.python_types.texts import Texts
from structgen.core.python_types.times import Times
from structgen.core.python_types.values import JsonDict, WrappedValues
from structgen.core.text_sets.references import BY_REFERENCE
from structgen.errors import ConstraintError
from structgen.options import JsonOptions

MAX_DEPTH = 200
"""Levels of nesting that pydantic reads."""
MAX_DIGITS = 4300
"""Digits of an integer that pydantic reads."""


class Derived(NamedTuple):
    """A schema of a type.

    Attributes:
        schema: what the type's values are written by.
        shown: pydantic's own, for prompts.
        report: what the schema is narrower in, and what is checked when a value is read.
    """

    schema: Any
    shown: Any
    report: Report


def derive(adapter: pydantic.TypeAdapter[Any]) -> Derived:
    """The schema of a type.

    Raises:
        pydantic.errors.PydanticUserError: there is none (PydanticInvalidForJsonSchema among them).
    """
    token = BY_REFERENCE.set(True)
    try:
        schema, report = without_notes(TypeSchemas(config=config_of(adapter)).generate(adapter.core_schema))
        shown, _ = without_notes(WrappedValues().generate(adapter.core_schema))
        return Derived(schema, shown, report)
    finally:
        BY_REFERENCE.reset(token)


def readable_options(options: JsonOptions) -> JsonOptions:
    """The options with numbers that pydantic reads: integers without fraction and exponent, of bounded length."""
    length = options.max_number_length
    longest = length if length == "auto" else min(MAX_DIGITS, length or MAX_DIGITS)
    return replace(options, number_spellings="plain", max_number_length=longest)


class TypeSchemas(Objects, Containers, Texts, Times, Numbers):
    """The schemas of all core types; a generator serves one type.

    Args:
        config: the settings that the type is read with where no class of its own says others.
    """

    def sort(self, value: JsonDict, parent_key: str | None = None) -> JsonDict:
        """As it is: notes are known by their class, which sorting would lose."""
        return value


KNOWN = (2, 7), (3, 0)
"""Versions of pydantic that keep it so: from the first, below the second."""


def config_of(adapter: pydantic.TypeAdapter[Any]) -> Any:
    """The settings of an adapter; None: it has none of its own.

    Raises:
        ConstraintError: this version of pydantic keeps them elsewhere.
    """
    try:
        return adapter._config
    except AttributeError:
        first, end = (".".join(map(str, version)) for version in KNOWN)
        raise ConstraintError(
            f"pydantic {pydantic.VERSION} keeps the settings of a type where structgen does not find them; expected "
            f"pydantic>={first},<{end}. Install one: pip install 'pydantic>={first},<{end}'"
        ) from None
