"""Many requests of all kinds at once are what each is alone."""

from __future__ import annotations

from typing import Any

from serving_load.client import Answer, Client
from serving_load.lab import Lab
from serving_load.measurements import Found, measurement, say
from serving_load.workload import SCHEMAS, body, fault, shared, words

REQUESTS = 64
TIE = 1e-3  # nats: of two tokens so close, how rows are packed may decide


def mixed(number: int) -> dict[str, Any]:
    """Schemas, expressions, choices, grammars and free text; greedy and seeded; whole and streamed; long and short."""
    fields: dict[str, Any] = {
        "max_tokens": 40 + 7 * (number % 5),
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


@measurement("equality", "64 mixed requests at once that are not valid, or other than alone", at_most=0, unit="answers")
async def equality(lab: Lab) -> Found:
    """Greedy texts may part where the two likeliest tokens are closer than 1e-3 nats."""
    asked = [mixed(number) for number in range(lab.count(REQUESTS, 16))]
    async with Client(lab.server().url) as client:
        together = await client.together(asked)
        alone = [await client.ask(body) for body in asked]
    pairs = list(zip(asked, together, alone, strict=True))
    bad = [number for number, (body, answer, _) in enumerate(pairs) if not answer.is_whole or fault(body, answer.text)]
    parted = [number for number, (_, one, other) in enumerate(pairs) if one.text != other.text]
    ties = [
        number for number in parted if not asked[number]["temperature"] and _is_tie(together[number], alone[number])
    ]
    say(f"{len(asked)} requests: {len(bad)} not valid, {len(parted)} other than alone, {len(ties)} of them ties")
    return Found(
        len(bad) + len(parted) - len(ties),
        {"requests": len(asked), "not_valid": bad, "other": parted, "ties": ties},
    )


def _is_tie(one: Answer, other: Answer) -> bool:
    """Whether the two likeliest tokens were as good as equal where two answers part."""
    place = next(
        (place for place, (a, b) in enumerate(zip(one.told, other.told, strict=False)) if a["token"] != b["token"]),
        None,
    )
    if place is None:
        return False
    likeliest = [top["logprob"] for top in one.told[place]["top_logprobs"]]
    return len(likeliest) == 2 and abs(likeliest[0] - likeliest[1]) < TIE
