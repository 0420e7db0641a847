"""Many requests of all kinds at once are what each is alone."""

from __future__ import annotations

from typing import Any

from serving_load.client import Answer, Client
from serving_load.lab import Lab
from serving_load.measurements import Found, measurement, say
from serving_load.workload import SCHEMAS, body, fault, shared, w, words

REQUESTS = 64
TIE = 1e-3  # nats: of two tokens so close, how rows are packed may decide


def mixed(number: int) -> dict[str, Any]:
    """Schemas, expressions, choices, grammars and free text; greedy and seeded; whole and streamed; long and short."""
    fields: dict[str, Any] = {
        "max_tokens": 12 + 7 * (number % 5),
        "temperature": (0.0, 0.7, 1.0)[number % 3],
        "seed": number,
        "stream": number % 2 == 0,
        "logprobs": True,
        "top_logprobs": 2,
    }
    if not fields["stream"]:
        fields["stream_options"] = None
    prompt = words(9000 + number, (5, 30, 90)[number // 3 % 3])
    kinds: list[dict[str, Any]] = [
        {},
        {"json": SCHEMAS[number % 3]},
        {"regex": "[A-Z][a-z]{2,9} [0-9]{1,4}"},
        {"choice": ["red", "green", "blue"]},
        {"grammar": 'root ::= ("yes" | "no") ", " [a-z]+ "."'},
    ]
    if number % 8 == 7:
        return {**shared(number), **fields}
    chosen = kinds[number % len(kinds)]
    asked = body(prompt, **fields)
    return {**asked, "structured_outputs": chosen} if chosen else asked


@measurement("equality", "64 mixed requests at once: valid, and equal to single runs", at_least=1.0, unit="of all")
async def equality(lab: Lab) -> Found:
    """Texts may differ where the two likeliest tokens are closer than 1e-3 nats (counted by ``ties``)."""
    asked = [mixed(number) for number in range(lab.count(REQUESTS, 16))]
    async with Client(lab.server().url) as client:
        together = await client.together(asked)
        alone = [await client.ask(body) for body in asked]
    bad = sum(not answer.is_whole or fault(body, answer.text) is not None for body, answer in zip(asked, together, strict=True))
    different = [number for number, pair in enumerate(zip(together, alone, strict=True)) if pair[0].text != pair[1].text]
    say(f"{len(asked)} requests, {bad} not valid, {len(different)} different")
    return Found(
        1 - (bad + len(different)) / len(asked),
        {"requests": len(asked), "not_valid": bad, "different": different},
    )


def _unused(_: Answer) -> None: ...
