"""Requests of OpenAI's Responses API: fields and types. What is not here is refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from structgen.core.tool_calls.definitions import MAX_TOOLS
from structgen.server.openai_types import (
    CommonFields,
    CustomText,
    Items,
    JsonObjectFormat,
    RequestPart,
    TextFormat,
)

Status = Literal["in_progress", "completed", "incomplete"]


class InputText(RequestPart):
    """Text that goes in."""

    type: Literal["input_text"]
    text: str


class OutputText(RequestPart):
    """Text that came out."""

    type: Literal["output_text"]
    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class OutputRefusal(RequestPart):
    """A refusal that came out."""

    type: Literal["refusal"]
    refusal: str


MessagePart = Annotated[InputText | OutputText | OutputRefusal, Field(discriminator="type")]


class MessageItem(RequestPart):
    """A message."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Items[MessagePart]
    id: str | None = None
    status: Status | None = None
    phase: str | None = None


class FunctionCallItem(RequestPart):
    """A call that the model made."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: Status | None = None


class FunctionCallOutputItem(RequestPart):
    """What a function answered."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | Items[InputText]
    id: str | None = None
    status: Status | None = None


class CustomCallItem(RequestPart):
    """A call of a custom tool that the model made."""

    type: Literal["custom_tool_call"]
    call_id: str
    name: str
    input: str
    id: str | None = None
    status: Status | None = None


class CustomCallOutputItem(RequestPart):
    """What a custom tool answered."""

    type: Literal["custom_tool_call_output"]
    call_id: str
    output: str | Items[InputText]
    id: str | None = None
    status: Status | None = None


class ReasoningText(RequestPart):
    """Thinking, or a summary of it."""

    type: Literal["reasoning_text", "summary_text"]
    text: str


class ReasoningItem(RequestPart):
    """What the model thought."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: Items[ReasoningText] | None = None
    content: Items[ReasoningText] | None = None
    encrypted_content: str | None = None
    status: Status | None = None


def _kind(item: Any) -> str:
    return str(item.get("type", "message")) if isinstance(item, dict) else str(getattr(item, "type", "message"))


InputItem = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[FunctionCallItem, Tag("function_call")]
    | Annotated[FunctionCallOutputItem, Tag("function_call_output")]
    | Annotated[CustomCallItem, Tag("custom_tool_call")]
    | Annotated[CustomCallOutputItem, Tag("custom_tool_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_kind),
]


class ResponseJsonSchema(RequestPart):
    """JSON of a schema."""

    type: Literal["json_schema"]
    name: str = "response"
    schema_: dict[str, Any] | bool = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class ResponseText(RequestPart):
    """``text``."""

    format: Annotated[TextFormat | JsonObjectFormat | ResponseJsonSchema, Field(discriminator="type")] | None = None
    verbosity: Literal["medium"] | None = None


class ResponseReasoning(RequestPart):
    """``reasoning``."""

    effort: str | None = None
    summary: None = None
    generate_summary: None = None


class FlatFunction(RequestPart):
    """A function that the model may call."""

    type: Literal["function"]
    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FlatGrammar(RequestPart):
    """A custom tool takes texts of a grammar."""

    type: Literal["grammar"]
    syntax: Literal["lark", "regex"]
    definition: str


class FlatCustom(RequestPart):
    """A tool that takes a text."""

    type: Literal["custom"]
    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str | None = None
    format: Annotated[CustomText | FlatGrammar, Field(discriminator="type")] | None = None


class FlatChoice(RequestPart):
    """A tool by name."""

    type: Literal["function", "custom"]
    name: str


class FlatAllowed(RequestPart):
    """Some of the tools."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Items[FlatChoice]


class ResponseRequest(CommonFields):
    """``POST /v1/responses``."""

    input: str | Annotated[Items[InputItem], Field(min_length=1)]
    instructions: str | None = None
    text: ResponseText | None = None
    reasoning: ResponseReasoning | None = None
    tools: (
        Annotated[Items[Annotated[FlatFunction | FlatCustom, Field(discriminator="type")]], Field(max_length=MAX_TOOLS)]
        | None
    ) = None
    tool_choice: Literal["none", "auto", "required"] | FlatChoice | FlatAllowed | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    include: Items[Literal["message.output_text.logprobs", "reasoning.encrypted_content"]] | None = None
