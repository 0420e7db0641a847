"""How long clients wait: for the first token, and between tokens while a long prompt is read."""

from __future__ import annotations

import asyncio
import statistics
import time

from serving_load.client import Client, others
from serving_load.lab import Lab
from serving_load.measurements import Found, measurement, quantile, ratio_of_rounds, say, spread
from serving_load.workload import body, endless, w, words

ROWS = 16
LONG_PROMPT = 1960  # words: with the template 2,000 tokens; the model reads 2,048


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
    without, during, read, seconds = list[list[float]](), list[list[float]](), list[int](), list[float]()
    async with Client(lab.server().url) as client, others(client, [endless(row) for row in range(ROWS)]) as writing:
        for number in range(lab.count(4)):
            start = time.perf_counter()
            await asyncio.sleep(6)
            middle = time.perf_counter()
            answer = await client.ask(body(words(4000 + number, LONG_PROMPT), max_tokens=1))
            without.append(writing.gaps(start, middle))
            during.append(writing.gaps(middle, answer.done))
            read.append(answer.usage.get("prompt_tokens", 0))
            seconds.append(answer.seconds)
            ends = quantile(without[-1], 0.99), quantile(during[-1], 0.99)
            say(
                f"p99 of a gap {ends[0]:.3f} s, {ends[1]:.3f} s while {read[-1]} tokens are read in {seconds[-1]:.1f} s"
            )
        assert writing.are_writing
    return Found(
        ratio_of_rounds(during, without, 0.99),
        {
            "p50_ratio": round(ratio_of_rounds(during, without, 0.5), 3),
            "without_s": spread([gap for gaps in without for gap in gaps]),
            "during_s": spread([gap for gaps in during for gap in gaps]),
            "prompt_tokens": read,
            "prompt_seconds": spread(seconds),
        },
    )
