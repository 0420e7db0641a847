"""Schemas that let a model invent members: the log says so, once a schema, before the first output is written."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from structgen.core.bounded_cache import BoundedCache
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.constraints.rules import schemas_of
from structgen.errors import StructgenError

LOG = logging.getLogger("structgen.generation.open_objects")
KEPT = 1024  # schemas that are known to have been told of; of those forgotten it is told once more
_REPORTED: BoundedCache[int, bool] = BoundedCache(KEPT)


def report_open_objects(constraint: Any) -> None:
    """Log a line for each schema in a constraint whose objects may have members that it does not declare, the first
    time that it comes."""
    for schema in schemas_of(constraint):
        if not isinstance(schema, JsonSchemaConstraint):  # tools say it themselves: they are closed
            continue
        key = hash(schema.content_key())
        if _REPORTED.get(key):
            continue
        _REPORTED.put(key, True)
        places: list[str] = []
        with suppress(StructgenError, RecursionError):  # which compiling it says, if it is anything
            places = sorted(schema.open_objects(), key=lambda pointer: (pointer.count("/"), pointer))
        if places:
            LOG.warning(
                "the schema leaves objects open, so that the model may invent members: at %s%s. "
                'JsonOptions(additional_members="closed") allows none (--closed on the command line).',
                places[0] or "the root", f" and {len(places) - 1} more" if places[1:] else "",
            )  # fmt: skip
