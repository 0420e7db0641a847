"""pydantic-ai: structured output and tools, plain and streamed.

Run `structgen serve` first. STRUCTGEN_URL says where it listens.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

URL = os.environ.get("STRUCTGEN_URL", "http://127.0.0.1:8000/v1")
model = OpenAIChatModel("SmolLM2-135M-Instruct", provider=OpenAIProvider(base_url=URL, api_key="unused"))


class Ticket(BaseModel):
    """What a customer wants."""

    title: str = Field(max_length=60)
    area: Literal["login", "billing", "other"]
    urgent: bool


class Weather(BaseModel):
    """The weather of a city on the next days."""

    city: Literal["Paris", "Rome"]
    days: int = Field(ge=1, le=9)


COMPLAINT = "The login page is down for everybody!"
QUESTION = "What will the weather be like in Paris tomorrow?"

by_format = Agent(model, output_type=NativeOutput(Ticket))  # a response format
by_tool = Agent(model, output_type=ToolOutput(Weather))  # its default: a tool that must be called
by_text = Agent(model, model_settings={"max_tokens": 40})


def structured() -> Ticket:
    """A value of a class."""
    return by_format.run_sync(COMPLAINT).output


def structured_streamed() -> Iterator[Any]:
    """What is known of it so far, and then all of it."""
    yield from asyncio.run(_streamed(by_format, COMPLAINT))


def tools() -> Weather:
    """The arguments of the call that ends the run."""
    return by_tool.run_sync(QUESTION).output


def tools_streamed() -> Iterator[Any]:
    """The arguments of the call that ends the run as they are written, and then all of them."""
    yield from asyncio.run(_streamed(by_tool, QUESTION))


async def _streamed(agent: Agent[None, Any], prompt: str) -> list[Any]:
    async with agent.run_stream(prompt) as stream:
        return [value async for value in stream.stream_output(debounce_by=None)]


def answered() -> str:
    """The reply to what came before, the call and its answer among it."""
    before = by_tool.run_sync(QUESTION).all_messages()
    return by_text.run_sync("And in Rome?", message_history=before).output


if __name__ == "__main__":
    print(structured())
    print(*structured_streamed(), sep="\n")
    print(tools())
    print(*tools_streamed(), sep="\n")
    print(answered())
