"""What of a request's constraint is enforced, as a header of vLLM's answers, streamed ones too.

    vllm serve MODEL --middleware structgen.integrations.vllm.middleware.ReportHeader

vLLM's answers have no open field, so the header ``x-structgen-report`` says it: a JSON object with the ``kind`` of the
constraint, ``counts`` of keywords by what becomes of them, and the keywords that are not ``enforced``, by JSON Pointer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HEADER = b"x-structgen-report"
MOST = 4_000
"""Characters of the header; servers and proxies take some 8,000 of all."""
_notes: ContextVar[list[str] | None] = ContextVar("structgen_notes", default=None)


class ReportHeader:
    """ASGI middleware that adds the header."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """See the ASGI specification. The start of an answer waits for its first part: constraints are read before."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        notes = list[str]()
        starts = list[Message]()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                starts.append(message)
                return
            while starts:
                await send(_with(starts.pop(), notes))
            await send(message)

        token = _notes.set(notes)
        try:
            await self._app(scope, receive, sending)
        finally:
            _notes.reset(token)
        while starts:
            await send(_with(starts.pop(), notes))


def _with(start: Message, notes: list[str]) -> Message:
    return {**start, "headers": [*start.get("headers", ()), *((HEADER, note.encode()) for note in notes[-1:])]}


def note(kind: str, grammar: Any) -> None:
    """Note what of a compiled constraint is enforced, for the answer to the request that is being handled."""
    notes = _notes.get()
    if notes is not None:
        notes.append(said_of(kind, grammar))


def said_of(kind: str, grammar: Any) -> str:
    """The text of the header, in ASCII; where there is no room for all keywords, ``left_out`` says how many are not in
    it."""
    from structgen.core.constraints.remarks import reports_of  # late: vLLM loads the middleware before the engines

    entries = [entry for report in reports_of(grammar) for entry in report.entries]
    others = [(entry.pointer, entry.status) for entry in entries if entry.status != "enforced"]
    said: dict[str, Any] = {"kind": kind, "counts": dict(Counter(entry.status for entry in entries))}
    shown = len(others)
    while True:
        more = {"left_out": len(others) - shown} if shown < len(others) else {}
        text = json.dumps({**said, "keywords": dict(others[:shown]), **more})
        if len(text) <= MOST or not shown:
            return text
        shown //= 2
