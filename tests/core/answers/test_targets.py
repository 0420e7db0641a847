"""Lowering: what is sent is within limits, mapped answers are what it is said they are, and the verdicts are right.

The oracles share nothing with the lowering: `fits` for limits, python-jsonschema for what is sent and what is meant,
and llama.cpp's own converter, read by the engine for its grammars.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import jsonschema
import pytest

import structgen
from structgen import JsonOptions
from structgen.core.answers.targets.table import TARGETS
from structgen.errors import OptionsError, SchemaError, UnresolvableReferenceError
from tests.core.answers.random_pairs import Pair
from tests.many import cases

DRAFT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
TREE = {
    "$defs": {"node": {**CLOSED, "properties": {"a": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}},
    "$ref": "#/$defs/node",
}
SCHEMAS: dict[str, Any] = {
    "closed": CLOSED,
    "open": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 4}}},
    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "map of patterns": {"type": "object", "patternProperties": {"^x": {"type": "null"}}, "additionalProperties": False},
    "anything": True,
    "untyped": {"properties": {"a": {"minimum": 3}}},
    "root array": {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 0}, "minItems": 2},
    "tuple": {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": False, "minItems": 2},
    "optional null": {**CLOSED, "properties": {"a": {"type": "string"}, "b": {"type": ["null", "integer"]}}},
    "recursion": TREE,
    "needs itself": {"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"},
    "condition": {
        "type": "object", "properties": {"k": {"enum": ["x", "y"]}, "v": {"type": "integer"}}, "required": ["k"],
        "if": {"properties": {"k": {"const": "x"}}}, "then": {"required": ["v"]},
    },
    "all of": {"allOf": [{"$ref": "#/$defs/a"}, {"required": ["a"]}], "$defs": {"a": {**CLOSED, "required": []}}},
    "one of": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]},
    "values": {"enum": [1, "a", "A", None, True, {"b": [1]}, []]},
    "deep": {
        "type": "object", "properties": {"a": {"type": "array", "items": {"type": "array", "items": {"type": "array"}}}}
    },
    "draft 4": {
        "$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 1, "exclusiveMinimum": True
    },
    "union of maps": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "object"}, {"type": "null"}]},
    "property $ref": {"type": "object", "properties": {"$ref": {"type": "string"}}, "required": ["$ref"]},
}  # fmt: skip


def lowered_of(schema: Any, target: str, options: JsonOptions | None = None) -> structgen.LoweredSchema | None:
    """None: no value satisfies the schema, or it cannot be read."""
    try:
        return structgen.lower(schema, target, options=options)
    except (structgen.UnsatisfiableSchemaError, UnresolvableReferenceError):
        return None


def is_valid(schema: Any, value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator({**DRAFT, **schema}).is_valid(value))


def plainly(value: Any) -> Any:
    return json.loads(json.dumps(value, default=float))


def closed_tuples(part: Any) -> Any:
    """A schema as a target reads it that allows no items but those by position."""
    if isinstance(part, list):
        return [closed_tuples(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    read = {name: closed_tuples(inner) for name, inner in part.items()}
    return {**read, "items": False, "minItems": len(part["prefixItems"])} if "prefixItems" in part else read


def errors_of(lowered: structgen.LoweredSchema, count: int) -> list[str]:
    """What the judges object to."""
    wrong = [f"beyond: {one}" for one in structgen.fits(lowered.sent, lowered.target)]
    sent, meant = ({**DRAFT, **schema} for schema in (lowered.sent, lowered.meant))
    if lowered.target.tuples == "closed":
        sent = closed_tuples(sent)
    for example in structgen.examples(meant, count):
        there = lowered.forth(example.value)
        if not is_valid(sent, plainly(there)):
            wrong.append(f"{example.text} is sent as {there!r}, which is not asked for")
        if plainly(lowered.back(there)) != plainly(example.value):
            wrong.append(f"{example.text} comes back as {lowered.back(there)!r}")
    for example in structgen.examples(sent, count):
        back = plainly(lowered.back(example.value))
        if not is_valid(meant, back):
            wrong.append(f"the answer {example.text} means {back!r}, which is not meant")
    return wrong


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_limits_and_mappings(name: str, target: str) -> None:
    lowered = structgen.lower(SCHEMAS[name], target)
    assert errors_of(lowered, 6) == []
    assert lowered.verdict != "unknown"
    for difference, allowed in ((lowered.comparison.old_only, True), (lowered.comparison.new_only, False)):
        if difference is not None and difference.text is not None:
            value = json.loads(difference.text)
            assert is_valid(lowered.meant, value) is not allowed


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.full
def test_random_schemas(target: str) -> None:
    for number in cases(1_500, 25):
        pair = Pair(number)
        if (lowered := lowered_of(pair.schemas[0], target, pair.options())) is None:
            continue
        try:
            assert errors_of(lowered, 3) == [], (number, pair.schemas[0])
        except SchemaError:  # beyond a budget of drawing
            continue
        for difference, allowed in ((lowered.comparison.old_only, True), (lowered.comparison.new_only, False)):
            if difference is not None and difference.text is not None:
                assert pair.valid(0, difference.value) is not (not allowed), (number, difference.text)


VERDICTS = [
    ("closed", "openai", "equal"), ("closed", "gemini", "equal"), ("map", "openai", "equal"),
    ("anything", "openai", "equal"), ("anything", "anthropic", "equal"), ("tuple", "anthropic", "equal"),
    ("recursion", "openai", "equal"), ("recursion", "anthropic", "wider"), ("recursion", "gemini", "equal"),
    ("optional null", "openai", "narrower"), ("open", "openai", "narrower"), ("condition", "gemini", "equal"),
    ("all of", "openai", "equal"), ("one of", "openai", "wider"), ("root array", "openai", "equal"),
    ("root array", "gemini", "equal"), ("root array", "anthropic", "wider"), ("map of patterns", "openai", "equal"),
    ("values", "openai", "equal"), ("values", "anthropic", "wider"), ("draft 4", "llguidance", "equal"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "target", "verdict"), VERDICTS)
def test_verdicts(name: str, target: str, verdict: str) -> None:
    assert structgen.lower(SCHEMAS[name], target).verdict == verdict


def test_deep_schemas_are_compared_in_linear_time() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"a": deep}}
    assert structgen.compare(deep, {**deep, "title": "the same"}).verdict == "equal"


def test_limits_are_kept_by_giving_up_what_is_beyond() -> None:
    many = {"type": "object", "properties": {f"m{i}": {"type": "string"} for i in range(60)}}
    assert structgen.lower(many, "anthropic").beyond == ()
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        deep = {"type": "object", "properties": {"a": deep}, "required": ["a"], "additionalProperties": False}
    lowered = structgen.lower(deep, "openai")
    assert lowered.beyond == () and lowered.verdict == "wider"
    long = structgen.lower({"enum": [f"value {i}" for i in range(2_000)]}, "openai")
    assert long.beyond == () and long.lost
    wide = {"type": "object", "properties": {f"m{i}": {"type": "string"} for i in range(5_001)}}
    assert any("properties" in one for one in structgen.lower(wide, "openai").beyond)


def test_what_is_lost_is_named_in_descriptions() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "description": "How many."}}}
    lowered = structgen.lower(schema, "anthropic")
    assert ("/properties/n", "minimum") in lowered.lost
    assert lowered.sent["properties"]["n"]["description"] == "How many. (minimum: 3)"


def test_targets_are_named() -> None:
    assert structgen.lower(True, "ollama").target.name == "llama.cpp"
    with pytest.raises(OptionsError, match="openai, anthropic"):
        structgen.lower(True, "nobody")
    for target in TARGETS.values():
        assert target.as_of and target.sources and target.title


def test_the_checker_sees_what_a_target_does_not_read() -> None:
    assert structgen.fits(CLOSED, "openai") == []
    for schema, target, said in (
        ({"type": "object"}, "openai", "additionalProperties"),
        ({**CLOSED, "required": []}, "openai", "not required"),
        ({"type": "string"}, "openai", "root"),
        ({**CLOSED, "not": {}}, "openai", "not is not read"),
        ({**CLOSED, "properties": {"a": {"type": "string", "pattern": "(?=a)"}}}, "openai", "expression"),
        ({**CLOSED, "properties": {"a": {"type": "string", "format": "iri"}}}, "anthropic", "iri"),
        ({"type": "array", "items": {"type": "null"}, "uniqueItems": True}, "gemini", "uniqueItems"),
        (TREE, "anthropic", "leads to itself"),
        ({"$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}, "gemini", "itself"),
    ):
        assert any(said in one for one in structgen.fits(schema, target)), (schema, target)


def test_levels_of_definitions_that_lead_to_each_other_are_counted_or_given_up() -> None:
    """Through twelve there are 108,505,112 paths on which none comes twice."""
    names = [f"d{i}" for i in range(12)]

    def sent(leads_to: Callable[[int], Iterable[str]]) -> dict[str, Any]:
        definitions = {}
        for index, name in enumerate(names):
            members = {other: {"$ref": f"#/$defs/{other}"} for other in leads_to(index)}
            definitions[name] = {**CLOSED, "properties": members, "required": list(members)}
        return {**CLOSED, "properties": {"x": {"$ref": "#/$defs/d0"}}, "required": ["x"], "$defs": definitions}

    assert any("levels" in one for one in structgen.fits(sent(lambda _: names), "openai"))
    assert structgen.fits(sent(lambda index: names[index + 1 :]), "openai") == ["more than 10 levels"]
    assert structgen.fits(sent(lambda index: names[index + 1 : 9]), "openai") == []
    assert structgen.fits(sent(lambda index: names[(index + 1) % 5 : (index + 1) % 5 + 1]), "openai") == []


@pytest.mark.parametrize("target", TARGETS)
def test_members_may_have_the_names_of_keywords(target: str) -> None:
    names = ["enum", "properties", "$defs", "$ref", "items", "anyOf", "required"]
    members = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    schema = {
        "$defs": {name: {"type": "array", "items": {"type": ["integer", "array", "object"]}} for name in names},
        "anyOf": [{**CLOSED, "properties": members, "required": names}, {"type": "integer"}],
    }
    lowered = structgen.lower(schema, target)
    assert lowered.beyond == () and structgen.fits(lowered.sent, target) == []
    for value in ({name: [1, [2], {"enum": [3]}] for name in names}, 4):
        assert lowered.back(lowered.forth(value)) == value


@pytest.mark.parametrize("data", ["default", "examples", "const", "enum", "properties"])
def test_values_and_members_with_the_names_of_identifiers(data: str) -> None:
    named = {"$id": "https://example.com/a", "id": "b", "$anchor": "c"}
    more: Any = {data: [named] if data in ("examples", "enum") else named}
    if data == "properties":
        more = {data: {name: {"type": "null"} for name in named}}
    schema = {
        "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "x": more}, "required": ["a"],
        "$defs": {"a": {**CLOSED, "description": "what it is"}},
    }  # fmt: skip
    assert structgen.lower(schema, "gemini").sent["$defs"]["a"]["description"] == "what it is"


LOOPS = {
    "alone": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "array", "prefixItems": [{}], "items": False}]}},
    "in a circle": {
        "a": {"title": "A", "anyOf": [{"$ref": "#/$defs/b"}, {"type": "string"}]},
        "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "object", "additionalProperties": {"type": "null"}}]},
    },
    "into a circle": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/b"}, {"const": [1]}]}},
    "of what is not written yet": {
        "a": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/c"}]},
        "b": {"properties": {"c": {"$ref": "#/$defs/a"}}},
        "c": {},
    },
    "of patterns": {
        "a": {
            "type": "object", "patternProperties": {"^x": {"type": "string"}},
            "additionalProperties": {"type": "array", "items": {"$ref": "#/$defs/b"}},
        },
        "b": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}},
    },
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", LOOPS)
def test_definitions_that_are_alternatives_of_themselves(name: str, target: str) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": LOOPS[name]}
    lowered = structgen.lower(schema, target)
    values: list[Any] = ["x", [1], ["x"], {"y": None}, {"xx": "s", "y": []}, {"y": [{"b": {}}]}, {"c": {"c": {}}}]
    for value in ({"a": inner} for inner in values):
        sent = lowered.forth(value)
        assert plainly(lowered.back(sent)) == value, sent
        is_valid(lowered.sent, plainly(sent))  # which comes to an end


def test_answers_that_are_not_what_was_asked_for_stay_as_they_are() -> None:
    tuples = structgen.lower({"type": "object", "properties": {"a": SCHEMAS["tuple"]}, "required": ["a"]}, "openai")
    for answer in ({"a": {"item0": "x"}}, {"a": 3}, {}, 4):
        assert tuples.back(answer) == answer
    maps = structgen.lower({"type": "object", "properties": {"a": SCHEMAS["map"]}, "required": ["a"]}, "openai")
    wrong: list[Any] = [[3], [{"key": "a"}], [{"key": ["a"], "value": 1}], {}]
    for entries in wrong:
        assert maps.back({"a": {"entries": entries}}) == {"a": {"entries": entries}}


@pytest.mark.parametrize("target", TARGETS)
def test_members_in_another_order_are_sent_all_the_same(target: str) -> None:
    members = {"map": {"type": "object", "additionalProperties": {"type": "integer"}}, "n": {"type": "number"}}
    schema = {"anyOf": [{**CLOSED, "properties": members, "required": ["map", "n"]}, {"const": 1}]}
    lowered = structgen.lower(schema, target)
    for value in ({"n": 2, "map": {"b": 1, "a": 2}}, {"map": {}, "n": 2}, 1):
        sent = lowered.forth(value)
        assert lowered.back(sent) == value
        assert structgen.reasons(lowered.sent, json.dumps(sent)).occurrences == (), sent


def test_llama_cpps_converter_takes_what_is_sent() -> None:
    converter = pytest.importorskip("cyllama.utils.json_schema_to_grammar").json_schema_to_grammar
    from structgen.core.constraints.parts import BYTES

    for name in ("closed", "map", "root array", "tuple", "recursion", "values", "all of", "draft 4"):
        lowered = structgen.lower(SCHEMAS[name], "llama.cpp")
        grammar = structgen.gbnf(converter(json.dumps(lowered.sent))).compile(BYTES)
        for example in structgen.examples({**DRAFT, **lowered.meant}, 5):
            matcher = grammar.matcher()
            text = json.dumps(lowered.forth(example.value), default=float, separators=(", ", ": ")).encode()
            assert matcher.accept_bytes(text) and matcher.is_accepting(), (name, example.text)


@pytest.mark.parametrize("engine", ["xgrammar", "llguidance"])
def test_other_engines_mean_what_is_sent(engine: str) -> None:
    """Their own compilers take what is sent, allow its documents, and refuse those that miss it by one keyword."""
    pytest.importorskip("xgrammar") if engine == "xgrammar" else pytest.importorskip("llguidance")
    from structgen.benchmarking.engines import load_engine
    from structgen.benchmarking.vocabularies import BenchVocabulary

    end = 256
    words = BenchVocabulary("bytes", [*(bytes([byte]) for byte in range(end)), b""], end, lambda text: [*text.encode()])
    peer = load_engine(engine, words)
    for name, schema in SCHEMAS.items():
        lowered = structgen.lower(schema, engine)
        start = peer.compile(json.dumps(lowered.sent))
        right = [lowered.forth(one.value) for one in structgen.examples({**DRAFT, **lowered.meant}, 4)]
        wrong = [one.value for one in structgen.examples({**DRAFT, **lowered.sent}, 4, style="invalid")]
        for number, value in enumerate(right + wrong):
            text = json.dumps(value, default=float, ensure_ascii=False)
            session = start()
            is_taken = all(session.accept(byte) for byte in text.encode())
            if is_taken:
                session.fill()
                is_taken = bool(peer.row[end // 32] >> end % 32 & 1)
            assert is_taken is (number < len(right)), (name, text)
