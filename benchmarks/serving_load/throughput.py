"""Many at once against one by one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from serving_load.client import Answer, Client
from serving_load.lab import Lab
from serving_load.measurements import Found, measurement, say
from serving_load.workload import fault, shared, w

AT_ONCE = 16


@measurement("together", "W: 16 at once against one by one, tokens a second", at_least=2.5)
async def together(lab: Lab) -> Found:
    return await _ratio(lab, w, 1000)


@measurement("shared", "the same with a shared system message and schema", at_least=3.0)
async def with_shared_prefix(lab: Lab) -> Found:
    return await _ratio(lab, shared, 2000)


async def _ratio(lab: Lab, request: Callable[[int], dict[str, Any]], seed: int) -> Found:
    """By turns: 16 at once, then some of them one by one; the median of the rounds' ratios."""
    rounds, alone = lab.count(4), lab.count(5)
    ratios, speeds, faults = list[float](), list[tuple[float, float]](), 0
    async with Client(lab.server().url) as client:
        await client.together([request(seed + number) for number in range(3)])  # compiles the schemas
        for number in range(rounds):
            first = seed + 100 * (number + 1)
            asked = [request(first + row) for row in range(AT_ONCE)]
            start = time.perf_counter()
            answers = await client.together(asked)
            fast = _tokens(answers) / (time.perf_counter() - start)
            asked_alone = [request(first + AT_ONCE + row) for row in range(alone)]
            answers_alone = [await client.ask(body) for body in asked_alone]
            slow = _tokens(answers_alone) / sum(answer.seconds for answer in answers_alone)
            pairs = zip([*asked, *asked_alone], [*answers, *answers_alone], strict=True)
            faults += sum(not answer.is_whole or fault(body, answer.text) is not None for body, answer in pairs)
            ratios.append(fast / slow)
            speeds.append((fast, slow))
            say(f"{fast:.0f} tokens/s at once, {slow:.0f} one by one: x {ratios[-1]:.2f}")
    fast, slow = (round(statistics.median(speed), 1) for speed in zip(*speeds, strict=True))
    return Found(
        statistics.median(ratios),
        {
            "tokens_per_second_at_once": fast,
            "one_by_one": slow,
            "ratios": [round(ratio, 2) for ratio in ratios],
            "prompt_tokens": statistics.mean(answer.usage["prompt_tokens"] for answer in answers),
            "output_tokens": statistics.mean(answer.tokens for answer in answers),
        },
        f"{faults} are not valid" if faults else "",
    )


def _tokens(answers: list[Answer]) -> int:
    return sum(answer.tokens for answer in answers)
