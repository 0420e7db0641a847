"""instructor: structured output and tools, plain and streamed.

Run `structgen serve` first. STRUCTGEN_URL says where it listens.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

import instructor
import openai
from pydantic import BaseModel, Field

URL = os.environ.get("STRUCTGEN_URL", "http://127.0.0.1:8000/v1")
MODEL = "SmolLM2-135M-Instruct"


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

client = openai.OpenAI(base_url=URL, api_key="unused")
by_format = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)
by_tool = instructor.from_openai(client)  # its default: a tool that must be called


def structured() -> Ticket:
    """A value of a class."""
    return by_format.create(model=MODEL, messages=COMPLAINT, response_model=Ticket)


def structured_streamed() -> Iterator[Any]:
    """What is known of it so far, and then all of it."""
    yield from by_format.create_partial(model=MODEL, messages=COMPLAINT, response_model=Ticket)


def tools() -> Weather:
    """The arguments of a call."""
    return by_tool.create(model=MODEL, messages=QUESTION, response_model=Weather)


def tools_streamed() -> Iterator[Any]:
    """The arguments of a call as they are written, and then all of them."""
    yield from by_tool.create_partial(model=MODEL, messages=QUESTION, response_model=Weather)


if __name__ == "__main__":
    print(structured())
    print(*structured_streamed(), sep="\n")
    print(tools())
    print(*tools_streamed(), sep="\n")
