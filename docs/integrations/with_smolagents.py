"""smolagents: structured output and tools, plain and streamed.

Run `structgen serve` first. STRUCTGEN_URL says where it listens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from smolagents import OpenAIModel, Tool
from smolagents.models import agglomerate_stream_deltas

URL = os.environ.get("STRUCTGEN_URL", "http://127.0.0.1:8000/v1")
model = OpenAIModel("SmolLM2-135M-Instruct", api_base=URL, api_key="unused")

TICKET = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 60},
        "area": {"type": "string", "enum": ["login", "billing", "other"]},
        "urgent": {"type": "boolean"},
    },
    "required": ["title", "area", "urgent"],
    "additionalProperties": False,
}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "Ticket", "schema": TICKET, "strict": True}}
COMPLAINT: Any = [{"role": "user", "content": [{"type": "text", "text": "The login page is down for everybody!"}]}]
QUESTION: Any = [{"role": "user", "content": [{"type": "text", "text": "What will the weather be like tomorrow?"}]}]


class Weather(Tool):
    """A tool of an agent."""

    name = "weather"
    description = "The weather of a city on the next days."
    inputs = {  # noqa: RUF012
        "city": {"type": "string", "description": "The city", "enum": ["Paris", "Rome"]},
        "days": {"type": "integer", "description": "How many days", "minimum": 1, "maximum": 9},
    }
    output_type = "string"

    def forward(self, city: str, days: int) -> str:
        """Answer a call."""
        return f"sunny in {city} for {days} days"


def structured() -> Any:
    """A value of a schema."""
    return json.loads(model.generate(COMPLAINT, response_format=FORMAT).content)


def structured_streamed() -> Iterator[Any]:
    """The text so far, and then its value."""
    text = ""
    for delta in model.generate_stream(COMPLAINT, response_format=FORMAT):
        text += delta.content or ""
        yield text
    yield json.loads(text)


def tools() -> Any:
    """The arguments of a call."""
    call = model.generate(QUESTION, tools_to_call_from=[Weather()]).tool_calls[0]
    return json.loads(call.function.arguments)


def tools_streamed() -> Iterator[Any]:
    """The arguments of a call as they are written, and then all of them."""
    deltas = []
    for delta in model.generate_stream(QUESTION, tools_to_call_from=[Weather()]):
        deltas.append(delta)
        for call in agglomerate_stream_deltas(deltas).tool_calls or []:
            yield call.function.arguments
    yield json.loads(agglomerate_stream_deltas(deltas).tool_calls[0].function.arguments)


if __name__ == "__main__":
    print(structured())
    print(*structured_streamed(), sep="\n")
    print(tools())
    print(*tools_streamed(), sep="\n")
