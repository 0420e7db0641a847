"""Clients that read nothing or leave, queues that are full, deadlines, and a server that is told to stop."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import statistics
import time
from typing import Any
from urllib.parse import urlsplit

from serving_load.client import CHAT, Answer, Client, Others, others
from serving_load.lab import Lab
from serving_load.measurements import Found, measurement, say, spread
from serving_load.workload import body, closed, endless, fault, text, w, words

BESIDE = 8
LONG: dict[str, Any] = {"type": "array", "items": text(60), "minItems": 1}


@measurement("slow-reader", "others' pace beside a client that reads nothing, over one that reads", at_least=0.95)
async def slow_reader(lab: Lab) -> Found:
    """By turns; four outputs with all log-probabilities, so that what is not read fills the buffers soon."""
    server, ratios = lab.server(), list[float]()
    heavy = {**endless(77), "n": 4, "logprobs": True, "top_logprobs": 20}
    async with Client(server.url) as client, others(client, [endless(row) for row in range(BESIDE)]) as writing:
        for number in range(lab.count(3)):
            paces = dict[bool, float]()
            for reads in [True, False] if number % 2 else [False, True]:
                if reads:
                    async with others(client, [heavy], waits=False):
                        paces[reads] = await _pace(writing, 10)
                else:
                    with _reads_nothing(server.url, heavy):
                        await _until_running(client, BESIDE + 4)
                        paces[reads] = await _pace(writing, 10)
                await _until_running(client, BESIDE)
            ratios.append(paces[False] / paces[True])
            say(f"{paces[False]:.1f} texts/s beside one that reads nothing, {paces[True]:.1f} beside one that reads")
        whole = writing.are_writing
    return Found(statistics.median(ratios), {"ratios": spread(ratios)}, "" if whole else "a stream has ended")


def _reads_nothing(url: str, asked: dict[str, Any]) -> socket.socket:
    """A connection on which a request was sent, with little room for the answer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    connection.connect((urlsplit(url).hostname, urlsplit(url).port))
    data = json.dumps(asked).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    connection.sendall(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
    return connection


async def _pace(writing: Others, seconds: float) -> float:
    start = time.perf_counter()
    await asyncio.sleep(seconds)
    return writing.pace(start, time.perf_counter())


async def _until_running(client: Client, count: int) -> float:
    """How many steps the server had made when so many outputs were being written."""
    while True:
        told = await client.metrics()
        if told["num_requests_running"] == count and not told["num_requests_waiting"]:
            return told["step_seconds_count"]
        await asyncio.sleep(0.01)


@measurement("disconnect", "others' pace after a client has left, over that before", at_least=0.95)
async def disconnect(lab: Lab) -> Found:
    found = await _leaving(lab)
    ratios = [after / before for before, after, _ in found]
    return Found(statistics.median(ratios), {"ratios": spread(ratios)})


@measurement("row-gone", "steps until the row of a client that has left is gone (median)", at_most=2.0, unit="steps")
async def row_gone(lab: Lab) -> Found:
    """Begun ones count; the metrics are asked for by the same loop, which may see a step late."""
    steps = [steps for _, _, steps in await _leaving(lab, seconds=0.5)]
    return Found(statistics.median(steps), {"steps": spread(steps)})


async def _leaving(lab: Lab, seconds: float = 5.0) -> list[tuple[float, float, float]]:
    """Others' pace before and after, and the steps from the end of a connection to that of its row."""
    found = []
    async with (
        Client(lab.server().url) as client,
        others(client, [endless(row) for row in range(BESIDE)]) as writing,
    ):
        for number in range(lab.count(5)):
            answer = Answer(time.perf_counter())
            leaver = asyncio.create_task(client.ask(endless(100 + number), answer))
            while len(answer.arrived) < 3:
                await asyncio.sleep(0.01)
            before = await _pace(writing, seconds)
            begun = await _until_running(client, BESIDE + 1)
            leaver.cancel()
            await asyncio.gather(leaver, return_exceptions=True)
            ended = await _until_running(client, BESIDE)
            found.append((before, await _pace(writing, seconds), ended - begun))
            say(f"{found[-1][0]:.1f} texts/s before, {found[-1][1]:.1f} after; gone after {ended - begun:.0f} steps")
    return found


@measurement(
    "queue", "4 rows, 8 may wait, 40 ask at once: answers that are not as they should be", at_most=0, unit="answers"
)
async def queue(lab: Lab) -> Found:
    """Those turned away have 429, a time to come back in, and nothing else; the others are whole and valid."""
    asked = [w(11_000 + number, max_tokens=30, stream=number % 2 == 0) for number in range(40)]
    for number, one in enumerate(asked):
        one["stream_options"] = {"include_usage": True} if number % 2 == 0 else None
    with lab.own_server("--max-rows", "4", "--max-waiting", "8") as server:
        async with Client(server.url) as client:
            await client.together([w(number, max_tokens=10) for number in range(3)])
            answers = await client.together(asked)
    away = [answer for answer in answers if answer.status == 429]
    told = sum(float(answer.headers.get("retry-after", 0)) >= 1 and bool(answer.error) for answer in away)
    good = sum(
        answer.status == 200 and answer.is_whole and fault(one, answer.text) is None
        for one, answer in zip(asked, answers, strict=True)
    )
    return Found(
        len(answers) - told - good,
        {"turned_away": len(away), "written": good, "retry_after": [a.headers.get("retry-after") for a in away[:1]]},
        "" if away and good >= 12 else f"{len(away)} turned away, {good} written",
    )


@measurement("deadline", "16 outputs that would go on, closed after 5 s: not valid, or late", at_most=0, unit="answers")
async def deadline(lab: Lab) -> Found:
    asked = [_long(number) for number in range(16)]
    with lab.own_server("--total-seconds", "5") as server:
        async with Client(server.url) as client:
            await client.ask(w(0, max_tokens=5))
            answers = await client.together(asked)
            steps = await client.metrics()
    step = steps["step_seconds_sum"] / max(1.0, steps["step_seconds_count"])
    bad = [_unlike(one, answer) for one, answer in zip(asked, answers, strict=True)]
    late = [answer.seconds > 5 + 1 + 20 * step for answer in answers]
    return Found(
        sum(map(bool, bad)) + sum(late),
        {
            "seconds": spread([answer.seconds for answer in answers]),
            "reasons": sorted({str(answer.reason) for answer in answers}),
            "wrong": [what for what in bad if what][:3],
            "late": sum(late),
        },
    )


@measurement(
    "drain", "16 outputs and a signal to stop after 1 s: not valid, or not as they should be", at_most=0, unit="answers"
)
async def drain(lab: Lab) -> Found:
    """What is written is closed validly; what comes later gets 503; the process ends with 0."""
    asked = [_long(20 + number) for number in range(16)]
    with lab.own_server("--drain-seconds", "3") as server:
        async with Client(server.url) as client, Client(server.url) as late:
            await late.ask(w(0, max_tokens=5))
            answers = [Answer(time.perf_counter()) for _ in asked]
            asking = [asyncio.create_task(client.ask(*pair)) for pair in zip(asked, answers, strict=True)]
            while any(not answer.arrived for answer in answers):
                await asyncio.sleep(0.02)
            await asyncio.sleep(1)
            server.process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.5)
            refused = await late.ask(w(1))
            await asyncio.gather(*asking)
        code = await asyncio.to_thread(server.process.wait, 30)
    bad = [what for one, answer in zip(asked, answers, strict=True) if (what := _unlike(one, answer))]
    turned_away = refused.status == 503 and refused.error.get("code") == "draining"
    return Found(
        len(bad),
        {"wrong": bad[:3], "exit_code": code, "late_request": refused.status, "tokens": sum(a.tokens for a in answers)},
        "" if turned_away and code == 0 else f"late request: {refused.status}; exit code {code}",
    )


def _long(number: int) -> dict[str, Any]:
    """A valid text that goes on for as long as it may."""
    schema = LONG if number % 2 else closed(title=text(2000), words=LONG)
    return body(words(12_000 + number, 20), schema, max_tokens=1500, temperature=1.0, seed=number)


def _unlike(asked: dict[str, Any], answer: Answer) -> str:
    """What is wrong with an answer that should be whole and valid; "": nothing."""
    if not answer.is_whole:
        return f"status {answer.status}, not whole, {answer.error}"
    return fault(asked, answer.text) or ""
