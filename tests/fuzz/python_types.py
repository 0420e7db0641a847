"""Python types: what the engine writes for one is read by pydantic, and what pydantic writes is accepted."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import random
import uuid
from collections import Counter
from typing import Annotated, Any, Literal, Optional, Union

import pydantic
import pydantic_core
import typing_extensions

from structgen import JsonOptions, json_schema
from structgen.errors import ConstraintError
from tests.fuzz.instances import Instances
from tests.fuzz.vocabularies import COUNT, vocabulary
from tests.fuzz.walks import Walk, Wrong, accepts

Case = dict[str, Any]
NAMES = ["a", "b", "ab", "name", "x1", "class_", "Ünit"]
ALPHABET = b'"{}[],:0123ab-. tfn'


def random_type(rng: random.Random, depth: int = 3) -> Any:
    """A type that pydantic reads, checks and writes as its schema says."""
    way = rng.randrange(20 if depth else 9)
    if way < 3:
        return rng.choice((int, str, bool, float, None, uuid.UUID, Any))
    if way < 5:
        low = rng.choice((-3, 0, 1, 10))
        limits: Any = rng.choice(({"ge": low}, {"gt": low, "lt": low + 9}, {"le": low}, {"ge": low, "multiple_of": 3}))
        return Annotated[int, pydantic.Field(**limits)]
    if way < 7:
        limits = rng.choice(
            ({"min_length": 1}, {"max_length": 3}, {"pattern": "^[ab]+$"}, {"pattern": "^x", "max_length": 4})
        )
        return Annotated[str, pydantic.Field(**limits)]
    if way < 8:
        return Literal[tuple(rng.sample(["a", "b", 1, 2, True, None, "é"], rng.randint(1, 3)))]
    if way < 9:
        return enum.Enum("Color", {name: name * 2 for name in rng.sample(NAMES, 2)})
    inner = random_type(rng, depth - 1)
    if way < 11:
        return list[inner]  # type: ignore[valid-type]
    if way < 12:
        return dict[str, inner]  # type: ignore[valid-type]
    if way < 13:
        return Optional[inner]  # noqa: UP045
    if way < 14:
        return Union[inner, random_type(rng, depth - 1)]  # noqa: UP007
    if way < 15:
        return tuple[inner, random_type(rng, depth - 1)]  # type: ignore[misc,valid-type]
    if way < 16:
        return Annotated[list[inner], pydantic.Field(min_length=1, max_length=3)]  # type: ignore[valid-type]
    fields = {name: random_type(rng, depth - 1) for name in rng.sample(NAMES, rng.randint(1, 3))}
    if way < 17:
        return typing_extensions.TypedDict("Record", fields)  # type: ignore[operator]
    if way < 18:
        return dataclasses.make_dataclass("Data", list(fields.items()))
    config = pydantic.ConfigDict(extra=rng.choice(("ignore", "forbid", "allow")))
    given: Any = {
        name: (kind, ...) if rng.random() < 0.7 else (Optional[kind], None)  # noqa: UP045
        for name, kind in fields.items()
    }
    return pydantic.create_model("Model", __config__=config, **given)


def unit(seed: int, tally: Counter[str]) -> list[Case]:
    """Check one type."""
    rng = random.Random(f"type {seed}")
    kind = random_type(rng)
    tally["types"] += 1
    adapter: Any = pydantic.TypeAdapter(kind)
    options = JsonOptions(
        key_order="any", whitespace="any", string_escapes="any", max_number_length=15
    )  # pydantic reads no 1e20
    try:
        constraint = json_schema(kind, options)
        grammar = constraint.compile(vocabulary(rng.randint(0, COUNT)))
    except ConstraintError as error:
        tally[f"types refused: {type(error).__name__}"] += 1
        return []
    failed: list[Case] = []

    def judged(text: bytes) -> str | None:
        try:
            adapter.validate_json(text)
        except pydantic.ValidationError:
            return "writes invalid"
        return None

    for _ in range(4):
        walk = Walk(grammar, rng, judged, ALPHABET)
        try:
            walk.run(rng.choice((3, 10, 30)), 0.05)
        except Wrong as wrong:
            failed.append({"kind": wrong.kind, "detail": f"{wrong.detail} {wrong.text!r} of {kind!r}"[:300]})
        tally["texts"] += walk.texts
    failed += _written(adapter, constraint, grammar, rng, tally, kind)
    return failed


def _written(
    adapter: Any, constraint: Any, grammar: Any, rng: random.Random, tally: Counter[str], kind: Any
) -> list[Case]:
    """What pydantic writes of values that it reads strictly."""
    instances = Instances(rng, _inlined(constraint.schema))
    for _ in range(30):
        text = json.dumps(instances.sample())
        tally["texts"] += 1
        accepted = accepts(grammar, text.encode())
        try:
            value = adapter.validate_json(text)
        except (pydantic.ValidationError, RecursionError):
            if accepted:
                return [{"kind": "accepts invalid", "detail": f"{text} of {kind!r}"[:300]}]
            continue
        try:
            again = adapter.dump_json(value)
        except (pydantic_core.PydanticSerializationError, ValueError):
            continue
        if _plain(json.loads(again)) and not accepts(grammar, again):
            return [{"kind": "refuses valid", "detail": f"{again!r} of {kind!r}"[:300]}]
    return []


def _plain(value: Any) -> bool:
    """Within the limits that were set, spelled plainly (3, not 3.0), and with no null that stood for an infinity."""
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    if isinstance(value, list):
        return all(map(_plain, value))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return True
    text = json.dumps(value)
    return math.isfinite(value) and len(text) <= 15 and "e" not in text and not text.endswith(".0")


def _inlined(schema: Any) -> Any:
    """The schema with its definitions in place of references to them (types here do not recur)."""
    definitions = schema.get("$defs", {}) if isinstance(schema, dict) else {}

    def walk(node: Any) -> Any:
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            return walk(definitions[node["$ref"].rpartition("/")[2]])
        if isinstance(node, dict):
            return {name: walk(child) for name, child in node.items() if name != "$defs"}
        return [walk(child) for child in node] if isinstance(node, list) else node

    return walk(schema)
