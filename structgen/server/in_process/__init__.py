"""Agent frameworks and OpenAI's client over a generator of this process: no server to start, no socket."""

from structgen.server.in_process.models import (
    async_openai_client,
    langchain_model,
    openai_client,
    pydantic_ai_model,
    smolagents_model,
)
from structgen.server.in_process.server import InProcessServer

__all__ = [
    "InProcessServer",
    "async_openai_client",
    "langchain_model",
    "openai_client",
    "pydantic_ai_model",
    "smolagents_model",
]
