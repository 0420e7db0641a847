"""The header that says what of a constraint is enforced, in answers of an ASGI application."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from structgen.core.constraints.specs import ConstraintSpec
from structgen.integrations.vllm.middleware import HEADER, MOST, ReportHeader, note, said_of
from tests.core.tool_calls.vocabularies import BYTES

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "description": "x"}}, "x-note": 1}


def answered(app: Any, kind: str = "http") -> list[dict[str, Any]]:
    """What is sent for a request."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def receive() -> Any:
        return {"type": "http.request"}

    asyncio.run(ReportHeader(app)({"type": kind}, receive, send))
    return sent


@pytest.mark.parametrize("streams", [False, True])
def test_the_header(streams: bool) -> None:
    """Streams begin before their constraint is read, and the header is there all the same."""
    grammar = ConstraintSpec("json", SCHEMA).compile(BYTES)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if not streams:
            note("json", grammar)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        if streams:
            await asyncio.create_task(asyncio.to_thread(note, "json", grammar))
        await send({"type": "http.response.body", "body": b"1", "more_body": True})
        await send({"type": "http.response.body", "body": b"2"})

    start, *bodies = answered(app)
    headers = dict(start["headers"])
    said = json.loads(headers[HEADER])
    assert headers[b"a"] == b"b" and [body["body"] for body in bodies] == [b"1", b"2"]
    assert said["kind"] == "json" and said["counts"]["enforced"] >= 2
    assert "enforced" not in said["keywords"].values()


def test_answers_without_a_constraint_are_as_they_were() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    assert answered(app) == [{"type": "http.response.start", "status": 204, "headers": []}]
    assert answered(app, "websocket") == answered(app)


def test_outside_of_a_request_nothing_is_noted() -> None:
    note("json", ConstraintSpec("json", SCHEMA).compile(BYTES))


def test_a_long_report_is_cut_by_keywords() -> None:
    schema = {"properties": {f"name{number:04}": {"description": "x", "examples": []} for number in range(500)}}
    grammar = ConstraintSpec("json", schema).compile(BYTES)
    text = said_of("json", grammar)
    said = json.loads(text)
    assert len(text) <= MOST and text.isascii()
    assert sum(said["counts"].values()) - said["counts"].get("enforced", 0) == len(said["keywords"]) + said["left_out"]
