"""The ways in which servers are asked for a constraint, and what is known of a server."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from structgen.core.answers.targets.lowered import LoweredSchema, lower
from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.constraints.text import ChoiceConstraint, GbnfConstraint, LarkConstraint, RegexConstraint
from structgen.errors import OptionsError, SchemaError

PROMPT = "prompt"
CONTINUE = "continue"
NOT_HANDED_ON = {
    "messages": "the prompt says them",
    "stream": "call stream",
    "stream_options": "streams end with the usage",
    "n": "one output is written a call; call it several times",
    "tools": "calls are not read; tool_call(...) is a constraint for them",
    "functions": "calls are not read; tool_call(...) is a constraint for them",
    "logprobs": "they are not read; ask the client",
}
"""Fields of requests that results would say nothing of, and what to do in their place."""
_FORMATS = ("json", "regex", "choice", "grammar", "json_object")
OF_CONSTRAINTS = {
    "response_format",
    "structured_outputs",
    "regex",
    "grammar",
    "ebnf",
    *map("guided_{}".format, _FORMATS),
}
"""Fields that say what an output must be."""


def check_fields(fields: Mapping[str, Any], has_constraint: bool, has_budget: bool) -> None:
    """Refuse fields of a request that something else says already, and those whose results would be lost.

    Raises:
        OptionsError: there is one, with what to do.
    """
    more = fields.get("extra_body")
    if not isinstance(more, Mapping | None):
        raise OptionsError(f"extra_body is a dict of fields, not {more!r:.100}", option="extra_body")
    for name, value in [*fields.items(), *(more or {}).items()]:
        why = NOT_HANDED_ON.get(name)
        if has_constraint and name in OF_CONSTRAINTS:
            why = "the constraint says what the output must be; give one of them"
        elif has_budget and name in ("max_tokens", "max_completion_tokens"):
            why = "max_new_tokens says it; give one of them"
        if why is not None and value not in (None, False, [], {}) and (name, value) != ("n", 1):
            raise OptionsError(f"the field {name!r} is not for RemoteGenerator: {why}", option=name)


@dataclass(frozen=True)
class Form:
    """One way to ask.

    Attributes:
        name: for `Attempt.form`.
        field: of the request, that it is asked in; "" for none.
        fields: what the request says besides messages and sampling.
        lowered: the schema as the server's provider reads it, where it asks for that; its answers are mapped back.
    """

    name: str
    field: str = ""
    fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    lowered: LoweredSchema | None = None

    @property
    def is_mapped(self) -> bool:
        """Whether answers have another shape than the constraint."""
        return self.lowered is not None and self.lowered.is_mapped


@dataclass
class ServerKnowledge:
    """What was found out about a server; shared by all calls, in any thread. Sets only grow.

    Attributes:
        unknown: names of forms that it refused.
        ignored: fields that it took and did nothing with.
        continues: whether it may go on with a message of the assistant's; True until it was seen that it does not.
        budget_field: what it calls the most tokens to write.
        target: the provider, if it is one that reads a part of JSON Schema (see `structgen.lower`).
    """

    unknown: set[str] = dataclasses.field(default_factory=set)
    ignored: set[str] = dataclasses.field(default_factory=set)
    continues: bool = True
    budget_field: str = "max_tokens"
    target: str | None = None


PROVIDERS = {
    "api.openai.com": "openai",
    "openai.azure.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
}


def provider_at(url: object) -> str | None:
    """The provider whose server has an address, if it is one that is known."""
    host = urlsplit(str(url)).hostname or ""
    return next((name for end, name in PROVIDERS.items() if host == end or host.endswith("." + end)), None)


def forms_of(constraint: Constraint | None, target: str | None = None) -> Iterator[Form]:
    """How a constraint can be asked for, the best way first; the last is to say it in the prompt alone.

    Args:
        target: the provider that is asked: then a schema is lowered to what it reads.
    """
    if isinstance(constraint, JsonSchemaConstraint):
        schema = _plain(constraint.schema)
        lowered = None if target is None else _lowered(constraint, target)
        if lowered is not None:
            named = {"name": "answer", "schema": lowered.sent, "strict": True}
            fields = {"response_format": {"type": "json_schema", "json_schema": named}}
            yield Form("json_schema, lowered", "response_format", fields, lowered)
        for strict in (True, False):
            named = {"name": "answer", "schema": schema, "strict": strict}
            fields = {"response_format": {"type": "json_schema", "json_schema": named}}
            yield Form("json_schema" if strict else "json_schema, not strict", "response_format", fields)
        yield from _extension("json", schema)
        if isinstance(schema, dict) and schema.get("type") == "object":
            yield Form("json_object", "response_format", {"response_format": {"type": "json_object"}})
    elif isinstance(constraint, RegexConstraint) and constraint.syntax == "python":
        yield from _extension("regex", constraint.pattern)
    elif isinstance(constraint, ChoiceConstraint):
        yield from _extension("choice", list(constraint.options))
    elif isinstance(constraint, GbnfConstraint | LarkConstraint) and isinstance(constraint.source, str):
        yield from _extension("grammar", constraint.source)
        if isinstance(constraint, GbnfConstraint):
            yield _extra("grammar", constraint.source)  # llama.cpp's server
            yield _extra("ebnf", constraint.source)  # SGLang's
    yield Form(PROMPT)


def _lowered(constraint: JsonSchemaConstraint, target: str) -> LoweredSchema | None:
    """The schema as a provider reads it; None: none is within its limits, or it is read as it is."""
    try:
        lowered = lower(constraint.schema, target, options=constraint.options, registry=constraint.registry)
    except SchemaError:
        return None
    return None if lowered.beyond or lowered.sent == constraint.schema else lowered


def _extension(kind: str, value: Any) -> Iterator[Form]:
    """As vLLM has it, and as it had it before; SGLang's field for expressions."""
    yield _extra("structured_outputs", {kind: value})
    yield _extra(f"guided_{kind}", value)
    if kind == "regex":
        yield _extra("regex", value)


def _extra(name: str, value: Any) -> Form:
    """A field that OpenAI's API does not have."""
    return Form(name, name, {"extra_body": {name: value}})


def _plain(schema: Any) -> Any:
    """A schema as JSON's own types; numbers that were read exactly are rounded."""
    if isinstance(schema, Decimal):
        return float(schema)
    if isinstance(schema, dict):
        return {name: _plain(value) for name, value in schema.items()}
    return [_plain(value) for value in schema] if isinstance(schema, list) else schema


_GENERAL = re.compile(
    r"unknown|unrecogni[sz]ed|not supported|unsupported|unexpected|extra inputs|not permitted|not allowed|forbid",
    re.I,
)


def refuses(form: Form, message: str) -> bool:
    """Whether an error of status 400, 422 or 501 names the form that was asked in."""
    return form.field in message or form.name.partition(",")[0] in message


def is_for_good(message: str) -> bool:
    """Whether a refusal is of the form as such, rather than of this constraint in it."""
    return bool(_GENERAL.search(message))
