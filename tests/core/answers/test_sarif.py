"""Positions in JSON texts against a search for what stands there; the shape of the log."""

from __future__ import annotations

import json
import random
from typing import Any

from structgen.core.answers.sarif import SarifResult, sarif_log
from structgen.core.answers.text_positions import TextPositions
from structgen.errors import pointer_to


def numbered(rng: random.Random, depth: int, path: tuple[Any, ...], leaves: dict[str, int]) -> Any:
    """Random JSON in which every scalar is another number."""
    if depth == 0 or rng.random() < 0.3:
        leaves[pointer_to(path)] = 1000 + len(leaves)
        return leaves[pointer_to(path)]
    size = rng.randint(0, 3)
    if rng.random() < 0.5:
        return [numbered(rng, depth - 1, (*path, index), leaves) for index in range(size)]
    return {key: numbered(rng, depth - 1, (*path, key), leaves) for key in ('a"b', "c/d", "\n~")[:size]}


def test_positions_lead_to_the_values() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        leaves: dict[str, int] = {}
        value = numbered(rng, 4, (), leaves)
        text = json.dumps(value, indent=rng.choice([None, 1, 2]))
        positions = TextPositions(text)
        for pointer, number in leaves.items():
            line, column = positions.of(pointer)
            after = "\n".join([text.splitlines()[line - 1][column - 1 :], *text.splitlines()[line:]])
            in_array = pointer.rpartition("/")[2].isdigit() or not pointer
            assert after.startswith(str(number) if in_array else '"'), (text, pointer)
            assert str(number) in after.split(",")[0]


def test_texts_that_are_no_json_have_positions_too() -> None:
    for text in ("", "{", "[1,", '{"a": 1', "nonsense", '{"a" 1}'):
        assert TextPositions(text).of("/a/b")[0] >= 1


def test_log() -> None:
    result = SarifResult("r", "warning", "m", "f.json", "/a", {"document": "1"})
    log = sarif_log([result], {"r": "about"}, {"f.json": '{\n "a": 1}'}, "0")
    (run,) = log["runs"]
    assert log["version"] == "2.1.0" and run["tool"]["driver"]["rules"][0]["id"] == "r"
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 2}
