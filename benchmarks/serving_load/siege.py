"""Hostile clients, alone and six at once, with a good client beside them: what it notices before, during and after.

The good client comes from an address of its own, as it would on a network (Linux: 127.0.0.2); keys do the same.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serving_load.attackers import ATTACKS, SECRET
from serving_load.client import ADDRESS, Client
from serving_load.hostile_requests import MARK
from serving_load.lab import Lab, Server, processor_seconds
from serving_load.measurements import Found, measurement, quantile, say, spread

SECONDS = 4.0  # of each part: before, during, after
LONGER = 1.0  # for which attacks go on, so that none ends before the last answer during it
SIX = 6
SETTLED, SETTLE_SECONDS = 1.15, 600.0  # memory at the end over that at the start, and when at the latest
MAX_RATIO, MAX_HEALTH, MAX_NEW = 3.0, 0.1, 2.0  # of p99; seconds
GOOD: dict[str, Any] = {
    "messages": [{"role": "user", "content": "A number?"}],
    "structured_outputs": {"regex": "[0-9]{3}"},
    "max_tokens": 4,
}
_NUMBERS = itertools.count()


@dataclass
class Noticed:
    """What the good client saw in one part.

    Attributes:
        answers: seconds of each request with a known constraint.
        new: of each with a new, small one.
        health: of each question for ``/health``.
        failed: requests that were not answered with 200.
        memory: MiB of the server at the end; files: open there.
    """

    answers: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    failed: int = 0
    memory: int = 0
    files: int = 0

    def told(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "answers": spread(self.answers),
            "new": max(self.new, default=0.0),
            "health": spread(self.health),
            "failed": self.failed,
            "memory": self.memory,
            "files": self.files,
        }


@dataclass
class Case:
    """What was noticed around one attack, or several at once.

    Attributes:
        before, during, after: by the good client.
        statuses: of the attackers' answers, and ``leaks`` in them.
        processors: how many of them were used during it: by the server, the processes that it started, the attackers.
    """

    before: Noticed
    during: Noticed
    after: Noticed
    statuses: dict[str, int]
    processors: dict[str, float]

    def told(self, usual: float) -> dict[str, Any]:
        """As JSON values.

        Args:
            usual: the good client's p99 with nothing beside it, seconds.
        """
        parts = {name: getattr(self, name).told() for name in ("before", "during", "after")}
        ratio = quantile(self.during.answers, 0.99) / usual
        told = {"statuses": self.statuses, "processors": self.processors, "ratio": round(ratio, 2)}
        return {**parts, **told, "wrong": self.wrong()}

    def wrong(self) -> list[str]:
        """What may not be, whatever the times."""
        bad = [status for status in self.statuses if status.startswith("5") and status != "503"]
        found = [f"{self.statuses[status]} answers {status}" for status in bad]
        if self.statuses.get("leaks"):
            found.append(f"{self.statuses['leaks']} answers that tell what they may not")
        if failed := self.during.failed + self.after.failed:
            found.append(f"{failed} good requests failed")
        if (slowest := quantile(self.during.health, 0.99)) > MAX_HEALTH:
            found.append(f"/health took {slowest:.2f} s")
        if (longest := max(self.during.new, default=0.0)) > MAX_NEW:
            found.append(f"a new constraint took {longest:.1f} s")
        return found


@asynccontextmanager
async def besieged(lab: Lab, *options: str) -> AsyncIterator[tuple[Server, Client]]:
    """A server in a folder with files that no request may read, and a good client, whose constraint is known."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sub").mkdir()
        Path(folder, "sub", "private.lark").write_text(f'KEY: "{SECRET}"\nstart: KEY\n')
        with lab.own_server(*options, folder=Path(folder)) as server:
            async with Client(server.url, address=ADDRESS) as client:
                for _ in range(5):
                    await client.ask(GOOD)
                yield server, client


def attack(server: Server, name: str, seconds: float, niceness: int = 0) -> subprocess.Popen[bytes]:
    """Begin an attack, in a process of its own; ``niceness``: how far it gives way to all others on the machine."""
    port = server.url.rpartition(":")[2]
    command = [sys.executable, str(Path(__file__).with_name("attackers.py")), name, port, str(seconds)]
    return subprocess.Popen(["nice", "-n", str(niceness), *command], stdout=subprocess.PIPE)


async def ended(attackers: Sequence[subprocess.Popen[bytes]], seconds: float = 35.0) -> dict[str, int]:
    """Wait for attacks to end; the statuses of all answers."""
    found: dict[str, int] = {}
    for each in attackers:
        with suppress(subprocess.TimeoutExpired, ValueError):
            told, _ = await asyncio.to_thread(each.communicate, timeout=seconds)
            for status, count in json.loads(told).items():
                found[status] = found.get(status, 0) + count
        each.kill()
        each.wait()
    return found


async def case(server: Server, client: Client, names: Sequence[str], seconds: float, niceness: int = 0) -> Case:
    """These attacks at once."""
    before = await part(server, client, seconds)
    attackers = [attack(server, name, 1.5 * seconds + LONGER, niceness) for name in names]
    try:
        await asyncio.sleep(seconds / 2)
        start, used = time.perf_counter(), _used(server, attackers)
        during = await part(server, client, seconds)
        took, used_then = time.perf_counter() - start, _used(server, attackers)
    finally:
        statuses = await ended(attackers)
    processors = {who: round(max(0.0, used_then[who] - used[who]) / took, 2) for who in used}
    return Case(before, during, await part(server, client, seconds), statuses, processors)


