"""Requests as OpenAI's API has them: fields, types, ranges. What is not here is refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args

import pydantic
from pydantic import BeforeValidator, Field, create_model

from structgen.core.json_schema.prompt_forms import FormOption
from structgen.core.tool_calls.definitions import MAX_TOOLS
from structgen.errors import Place
from structgen.generation.filters.table import FILTERS, Filter
from structgen.generation.options import Spelling

_Item = TypeVar("_Item")
Items = Annotated[list[_Item], Field(fail_fast=True)]
"""A list that is read until the first thing in it that is wrong."""


class RequestPart(pydantic.BaseModel):
    """Part of a request: no unknown fields, no types that are converted.

    Of many unknown fields only the first is looked at: an error costs what a good request costs.
    """

    model_config = pydantic.ConfigDict(extra="forbid", strict=True, protected_namespaces=())

    @pydantic.model_validator(mode="before")
    @classmethod
    def _one_unknown_field(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        names = names_of(cls)
        unknown = next((name for name in given if name not in names), None)
        if unknown is None:
            return given
        return {**{name: given[name] for name in names if name in given}, unknown: given[unknown]}


@cache
def names_of(kind: type[RequestPart]) -> frozenset[str]:
    """The names that the fields of a part of a request have in JSON."""
    return frozenset(field.alias or name for name, field in kind.model_fields.items())


def names_at(kind: type[RequestPart], path: Place) -> frozenset[str]:
    """The names of the fields that the part at a place of a request may have."""
    kinds = {kind}
    for name in path:
        if isinstance(name, str):
            kinds = {each for one in kinds for each in _parts_of(one, name)}
    return frozenset(name for one in kinds for name in names_of(one))


def _parts_of(kind: type[RequestPart], name: str) -> Iterator[type[RequestPart]]:
    """The kinds of parts that a field is, or has as items."""
    fields = kind.model_fields.items()
    waiting: list[Any] = [field.annotation for key, field in fields if name == (field.alias or key)]
    while waiting:
        given = waiting.pop()
        if isinstance(given, type) and issubclass(given, RequestPart):
            yield given
        waiting += get_args(given)


_TOKEN = re.compile("0|[1-9][0-9]{0,8}")


def _one_wrong_bias(given: Any) -> Any:
    """The first entry that is wrong alone, so that no others are reported; all entries where none is."""
    if isinstance(given, Mapping):
        for token, bias in given.items():
            if not (_TOKEN.fullmatch(token) and type(bias) in (int, float) and -100 <= bias <= 100):
                return {token: bias}
    return given


LogitBias = Annotated[
    dict[Annotated[str, Field(pattern="^(0|[1-9][0-9]{0,8})$")], Annotated[float, Field(ge=-100, le=100)]],
    BeforeValidator(_one_wrong_bias),
]


# --- what chat, completions and responses share ---
class StreamOptions(RequestPart):
    """``stream_options``."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class StructuredOutputs(RequestPart):
    """The extension ``structured_outputs`` of vLLM: exactly one of these."""

    json_schema: dict[str, Any] | bool | str | None = Field(None, alias="json")
    regex: str | None = None
    choice: Items[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | dict[str, Any] | None = None


class RegionTerms(RequestPart):
    """How a part of the output is written: ``Region``."""

    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None


class StructgenExtension(RequestPart):
    """The extension ``structgen``.

    Attributes:
        on_budget: "close": an output that the budget shaped is reported as one that stopped.
        schema_in_prompt: whether the prompt speaks of the constraint, and in which message.
        schema_form: in which form; None: the server's setting.
        max_think_tokens: the most tokens that thinking may have; None: the server's setting.
        on_impossible: "skip": a reply goes on without tools that have no possible arguments, and says so.
        trace: whether the chunks of a streamed chat say of each token how it came about.
        fields: whether to report how likely the values of fields were: true for all with few options, or JSON Pointers.
        field_options: how many of the likeliest options of each.
        regions: how parts are written, by JSON Pointer of a field or name of a grammar's rule.
        log_mass: whether log-probabilities, and the trace, say of each chosen token what the mask left (log, nats).
        spelling: "canonical": tokens are those that the tokenizer makes of the text.
        heal_prompt: whether the prompt of a completion may end within a token: its end is spelled anew.
        report: whether the answer says of each keyword of the schema whether it is enforced.
    """

    on_budget: Literal["length", "close"] = "length"
    schema_in_prompt: Literal["none", "user", "system"] | None = None
    schema_form: FormOption | None = None
    max_think_tokens: Annotated[int, Field(ge=0)] | None = None
    on_impossible: Literal["refuse", "skip"] = "refuse"
    trace: bool = False
    log_mass: bool = False
    regions: Annotated[dict[str, RegionTerms], Field(max_length=64)] = Field(default_factory=dict)
    spelling: Spelling = "any"
    heal_prompt: bool = False
    report: bool = False
    fields: bool | Annotated[Items[str], Field(max_length=64)] = False
    field_options: Annotated[int, Field(ge=1, le=64)] = 5


def _filter_field(one: Filter) -> Any:
    """The type of a filter's field; a count may be 0 or -1, as in vLLM: then it keeps all."""
    if one.is_count:
        return Annotated[int, Field(ge=-1)] | None
    return Annotated[float, Field(gt=0 if one.above else None, ge=None if one.above else 0, le=one.high)] | None


_FIELDS: dict[str, Any] = {one.name: (_filter_field(one), None) for one in FILTERS if one.served}
_Filters: Any = create_model("_Filters", __base__=RequestPart, **_FIELDS)


RequestSources = dict[str, str | Items[str] | dict[str, str]]


class CommonFields(_Filters):
    """How tokens are drawn, and what all endpoints take besides."""

    model: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    logit_bias: LogitBias | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    priority: Annotated[int, Field(ge=-100, le=100)] | None = None
    structured_outputs: StructuredOutputs | None = None
    sources: RequestSources | None = None
    structgen: StructgenExtension = StructgenExtension()
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    # Accepted; they change nothing.
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: Literal[False] | None = None
    service_tier: Literal["auto", "default"] | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    cache_salt: str | None = None


class SamplingFields(CommonFields):
    """What chat and completions have in common. ``grammar`` is llama.cpp's name for ``structured_outputs.grammar``;
    ``best_of`` and ``use_beam_search``, with what belongs to it, are vLLM's: see ``best_of``."""

    grammar: str | None = None
    stop: str | Annotated[Items[str], Field(max_length=4)] | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    best_of: Annotated[int, Field(ge=1)] | None = None
    use_beam_search: bool | None = None
    length_penalty: Annotated[float, Field(ge=-100, le=100)] | None = None
    early_stopping: bool | Literal["never"] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None


# --- response formats and tools ---
class JsonSchemaFormat(RequestPart):
    """``response_format.json_schema``."""

    name: str = "response"
    description: str | None = None
    schema_: dict[str, Any] | bool = Field(True, alias="schema")
    strict: bool | None = None


class TextFormat(RequestPart):
    """No format."""

    type: Literal["text"]


class JsonObjectFormat(RequestPart):
    """Any JSON object; with llama.cpp's ``schema``, one of the schema's."""

    type: Literal["json_object"]
    schema_: dict[str, Any] | bool | None = Field(None, alias="schema")


class JsonSchemaResponseFormat(RequestPart):
    """JSON of a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchemaFormat


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaResponseFormat, Field(discriminator="type")]


class FunctionDefinition(RequestPart):
    """A function that the model may call."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(RequestPart):
    """A tool that is a function."""

    type: Literal["function"]
    function: FunctionDefinition


class CustomGrammar(RequestPart):
    """The grammar of what a custom tool takes."""

    syntax: Literal["lark", "regex"]
    definition: str


class CustomText(RequestPart):
    """A custom tool takes any text."""

    type: Literal["text"]


class CustomGrammarFormat(RequestPart):
    """A custom tool takes texts of a grammar."""

    type: Literal["grammar"]
    grammar: CustomGrammar


class CustomDefinition(RequestPart):
    """A tool that takes a text."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str | None = None
    format: Annotated[CustomText | CustomGrammarFormat, Field(discriminator="type")] | None = None


class CustomTool(RequestPart):
    """A tool that is no function."""

    type: Literal["custom"]
    custom: CustomDefinition


class FunctionName(RequestPart):
    """A tool by name."""

    name: str


class NamedFunction(RequestPart):
    """``{"type": "function", "function": {"name": ...}}``."""

    type: Literal["function"]
    function: FunctionName


class NamedCustom(RequestPart):
    """``{"type": "custom", "custom": {"name": ...}}``."""

    type: Literal["custom"]
    custom: FunctionName


class AllowedTools(RequestPart):
    """Some of the tools."""

    mode: Literal["auto", "required"]
    tools: Items[Annotated[NamedFunction | NamedCustom, Field(discriminator="type")]]


class AllowedToolsChoice(RequestPart):
    """``{"type": "allowed_tools", "allowed_tools": {...}}``."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


NamedToolChoice = Annotated[NamedFunction | NamedCustom | AllowedToolsChoice, Field(discriminator="type")]


# --- chat ---
class TextPart(RequestPart):
    """Text in a message."""

    type: Literal["text"]
    text: str


class RefusalPart(RequestPart):
    """A refusal in an assistant's message."""

    type: Literal["refusal"]
    refusal: str


class InstructionMessage(RequestPart):
    """A message of the system or developer."""

    role: Literal["system", "developer"]
    content: str | Items[TextPart]
    name: str | None = None


class UserMessage(RequestPart):
    """A message of the user."""

    role: Literal["user"]
    content: str | Items[TextPart]
    name: str | None = None


class FunctionCall(RequestPart):
    """A call: the name, and the arguments as JSON text."""

    name: str
    arguments: str


class AssistantToolCall(RequestPart):
    """A call in an assistant's message."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class CustomInput(RequestPart):
    """A call of a custom tool: its name, and the text."""

    name: str
    input: str


class AssistantCustomCall(RequestPart):
    """A call of a custom tool in an assistant's message."""

    id: str
    type: Literal["custom"]
    custom: CustomInput


AssistantPart = Annotated[TextPart | RefusalPart, Field(discriminator="type")]


class AssistantMessage(RequestPart):
    """A message of the model."""

    role: Literal["assistant"]
    content: str | Items[AssistantPart] | None = None
    name: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: Items[Annotated[AssistantToolCall | AssistantCustomCall, Field(discriminator="type")]] | None = None
    audio: None = None
    function_call: None = None
    annotations: list[Any] | None = None
    provider_specific_fields: dict[str, Any] | None = None  # LiteLLM sends its notes back; they change nothing


class ToolMessage(RequestPart):
    """What a tool answered."""

    role: Literal["tool"]
    content: str | Items[TextPart]
    tool_call_id: str
    name: str | None = None


Message = Annotated[InstructionMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class PredictedContent(RequestPart):
    """Text that much of the output may be like."""

    type: Literal["content"]
    content: str | Items[TextPart]


class ChatRequest(SamplingFields):
    """``POST /v1/chat/completions``."""

    messages: Annotated[Items[Message], Field(min_length=1)]
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: ResponseFormat | None = None
    tools: (
        Annotated[Items[Annotated[FunctionTool | CustomTool, Field(discriminator="type")]], Field(max_length=MAX_TOOLS)]
        | None
    ) = None
    tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | None = None
    parallel_tool_calls: bool | None = None
    prediction: PredictedContent | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


# --- completions ---
class CompletionRequest(SamplingFields):
    """``POST /v1/completions``."""

    prompt: str | Items[str] | Items[int] | Items[Items[int]]
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None


class CheckRequest(RequestPart):
    """``POST /check``: which constraint is to be looked at, with the sources that it names; and a text, with what was
    to come next, to be judged."""

    structured_outputs: StructuredOutputs
    sources: RequestSources | None = None
    text: str | None = None
    token: str = ""


# --- what is refused, and why ---
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "modalities": (None, ["text"]),
    "audio": (None,),
    "functions": (None, []),
    "function_call": (None, "none"),
    "moderation": (None,),
    "web_search_options": (None,),
    "verbosity": (None, "medium"),
    "echo": (None, False),
    "suffix": (None, ""),
    "background": (None, False),
    "conversation": (None,),
    "previous_response_id": (None,),
    "prompt": (None,),
    "truncation": (None, "disabled"),
    "max_tool_calls": (None,),
    "context_management": (None, []),
    "access_programs": (None,),
    "background_options": (None,),
    "image": (None,),
}
"""Fields of OpenAI's API that are not supported, and the values with which they say nothing."""
SUCCESSORS = {
    "guided_json": "structured_outputs.json",
    "guided_regex": "structured_outputs.regex",
    "guided_choice": "structured_outputs.choice",
    "guided_grammar": "structured_outputs.grammar",
    "guided_json_object": "structured_outputs.json_object",
    "functions": "tools",
    "function_call": "tool_choice",
    "json_schema": "response_format",
    "response_model": "response_format",
    "format": "response_format",
    "schema": "response_format",
    "json_object": "response_format",
    "grammar": "structured_outputs.grammar",
    "ebnf": "structured_outputs.grammar",
    "regex": "structured_outputs.regex",
    "choices": "structured_outputs.choice",
    "structural_tag": "structured_outputs.structural_tag",
    "repeat_penalty": "repetition_penalty",
    "n_predict": "max_tokens",
    "num_predict": "max_tokens",
    "max_new_tokens": "max_tokens",
    "max_length": "max_tokens",
}
"""What stands in for fields that are refused; the last are names of other servers and libraries."""
NESTED_SUCCESSORS = {
    "schema": "response_format.json_schema.schema",
    "json_schema": "response_format.json_schema.schema",
    "grammar": "structured_outputs.grammar",
    "regex": "structured_outputs.regex",
    "pattern": "structured_outputs.regex",
}
"""The same for fields within others: without these, an output would be free of what was asked for."""
