"""Memory over many requests, and what is left of them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

from serving_load.client import Answer, Client
from serving_load.lab import Lab, Server
from serving_load.measurements import Found, measurement, say
from serving_load.workload import body, closed, completion, fault, words

REQUESTS, SCHEMAS, AT_ONCE = 2000, 200, 32


def schema(number: int) -> dict[str, Any]:
    """One of the schemas: few tokens, names and bounds of its own."""
    return closed(**{f"k{number}": {"type": "integer", "minimum": 0, "maximum": 9 + number}})


def request(number: int) -> tuple[str, dict[str, Any]]:
    """What is to come of a request, and its body: one in ten is given up, one in twenty is bad, one in five a chat."""
    chosen = random.Random(number)
    asking = body if number % 5 == 1 else completion
    asked = asking(words(8000 + number, 4), schema(chosen.randrange(SCHEMAS)), max_tokens=16, seed=number)
    if number % 20 == 3:
        return "refused", chosen.choice([{**asked, "nonsense": 1}, {**asked, "structured_outputs": {"regex": "(a"}}])
    if number % 10 == 5:
        return "given up", asking(words(8000 + number, 4), max_tokens=400, logit_bias={"2": -100, "0": -100})
    return "written", {**asked, "stream": number % 2 == 0, "stream_options": None}


async def _outcome(client: Client, number: int) -> str:
    """What came of it, "not valid" included."""
    wanted, asked = request(number)
    answer = await client.ask(asked, leave=_has_text if wanted == "given up" else None)
    if answer.status != 200:
        return "refused" if answer.status == 400 else f"status {answer.status}"
    if not answer.is_whole:
        return "given up" if answer.arrived else "broken off"
    return "written" if fault(asked, answer.text) is None else "not valid"


def _has_text(answer: Answer) -> bool:
    return bool(answer.arrived)


@measurement("growth", "2,000 requests, 200 schemas: resident memory at the end over that after 400", at_most=1.03)
async def growth(lab: Lab) -> Found:
    """Outcomes must be those wanted, and nothing of a request may be left."""
    total = lab.count(REQUESTS, 200)
    marks = [total * fifth // 5 for fifth in range(1, 6)]
    resident, ends = list[float](), Counter[str]()
    alive = list[dict[str, int]]()
    with lab.own_server() as server:
        async with Client(server.url) as client:
            turns, done = asyncio.Semaphore(AT_ONCE), 0
            for number in range(4):  # what is kept of prompts is then as much as is ever kept
                await client.ask(completion(words(-100 - number, 1900), max_tokens=1))

            async def in_turn(number: int) -> str:
                async with turns:
                    return await _outcome(client, number)

            for mark in marks:
                ends.update(await asyncio.gather(*(in_turn(number) for number in range(done, mark))))
                done = mark
                alive.append(await _left(server, client))
                resident.append(server.resident_bytes() / (1 << 20))
                say(f"{mark} requests: {resident[-1]:.0f} MiB resident; alive {alive[-1]}")
            told = await client.metrics()
    wanted = Counter(request(number)[0] for number in range(total))
    left: dict[str, float] = {name: count for name, count in alive[-1].items() if count > 2}  # of the last step
    left |= {name: told[name] for name in ("num_requests_running", "num_requests_waiting") if told[name]}
    wrong = [f"outcomes {dict(ends)}, wanted {dict(wanted)}"] if ends != wanted else []
    return Found(
        resident[-1] / resident[0],
        {
            "resident_mib": [round(mib, 1) for mib in resident],
            "outcomes": ends,
            "alive": alive,
            "cache_mib": round(told["kv_cache_usage_bytes"] / (1 << 20), 1),
        },
        "; ".join([*wrong, *([f"left: {left}"] if left else [])]),
    )


async def _left(server: Server, client: Client) -> dict[str, int]:
    await client.wait_until_idle()
    return await asyncio.to_thread(server.alive)
