"""What is malformed, too large, too deep, too slow to compile, or not allowed: its status, and what others notice."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

from serving_load.client import CHAT, Client, others
from serving_load.lab import Lab
from serving_load.measurements import Found, measurement, say, spread
from serving_load.workload import endless

KEY = "the-key"
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


@measurement("abuse", "others' pace while each abuse is tried, over that without; statuses are right", at_least=0.95)
async def abuse(lab: Lab) -> Found:
    """By turns, for each case: some seconds without, then the case again and again for as long."""
    ratios, wrong = dict[str, float](), dict[str, str]()
    with lab.own_server(STRUCTGEN_API_KEYS=KEY) as server:
        async with (
            Client(server.url, KEY) as client,
            others(client, [endless(row) for row in range(8)]) as writing,
        ):
            for name, data, key, (status, code) in cases():
                start = time.perf_counter()
                await asyncio.sleep(3)
                middle = time.perf_counter()
                while time.perf_counter() < middle + 3:
                    headers = {"content-type": "application/json", "authorization": f"Bearer {key}" if key else ""}
                    reply = await client.http.post(CHAT, content=data, headers=headers)
                    found = reply.status_code, str(reply.json().get("error", {}).get("code", ""))
                    if found[0] != (status or found[0]) or (code not in ("*", found[1])) or found[0] >= 500:
                        wrong[name] = f"{found[0]} {found[1]}, expected {status} {code}"
                    await asyncio.sleep(0.2)
                end = time.perf_counter()
                ratios[name] = round(writing.pace(middle, end) / writing.pace(start, middle), 3)
                say(f"{name}: {found[0]} {found[1]}; others x {ratios[name]:.2f}")
            if not writing.are_writing:
                wrong["others"] = "a stream has ended"
    return Found(
        statistics.median(ratios.values()),
        {"ratios": spread(list(ratios.values())), "by_case": ratios, "wrong": wrong},
        "; ".join(f"{name}: {what}" for name, what in wrong.items()),
    )
