"""LangChain (langchain-openai): structured output and tools, plain and streamed.

Run `structgen serve` first. STRUCTGEN_URL says where it listens.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

URL = os.environ.get("STRUCTGEN_URL", "http://127.0.0.1:8000/v1")
model = ChatOpenAI(model="SmolLM2-135M-Instruct", base_url=URL, api_key="unused")


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


def structured() -> Any:
    """A value of a class."""
    return model.with_structured_output(Ticket).invoke(COMPLAINT)


def structured_streamed() -> Iterator[Any]:
    """What is known of it so far, and then all of it (a schema gives dictionaries as they grow)."""
    yield from model.with_structured_output(Ticket.model_json_schema()).stream(COMPLAINT)


def tools() -> Any:
    """The arguments of a call."""
    (call,) = model.bind_tools([Weather], tool_choice="required", parallel_tool_calls=False).invoke(QUESTION).tool_calls
    return call["args"]


def tools_streamed() -> Iterator[Any]:
    """The arguments of a call as they are written, and then all of them."""
    whole: Any = None
    for chunk in model.bind_tools([Weather], tool_choice="required", parallel_tool_calls=False).stream(QUESTION):
        whole = chunk if whole is None else whole + chunk
        for call in whole.tool_calls:
            yield call["args"]


def answered() -> Any:
    """The reply to what the tool answered."""
    asked: Any = model.bind_tools([Weather], tool_choice="required").invoke(QUESTION)
    results = [ToolMessage("Sunny.", tool_call_id=call["id"]) for call in asked.tool_calls]
    answer = model.bind_tools([Weather], tool_choice="none", max_tokens=40)
    return answer.invoke([HumanMessage(QUESTION), asked, *results]).content


if __name__ == "__main__":
    print(structured())
    print(*structured_streamed(), sep="\n")
    print(tools())
    print(*tools_streamed(), sep="\n")
    print(answered())
