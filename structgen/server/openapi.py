"""The server's endpoints as an OpenAPI document, made of the types that requests are read with."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.json_schema import models_json_schema

from structgen.server.openai_types import ChatRequest, CheckRequest, CompletionRequest, RequestPart
from structgen.server.responses_types import ResponseRequest
from structgen.server.token_endpoints import DetokenizeRequest, TokenizeRequest

_SCHEMA = "#/components/schemas/{model}"
_PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
_ASKED = [{"role": "user", "content": "Ada Lovelace, 36"}]
_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"], "description": "The field of the request that is wrong."},
                "code": {"type": ["string", "null"]},
                "pointer": {"type": "string", "description": "A JSON Pointer into the request."},
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}


@dataclass(frozen=True)
class Described:
    """An endpoint as the document has it.

    Attributes:
        summary: what it does.
        request: the type of its body; None: it has none.
        example: of the body.
        streams: whether it can answer with events.
        keyed: whether it asks for a key, where the server has some.
    """

    summary: str
    request: type[RequestPart] | None = None
    example: Mapping[str, Any] | None = None
    streams: bool = False
    keyed: bool = True

    @property
    def method(self) -> str:
        """Of HTTP."""
        return "get" if self.request is None else "post"


ENDPOINTS = {
    "/v1/chat/completions": Described(
        "Answer messages, with tools and response formats",
        ChatRequest,
        {
            "messages": _ASKED,
            "max_tokens": 100,
            "response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": _PERSON}},
        },
        streams=True,
    ),
    "/v1/completions": Described(
        "Continue prompts as they are",
        CompletionRequest,
        {"prompt": "The year of the first Moon landing:", "structured_outputs": {"regex": "[0-9]{4}"}},
        streams=True,
    ),
    "/v1/responses": Described(
        "Answer input items; nothing is stored",
        ResponseRequest,
        {
            "input": "Ada Lovelace, 36",
            "max_output_tokens": 100,
            "text": {"format": {"type": "json_schema", "name": "person", "schema": _PERSON}},
        },
        streams=True,
    ),
    "/v1/models": Described("The model by its names"),
    "/v1/models/{model}": Described("The model, if it has this name"),
    "/tokenize": Described(
        "The tokens of a prompt, or of messages", TokenizeRequest, {"prompt": "Hello", "return_token_strs": True}
    ),
    "/detokenize": Described("The text of tokens", DetokenizeRequest, {"tokens": [1, 2, 3]}),
    "/check": Described(
        "What of a constraint is enforced, without writing",
        CheckRequest,
        {"structured_outputs": {"json": _PERSON}},
    ),
    "/health": Described("503 once the model thread is lost", keyed=False),
    "/ready": Described("503 until a first token was written, and while the server drains", keyed=False),
    "/metrics": Described("Counts and times for Prometheus", keyed=False),
}
"""What is described; pages, and this description, are not."""


def openapi(root_path: str = "") -> dict[str, Any]:
    """The OpenAPI 3.1 document.

    Args:
        root_path: where a proxy has put the server.
    """
    types = sorted({one.request for one in ENDPOINTS.values() if one.request is not None}, key=lambda one: one.__name__)
    _, schemas = models_json_schema([(one, "validation") for one in types], ref_template=_SCHEMA)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "structgen",
            "version": _version(),
            "description": "OpenAI's API, whose outputs satisfy every schema, grammar and tool that a request names.",
        },
        "servers": [{"url": root_path or "/"}],
        "paths": {path: {one.method: _operation(path, one)} for path, one in ENDPOINTS.items()},
        "components": {
            "schemas": {**schemas.get("$defs", {}), "Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(path: str, one: Described) -> dict[str, Any]:
    answer: dict[str, Any] = {"text/plain" if path == "/metrics" else "application/json": {}}
    if one.streams:
        answer["text/event-stream"] = {}
    refused = {"application/json": {"schema": {"$ref": _SCHEMA.format(model="Error")}}}
    operation: dict[str, Any] = {
        "summary": one.summary,
        "operationId": f"{one.method}{path.replace('{', '').replace('}', '').replace('/', '_')}",
        "responses": {
            "200": {"description": "The answer", "content": answer},
            "default": {"description": "What is wrong", "content": refused},
        },
    }
    if one.request is not None:
        reference = {"$ref": _SCHEMA.format(model=one.request.__name__)}
        body = {"schema": reference, "example": one.example}
        operation["requestBody"] = {"required": True, "content": {"application/json": body}}
    if "{model}" in path:
        operation["parameters"] = [{"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}]
    return {**operation, "security": [{"key": []}]} if one.keyed else operation


def _version() -> str:
    try:
        return importlib.metadata.version("structgen-lm")
    except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed
        return "0"
