"""``x-guidance`` in the schema after ``%json``: how llguidance's options are said here."""

from __future__ import annotations

from typing import Any

from structgen.core.grammars.dialects.llguidance.tokens import GrammarText
from structgen.core.grammars.embedded_schema import EmbeddedSchema
from structgen.options import changed_options

KEY = "x-guidance"
_SEPARATORS = {"item_separator": ",", "key_separator": ":"}


def with_guidance(found: EmbeddedSchema, source: GrammarText, at: int) -> EmbeddedSchema:
    """A schema without ``x-guidance``, and with the options that it asks for.

    Raises:
        GrammarError: an option that is not known, or that cannot be said here.
    """
    if not isinstance(found.schema, dict) or KEY not in found.schema:
        return found
    wanted = found.schema.pop(KEY)
    if not isinstance(wanted, dict):
        source.fail(at, f"{KEY} is an object")
    changes: dict[str, Any] = {}
    for name, value in wanted.items():
        if name == "whitespace_flexible" and isinstance(value, bool):
            changes["whitespace"] = "any" if value else "compact"
        elif name == "lenient" and isinstance(value, bool):
            changes["unsupported"] = "ignore" if value else "error"
        elif value != _SEPARATORS.get(name, False):  # separators without blanks, and what is switched off
            source.fail(
                at,
                f"{KEY} with {name}: {value!r} is not supported",
                'Say how JSON is spelled by x-structgen, as in {"x-structgen": {"whitespace": "single"}}.',
            )
    return EmbeddedSchema(found.schema, changed_options(found.options, changes))
