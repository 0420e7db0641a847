"""Where the fields of a constraint's outputs are, and which pointers can be none of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.constraints.rules import has_field_regions, with_rules
from structgen.core.constraints.thinking import Begin, Thinking, thought_end
from structgen.core.json_schema.pointers import unescape
from structgen.errors import OptionsError
from structgen.generation.decoding.regions import NO_REGIONS, FieldRegions, Regions
from structgen.generation.fields.asking import Fields

MAX_COMPARED = 20_000  # pairs of names that are looked at for slips: a hint is not worth more than a tenth of a second
LIKENESS = 0.6  # of names (difflib's ratio) from which on one may be a slip for the other


@dataclass(frozen=True)
class Layout:
    """Where JSON is in an output.

    Attributes:
        is_json: whether there is any; else the whole output is the only field.
        thinking: how thinking begins that comes first; None: none does.
    """

    is_json: bool = False
    thinking: Begin | None = None

    def start_of(self, data: bytes) -> int:
        """The byte offset at which the JSON of a whole output begins."""
        return 0 if self.thinking is None else thought_end(data, self.thinking)


def layout_of(constraint: Constraint | None, asked: Fields) -> Layout:
    """Where the fields of a constraint's outputs are.

    Raises:
        OptionsError: there is no constraint, or fields are asked for that no output has.
    """
    if constraint is None:
        raise OptionsError("fields needs a constraint: free text has no fields", option="fields")
    answer = constraint.answer if isinstance(constraint, Thinking) else constraint
    if asked.pointers and isinstance(answer, JsonSchemaConstraint):
        _check_names(asked.pointers, answer.schema, "fields")
    elif pointer := next(filter(None, asked.pointers or ()), None):
        raise OptionsError(
            f"fields names {pointer!r:.100}, and the output is no JSON: only '' (the whole output) is one of its "
            "fields; give fields=True, or a JSON Schema or type as the constraint",
            option="fields",
            value=pointer,
        )
    return Layout(
        isinstance(answer, JsonSchemaConstraint), constraint.begin if isinstance(constraint, Thinking) else None
    )


def placed_regions(constraint: Constraint | None, regions: Regions) -> tuple[Constraint | None, FieldRegions]:
    """A constraint with the regions of its rules, and those of its fields, of its own too.

    Raises:
        OptionsError: fields of outputs that are no JSON from their first byte on; rules of what is no grammar; slips.
    """
    rules = tuple(each for each in regions if each[0] and not each[0].startswith("/"))
    fields = tuple(each for each in regions if each not in rules)
    if rules:
        constraint = with_rules(constraint, rules)
    if not isinstance(constraint, JsonSchemaConstraint):
        if has_field_regions(constraint):
            raise OptionsError(
                "a schema has max_tokens or temperature of fields (x-structgen), which are kept where its JSON is the "
                "whole output: not after thinking, in tool calls, in tags, or as one of several constraints; leave "
                "them out",
                option="regions",
            )
        if fields:
            raise OptionsError(
                f"regions names the field {fields[0][0]!r:.100}, and the output is no JSON, or thinks first; give a "
                "JSON Schema or a type as the constraint, or name rules of a grammar",
                option="regions",
            )
        return constraint, NO_REGIONS
    schema = constraint.schema if fields or constraint.has_field_regions else None  # a copy
    if fields:
        _check_names([pointer for pointer, _ in fields], schema, "regions")
    return constraint, FieldRegions(fields, schema if constraint.has_field_regions else None)


def _check_names(pointers: Iterable[str], schema: Any, option: str) -> None:
    """Refuse a pointer with a name that is a slip for a declared one."""
    declared = sorted(set(_declared(schema)))
    names = ((unescape(part), pointer) for pointer in pointers for part in pointer.split("/")[1:])
    taken = {"*", *declared}
    unknown = {name: pointer for name, pointer in names if name not in taken and not name.isdigit()}
    for name, pointer in islice(unknown.items(), MAX_COMPARED // max(1, len(declared))):
        if near := get_close_matches(name, declared, 1, LIKENESS):
            raise OptionsError(
                f"{option} names {pointer!r:.100}; the schema has no {name!r:.60}, did you mean {near[0]!r}?",
                option=option,
                value=pointer,
            )


def _declared(schema: Any) -> Iterable[str]:
    """All names of members that a schema speaks of, and all its strings in lists (``required``, ``enum``)."""
    if isinstance(schema, dict):
        for key in ("properties", "patternProperties", "dependentRequired", "dependentSchemas"):
            if isinstance(schema.get(key), dict):
                yield from schema[key]
        for each in schema.values():
            yield from _declared(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _declared(each)
            if isinstance(each, str):
                yield each
