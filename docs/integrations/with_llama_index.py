"""LlamaIndex (llama-index-llms-openai-like): structured output and tools, plain and streamed.

Run `structgen serve` first. STRUCTGEN_URL says where it listens.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

URL = os.environ.get("STRUCTGEN_URL", "http://127.0.0.1:8000/v1")
server: Any = {"model": "SmolLM2-135M-Instruct", "api_base": URL, "api_key": "unused", "is_chat_model": True}
by_format = OpenAILike(**server, should_use_structured_outputs=True)
by_tool = OpenAILike(**server, is_function_calling_model=True)


class Ticket(BaseModel):
    """What a customer wants."""

    title: str = Field(max_length=60)
    area: Literal["login", "billing", "other"]
    urgent: bool


class Weather(BaseModel):
    """The weather of a city on the next days."""

    city: Literal["Paris", "Rome"]
    days: int = Field(ge=1, le=9)


COMPLAINT = [ChatMessage(content="The login page is down for everybody!")]
QUESTION = [ChatMessage(content="What will the weather be like in Paris tomorrow?")]


def weather(city: str, days: int) -> str:
    """The weather of a city on the next days."""
    return f"sunny in {city} for {days} days"


tool = FunctionTool.from_defaults(weather, fn_schema=Weather)


def structured() -> Any:
    """A value of a class."""
    return by_format.as_structured_llm(Ticket).chat(COMPLAINT).raw


def structured_streamed() -> Iterator[Any]:
    """What is known of it so far, and then all of it."""
    for part in by_format.as_structured_llm(Ticket).stream_chat(COMPLAINT):
        yield part.raw


def tools() -> Any:
    """The arguments of a call."""
    answer = by_tool.chat_with_tools([tool], chat_history=QUESTION, tool_required=True)
    (call,) = by_tool.get_tool_calls_from_response(answer)
    return call.tool_kwargs


def tools_streamed() -> Iterator[Any]:
    """The arguments of a call as they are written, and then all of them."""
    for part in by_tool.stream_chat_with_tools([tool], chat_history=QUESTION, tool_required=True):
        for call in by_tool.get_tool_calls_from_response(part, error_on_no_tool_call=False):
            yield call.tool_kwargs


def answered() -> str:
    """The reply to what the tool answered."""
    asked = by_tool.chat_with_tools([tool], chat_history=QUESTION, tool_required=True)
    messages = [*QUESTION, asked.message]
    for call in by_tool.get_tool_calls_from_response(asked):
        result = str(tool(**call.tool_kwargs))
        messages.append(ChatMessage(role="tool", content=result, additional_kwargs={"tool_call_id": call.tool_id}))
    return str(by_tool.chat(messages, max_tokens=40).message.content)


if __name__ == "__main__":
    print(structured())
    print(*structured_streamed(), sep="\n")
    print(tools())
    print(*tools_streamed(), sep="\n")
    print(answered())
