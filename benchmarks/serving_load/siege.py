"""Hostile connections and requests, each with a good client beside it: what it notices before, during and after."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serving_load.attackers import ATTACKS
from serving_load.client import Client
from serving_load.lab import Lab, Server
from serving_load.measurements import Found, measurement, say, spread

SECONDS = 4.0  # of each part: before, during, after
GOOD: dict[str, Any] = {
    "messages": [{"role": "user", "content": "A number?"}],
    "structured_outputs": {"regex": "[0-9]{3}"},
    "max_tokens": 4,
}


@dataclass
class Noticed:
    """What the good client saw in one part.

    Attributes:
        answers: seconds of each request with a known constraint.
        health: seconds of each question for ``/health``.
        failed: requests that were not answered with 200.
        memory: MiB of the server at the end; files: open there.
    """

    answers: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    failed: int = 0
    memory: int = 0
    files: int = 0

    def told(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "answers": spread(self.answers),
            "health": spread(self.health),
            "failed": self.failed,
            "memory": self.memory,
            "files": self.files,
        }


@measurement(
    "siege", "a good client's p99 beside each hostile one, over its p99 alone; none of its requests fails", at_most=3.0
)
async def siege(lab: Lab) -> Found:
    """Each attack in a process of its own, for some seconds."""
    cases: dict[str, dict[str, Any]] = {}
    worst, wrong = 0.0, list[str]()
    with lab.own_server() as server:
        port = int(server.url.rpartition(":")[2])
        async with Client(server.url) as client:
            await client.ask(GOOD)
            for name in ATTACKS:
                before = await _part(client, server)
                command = [sys.executable, str(Path(__file__).with_name("attackers.py")), name, str(port)]
                attacker = subprocess.Popen([*command, str(2 * SECONDS)])
                try:
                    await asyncio.sleep(SECONDS / 2)
                    during = await _part(client, server)
                finally:
                    attacker.kill()
                    attacker.wait()
                after = await _part(client, server)
                cases[name] = {"before": before.told(), "during": during.told(), "after": after.told()}
                ratio = spread(during.answers).get("p99", float("inf")) / spread(before.answers)["p99"]
                worst = max(worst, ratio)
                say(f"{name}: p99 x {ratio:.2f}, health {spread(during.health)}, {cases[name]['during']}")
                if during.failed or after.failed:
                    wrong.append(f"{name}: {during.failed + after.failed} good requests failed")
        log_bytes = len(server.log)
    return Found(worst, {"cases": cases, "log_bytes": log_bytes}, "; ".join(wrong))


async def _part(client: Client, server: Server) -> Noticed:
    found, until = Noticed(), time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        answer = await client.ask(GOOD)
        if answer.status == 200:
            found.answers.append(answer.seconds)
        else:
            found.failed += 1
        started = time.perf_counter()
        with suppress(Exception):
            if (await client.http.get("/health")).status_code == 200:
                found.health.append(time.perf_counter() - started)
        await asyncio.sleep(0.02)
    found.memory = server.resident_bytes() >> 20
    found.files = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
    return found
