"""Items of lists that are streamed: each comes once, whole, in order, and not later than the next begins."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterator
from typing import Any, Literal

import pydantic
import pytest

from structgen import json_lines, json_schema
from structgen.core.constraints.base import Constraint
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.results import GenerationResult, StreamEvent, items_of
from tests.server.tiny import generator


class Point(pydantic.BaseModel):
    x: int
    name: str = ""


class Box(pydantic.BaseModel):
    kind: Literal["box"]
    sides: list[float]


POINTS = '[{"x": 1}, {"x": -23, "name": "a, b]"}, {"x": 0, "name": "\\u00e9"}]'
CASES: list[tuple[Any, str]] = [
    (json_schema(list[Point]), POINTS),
    (json_schema({"type": "array"}), '[1, 2.50, "x", null, true, [], {}, [[3]], {"a": [1, {}]}, -1e5]'),
    (json_schema(list[int | str]), '[12, "12", 1, ""]'),
    (json_schema(list[Box | Point]), '[{"x": 1}, {"kind": "box", "sides": [1, 2.5]}, {"x": 2, "name": "box"}]'),
    (json_schema(list[list[int]]), "[[], [1, 2], [3]]"),
    (json_schema(deque[bool]), "[true, false, true]"),
    (json_schema(list[int]), "[]"),
    (json_lines(Point), '{"x": 1}\n{"x": 2, "name": "b"}\n'),
    (json_lines({"type": "integer"}), "12\n3"),
]


def events(constraint: Constraint[Any], text: str, rng: random.Random) -> Iterator[StreamEvent[Any]]:
    """A text in random pieces; the last event may bring nothing new."""
    cuts = sorted({*rng.sample(range(1, len(text)), rng.randint(0, len(text) - 1)), len(text)}) if len(text) > 1 else []
    shown = ""
    for cut in cuts:
        yield StreamEvent(text[len(shown) : cut], text[:cut], None, constraint)
        shown = text[:cut]
    result = GenerationResult(constraint.parse(text), text, (), "stop", 0.0, GenerationStats())
    yield StreamEvent(text[len(shown) :], text, result, constraint)


@pytest.mark.parametrize(("constraint", "text"), CASES)
def test_items_are_those_of_the_list(constraint: Any, text: str) -> None:
    rng = random.Random(text)
    for _ in range(60):
        read: list[StreamEvent[Any]] = []

        def reading(given: Iterator[StreamEvent[Any]], read: list[StreamEvent[Any]] = read) -> Iterator[Any]:
            for event in given:
                read.append(event)
                yield event

        found: list[Any] = []
        for item in items_of(reading(events(constraint, text, rng))):
            found.append(item)
            begun = read[-1].partial
            assert begun is not None and len(begun) >= len(found)
        assert found == list(constraint.parse(text))


def test_a_generator_streams_them() -> None:
    model = generator()
    options: dict[str, Any] = {"temperature": 1.0, "seed": 3, "max_new_tokens": 120}
    whole = model.generate("p", list[Point], **options).value
    assert list(model.stream_items("p", list[Point], **options)) == whole
    schema = {"type": "array", "items": {"enum": [1, 22]}, "minItems": 2, "maxItems": 4}
    assert list(model.stream_items("p", schema, **options)) == json.loads(model.generate("p", schema, **options).text)
