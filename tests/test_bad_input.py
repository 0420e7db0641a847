"""Bad input: each a typed error that says what is wrong, and never a crash or an endless wait."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen
from structgen import (
    BitmaskError,
    JsonOptions,
    MatcherStateError,
    OptionsError,
    PatternError,
    SchemaError,
    SchemaTooComplexError,
    StructgenError,
    TokenError,
    TokenizerError,
    UnresolvableReferenceError,
    UnsatisfiableSchemaError,
    UnsupportedPatternError,
    UnsupportedSchemaError,
    Vocabulary,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    compile_json_schema,
    fill_next_token_bitmasks,
    load_schema,
)

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


def compiled(schema: Any, **options: Any) -> structgen.JsonGrammar:
    return compile_json_schema(schema, BYTES, JsonOptions(**options))


# --- schemas: (schema, error, parts of the message) -------------------------------------------------------------------
SCHEMAS: dict[str, tuple[Any, type[StructgenError], list[str]]] = {
    "no schema": (3, SchemaError, ["expected", "3"]),
    "unknown type": ({"type": "text"}, SchemaError, ["/type", '"text"', '"string"']),
    "properties no object": ({"properties": []}, SchemaError, ["/properties", "an object"]),
    "property no schema": ({"properties": {"a": 5}}, SchemaError, ["/properties/a", "5"]),
    "negative length": ({"minLength": -1}, SchemaError, ["/minLength", "-1"]),
    "fractional count": ({"maxItems": 1.5}, SchemaError, ["/maxItems", "1.5"]),
    "bound no number": ({"minimum": "1"}, SchemaError, ["/minimum", "a number"]),
    "bound not finite": ({"minimum": float("nan")}, SchemaError, ["/minimum"]),
    "multipleOf zero": ({"multipleOf": 0}, SchemaError, ["/multipleOf", "0"]),
    "empty anyOf": ({"anyOf": []}, SchemaError, ["/anyOf", "non-empty"]),
    "required no list": ({"required": "a"}, SchemaError, ["/required", "array of strings"]),
    "required no strings": ({"required": ["a", 1]}, SchemaError, ["/required", "a string"]),
    "no JSON value": ({"const": {1, 2}}, SchemaError, ["/const"]),
    "draft 4 bound": ({"minimum": 1, "exclusiveMinimum": True}, SchemaError, ["/exclusiveMinimum", "draft-04"]),
    "pointer leads nowhere": ({"$ref": "#/$defs/a"}, UnresolvableReferenceError, ["#/$defs/a"]),
    "anchor leads nowhere": ({"$ref": "#a"}, UnresolvableReferenceError, ["#a"]),
    "document unknown": ({"$ref": "https://example.com/x"}, UnresolvableReferenceError, ["https://example.com/x"]),
    "reference loop": ({"$ref": "#"}, UnresolvableReferenceError, ["itself"]),
    "loop of two": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        UnresolvableReferenceError,
        ["itself"],
    ),
    "open group": ({"pattern": "(a"}, PatternError, ["(a", "^"]),
    "nothing to repeat": ({"pattern": "*"}, PatternError, ["offset 0"]),
    "bad range": ({"pattern": "[z-a]"}, PatternError, ["[z-a]"]),
    "backreference": (
        {"type": "string", "pattern": r"(a)\1"},
        UnsupportedPatternError,
        [r"\1", "at /pattern", "ignore"],
    ),
    "bad key pattern": ({"patternProperties": {"[": {"type": "null"}}}, PatternError, ["[", "at /patternProperties"]),
    "false": (False, UnsatisfiableSchemaError, ["no JSON value"]),
    "empty enum": ({"enum": []}, StructgenError, []),
    "crossed bounds": ({"type": "integer", "minimum": 2, "maximum": 1}, UnsatisfiableSchemaError, []),
    "no multiple": (
        {"type": "integer", "minimum": 1, "maximum": 2, "multipleOf": 5},
        UnsatisfiableSchemaError,
        [],
    ),
    "crossed lengths": ({"type": "string", "minLength": 2, "maxLength": 1}, UnsatisfiableSchemaError, []),
    "pattern and length": ({"type": "string", "pattern": "^a$", "minLength": 2}, UnsatisfiableSchemaError, []),
    "required but refused": (
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        UnsatisfiableSchemaError,
        [],
    ),
    "only infinite values": (
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        UnsatisfiableSchemaError,
        [],
    ),
    "types exclude": ({"allOf": [{"type": "string"}, {"type": "null"}]}, UnsatisfiableSchemaError, []),
    "contradiction": ({"allOf": [{"const": 1}, {"not": {"const": 1}}]}, UnsatisfiableSchemaError, []),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name: str) -> None:
    schema, error, parts = SCHEMAS[name]
    with pytest.raises(error) as caught:
        compiled(schema)
    assert [part for part in parts if part not in str(caught.value)] == [], str(caught.value)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1,}', "[1]", '"a"', '{"minimum": NaN}', "nul"])
def test_schema_texts(text: str) -> None:
    with pytest.raises(SchemaError):
        load_schema(text)


def test_a_schema_that_is_not_utf_8() -> None:
    with pytest.raises(SchemaError, match="byte 2"):
        load_schema(b'{"\xff": 1}')


def test_leniency_is_asked_for() -> None:
    """What is refused by name compiles with ``unsupported="ignore"``."""
    schema = {"type": "array", "not": {"uniqueItems": True}, "maxItems": 3}
    with pytest.raises(UnsupportedSchemaError) as raised:
        compiled(schema)
    assert "ignore" in str(raised.value)
    assert compiled(schema, unsupported="ignore").matcher().accept_bytes(b"[1,2]")


@pytest.mark.parametrize(
    ("schema", "text", "pointers"),
    [
        ({"pattern": r"^(a)\1$", "maxLength": 1}, b'"b"', ["/pattern"]),
        ({"type": "string", "not": {"pattern": r"(?<n>a)\k<n>", "minLength": 3}}, b'"b"', ["/not/pattern"]),
        (
            {"patternProperties": {r"^(x)\1": {"type": "null"}, "^y": {"type": "null"}}, "key_order": "any"},
            b'{"xx": 1, "yy": null}',
            [r"/patternProperties/^(x)\1"],
        ),
        ({"propertyNames": {"pattern": r"(a)\1"}}, b'{"b": 1}', ["/propertyNames/pattern"]),
    ],
)
def test_backreferences_are_left_out_on_request(schema: dict[str, object], text: bytes, pointers: list[str]) -> None:
    with pytest.raises(UnsupportedPatternError) as raised:
        compiled(schema)
    assert raised.value.pointer and pointers[0].startswith(raised.value.pointer)
    grammar = compiled(schema, unsupported="ignore")
    assert grammar.matcher().accept_bytes(text)
    assert [entry.pointer for entry in grammar.report.entries if entry.status == "ignored"] == pointers


def test_an_illegal_expression_is_refused_even_so() -> None:
    with pytest.raises(PatternError, match="at /pattern"):
        compiled({"pattern": r"(a)\1("}, unsupported="ignore")


# --- size -------------------------------------------------------------------------------------------------------------
def nested(depth: int) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize("depth", [1_000, 10_000])
def test_deeply_nested_schemas(depth: int) -> None:
    with pytest.raises(SchemaTooComplexError, match="nested too deeply"):
        compiled(nested(depth))


def test_deeply_nested_schema_text() -> None:
    text = '{"items":' * 100_000 + "true" + "}" * 100_000
    with pytest.raises(SchemaTooComplexError, match="nested too deeply"):
        load_schema(text)


def test_a_schema_of_two_megabytes() -> None:
    """20,000 declared members of several types."""
    kinds: list[dict[str, Any]] = [
        {"type": "string", "maxLength": 9},
        {"type": "integer"},
        {"enum": ["one", "two"]},
        {"type": "boolean"},
    ]
    properties = {f"property number {i:05}": kinds[i % 4] | {"description": "x" * 50} for i in range(20_000)}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    assert len(json.dumps(schema)) > 2_000_000
    matcher = compiled(schema, key_order="any").matcher()
    assert matcher.accept_bytes(b'{"property number 19999": true, "property number 00002": "one"')
    assert not matcher.accept_bytes(b', "property number 19999"')
    assert matcher.accept_bytes(b"}") and matcher.is_accepting()


def test_text_nested_ten_thousand_deep() -> None:
    depth = 10_000
    matcher = compiled(True).matcher()
    for _ in range(depth):
        assert matcher.accept_token(ord("["))
    bitmask = allocate_token_bitmask(1, BYTES.size)
    matcher.fill_next_token_bitmask(bitmask)
    assert bitmask[0, ord("]") // 32] >> (ord("]") % 32) & 1
    for _ in range(depth):
        assert not matcher.is_accepting() and matcher.accept_token(ord("]"))
    assert matcher.is_accepting()
    matcher.rollback(depth + 1)
    assert matcher.accept_bytes(b"]" * (depth - 1)) and matcher.is_accepting()


def test_budgets_are_named() -> None:
    for schema, budget in (
        ({"type": "string", "pattern": "^(a|b)*a(a|b){12}$"}, "max_automaton_states"),
        ({"type": "array", "items": [{"const": i} for i in range(9)], "$schema": DRAFT_7}, "max_goals"),
    ):
        with pytest.raises(SchemaTooComplexError) as caught:
            compiled(schema, **{budget: 8})
        assert caught.value.budget == budget and caught.value.limit == 8 and budget in str(caught.value)


DRAFT_7 = "http://json-schema.org/draft-07/schema#"


# --- vocabularies and options -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"tokens": [b"a", "b"], "eos_token_ids": 0}, "Token 1"),
        ({"tokens": [b"a"], "eos_token_ids": []}, "eos_token_ids is empty"),
        ({"tokens": [b"a"], "eos_token_ids": 1}, "outside the vocabulary"),
        ({"tokens": [b"a", b"b"], "eos_token_ids": 0, "size": 1}, "size is 1"),
        ({"tokens": [b"a"], "eos_token_ids": 0, "special_token_ids": [-1]}, "special_token_ids"),
    ],
)
def test_vocabularies(arguments: dict[str, Any], part: str) -> None:
    with pytest.raises(TokenizerError, match=part):
        Vocabulary(**arguments)


def test_a_vocabulary_with_missing_bytes() -> None:
    """It knows which; what it cannot spell has no token, and no text is accepted that it could not have written."""
    vocabulary = Vocabulary([b"[", b"1", b"]", None], eos_token_ids=3)
    assert ord(",") in vocabulary.missing_bytes and ord("[") not in vocabulary.missing_bytes
    matcher = compile_json_schema({"type": "array", "items": {"const": 1}}, vocabulary).matcher()
    bitmask = allocate_token_bitmask(1, 4)
    for token, allowed in ((0, 0b0001), (1, 0b0110), (2, 0b0100)):
        matcher.fill_next_token_bitmask(bitmask)
        assert bitmask[0, 0] == allowed
        assert matcher.accept_token(token)
    matcher.fill_next_token_bitmask(bitmask)
    assert bitmask[0, 0] == 0b1000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dialect", "draft5"),
        ("dialect", 7),
        ("key_order", "sorted"),
        ("whitespace", "tabs"),
        ("whitespace", -1),
        ("whitespace", True),
        ("whitespace", 1.0),
        ("whitespace", 1_000_000),
        ("max_whitespace_run", -1),
        ("string_escapes", None),
        ("number_spellings", ["plain"]),
        ("assert_formats", "yes"),
        ("unsupported", "skip"),
        ("max_string_length", -1),
        ("max_string_length", "9"),
        ("max_number_length", 0),
        ("max_alternatives", 0),
        ("max_automaton_states", None),
        ("max_goals", 1.5),
    ],
)
def test_options(field: str, value: Any) -> None:
    with pytest.raises(OptionsError, match=f"JsonOptions.{field} is .*expected"):
        JsonOptions(**{field: value})


# --- matchers and bitmasks --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("token_id", [-1, 257, 1 << 40])
def test_token_ids_out_of_range(token_id: int) -> None:
    matcher = compiled(True).matcher()
    with pytest.raises(TokenError, match="out of range"):
        matcher.accept_token(token_id)


def test_a_rollback_too_far() -> None:
    matcher = compiled(True).matcher()
    assert matcher.accept_bytes(b"[") and matcher.accept_token(ord("1"))
    for steps in (3, -1):
        with pytest.raises(MatcherStateError, match="2 were accepted"):
            matcher.rollback(steps)
    assert matcher.accept_bytes(b"2]") and matcher.is_accepting()


def read_only() -> Any:
    bitmask = allocate_token_bitmask(1, BYTES.size)
    bitmask.flags.writeable = False
    return bitmask


BITMASKS: dict[str, tuple[Callable[[], Any], str]] = {
    "unsigned": (lambda: np.zeros((1, 9), np.uint32), "uint32"),
    "wide": (lambda: np.zeros((1, 9), np.int64), "int64"),
    "too narrow": (lambda: np.zeros((1, 8), np.int32), r"\(1, 8\)"),
    "too wide": (lambda: np.zeros((1, 10), np.int32), r"\(1, 10\)"),
    "three dimensions": (lambda: np.zeros((1, 1, 9), np.int32), r"\(1, 1, 9\)"),
    "transposed": (lambda: np.zeros((9, 9), np.int32).T, "contiguous"),
    "every other word": (lambda: np.zeros((2, 18), np.int32)[:, ::2], "contiguous"),
    "read-only": (read_only, "writeable"),
    "no rows": (lambda: np.zeros((0, 9), np.int32), "0 rows"),
    "list": (lambda: [[0] * 9], "list"),
}


@pytest.mark.parametrize("name", BITMASKS)
def test_bitmasks(name: str) -> None:
    make, part = BITMASKS[name]
    matcher = compiled(True).matcher()
    with pytest.raises(BitmaskError, match=part):
        matcher.fill_next_token_bitmask(make())
    with pytest.raises(BitmaskError, match=part):
        fill_next_token_bitmasks([matcher], make())


@pytest.mark.parametrize("index", [-1, 2])
def test_bitmask_rows_out_of_range(index: int) -> None:
    with pytest.raises(BitmaskError, match=f"row {index}"):
        compiled(True).matcher().fill_next_token_bitmask(allocate_token_bitmask(2, BYTES.size), index)


def test_batches() -> None:
    matcher = compiled(True).matcher()
    with pytest.raises(BitmaskError, match="twice"):
        fill_next_token_bitmasks([matcher, None, matcher], allocate_token_bitmask(3, BYTES.size))
    with pytest.raises(BitmaskError, match="row 1"):
        fill_next_token_bitmasks([matcher, matcher.fork()], allocate_token_bitmask(1, BYTES.size))


@pytest.mark.parametrize(("batch", "size"), [(0, 5), (1, 0), (-1, 5)])
def test_bitmask_sizes(batch: int, size: int) -> None:
    with pytest.raises(BitmaskError, match="positive"):
        allocate_token_bitmask(batch, size)


@pytest.mark.parametrize(
    ("logits", "bitmask", "indices"),
    [
        (np.zeros((1, 257), np.int64), np.zeros((1, 9), np.int32), None),
        (np.zeros((1, 1, 257), np.float32), np.zeros((1, 9), np.int32), None),
        (np.zeros((1, 257), np.float32), np.zeros((1, 9), np.int64), None),
        (np.zeros((2, 257), np.float32), np.zeros((1, 9), np.int32), None),
        (np.zeros((2, 257), np.float32), np.zeros((2, 9), np.int32), [2]),
        (np.zeros((2, 257), np.float32), np.zeros((2, 9), np.int32), [-1]),
    ],
)
def test_logits(logits: Any, bitmask: Any, indices: list[int] | None) -> None:
    with pytest.raises(BitmaskError):
        apply_token_bitmask_inplace(logits, bitmask, indices)


# --- the command line -------------------------------------------------------------------------------------------------
def test_a_prompt_file_that_is_not_utf_8(tmp_path: Path) -> None:
    testing = pytest.importorskip("typer.testing")
    from structgen.cli.commands import app

    prompt = tmp_path / "prompt.txt"
    prompt.write_bytes(b"caf\xe9")
    result = testing.CliRunner().invoke(app, ["generate", "--prompt-file", str(prompt), "--schema", "{}"])
    assert result.exit_code == 2 and result.exception is not None
    message = " ".join(result.stderr.split())
    assert "not UTF-8" in message and "0xe9 at offset 3" in message
