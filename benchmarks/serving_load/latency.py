"""How long clients wait: for the first token, and between tokens while a long prompt is read."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

from serving_load.client import ADDRESS, Client, others
from serving_load.lab import Lab, Server
from serving_load.measurements import Found, measurement, quantile, ratio_of_rounds, say, spread
from serving_load.workload import body, endless, w, words

ROWS = 16
LONG_PROMPT, LONGER_PROMPT = 1960, 3960  # words: with the template 2,000 and 4,000 tokens
LONGEST = 8000  # tokens of a lone output, which goes on for longer than they are read


@measurement(
    "first-token",
    "first token of W beside 16 rows, over 2 x that of W alone + one step (medians)",
    at_most=1.0,
)
async def first_token(lab: Lab) -> Found:
    rounds, tries = lab.count(3), lab.count(6)
    alone, beside, steps = list[float](), list[float](), list[float]()
    async with Client(lab.server().url) as client:
        await client.together([w(number) for number in range(3)])
        for number in range(rounds):
            seeds = [3000 + 100 * number + place for place in range(2 * tries)]
            alone += [(await client.ask(w(seed, max_tokens=40))).first for seed in seeds[:tries]]
            async with others(client, [endless(row) for row in range(ROWS)]) as writing:
                for seed in seeds[tries:]:
                    start = time.perf_counter()
                    await asyncio.sleep(1.5)
                    steps += writing.gaps(start, time.perf_counter())
                    beside.append((await client.ask(w(seed, max_tokens=40))).first)
            say(f"alone {alone[-1]:.2f} s, beside {ROWS} rows {beside[-1]:.2f} s, a step {steps[-1]:.2f} s")
    bar = 2 * statistics.median(alone) + statistics.median(steps)
    return Found(
        statistics.median(beside) / bar,
        {"alone_s": spread(alone), "beside_s": spread(beside), "step_s": spread(steps), "bar_s": round(bar, 4)},
    )


@measurement("long-prompt", "others' token gap while 2,000 tokens are read, over that without (p99)", at_most=2.0)
async def long_prompt(lab: Lab) -> Found:
    gaps = await _beside_prompts(lab.server(), lab.count(4))
    return Found(ratio_of_rounds(gaps.during, gaps.without, 0.99), gaps.told())


@measurement(
    "longer-prompt", "time of a lone output's tokens while 4,000 are read, over that of as many without", at_most=2.0
)
async def longer_prompt(lab: Lab) -> Found:
    """The same places of the same output: its tokens take ever longer by its own text."""
    beside, prompt = endless(0, LONGEST), body(words(4000, LONGER_PROMPT), max_tokens=1)
    with lab.own_server("--total-seconds", "900") as server:
        async with Client(server.url) as client, Client(server.url, address=ADDRESS) as other:
            async with others(client, [beside], waits=False) as writing:
                await asyncio.sleep(3)
                start = len(writing.answers[0].arrived)
                answer = await other.ask(prompt)
                during = writing.answers[0].arrived[start - 1 :]
            say(f"{answer.usage.get('prompt_tokens')} tokens are read in {answer.seconds:.1f} s, {len(during)} written")
    with lab.own_server("--total-seconds", "900") as server:
        async with Client(server.url) as client, others(client, [beside]) as writing:
            while len(writing.answers[0].arrived) < start - 1 + len(during):
                assert writing.are_writing
                await asyncio.sleep(0.1)
            alone = writing.answers[0].arrived[start - 1 : start - 1 + len(during)]
    gaps = [[late - early for early, late in itertools.pairwise(each)] for each in (alone, during)]
    return Found(
        (during[-1] - during[0]) / (alone[-1] - alone[0]),
        {
            "without_s": spread(gaps[0]),
            "during_s": spread(gaps[1]),
            "prompt_seconds": round(answer.seconds, 1),
        },
    )


@dataclass
class _Gaps:
    """Between tokens of others: without a prompt alongside and during it, by round; the prompts' tokens and seconds."""

    without: list[list[float]] = field(default_factory=list)
    during: list[list[float]] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "p50_ratio": round(ratio_of_rounds(self.during, self.without, 0.5), 3),
            "without_s": spread([gap for gaps in self.without for gap in gaps]),
            "during_s": spread([gap for gaps in self.during for gap in gaps]),
            "prompt_tokens": self.read,
            "prompt_seconds": spread(self.seconds),
        }


async def _beside_prompts(server: Server, rounds: int) -> _Gaps:
    """Prompts of 2,000 tokens, one after the other, alongside outputs."""
    gaps = _Gaps()
    async with Client(server.url) as client, others(client, [endless(row) for row in range(ROWS)]) as writing:
        for number in range(rounds):
            start = time.perf_counter()
            await asyncio.sleep(6)
            middle = time.perf_counter()
            answer = await client.ask(body(words(4000 + number, LONG_PROMPT), max_tokens=1))
            gaps.without.append(writing.gaps(start, middle))
            gaps.during.append(writing.gaps(middle, answer.done))
            gaps.read.append(answer.usage.get("prompt_tokens", 0))
            gaps.seconds.append(answer.seconds)
            ends = quantile(gaps.without[-1], 0.99), quantile(gaps.during[-1], 0.99)
            say(
                f"p99 of a gap {ends[0]:.3f} s, {ends[1]:.3f} s while {gaps.read[-1]} tokens are read in "
                f"{answer.seconds:.1f} s"
            )
        assert writing.are_writing
    return gaps
