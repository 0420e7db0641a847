"""Open values, byte by byte, against the spans of the whole text."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from structgen.core.json_places import JsonPlaces
from structgen.core.json_spans import value_spans
from tests.many import cases

TEXTS = ["", "a", 'q"', "\\", "\\\\", "é{", "[,]", "/~"]


def value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(8 if depth < 3 else 5)
    if kind == 5:
        return [value(rng, depth + 1) for _ in range(rng.randrange(3))]
    if kind > 5:
        return {rng.choice(TEXTS): value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return [None, True, rng.choice([0, -1.5, 1e30]), rng.choice(TEXTS), False][kind]


@pytest.mark.parametrize("seed", cases(3000, 60))
def test_a_byte_is_held_by_the_values_in_whose_spans_it_is(seed: int) -> None:
    rng = random.Random(seed)
    data = json.dumps(value(rng), indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5).encode()
    held: dict[str, list[int]] = {}
    places = JsonPlaces()
    for offset, byte in enumerate(data):
        before, (again, copies) = len(places.values), places.copy()
        touched = [each.pointer for each in places.read(bytes([byte]))]
        assert [each.pointer for each in again.read(bytes([byte]))] == touched
        assert [each.pointer for each in again.values] == [each.pointer for each in places.values]
        assert len(copies) == before
        for pointer in touched:
            held.setdefault(pointer, []).append(offset)
    spans = {each.pointer: list(range(each.start, each.end)) for each in value_spans(data)}
    whole = {pointer: offsets for pointer, offsets in held.items() if pointer in spans}
    assert whole == spans
    # what was only awaited, in an empty array, holds blanks at the most
    assert all(not data[each[0] : each[-1] + 1].strip() for pointer, each in held.items() if pointer not in spans)
    assert [each.kind for each in places.values] in ([], ["0"])


@pytest.mark.parametrize("seed", cases(3000, 60))
def test_a_completion_ends_each_value_where_its_span_ends(seed: int) -> None:
    rng = random.Random(seed)
    data = json.dumps(value(rng), indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5).encode()
    ends, places = {each.pointer: each.end for each in value_spans(data)}, JsonPlaces()
    for offset, byte in enumerate(data):
        first = rng.randint(0, max(0, len(places.values) - 1))
        closed = places.ends(data[offset:], first)
        for each, end in zip(places.values[first:], closed, strict=True):
            assert offset + end == ends.get(each.pointer, offset + end)
        places.read(bytes([byte]))
