"""A lone request through the server against ``Generator``, each in a process of its own, by turns."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from serving_load.client import Client
from serving_load.lab import ROOT, Lab
from serving_load.measurements import Found, measurement, say, spread
from serving_load.workload import body, w, words

TASKS = 20
ANSWERING = Path(__file__).with_name("answering.py")


@contextmanager
def _generator(backend: str, draft: str | None) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(ANSWERING), backend, *([draft] if draft else [])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def task(number: int) -> dict[str, Any]:
    """Every fourth is free text, every second is sampled."""
    fields = {"max_tokens": 60, "temperature": 0.8 * (number % 2), "seed": number}
    return body(words(7000 + number, 60), **fields) if number % 4 == 3 else w(7000 + number, **fields)


@measurement("lone", "a lone request through the server over Generator: seconds to the first token", at_most=1.05)
async def lone(lab: Lab) -> Found:
    return await _paired(lab, None)


@measurement("lone-drafted", "the same with --draft auto on both sides", at_most=1.05)
async def lone_drafted(lab: Lab) -> Found:
    return await _paired(lab, "auto")


async def _paired(lab: Lab, draft: str | None) -> Found:
    """The larger of two medians of paired ratios: to the first text, and of the whole."""
    server = lab.server() if draft == lab.draft else lab.own_server(draft=draft)
    first, whole, same = list[float](), list[float](), 0
    seconds: dict[str, list[float]] = {"server": [], "generator": []}
    with _generator(lab.backend, draft) as process:
        reads, writes = process.stdout, process.stdin
        assert reads is not None and writes is not None
        reads.readline()
        async with Client(server.url) as client:
            for number in range(-4, lab.count(TASKS, 6)):
                asked = task(number + 4)
                found: dict[str, tuple[float, float, str]] = {}
                for side in sorted(seconds, reverse=bool(number // 2 % 2)):
                    if side == "server":
                        answer = await client.ask(asked)
                        found[side] = answer.first, answer.seconds, answer.text
                    else:
                        print(json.dumps(asked), file=writes, flush=True)
                        told = json.loads(reads.readline())
                        found[side] = told[0], told[1], told[2]
                if number >= 0:  # the first compile the schemas
                    first.append(found["server"][0] / found["generator"][0])
                    whole.append(found["server"][1] / found["generator"][1])
                    same += found["server"][2] == found["generator"][2]
                    for side, times in seconds.items():
                        times.append(found[side][0])
    if draft != lab.draft:
        server.stop()
    medians = statistics.median(first), statistics.median(whole)
    say(f"first text x {medians[0]:.3f}, whole x {medians[1]:.3f}; {same} of {len(first)} with the same text")
    return Found(
        max(medians),
        {
            "first": spread(first),
            "whole": spread(whole),
            "same_text": f"{same}/{len(first)}",
            "first_s": {side: spread(times) for side, times in seconds.items()},
        },
    )
