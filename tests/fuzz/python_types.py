"""Python types: what the engine writes for one is read by pydantic, and what pydantic writes is accepted."""

from __future__ import annotations

import json
import math
import random
import warnings
from collections import Counter
from typing import Any

import pydantic
import pydantic_core

from structgen import GenerationError, JsonOptions, json_schema
from structgen.errors import ConstraintError
from tests.core.python_types.random_types import random_type
from tests.fuzz.instances import Instances
from tests.fuzz.vocabularies import COUNT, vocabulary
from tests.fuzz.walks import Walk, Wrong, accepts

Case = dict[str, Any]
ALPHABET = b'"{}[],:0123ab-. tfn'


def readable_type(rng: random.Random) -> Any:
    """A random type that pydantic itself can make an adapter of."""
    while True:
        try:
            kind = random_type(rng)
            pydantic.TypeAdapter(kind)
        except (pydantic.errors.PydanticUserError, pydantic_core.SchemaError, TypeError, ValueError):
            continue
        return kind


def unit(seed: int, tally: Counter[str]) -> list[Case]:
    """Check one type."""
    rng = random.Random(f"type {seed}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fields that shadow methods, values that are no JSON
        return _unit(rng, tally)


def _unit(rng: random.Random, tally: Counter[str]) -> list[Case]:
    kind = readable_type(rng)
    tally["types"] += 1
    options = JsonOptions(key_order="any", whitespace="any", string_escapes="any", number_spellings="any")
    try:
        constraint = json_schema(kind, options)
        grammar = constraint.compile(vocabulary(rng.randint(0, COUNT)))
    except ConstraintError as error:
        tally[f"types refused: {type(error).__name__}"] += 1
        return []
    failed: list[Case] = []

    def judged(text: bytes) -> str | None:
        try:
            constraint.parse(text.decode())
        except GenerationError:
            return None if constraint.report.checked else "writes invalid"
        return None

    for _ in range(6):
        walk = Walk(grammar, rng, judged, ALPHABET)
        try:
            walk.run(rng.choice((3, 10, 30, 60)), 0.05)
        except Wrong as wrong:
            failed.append({"kind": wrong.kind, "detail": f"{wrong.detail} {wrong.text!r} of {kind!r}"[:300]})
        tally["texts"] += walk.texts
    failed += _written(pydantic.TypeAdapter(kind), constraint, grammar, rng, tally, kind)
    return failed


def _written(
    adapter: Any, constraint: Any, grammar: Any, rng: random.Random, tally: Counter[str], kind: Any
) -> list[Case]:
    """Texts by the schema alone, and what pydantic writes of the values that it reads."""
    try:
        instances = Instances(rng, json.loads(json.dumps(_inlined(constraint.schema), default=float)))
    except (RecursionError, OverflowError):  # a type that holds itself; limits next to infinity
        return []
    for _ in range(30):
        text = json.dumps(instances.sample(), default=float)
        tally["texts"] += 1
        accepted = accepts(grammar, text.encode())
        try:
            value = adapter.validate_json(text)
        except (pydantic.ValidationError, RecursionError, TypeError):
            if accepted and not constraint.report.checked:
                return [{"kind": "accepts invalid", "detail": f"{text} of {kind!r}"[:300]}]
            continue
        try:
            again = adapter.dump_json(value, by_alias=True)
            adapter.dump_json(adapter.validate_json(again))  # written, too: an Iterable is read no sooner
        except (pydantic_core.PydanticSerializationError, ValueError, TypeError):
            continue
        if not constraint.report.entries and _plain(json.loads(again)) and not accepts(grammar, again):
            return [{"kind": "refuses valid", "detail": f"{again!r} of {kind!r}"[:300]}]
    return []


def _plain(value: Any) -> bool:
    """Within the limits that were set, spelled plainly (3, not 3.0), and with no null that stood for an infinity."""
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    if isinstance(value, list):
        return all(map(_plain, value))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value != "**********"  # what secrets are written as, of which a set then has two
    text = json.dumps(value)
    return math.isfinite(value) and len(text) <= 15 and "e" not in text and not text.endswith(".0")


def _inlined(schema: Any) -> Any:
    """The schema with its definitions in place of references to them."""
    definitions = schema.get("$defs", {}) if isinstance(schema, dict) else {}

    def walk(node: Any) -> Any:
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            return walk(definitions[node["$ref"].rpartition("/")[2]])
        if isinstance(node, dict):
            return {name: walk(child) for name, child in node.items() if name != "$defs"}
        return [walk(child) for child in node] if isinstance(node, list) else node

    return walk(schema)
