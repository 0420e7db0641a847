"""LiteLLM: structured output and tools, plain and streamed.

Run `structgen serve` first. STRUCTGEN_URL says where it listens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Literal

import litellm
import pydantic_core
from pydantic import BaseModel, Field

URL = os.environ.get("STRUCTGEN_URL", "http://127.0.0.1:8000/v1")
SERVER: Any = {"model": "openai/SmolLM2-135M-Instruct", "api_base": URL, "api_key": "unused"}


class Ticket(BaseModel):
    """What a customer wants."""

    title: str = Field(max_length=60)
    area: Literal["login", "billing", "other"]
    urgent: bool


class Weather(BaseModel):
    """The weather of a city on the next days."""

    city: Literal["Paris", "Rome"]
    days: int = Field(ge=1, le=9)


COMPLAINT = [{"role": "user", "content": "The login page is down for everybody!"}]
QUESTION = [{"role": "user", "content": "What will the weather be like in Paris tomorrow?"}]
TOOL = {"type": "function", "function": {"name": "weather", "parameters": Weather.model_json_schema()}}


def structured() -> Ticket:
    """A value of a class."""
    answer = litellm.completion(**SERVER, messages=COMPLAINT, response_format=Ticket)
    return Ticket.model_validate_json(answer.choices[0].message.content)


def structured_streamed() -> Iterator[Any]:
    """What is known of it so far, and then all of it."""
    text = ""
    for chunk in litellm.completion(**SERVER, messages=COMPLAINT, response_format=Ticket, stream=True):
        text += chunk.choices[0].delta.content or ""
        if text:
            yield pydantic_core.from_json(text, allow_partial=True)


def tools() -> Any:
    """The arguments of a call."""
    answer = litellm.completion(
        **SERVER, messages=QUESTION, tools=[TOOL], tool_choice="required", parallel_tool_calls=False
    )
    (call,) = answer.choices[0].message.tool_calls
    return json.loads(call.function.arguments)


def tools_streamed() -> Iterator[Any]:
    """The arguments of a call as they are written, and then all of them."""
    text = ""
    for chunk in litellm.completion(
        **SERVER, messages=QUESTION, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, stream=True
    ):
        for call in chunk.choices[0].delta.tool_calls or []:
            text += call.function.arguments or ""
            if text:
                yield pydantic_core.from_json(text, allow_partial=True)


def answered() -> Any:
    """The reply to what the tool answered."""
    asked = litellm.completion(**SERVER, messages=QUESTION, tools=[TOOL], tool_choice="required").choices[0].message
    messages = [*QUESTION, asked]
    for call in asked.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "Sunny."})
    answer = litellm.completion(**SERVER, messages=messages, tools=[TOOL], tool_choice="none", max_tokens=40)
    return answer.choices[0].message.content


if __name__ == "__main__":
    print(structured())
    print(*structured_streamed(), sep="\n")
    print(tools())
    print(*tools_streamed(), sep="\n")
    print(answered())
