"""Silencing what is named admits the text; silencing any other occurrence by itself does not."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

import pytest

import structgen
from structgen.core.answers.deciding import answering
from structgen.core.answers.examples import NearMisses
from structgen.core.answers.occurrences import without
from structgen.core.answers.reasons import forbidding, holds, refusing
from structgen.errors import ConstraintError
from tests.cli.running import run
from tests.core.answers.random_pairs import Pair, plain
from tests.fuzz.instances import Instances

SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer", "maximum": 130}, "name": {"type": "string", "maxLength": 5}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_named_is_what_refuses(seed: int) -> None:
    for number in range(50_000 + 40 * seed, 50_000 + 40 * (seed + 1)):
        pair = Pair(number)
        schema, options = pair.schemas[0], answering(pair.options())
        instances = Instances(random.Random(number), schema)
        for value in [plain(instances.sample()) for _ in range(3)]:
            text = json.dumps(value, default=float)
            try:
                refused = not holds(schema, json.loads(text), options, None)
                answer = structgen.reasons(schema, text, options=pair.options())
                candidates = NearMisses(schema, options).occurrences
            except (ConstraintError, ValueError):
                continue
            assert not answer or refused
            if answer.alone and not answer.alone[0].is_container:
                helping = [one for one in candidates if allows(pair, schema, [one], text)]
                assert helping == list(answer.alone), (schema, text)
            if answer.together:
                assert allows(pair, schema, answer.together, text), (schema, text)


def allows(pair: Pair, schema: object, silent: object, text: str) -> bool:
    anything: object = {} if pair.drafts[0] in ("draft3", "draft4") else True
    try:
        return holds(without(schema, silent, anything), json.loads(text), answering(pair.options()), None)  # type: ignore[arg-type]
    except ConstraintError:
        return False


@pytest.mark.parametrize(
    ("text", "token", "pointers"),
    [
        ('{"name": "Ada", "age": 200}', "", ["/properties/age/maximum"]),
        ('{"name": "Ada"}', "", []),
        ("{}", "", ["/required"]),
        ('{"name": "Ada', "line", ["/properties/name/maxLength"]),
        ('{"name": "Ada", "age": 20', "0", ["/properties/age/maximum"]),
        ('{"name": "Ada", "a', "x", ["/additionalProperties"]),
        ('{"name": "Ada"', "}", []),
        ("", "[", ["/type"]),
    ],
)
def test_known_cases(text: str, token: str, pointers: list[str]) -> None:
    assert [one.pointer for one in structgen.reasons(SCHEMA, text, token).occurrences] == pointers


def test_the_commands(tmp_path: object) -> None:
    code, _, said = run("validate", json.dumps(SCHEMA), "-", "--why", stdin='{"name": "Ada", "age": 200}')
    assert code == 1 and "/properties/age/maximum" in said
    answer = json.loads(run("validate", json.dumps(SCHEMA), "-", "--why", "--json", stdin="{}")[1])
    assert answer["reasons"] == [{"pointer": "/required", "keyword": "required", "name": "name"}]
    code, text, _ = run("show-mask", json.dumps(SCHEMA), "--text", '{"name": "Ada', "--why", "line")
    assert code == 0 and "/properties/name/maxLength" in text


@pytest.mark.parametrize("seed", range(6))
def test_subschemas_that_are_not_applied_are_left_out(seed: int) -> None:
    """What is named is the same whether only subschemas that are applied to the value are tried, or all."""
    compared = 0
    for number in range(60_000 + 15 * seed, 60_000 + 15 * (seed + 1)):
        pair = Pair(number)
        schema, options = pair.schemas[0], pair.options()
        for value in (one for one in pair.documents(3) if pair.valid(0, one) is False):
            asked: Any = partial(holds, value=value, options=options, registry=None)
            try:
                every = forbidding(schema, asked, options, None, 600)
            except ConstraintError:
                break
            few = refusing(schema, value, options, None)
            assert few.alone == every.alone, (schema, value)
            if not few.alone:  # a least set depends on what it is chosen from
                assert bool(few) == bool(every), (schema, value)
            compared += 1
            if compared % 3 == 0:
                break
    assert compared > 15


def test_large_schemas_are_asked_by_what_is_applied() -> None:
    parts = {
        f"p{i}": {"type": "object", "properties": {f"m{j}": {"maxLength": j} for j in range(30)}} for i in range(60)
    }
    schema = {"$defs": parts, "properties": {name: {"$ref": f"#/$defs/{name}"} for name in parts}}
    assert [one.pointer for one in structgen.reasons(schema, '{"p7": {"m3": "abcd"}}').alone] == [
        "/$defs/p7/properties/m3/maxLength", "/properties/p7/$ref",
    ]  # fmt: skip


D7 = "http://json-schema.org/draft-07/schema#"
HIDING = {
    "$schema": D7,
    "$ref": "#/definitions/a",
    "type": "array",
    "$id": "http://x.test/hidden",
    "definitions": {"a": {"type": "object", "properties": {"b": {"type": "string", "maxLength": 3}}}},
}


def test_definitions_next_to_a_reference_that_hides_its_siblings_are_named() -> None:
    """The shape that generators for TypeScript write; what is hidden does not come to life where `$ref` is silenced."""
    pointers = [one.pointer for one in structgen.reasons(HIDING, '{"b": "four"}').occurrences]
    assert pointers == ["/$ref", "/definitions/a/properties/b/maxLength"]
    broken = {one.pointer for one in structgen.examples(HIDING, 12, style="invalid")}
    assert broken >= {"/definitions/a/type", "/definitions/a/properties/b/type"}
    shorter = json.loads(json.dumps(HIDING).replace("3}", "2}"))
    difference = structgen.compare(HIDING, shorter).old_only
    assert difference is not None
    assert [one.pointer for one in difference.keywords] == ["/definitions/a/properties/b/maxLength"]
    ignored = [one.pointer for one in structgen.lint(HIDING) if one.rule == "ignored-keyword"]
    assert ignored == ["/$id", "/type"]


def test_a_keyword_and_a_subschema_that_both_refuse_are_named_together() -> None:
    named = structgen.reasons({"type": "array", "const": 0, "not": {"minimum": 1}}, '"x"').together
    assert [one.pointer for one in named] == ["/type", "/const", "/not"]
    named = structgen.reasons({"oneOf": [False], "unevaluatedProperties": False}, '{"c": 0}').together
    assert {one.pointer for one in named} == {"/oneOf", "/unevaluatedProperties"}
