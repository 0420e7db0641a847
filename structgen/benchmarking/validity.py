"""Whether a text is what the schema asks for, judged by python-jsonschema with formats asserted: never by an engine."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

Judgement = Literal["valid", "invalid", "not_json", "unfinished", "undecided"]

_FENCED = re.compile(r"^\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)


def judge_text(schema_text: str, text: str, finished: bool) -> tuple[Judgement, str]:
    """Judge an output; the second value says why it is not valid ("keyword: message", shortened).

    An output in a Markdown code block is taken for its content, which only helps generation without a constraint.
    "undecided": the validator itself fails on this schema (a broken ``$ref``, say). The text of an unfinished output
    is not judged.
    """
    if not finished:
        return "unfinished", "the token budget ran out"
    fenced = _FENCED.match(text)
    try:
        value = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        return "not_json", str(error)
    try:
        wrong = first_error(json.loads(schema_text), value)
    except Exception as failure:  # referencing, jsonschema and re raise errors of many kinds on odd schemas
        return "undecided", f"{type(failure).__name__}: {failure}"[:200]
    return ("invalid", wrong) if wrong else ("valid", "")


def first_error(schema: Any, value: Any) -> str:
    """The most relevant error, "" if the value is valid."""
    import jsonschema

    from structgen.core.json_schema.exact_validator import exact_validator

    kind = exact_validator(jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator))
    error = jsonschema.exceptions.best_match(kind(schema, format_checker=kind.FORMAT_CHECKER).iter_errors(value))
    return "" if error is None else f"{error.validator}: {error.message[:160]}"
