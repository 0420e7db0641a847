"""What is malformed, too large, too deep, too slow to compile, or not allowed: its status, and what others notice."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from serving_load.client import CHAT, Client, Others, others
from serving_load.lab import Lab, Server
from serving_load.measurements import Found, measurement, say
from serving_load.workload import endless

KEY = "the-key"
SECONDS = 3.0  # of each case, and before it
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}


def cases() -> Iterator[tuple[str, bytes, str, tuple[int, str]]]:
    """Name, body, key, and the status and code that it must have."""

    def constrained(**outputs: Any) -> bytes:
        return json.dumps({**HELLO, "structured_outputs": outputs}).encode()

    deep = '{"items":' * 10_000 + "{}" + "}" * 10_000
    yield "malformed JSON", b'{"messages": [', KEY, (400, "invalid_json")
    yield "no UTF-8", b"\xff\xfe{}", KEY, (400, "invalid_json")
    yield "brackets 200,000 deep", b"[" * 200_000, KEY, (400, "invalid_json")
    yield "unknown field", json.dumps({**HELLO, "nonsense": 1}).encode(), KEY, (400, "unsupported_parameter")
    yield "5 MB", b" " * (5 << 20), KEY, (413, "request_too_large")
    yield "2 MB schema", constrained(json={"enum": ["x" * (2 << 20)]}), KEY, (400, "grammar_too_complex")
    prompt = json.dumps({**HELLO, "messages": [{"role": "user", "content": "hello " * 600_000}]}).encode()
    yield "prompt of 3.6 MB", prompt, KEY, (400, "context_length_exceeded")
    many = {"enum": [f"value {number}" for number in range(120_000)]}
    yield "2 MB schema of small values", constrained(json=many), KEY, (400, "grammar_too_complex")
    schema = b'{"messages":[{"role":"user","content":"x"}],"structured_outputs":{"json":' + deep.encode() + b"}}"
    yield "schema 10,000 deep", schema, KEY, (400, "*")
    yield (
        "schema 500 deep",
        constrained(json=json.loads('{"items":' * 500 + "{}" + "}" * 500)),
        KEY,
        (400, "grammar_too_complex"),
    )
    yield "hostile expression", constrained(regex="(a|b)*a(a|b){40}"), KEY, (400, "grammar_too_complex")
    yield "hostile pattern", constrained(json={"type": "string", "pattern": "(x+x+)+y{1,999}z{1,999}$"}), KEY, (0, "*")
    yield "bad grammar", constrained(grammar="root ::= ("), KEY, (400, "invalid_grammar")
    yield (
        "empty language",
        constrained(json={"type": "integer", "minimum": 2, "maximum": 1}),
        KEY,
        (400, "unsatisfiable_schema"),
    )
    yield "wrong key", json.dumps(HELLO).encode(), "not-the-key", (401, "invalid_api_key")
    yield "no key", json.dumps(HELLO).encode(), "", (401, "invalid_api_key")
    yield "n = 1,000", json.dumps({**HELLO, "n": 1000}).encode(), KEY, (400, "*")


@dataclass(frozen=True)
class Tried:
    """What came of a case.

    Attributes:
        found: its last status and code.
        without, beside: others' texts a second.
        by_processor: others' texts for a second of the server's processor, beside it over without.
    """

    found: tuple[int, str]
    without: float
    beside: float
    by_processor: float


@measurement("abuse", "others' pace while each abuse is tried, over that without; statuses are right", at_least=0.95)
async def abuse(lab: Lab) -> Found:
    """By turns, for each case: some seconds without, then the case again and again for as long."""
    tried, wrong = dict[str, Tried](), dict[str, str]()
    with lab.own_server(STRUCTGEN_API_KEYS=KEY) as server:
        async with (
            Client(server.url, KEY) as client,
            others(client, [endless(row) for row in range(8)]) as writing,
        ):
            for name, data, key, (status, code) in cases():
                one = tried[name] = await _try(client, server, writing, data, key)
                told, why = one.found
                if told >= 500 or status not in (0, told) or code not in ("*", why):
                    wrong[name] = f"{told} {why}, expected {status} {code}"
                ratio = one.beside / one.without
                say(f"{name}: {told} {why}; others x {ratio:.2f}, x {one.by_processor:.2f} by processor")
            if not writing.are_writing:
                wrong["others"] = "a stream has ended"
    return Found(
        sum(one.beside for one in tried.values()) / sum(one.without for one in tried.values()),
        {
            "by_case": {name: round(one.beside / one.without, 3) for name, one in tried.items()},
            "by_processor": {name: round(one.by_processor, 3) for name, one in tried.items()},
        },
        "; ".join(f"{name}: {what}" for name, what in wrong.items()),
    )


async def _try(client: Client, server: Server, writing: Others, data: bytes, key: str) -> Tried:
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}" if key else ""}
    marks = [(time.perf_counter(), server.processor_seconds())]
    await asyncio.sleep(SECONDS)
    marks.append((time.perf_counter(), server.processor_seconds()))
    while time.perf_counter() < marks[1][0] + SECONDS:
        reply = await client.http.post(CHAT, content=data, headers=headers)
        await asyncio.sleep(0.2)
    marks.append((time.perf_counter(), server.processor_seconds()))
    paces, costs = list[float](), list[float]()
    for (start, used), (end, used_then) in itertools.pairwise(marks):
        paces.append(writing.pace(start, end))
        costs.append((used_then - used) / (end - start) / paces[-1])
    found = reply.status_code, str(reply.json().get("error", {}).get("code", ""))
    return Tried(found, paces[0], paces[1], costs[0] / costs[1])
