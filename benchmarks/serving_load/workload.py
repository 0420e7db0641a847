"""What is asked for: W (prompts of 150 tokens, up to 100 tokens of three schemas), and streams that go on for long."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema

WORDS = """
time year people way day man thing woman life child world school state family student group country problem hand part
place case week company system program question work government number night point home water room mother area money
story fact month lot right study book eye job word business issue side kind head house service friend father power hour
game line end member law car city community name president team minute idea body information
""".split()  # noqa: SIM905 - words are read as words


def text(length: int) -> dict[str, Any]:
    """A schema of strings."""
    return {"type": "string", "maxLength": length}


def closed(**properties: Any) -> dict[str, Any]:
    """A schema of objects with just these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMAS = (
    closed(name=text(40), age={"type": "integer", "minimum": 0, "maximum": 120}, biography=text(240)),
    closed(
        city=text(30),
        population={"type": "integer", "minimum": 0},
        is_capital={"type": "boolean"},
        sights={"type": "array", "items": text(40), "minItems": 3, "maxItems": 5},
    ),
    closed(
        summary=text(160),
        mood={"enum": ["good", "bad", "mixed"]},
        tags={"type": "array", "items": text(16), "minItems": 2, "maxItems": 6},
    ),
)


def words(number: int, count: int) -> str:
    """Some words; others for each number."""
    return " ".join(random.Random(number).choices(WORDS, k=count))


def body(prompt: str, schema: Any = None, **fields: Any) -> dict[str, Any]:
    """A streamed chat with one message, the model not told of the schema."""
    asked: dict[str, Any] = {
        "messages": [{"role": "user", "content": prompt}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "structgen": {"schema_in_prompt": "none"},
        **fields,
    }
    return asked if schema is None else {**asked, "structured_outputs": {"json": schema}}


def completion(prompt: str, schema: Any = None, **fields: Any) -> dict[str, Any]:
    """As ``body``, the prompt as it is."""
    asked = body("", schema, **fields)
    del asked["messages"]
    return {**asked, "prompt": prompt}


def w(number: int, **fields: Any) -> dict[str, Any]:
    """A request of W: 150 tokens of prompt, 31 of them the template's, the rest no other request begins with."""
    fields = {"max_tokens": 100, "temperature": 0.8, "seed": number, **fields}
    return body(words(number, 119), SCHEMAS[number % len(SCHEMAS)], **fields)


SYSTEM = words(-1, 95)


def shared(number: int, **fields: Any) -> dict[str, Any]:
    """As ``w``, but the system message is everybody's, and so is the schema."""
    asked = w(number, **fields)
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": words(number, 40)}]
    return {**asked, "messages": messages, "structured_outputs": {"json": SCHEMAS[2]}}


def endless(number: int, max_tokens: int = 1900) -> dict[str, Any]:
    """A stream that goes on to its budget; every second under a schema. Its texts cannot be drafted from its own."""
    fields = {"max_tokens": max_tokens, "temperature": 1.0, "seed": number, "logit_bias": {"2": -100, "0": -100}}
    schema = {"type": "array", "items": text(60), "minItems": 400} if number % 2 else None
    return body(words(10_000 + number, 20), schema, **fields)


def fault(asked: dict[str, Any], output: str) -> str | None:
    """What is wrong with an output, by python-jsonschema; None: nothing, or it is free text."""
    schema = asked.get("structured_outputs", {}).get("json")
    if schema is None:
        return None
    try:
        jsonschema.validate(json.loads(output), schema, jsonschema.Draft202012Validator)
    except (ValueError, jsonschema.ValidationError) as error:
        return str(error)[:200]
    return None
