"""The frameworks' models over a tiny generator of this process; prints what each part gave as a line of JSON.

Runs in an environment with the frameworks; what structgen needs may come from another one, named by the arguments.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any, Literal

sys.path += sys.argv[2:]  # behind the environment's own

import pydantic

from structgen import QuoteOf
from structgen.server.in_process import (
    InProcessServer,
    langchain_model,
    pydantic_ai_model,
    smolagents_model,
)
from tests.server.tiny import generator

PROMPT = "The login page is down for everybody!"


class Ticket(pydantic.BaseModel):
    """What a customer wants."""

    title: str = pydantic.Field(max_length=20)
    area: Literal["login", "billing"]


class Claim(pydantic.BaseModel):
    """What a customer says, in their words."""

    quote: Annotated[str, QuoteOf(PROMPT, "word"), pydantic.Field(min_length=5)]
    asked: Annotated[str, QuoteOf.named("prompt"), pydantic.Field(min_length=5)]


def with_pydantic_ai(server: InProcessServer) -> dict[str, Any]:
    """A native output, a tool output, a stream, and a tool of the agent's own that is called."""
    from pydantic_ai import Agent, NativeOutput, ToolOutput

    model = pydantic_ai_model(server)
    native = Agent(model, output_type=NativeOutput(Ticket)).run_sync(PROMPT).output
    tool = Agent(model, output_type=ToolOutput(Ticket)).run_sync(PROMPT).output
    with Agent(model, output_type=NativeOutput(Ticket)).run_stream_sync(PROMPT) as stream:
        streamed = list(stream.stream_output(debounce_by=None))
    claims = [Agent(model, output_type=kind(Claim)).run_sync(PROMPT).output for kind in (NativeOutput, ToolOutput)]
    return {"native": native, "tool": tool, "streamed": streamed[-1], "claims": claims}


def with_langchain(server: InProcessServer) -> dict[str, Any]:
    """A class by schema and by tool, a stream, and text."""
    import asyncio

    model = langchain_model(server)
    chunks = list(model.bind(max_tokens=20).stream(PROMPT))
    return {
        "schema": model.with_structured_output(Ticket, method="json_schema").invoke(PROMPT),
        "tool": model.with_structured_output(Ticket, method="function_calling").invoke(PROMPT),
        "async": asyncio.run(model.with_structured_output(Ticket, method="json_schema").ainvoke(PROMPT)),
        "text": len(chunks) > 1,
    }


def with_smolagents(server: InProcessServer) -> dict[str, Any]:
    """A response format, and a call of a tool."""
    from smolagents import tool

    @tool
    def weather(city: str) -> str:
        """The weather of a city.

        Args:
            city: its name
        """
        return "sunny"

    model = smolagents_model(server)
    schema = {"name": "ticket", "schema": {**Ticket.model_json_schema(), "additionalProperties": False}}
    format = {"type": "json_schema", "json_schema": schema}
    messages = [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]
    answer = model.generate(messages, response_format=format)
    called = model.generate(messages, tools_to_call_from=[weather])
    name = called.tool_calls[0].function.name
    return {"format": Ticket.model_validate_json(answer.content), "call": name}


PARTS: dict[str, Callable[[InProcessServer], dict[str, Any]]] = {
    "pydantic_ai": with_pydantic_ai,
    "langchain_openai": with_langchain,
    "smolagents": with_smolagents,
}


def main() -> None:
    """Run one part, and end as scripts do: nobody closes the server."""
    server = InProcessServer(generator(), default_max_tokens=200)
    try:
        found: dict[str, Any] = PARTS[sys.argv[1]](server)
    except Exception:
        found = {"error": traceback.format_exc()}
    print(json.dumps(found, default=lambda value: value.model_dump()))


if __name__ == "__main__":
    main()
