"""What is malformed, too large, too deep, too slow to compile, or not allowed: its status, and what others notice."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

from serving_load.client import CHAT, Client, others
from serving_load.lab import Lab
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


@measurement("abuse", "others' pace while each abuse is tried, over that without; statuses are right", at_least=0.95)
async def abuse(lab: Lab) -> Found:
    """By turns, for each case: some seconds without, then the case again and again for as long."""
    ratios, by_processor, wrong = dict[str, float](), dict[str, float](), dict[str, str]()
    texts = [0.0, 0.0]
    with lab.own_server(STRUCTGEN_API_KEYS=KEY) as server:
        async with (
            Client(server.url, KEY) as client,
            others(client, [endless(row) for row in range(8)]) as writing,
        ):
            for name, data, key, wanted in cases():
                start, used = time.perf_counter(), server.processor_seconds()
                await asyncio.sleep(SECONDS)
                middle, used_until = time.perf_counter(), server.processor_seconds()
                while time.perf_counter() < middle + SECONDS:
                    headers = {"content-type": "application/json", "authorization": f"Bearer {key}" if key else ""}
                    reply = await client.http.post(CHAT, content=data, headers=headers)
                    found = reply.status_code, str(reply.json().get("error", {}).get("code", ""))
                    if not _is_as_wanted(found, wanted):
                        wrong[name] = f"{found[0]} {found[1]}, expected {wanted[0]} {wanted[1]}"
                    await asyncio.sleep(0.2)
                end, used_after = time.perf_counter(), server.processor_seconds()
                without, during = writing.pace(start, middle), writing.pace(middle, end)
                texts[0] += without
                texts[1] += during
                ratios[name] = round(during / without, 3)
                each = (
                    (used_until - used) / (without * (middle - start)),
                    (used_after - used_until) / (during * (end - middle)),
                )
                by_processor[name] = round(each[0] / each[1], 3)
                say(
                    f"{name}: {found[0]} {found[1]}; others x {ratios[name]:.2f}, x {by_processor[name]:.2f} by processor"
                )
            if not writing.are_writing:
                wrong["others"] = "a stream has ended"
    return Found(
        texts[1] / texts[0],
        {"by_case": ratios, "texts_a_processor_second": by_processor, "wrong": wrong},
        "; ".join(f"{name}: {what}" for name, what in wrong.items()),
    )


def _is_as_wanted(found: tuple[int, str], wanted: tuple[int, str]) -> bool:
    """Whether a status and a code are those wanted; 0 and * are any but the server's own failures."""
    return found[0] < 500 and wanted[0] in (0, found[0]) and wanted[1] in ("*", found[1])
