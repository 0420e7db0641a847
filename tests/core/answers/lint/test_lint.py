"""Each rule on a fixture and on one that looks like it and is not; what shows a finding is checked again by
python-jsonschema, which knows the rule and the evidence only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import structgen
from structgen.core.answers.lint.run import SUMMARIES
from structgen.core.answers.occurrences import value_at
from tests.cli.running import run
from tests.core.answers.random_pairs import Pair

INTEGER = {"type": "integer"}
FIXTURES: list[tuple[str, str, Any, Any]] = [
    ("unsatisfiable", "", {"minimum": 2, "maximum": 1, "type": "number"}, {"minimum": 1, "maximum": 1}),
    ("unsatisfiable", "/$defs/a",
     {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"allOf": [INTEGER, {"type": "null"}]}}},
     {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": INTEGER}}),
    ("dead-member", "/properties/a", {"properties": {"a": {"enum": [1], "type": "string"}}},
     {"properties": {"a": False}}),
    ("dead-branch", "/anyOf/1", {"type": "string", "anyOf": [{"minLength": 1}, INTEGER]},
     {"anyOf": [{"type": "string"}, INTEGER]}),
    ("dead-branch", "/enum/1", {"type": "string", "enum": ["a", 1]}, {"type": ["string", "integer"], "enum": ["a", 1]}),
    ("covered-branch", "/anyOf/0", {"anyOf": [INTEGER, {"type": "number"}]},
     {"anyOf": [INTEGER, {"type": "number", "maximum": 0}]}),
    ("overlapping-branches", "/oneOf/0", {"oneOf": [INTEGER, {"type": "number"}]},
     {"oneOf": [INTEGER, {"type": "string"}]}),
    ("disjoint-branches", "/oneOf", {"oneOf": [INTEGER, {"type": "string"}]}, {"oneOf": [INTEGER, {"minimum": 0}]}),
    ("no-effect", "/maximum", {"maximum": 5, "exclusiveMaximum": 5}, {"maximum": 5, "exclusiveMaximum": 6}),
    ("wrong-type", "/uniqueItems", {"type": "string", "uniqueItems": True}, {"uniqueItems": True}),
    ("refused-annotation", "/default", {"type": "string", "default": 1}, {"type": "string", "default": "1"}),
    ("refused-annotation", "/examples/1", {"maxLength": 1, "examples": ["a", "ab"]}, {"examples": ["a", "ab"]}),
    ("misspelt", "/minLenght", {"minLenght": 1}, {"x-min": 1}),
    ("undeclared-required", "/required/0", {"properties": {"password": {}, "user": {}}, "required": ["key"]},
     {"properties": {"key": {}}, "required": ["key"]}),
    ("ignored-keyword", "/minLength",
     {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "minLength": 1,
      "definitions": {"a": {}}},
     {"$ref": "#/$defs/a", "minLength": 1, "$defs": {"a": {}}}),
    ("split-anchors", "/pattern", {"pattern": "^dev|alpha|stable$"}, {"pattern": "^(dev|alpha|stable)$"}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "pointer", "wrong", "right"), FIXTURES)
def test_rules(rule: str, pointer: str, wrong: Any, right: Any) -> None:
    assert (rule, pointer) in {(one.rule, one.pointer) for one in structgen.lint(wrong)}
    assert (rule, pointer) not in {(one.rule, one.pointer) for one in structgen.lint(right)}
    assert rule in SUMMARIES


def value_under(schema: Any, pointer: str) -> Any:
    """The value at a pointer."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    path = [int(part) if part.isdigit() else part for part in parts]
    has, value = value_at(schema, path)
    assert has, pointer
    return value


def check(schema: Any, finding: structgen.Finding) -> bool:
    """Whether the evidence shows what the rule says; True where it is a question."""
    valid = jsonschema.Draft202012Validator
    evidence = finding.evidence
    if finding.rule == "overlapping-branches":
        both = (value_under(schema, finding.pointer), value_under(schema, evidence["with"]))
        return all(valid(one).is_valid(evidence["document"]) for one in both)
    if finding.rule == "refused-annotation":
        owner = value_under(schema, finding.pointer.partition("/default")[0].partition("/examples")[0])
        return not valid(owner).is_valid(evidence["document"])
    return True


