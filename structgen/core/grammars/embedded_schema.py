"""JSON Schemas inside of grammars: what stands after ``%json``, with its options."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from structgen.core.grammars.normal_form import Place
from structgen.core.json_schema.keywords_data import WORDS as SOURCE_WORDS
from structgen.core.json_schema.regions import has_regions
from structgen.core.json_text import EXACT_DECODER
from structgen.errors import GrammarError, OptionsError
from structgen.options import JsonOptions, changed_options

OPTIONS_KEY = "x-structgen"
"""The key of a schema after ``%json`` that holds `JsonOptions` by name, which are no part of the schema."""


class EmbeddedSchema(NamedTuple):
    """What stands after ``%json``: a schema, without its key ``x-structgen``, and its options."""

    schema: Any
    options: JsonOptions


def place_at(text: str, offset: int) -> Place:
    """The line and column of an offset. O(offset)."""
    return Place(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def read_json(text: str, start: int, what: str) -> tuple[Any, int]:
    """The JSON value at an offset of a grammar's text, and where it ends.

    Raises:
        GrammarError: there is none; ``what`` says what it would be.
    """
    try:
        return EXACT_DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        reason, offset = error.msg, error.pos
    except ValueError as error:  # a number, NaN
        reason, offset = str(error), start
    except RecursionError:
        reason, offset = "it is nested too deeply for Python's JSON parser", start
    position = place_at(text, offset)
    raise GrammarError(f"{what}: {reason}", line=position.line, column=position.column, source=text)


def read_schema(text: str, start: int, options: JsonOptions) -> tuple[EmbeddedSchema, int]:
    """The schema at an offset of a grammar's text, and where it ends.

    Args:
        text: the grammar.
        start: where the schema begins.
        options: how its JSON may be spelled, where its key ``x-structgen`` says nothing else.

    Raises:
        GrammarError: no JSON, no options after the key, or fields that have a temperature, or a budget, of their own.
    """
    schema, end = read_json(text, start, "%json is not followed by a JSON Schema")
    if has_regions(schema):
        where = place_at(text, start)
        raise GrammarError(
            "max_tokens or temperature of a field (x-structgen) cannot be kept inside of a grammar; give the rule a "
            "region, or make the schema the constraint",
            line=where.line, column=where.column, source=text,
        )  # fmt: skip
    if not isinstance(schema, dict) or OPTIONS_KEY not in schema:
        return EmbeddedSchema(schema, options), end
    changes = schema.pop(OPTIONS_KEY)
    if isinstance(changes, dict) and changes.keys() & SOURCE_WORDS:  # which are of the schema
        schema[OPTIONS_KEY] = {word: changes[word] for word in changes if word in SOURCE_WORDS}
        changes = {word: value for word, value in changes.items() if word not in SOURCE_WORDS}
    try:
        return EmbeddedSchema(schema, changed_options(options, changes)), end
    except OptionsError as error:
        position = place_at(text, max(text.find(f'"{OPTIONS_KEY}"', start), start))
        message = f"the options in {OPTIONS_KEY!r} after %json: {error}"
        raise GrammarError(message, line=position.line, column=position.column, source=text) from None