def _used(server: Server, attackers: Sequence[subprocess.Popen[bytes]]) -> dict[str, float]:
    """Seconds of processors so far."""
    return {
        "server": server.processor_seconds(),
        "trials": server.trial_seconds(),
        "attackers": sum(processor_seconds(each.pid) for each in attackers),
    }


async def part(server: Server, client: Client, seconds: float) -> Noticed:
    """Ask for some seconds."""
    found, until = Noticed(), time.perf_counter() + seconds
    await asyncio.gather(_known(found, client, until), _health(found, client, until), _new(found, client, until))
    found.memory, found.files = server.resident_bytes() >> 20, server.files()
    return found


async def _known(found: Noticed, client: Client, until: float) -> None:
    while time.perf_counter() < until:
        answer = await client.ask(GOOD)
        if answer.status == 200:
            found.answers.append(answer.seconds)
        else:
            found.failed += 1
        await asyncio.sleep(0.02)


async def _new(found: Noticed, client: Client, until: float) -> None:
    while time.perf_counter() < until:
        await asyncio.sleep(0.7)
        regex = f"[a-z]{{2}}-{next(_NUMBERS)}"
        answer = await client.ask({**GOOD, "structured_outputs": {"regex": regex}, "max_tokens": 8})
        found.new.append(answer.seconds)
        found.failed += answer.status != 200


async def _health(found: Noticed, client: Client, until: float) -> None:
    while time.perf_counter() < until:
        started = time.perf_counter()
        with suppress(Exception):
            if (await client.http.get("/health")).status_code == 200:
                found.health.append(time.perf_counter() - started)
        await asyncio.sleep(0.05)


async def settled(server: Server, start: int, seconds: float = SETTLE_SECONDS) -> tuple[float, float]:
    """Memory over that at the start (bytes), once that is as it should be or the time is over; and the time."""
    begun = time.perf_counter()
    while True:
        ratio, took = server.resident_bytes() / start, time.perf_counter() - begun
        if ratio <= SETTLED or took > seconds:
            return ratio, took
        await asyncio.sleep(1)


async def siege(
    lab: Lab, sets: Sequence[Sequence[str]], seconds: float, settle: float = SETTLE_SECONDS, niceness: int = 0
) -> Found:
    """Each set of attacks at once, one set after the other, against one server."""
    cases: dict[str, Case] = {}
    async with besieged(lab) as (server, client):
        first = await part(server, client, 2 * seconds)
        start = server.resident_bytes()
        usual = list(first.answers)
        for names in sets:
            label = ", ".join(names)
            one = cases[label] = await case(server, client, names, seconds, niceness)
            usual += one.before.answers
            say(f"{label}: {json.dumps(one.told(quantile(usual, 0.99)))}")
        memory, took = await settled(server, start, settle)
        log = server.log
    p99 = quantile(usual, 0.99)
    told = {label: one.told(p99) for label, one in cases.items()}
    wrong = [f"{label}: {'; '.join(one.wrong())}" for label, one in cases.items() if one.wrong()]
    wrong += [f"the log holds {text!r}" for text in (MARK, SECRET) if text in log]
    if memory > SETTLED:
        wrong.append(f"memory is {memory:.2f} times that of the start")
    details = {
        "cases": told,
        "usual": spread(usual),
        "start_mib": start >> 20,
        "memory_ratio": round(memory, 3),
        "settled_s": round(took, 1),
        "log_bytes": len(log),
    }
    return Found(max(one["ratio"] for one in told.values()), details, "; ".join(wrong))


ALONE: list[list[str]] = [[name] for name in ATTACKS]
_HOSTILE = [name for name in ATTACKS if name != "nothing"]
AT_ONCE: list[list[str]] = [
    [*itertools.islice(itertools.cycle(_HOSTILE[n:] + _HOSTILE[:n]), SIX)] for n in range(0, len(_HOSTILE), SIX)
]
"""Six at once, each at least once."""


@measurement(
    "siege", "a good client's p99 beside each hostile one, over its p99 alone; none of its requests fails", at_most=3.0
)
async def alone(lab: Lab) -> Found:
    return await siege(lab, ALONE, SECONDS)


@measurement("siege-six", "the same beside six hostile clients at once", at_most=3.0)
async def six(lab: Lab) -> Found:
    return await siege(lab, AT_ONCE, SECONDS)


def markdown(found: Found) -> str:
    """The table of a siege for docs/security.md."""
    details = found.details
    lines = [
        "| alongside it | p50 before, during, after, ms | p99, ms | p99 of `/health` during, ms "
        "| slowest new constraint, s | server's MiB | files | processors of server, trials, attackers |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for label, one in details["cases"].items():
        parts = [one[name] for name in ("before", "during", "after")]
        cells = [
            ", ".join(_ms(each["answers"].get("p50")) for each in parts),
            ", ".join(_ms(each["answers"].get("p99")) for each in parts),
            _ms(one["during"]["health"].get("p99")),
            f"{one['during']['new']:.1f}",
            ", ".join(str(each["memory"]) for each in parts),
            ", ".join(str(each["files"]) for each in parts),
            ", ".join(f"{one['processors'][who]:.1f}" for who in ("server", "trials", "attackers")),
        ]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    usual = details["usual"]
    lines += [
        "",
        f"Alone: p50 {_ms(usual['p50'])} ms, p99 {_ms(usual['p99'])} ms ({usual['n']} requests); the worst p99 beside "
        f"a hostile client is {found.value:.2f} times that. Memory at the end: {details['memory_ratio']:.2f} times "
        f"that of the start ({details['start_mib']} MiB), after {details['settled_s']:.0f} s.",
    ]
    return "\n".join([*lines, *([f"Not as it should be: {found.wrong}"] if found.wrong else [])])


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.0f}"
