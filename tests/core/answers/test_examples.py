"""Documents are what their style says, by judges that share nothing with the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import find, given, settings

import structgen
from structgen.core.answers.deciding import Questions, answering
from structgen.core.answers.drawing import EARLY, DocumentDrawing
from structgen.core.answers.examples import NearMisses
from structgen.core.answers.joint import Joint
from structgen.core.answers.occurrences import without
from structgen.core.answers.picking.picks import RandomPicks
from structgen.core.json_schema.lowering import Lowered
from structgen.errors import ConstraintError, OptionsError, UnsatisfiableSchemaError
from structgen.testing import from_constraint
from tests.cli.running import run
from tests.core.answers.random_pairs import Pair
from tests.fuzz.judge import BeyondJudgeError, Judge, read

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 1},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
        "friend": {"$ref": "#"},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
VALID = jsonschema.Draft202012Validator(PERSON)


def random_schemas(seed: int, count: int) -> Iterator[Pair]:
    for number in range(40_000 + seed * count, 40_000 + (seed + 1) * count):
        yield Pair(number)


@pytest.mark.parametrize("style", ["typical", "minimal", "boundary"])
@pytest.mark.parametrize("seed", range(5))
def test_random_schemas_allow_their_examples(seed: int, style: Any) -> None:
    for pair in random_schemas(seed, 60):
        try:
            drawn = list(structgen.examples(pair.schemas[0], 6, style=style, seed=seed, options=pair.options()))
        except ConstraintError:
            continue
        for one in drawn:
            assert pair.valid(0, read(one.text)) is not False, (pair.schemas[0], one.text)


@pytest.mark.parametrize("seed", range(5))
def test_documents_on_the_way_to_alternatives_are_allowed_and_meet_them(seed: int) -> None:
    unmet = total = 0
    for number in range(70_000 + seed * 12, 70_000 + (seed + 1) * 12):
        pair = Pair(number)
        options = answering(pair.options())
        try:
            joint = Joint([Lowered(pair.schemas[0], options, None)], options)
            node = Questions(joint, options).node_of(joint.roots[0])
            drawing = None if node is None else DocumentDrawing(node, options, RandomPicks(seed), 100)
            texts = [] if drawing is None else [drawing.document() for _ in range(EARLY)]
            while drawing is not None and drawing.routes().is_open and len(texts) < 200:
                texts.append(drawing.document())
        except ConstraintError:
            continue
        assert all(pair.valid(0, read(text)) is not False for text in texts[EARLY:]), pair.schemas[0]
        unmet += drawing is not None and bool(drawing.routes().unmet)
        total += 1
    assert unmet <= total // 4


@pytest.mark.parametrize("seed", range(4))
def test_near_misses_break_one_occurrence(seed: int) -> None:
    for pair in random_schemas(seed, 40):
        schema, options = pair.schemas[0], pair.options()
        if "$ref" in json.dumps(schema) or pair.drafts[0] in ("draft3", "draft4"):
            continue
        by_pointer = {one.pointer: one for one in NearMisses(schema, answering(options)).occurrences}
        for one in structgen.examples(schema, 6, style="invalid", options=options):
            occurrence = by_pointer[one.pointer]
            assert pair.valid(0, read(one.text)) is not True, (schema, one)
            if occurrence.kind != "name":
                judge = Judge(without(schema, [occurrence]), pair.drafts[0], pair.formats)
                try:
                    assert judge.valid(read(one.text)), (schema, one)
                except BeyondJudgeError:
                    continue


def test_typical_documents_meet_all_there_is() -> None:
    drawn = [one.value for one in structgen.examples(PERSON, 60)]
    assert all(VALID.is_valid(one) for one in drawn)
    assert {key for one in drawn for key in one} == set(PERSON["properties"])
    assert {tag for one in drawn for tag in one.get("tags", [])} == {"a", "b", "c"}


def test_boundaries_are_reached() -> None:
    drawn = [one.value for one in structgen.examples(PERSON, 80, style="boundary")]
    assert {0, 130} <= {one["age"] for one in drawn} and {0, 30} <= {len(one["name"]) for one in drawn}
    assert {1, 3} <= {len(one["tags"]) for one in drawn if "tags" in one}


def test_near_misses_name_their_keyword() -> None:
    pointers = {one.pointer for one in structgen.examples(PERSON, 40, style="invalid")}
    assert {"/required", "/properties/age/maximum", "/properties/tags/uniqueItems", "/additionalProperties"} <= pointers


@pytest.mark.full
def test_the_same_seed_gives_the_same_in_every_process() -> None:
    code = f"import structgen; print([e.text for e in structgen.examples({PERSON!r}, 20, seed=3)])"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == str([one.text for one in structgen.examples(PERSON, 20, seed=3)])


def test_what_cannot_be() -> None:
    assert [one.text for one in structgen.examples({"enum": [1, 2]}, 9, seed=1)] in (["1", "2"], ["2", "1"])
    with pytest.raises(UnsatisfiableSchemaError):
        structgen.examples(False)
    with pytest.raises(OptionsError, match="minimal"):
        structgen.examples({}, style="least")  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(document=from_constraint(PERSON))
def test_the_strategy_gives_documents(document: Any) -> None:
    assert VALID.is_valid(json.loads(json.dumps(document)))


@pytest.mark.full
def test_the_strategy_shrinks() -> None:
    assert find(from_constraint(PERSON), lambda _: True) == {"name": "", "age": 0}
    assert find(from_constraint({"type": "integer"}), lambda value: value > 10) <= 20


def test_the_command() -> None:
    code, text, _ = run("examples", json.dumps(PERSON), "-n", "4")
    assert code == 0 and all(VALID.is_valid(json.loads(line)) for line in text.splitlines())
    assert len(json.loads(run("examples", json.dumps(PERSON), "-n", "3", "--style", "invalid", "--json")[1])) == 3
    assert run("examples", "false")[0] == 1
    assert run("examples", "{}", "--style", "least")[0] == 2


def test_the_strategy_avoids_the_year_0000() -> None:
    """A legal year, which Python's dates do not have."""
    assert str(find(from_constraint({"type": "string", "format": "date"}), lambda _: True)) == "2000-01-01"


def test_near_misses_of_several_keywords_are_different_documents() -> None:
    schema = {"if": {"multipleOf": 3, "maximum": 10}, "then": False, "minimum": 5}
    texts = [one.text for one in structgen.examples(schema, 30, style="invalid")]
    assert len(set(texts)) == len(texts) > 8


def test_items_that_must_differ_are_counted_where_their_cheapest_values_are_too_few() -> None:
    """`[0, 0, 1]` would be a cheaper way to meet `contains`: there is one 0 only."""
    schema = {"type": "array", "uniqueItems": True, "minItems": 3, "contains": {"not": {"const": 0}}}
    (shortest,) = structgen.examples(schema, 1, style="minimal")
    assert len(set(map(repr, shortest.value))) == 3
    longer = {**schema, "minItems": 4}
    assert structgen.compare(schema, longer).verdict == "narrower"
