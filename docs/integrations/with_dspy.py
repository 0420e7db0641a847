"""DSPy: structured output and tools, plain and streamed.

Run `structgen serve --name gpt-4o-mini` first. STRUCTGEN_URL says where it listens.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

import dspy
from pydantic import BaseModel, Field

URL = os.environ.get("STRUCTGEN_URL", "http://127.0.0.1:8000/v1")
# What a model can do DSPy tells by its name: to those that it does not know it sends neither schemas nor tools.
server = dspy.LM("openai/gpt-4o-mini", api_base=URL, api_key="unused", cache=False)
dspy.configure(lm=server, adapter=dspy.JSONAdapter())


class Ticket(BaseModel):
    """What a customer wants."""

    title: str = Field(max_length=60)
    area: Literal["login", "billing", "other"]
    urgent: bool


class Triage(dspy.Signature):
    """Make a ticket of what a customer writes."""

    message: str = dspy.InputField()
    ticket: Ticket = dspy.OutputField()


class Ask(dspy.Signature):
    """Call a tool that answers the question."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


COMPLAINT = "The login page is down for everybody!"
QUESTION = "What will the weather be like in Paris tomorrow?"


def weather(city: Literal["Paris", "Rome"], days: Literal[1, 2, 3]) -> str:
    """The weather of a city on the next days."""
    return f"sunny in {city} for {days} days"


triage = dspy.Predict(Triage)
ask = dspy.Predict(Ask)
CALL = {"tool_choice": "required", "parallel_tool_calls": False}


def structured() -> Any:
    """A value of a class."""
    return triage(message=COMPLAINT).ticket


def structured_streamed() -> Iterator[Any]:
    """The text of it as it is written, and then its value."""
    for part in streamed(triage, "ticket", message=COMPLAINT):
        yield part.ticket if isinstance(part, dspy.Prediction) else part.chunk


def tools() -> Any:
    """The arguments of a call."""
    (call,) = ask(question=QUESTION, tools=[dspy.Tool(weather)], config=CALL).calls.tool_calls
    return call.args


def tools_streamed() -> Iterator[Any]:
    """The arguments of a call. They are streamed to DSPy, but it hands on pieces of text fields only."""
    for part in streamed(ask, "calls", question=QUESTION, tools=[dspy.Tool(weather)], config=CALL):
        if isinstance(part, dspy.Prediction):
            yield part.calls.tool_calls[0].args


def streamed(program: dspy.Module, field: str, **inputs: Any) -> Iterator[Any]:
    """What a field is given piece by piece, and then the prediction."""
    listener = dspy.streaming.StreamListener(signature_field_name=field)
    yield from dspy.streamify(program, stream_listeners=[listener], async_streaming=False)(**inputs)


if __name__ == "__main__":
    print(structured())
    print(*structured_streamed(), sep="\n")
    print(tools())
    print(*tools_streamed(), sep="\n")
