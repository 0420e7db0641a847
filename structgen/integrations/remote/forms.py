"""The ways in which servers are asked for a constraint, and what is known of a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from structgen.constraints.base import Constraint
from structgen.constraints.json import JsonSchemaConstraint
from structgen.constraints.text import ChoiceConstraint, GbnfConstraint, LarkConstraint, RegexConstraint

PROMPT = "prompt"
CONTINUE = "continue"


@dataclass(frozen=True)
class Form:
    """One way to ask.

    Attributes:
        name: for `Attempt.form`.
        fields: what the request says besides messages and sampling.
        named_by: words by which a server's refusal names it.
    """

    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    named_by: tuple[str, ...] = ()


@dataclass
class ServerKnowledge:
    """What was found out about a server; shared by all calls, in any thread. Sets only grow.

    Attributes:
        unknown: names of forms that it refused.
        ignored: names of forms that it took, and whose answers did not conform.
        continues: whether it goes on with a message of the assistant's; None: not tried yet.
        budget_field: what it calls the most tokens to write.
    """

    unknown: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    continues: bool | None = None
    budget_field: str = "max_tokens"


def forms_of(constraint: Constraint | None) -> Iterator[Form]:
    """How a constraint can be asked for, the best way first; the last is to say it in the prompt alone."""
    if isinstance(constraint, JsonSchemaConstraint):
        schema = _plain(constraint.schema)
        for strict in (True, False):
            named = {"name": "answer", "schema": schema, "strict": strict}
            form = {"response_format": {"type": "json_schema", "json_schema": named}}
            yield Form("json_schema" if strict else "json_schema, not strict", form, ("response_format", "json_schema"))
        yield from _extension("json", schema)
        if isinstance(schema, dict) and schema.get("type") == "object":
            yield Form("json_object", {"response_format": {"type": "json_object"}}, ("response_format", "json_object"))
    elif isinstance(constraint, RegexConstraint) and constraint.syntax == "python":
        yield from _extension("regex", constraint.pattern)
    elif isinstance(constraint, ChoiceConstraint):
        yield from _extension("choice", list(constraint.options))
    elif isinstance(constraint, GbnfConstraint | LarkConstraint) and isinstance(constraint.source, str):
        yield from _extension("grammar", constraint.source)
        if isinstance(constraint, GbnfConstraint):
            yield Form("grammar", {"extra_body": {"grammar": constraint.source}}, ("grammar",))  # llama.cpp's server
            yield Form("ebnf", {"extra_body": {"ebnf": constraint.source}}, ("ebnf",))  # SGLang's
    yield Form(PROMPT)


def _extension(kind: str, value: Any) -> Iterator[Form]:
    """As vLLM has it, and as it had it before."""
    yield Form("structured_outputs", {"extra_body": {"structured_outputs": {kind: value}}}, ("structured_outputs", kind))
    old = f"guided_{kind}"
    yield Form(old, {"extra_body": {old: value}}, (old,))
    if kind == "regex":
        yield Form("regex", {"extra_body": {"regex": value}}, ("regex",))  # SGLang's


def _plain(schema: Any) -> Any:
    """A schema as JSON's own types; numbers that were read exactly are rounded."""
    from decimal import Decimal

    if isinstance(schema, Decimal):
        return float(schema)
    if isinstance(schema, dict):
        return {name: _plain(value) for name, value in schema.items()}
    return [_plain(value) for value in schema] if isinstance(schema, list) else schema


_GENERAL = re.compile(
    r"unknown|unrecogni[sz]ed|not supported|unsupported|unexpected|extra inputs|not permitted|not allowed|forbidden", re.I
)


def refuses(form: Form, message: str) -> bool:
    """Whether an error of status 400 or 422 is about the form that was asked in."""
    return any(word in message for word in form.named_by)


def is_for_good(message: str) -> bool:
    """Whether a refusal is of the form as such, rather than of this constraint in it."""
    return bool(_GENERAL.search(message))
