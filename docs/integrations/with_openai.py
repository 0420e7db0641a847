"""OpenAI's client: structured output and tools, plain and streamed.

Run `structgen serve` first. STRUCTGEN_URL says where it listens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Literal

import openai
from pydantic import BaseModel, Field

URL = os.environ.get("STRUCTGEN_URL", "http://127.0.0.1:8000/v1")
MODEL = "SmolLM2-135M-Instruct"
client = openai.OpenAI(base_url=URL, api_key="unused")


class Ticket(BaseModel):
    """What a customer wants."""

    title: str = Field(max_length=60)
    area: Literal["login", "billing", "other"]
    urgent: bool


class Weather(BaseModel):
    """The weather of a city on the next days."""

    city: Literal["Paris", "Rome"]
    days: int = Field(ge=1, le=9)


COMPLAINT: Any = [{"role": "user", "content": "The login page is down for everybody!"}]
QUESTION: Any = [{"role": "user", "content": "What will the weather be like in Paris tomorrow?"}]


def structured() -> Ticket | None:
    """A value of a class."""
    answer = client.chat.completions.parse(model=MODEL, messages=COMPLAINT, response_format=Ticket)
    return answer.choices[0].message.parsed


def structured_streamed() -> Iterator[Any]:
    """What is known of it so far, and then all of it."""
    with client.chat.completions.stream(model=MODEL, messages=COMPLAINT, response_format=Ticket) as stream:
        for event in stream:
            if event.type == "content.delta" and event.parsed:
                yield event.parsed
        yield stream.get_final_completion().choices[0].message.parsed


def tools() -> Any:
    """The arguments of a call."""
    answer = client.chat.completions.parse(
        model=MODEL,
        messages=QUESTION,
        tools=[openai.pydantic_function_tool(Weather)],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    (call,) = answer.choices[0].message.tool_calls or []
    return call.function.parsed_arguments


def tools_streamed() -> Iterator[Any]:
    """The arguments of a call as they are written, and then all of them."""
    with client.chat.completions.stream(
        model=MODEL,
        messages=QUESTION,
        tools=[openai.pydantic_function_tool(Weather)],
        tool_choice="required",
        parallel_tool_calls=False,
    ) as stream:
        for event in stream:
            if event.type == "tool_calls.function.arguments.delta":
                yield event.arguments
        (call,) = stream.get_final_completion().choices[0].message.tool_calls or []
        yield json.loads(call.function.arguments)


def answered() -> str | None:
    """The reply to what the tool answered."""
    tool = openai.pydantic_function_tool(Weather)
    asked = client.chat.completions.create(model=MODEL, messages=QUESTION, tools=[tool], tool_choice="required")
    messages = [*QUESTION, asked.choices[0].message]
    for call in asked.choices[0].message.tool_calls or []:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "Sunny."})
    answer = client.chat.completions.create(
        model=MODEL, messages=messages, tools=[tool], tool_choice="none", max_tokens=40
    )
    return answer.choices[0].message.content


if __name__ == "__main__":
    print(structured())
    print(*structured_streamed(), sep="\n")
    print(tools())
    print(*tools_streamed(), sep="\n")
    print(answered())
