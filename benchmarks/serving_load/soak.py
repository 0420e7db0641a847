"""Minutes of good requests with all abuse mixed in: outputs are judged, memory is watched."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from serving_load.attackers import ATTACKS, SECRET
from serving_load.client import Client
from serving_load.hostile_requests import MARK
from serving_load.lab import Lab, Server
from serving_load.measurements import Found, measurement, say, spread
from serving_load.siege import SETTLE_SECONDS, SETTLED, SIX, attack, besieged, ended, settled
from serving_load.workload import fault, w

MINUTES = 15.0
WRITERS = 3  # good clients
ATTACK_SECONDS = 10.0  # of one attack; then another one takes its place
WARM = 0.2  # of the time, after which memory is compared


@dataclass
class Soaked:
    """What came of a soak.

    Attributes:
        outcomes: of good requests: valid, and what else. faults: the first that were not.
        seconds: of the valid ones.
        memory: MiB, and when.
        statuses: of attackers' answers.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    def growth(self, end: float) -> float:
        """Mean memory of the last third over that of the first, once it is warm."""
        from_ = [(when, mib) for when, mib in self.memory if when >= WARM * end]
        third = max(1, len(from_) // 3)
        return statistics.mean(mib for _, mib in from_[-third:]) / statistics.mean(mib for _, mib in from_[:third])


async def soak(lab: Lab, minutes: float, settle: float = SETTLE_SECONDS) -> Found:
    """Good clients write, hostile ones come and go six at a time."""
    found, seconds = Soaked(), 60 * minutes
    async with besieged(lab) as (server, client):
        for number in range(3):
            await client.ask(w(number, max_tokens=20))
        start, begun = server.resident_bytes(), time.perf_counter()
        until = begun + seconds
        work = [_write(found, client, until, writer) for writer in range(WRITERS)]
        work += [_attack(found, server, until, place) for place in range(SIX)]
        await asyncio.gather(*work, _watch(found, server, begun, until))
        ratio, took = await settled(server, start, settle)
        log = server.log
    lost = sum(count for outcome, count in found.outcomes.items() if outcome not in ("valid", "invalid"))
    growth = found.growth(seconds)
    wrong = [f"{found.outcomes['invalid']} invalid"] if found.outcomes["invalid"] else []
    wrong += [f"{lost} lost"] if lost else []
    wrong += [f"memory grew to {growth:.2f} times"] if growth > SETTLED else []
    wrong += [f"memory is {ratio:.2f} times that of the start"] if ratio > SETTLED else []
    wrong += [f"{n} answers {s}" for s, n in found.statuses.items() if s.startswith("5") and s != "503"]
    wrong += [f"{found.statuses['leaks']} answers that tell what they may not"] if found.statuses["leaks"] else []
    wrong += [f"the log holds {text!r}" for text in (MARK, SECRET) if text in log]
    details: dict[str, Any] = {
        "minutes": minutes,
        "outcomes": dict(found.outcomes),
        "faults": found.faults[:5],
        "seconds": spread(found.seconds),
        "growth": round(growth, 3),
        "memory_mib": found.memory[:: max(1, len(found.memory) // 30)],
        "memory_ratio": round(ratio, 3),
        "settled_s": round(took, 1),
        "statuses": dict(found.statuses),
        "log_bytes": len(log),
    }
    return Found(found.outcomes["invalid"] + lost, details, "; ".join(wrong))


@measurement(
    "soak", "15 minutes with all abuse mixed in: good outputs that are lost or not valid", at_most=0, unit="outputs"
)
async def soaked(lab: Lab) -> Found:
    return await soak(lab, MINUTES * lab.scale)


async def _write(found: Soaked, client: Client, until: float, writer: int) -> None:
    """A good client: one request after the other, each judged."""
    number = 100_000 * (writer + 1)
    while time.perf_counter() < until:
        number += 1
        asked = w(number, stream=number % 2 == 0, max_tokens=60 if number % 3 else 100)
        if not asked["stream"]:
            asked["stream_options"] = None
        answer = await client.ask(asked)
        if answer.status != 200 or not answer.is_whole:
            outcome, why = f"status {answer.status}", str(answer.error)[:200]
        else:
            why = fault(asked, answer.text) or ""
            outcome = "invalid" if why else "valid"
        found.outcomes[outcome] += 1
        if why:
            found.faults.append(f"{number}: {why}")
        else:
            found.seconds.append(answer.seconds)


async def _attack(found: Soaked, server: Server, until: float, place: int) -> None:
    """One hostile client at a time, drawn anew each time."""
    chosen = random.Random(place)
    while time.perf_counter() < until:
        name = chosen.choice([name for name in ATTACKS if name != "nothing"])
        seconds = min(ATTACK_SECONDS, max(1.0, until - time.perf_counter()))
        one = attack(server, name, seconds)
        await asyncio.sleep(seconds)
        found.statuses.update(await ended([one]))


async def _watch(found: Soaked, server: Server, begun: float, until: float) -> None:
    while time.perf_counter() < until:
        found.memory.append((round(time.perf_counter() - begun, 1), server.resident_bytes() >> 20))
        if len(found.memory) % 10 == 0:
            say(f"{found.memory[-1]}; {dict(found.outcomes)}; attackers {dict(found.statuses)}")
        await asyncio.sleep(3)


def markdown(found: Found) -> str:
    """What is told of a soak in docs/security.md."""
    details = found.details
    lines = [
        f"| {details['minutes']:g} minutes, six hostile clients at a time | |",
        "|---|---:|",
        f"| good outputs | {sum(details['outcomes'].values()):,} |",
        f"| of them valid | {details['outcomes'].get('valid', 0):,} |",
        f"| not valid, lost | {found.value:g} |",
        f"| their seconds, p50 and p99 | {details['seconds'].get('p50')}, {details['seconds'].get('p99')} |",
        f"| hostile answers, by status | {', '.join(f'{s}: {n:,}' for s, n in sorted(details['statuses'].items()))} |",
        f"| memory, last third over first | {details['growth']} |",
        f"| memory at the end over the start | {details['memory_ratio']} (after {details['settled_s']:.0f} s) |",
    ]
    return "\n".join([*lines, *([f"\nNot as it should be: {found.wrong}"] if found.wrong else [])])