@pytest.mark.parametrize("seed", range(3))
def test_evidence_is_right_on_random_schemas(seed: int) -> None:
    for number in range(30_000 + 40 * seed, 30_000 + 40 * (seed + 1)):
        pair = Pair(number)
        if pair.drafts[0] != "draft2020-12" or "$" in json.dumps(pair.schemas[0]):
            continue
        for finding in structgen.lint(pair.schemas[0]):
            assert check(pair.schemas[0], finding), (pair.schemas[0], finding)


def test_deep_and_closed_are_asked_for() -> None:
    inner = {"properties": {"a": {"maximum": 3}}}
    schema = {"allOf": [inner], "properties": {"a": {"maximum": 5}}}
    assert not [one for one in structgen.lint(schema) if one.rule in ("whole-no-effect", "open-object")]
    rules = {(one.rule, one.pointer) for one in structgen.lint(schema, deep=True, closed=True)}
    assert {("whole-no-effect", "/properties/a/maximum"), ("open-object", "")} <= rules


def test_the_command(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{"type": "string"}')
    bad.write_text('{\n "type": "string",\n "default": 1\n}')
    assert run("lint", str(good))[0] == 0
    code, text, _ = run("lint", str(good), str(bad))
    assert code == 1 and f"{bad}:3:2: warning:" in text and "[refused-annotation]" in text
    assert run("lint", str(bad), "--fail-on", "error")[0] == 0
    assert run("lint", str(tmp_path / "none.json"))[0] == 2
    earlier = run("lint", str(bad), "--json")[1]
    (tmp_path / "baseline.json").write_text(earlier)
    assert run("lint", str(bad), "--baseline", str(tmp_path / "baseline.json"))[0] == 0
    (result,) = json.loads(run("lint", str(bad), "--sarif")[1])["runs"][0]["results"]
    assert result["ruleId"] == "refused-annotation"


def test_lists_of_tools(tmp_path: Path) -> None:
    tools = [{"name": "f", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "default": 1}}}}]
    path = tmp_path / "tools.json"
    path.write_text(json.dumps({"tools": tools}))
    code, text, _ = run("lint", "--tools", str(path))
    assert code == 1 and "/properties/a/default" in text


def test_tools_for_providers(tmp_path: Path) -> None:
    """Which provider takes which tool, and what it loses; limits are counted over all tools."""
    closed = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"], "additionalProperties": False}
    bounded = {**closed, "properties": {"a": {"type": "integer", "minimum": 3}}}
    many = {"type": "object", "properties": {f"m{i}": {"type": "string"} for i in range(20)}}
    tools = [{"name": f"t{i}", "inputSchema": s} for i, s in enumerate([closed, bounded, many, {**many, "title": "b"}])]
    path = tmp_path / "tools.json"
    path.write_text(json.dumps({"tools": tools}))
    code, text, _ = run("lint", "--tools", str(path), "--for", "openai,anthropic", "--json")
    found = [one for one in json.loads(text)["findings"] if one["rule"].startswith("provider")]
    said = {(one["pointer"].split("/")[2] if one["pointer"] else "", one["message"].split(":")[0]) for one in found}
    assert said == {("1", "anthropic"), ("2", "openai"), ("2", "anthropic"), ("3", "openai"), ("3", "anthropic"),
                    ("", "anthropic")}  # fmt: skip
    (loses,) = [one for one in found if one["pointer"].startswith("/tools/1")]
    assert loses["level"] == "warning" and "minimum" in loses["message"]
    assert json.loads(loses["evidence"]["document"])["a"] < 3 and code == 1
    assert any("40 optional" in one["message"] for one in found)
    assert run("lint", "--tools", str(path), "--for", "nobody")[0] == 2
    assert structgen.lint(closed, targets=["all"]) == []
