"""Words that look like misspelt keywords are reported, others are not; on request all unknown words are refused."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from structgen import compile_json_schema
from structgen.core.json_schema.dialects import BY_NAME, WORDS
from structgen.core.json_schema.lowering import lower
from structgen.core.json_schema.spelling import SHORTEST, misspelt
from structgen.core.vocabulary.vocabulary import TextVocabulary
from structgen.errors import SchemaError, UnknownKeywordError
from structgen.options import JsonOptions

STRICT = JsonOptions(unknown_keywords="refuse")
MISSPELT = [
    ("typ", "type"), ("types", "type"), ("tpye", "type"), ("Type", "type"), ("type:", "type"),
    ("minLenght", "minLength"), ("minlength", "minLength"), ("require", "required"), ("requierd", "required"),
    ("propeties", "properties"), ("emum", "enum"), ("item", "items"),
    ("anyof", "anyOf"), ("onOf", "oneOf"), ("ref", "$ref"), ("defs", "$defs"), ("$reff", "$ref"),
    ("patern", "pattern"), ("ytpe", "type"), ("ype", "type"),
    ("roperties", "properties"), ("equired", "required"), ("decription", "description"),
]  # fmt: skip
OTHERS = ["x-typ", "X-type", "_format", "_type", "$default", "example", "nullable", "discriminator", "name", "note"]
OTHERS += ["ip", "ids", "when", "comment", "value", "options", "order", "", "t", "ui:widget", "divisibleBy", "extends"]


def edits(word: str) -> set[str]:
    """What one slip makes of a word, by the definition."""
    letters = "aeszZ$"
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    found = {a + b[1:] for a, b in cuts if b} | {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    found |= {a + c + b[1:] for a, b in cuts if b for c in letters} | {a + c + b for a, b in cuts for c in letters}
    return found - {word}


@pytest.mark.parametrize(("word", "keyword"), MISSPELT)
def test_a_misspelt_keyword_is_reported(word: str, keyword: str, caplog: pytest.LogCaptureFixture) -> None:
    schema = {"properties": {"a": {word: {}}}, "type": "object"}
    with caplog.at_level(logging.WARNING, "structgen"):
        lowered = lower(schema)
    (entry,) = lowered.report.misspelt
    assert (entry.pointer, entry.keyword, entry.status) == (f"/properties/a/{word}", word, "misspelt")
    assert entry.reason.endswith(f"did you mean {keyword!r}?")
    assert list(lowered.misspelt.values()) == [entry]
    assert caplog.messages == [f"schema, at {entry.pointer}: {entry.reason}"]


@pytest.mark.parametrize("word", OTHERS)
def test_other_words_are_not(word: str, caplog: pytest.LogCaptureFixture) -> None:
    lowered = lower({word: {}, "properties": {"a": {word: 1}}})
    assert not lowered.misspelt and not lowered.report.misspelt and not caplog.messages


def test_names_and_data_are_no_keywords() -> None:
    data = {"typ": 1, "minLenght": {"requird": []}}
    schema = {
        "properties": {"typ": {"const": data}, "requird": {"enum": [data], "default": data}},
        "patternProperties": {"minLenght": {"examples": [data]}},
        "dependentRequired": {"typ": ["item"]},
        "dependentSchemas": {"typ": True},
        "$defs": {"typ": {"typ": 1}},  # which nothing refers to
        "required": ["typ"],
    }
    assert not lower(schema).misspelt


def test_every_slip_is_found() -> None:
    keywords = sorted({*BY_NAME["draft2020-12"].functions})
    for keyword in keywords:
        for word in edits(keyword):
            signed = not word[:1].isalnum() and word[0] != keyword[0]
            other = word[1:] == keyword[1:] or (word == keyword[1:] and keyword[0] == "$")
            if len(keyword) >= SHORTEST and not signed and not other and word not in WORDS:
                assert misspelt(word, keywords) is not None, word
    assert {misspelt(word, keywords) for word in ("qqqq", "tyype_", "when", "yptes", "_type", "$type")} == {None}


def test_the_draft_decides_what_was_meant() -> None:
    schema: dict[str, Any] = {"dependentRequire": {}, "prefixItem": []}
    assert not lower({"$schema": "http://json-schema.org/draft-07/schema#", **schema}).misspelt
    assert set(lower(schema).misspelt) == {"/dependentRequire", "/prefixItem"}


def test_closed_schemas_and_several_scopes_tell_once(caplog: pytest.LogCaptureFixture) -> None:
    inner = {"properties": {"a": {"typ": 1}}}
    schema = {"oneOf": [{"$ref": "#/$defs/x"}, {"type": "null"}], "$defs": {"x": inner}}
    lowered = lower(schema, JsonOptions(additional_members="closed"))
    assert list(lowered.misspelt) == ["/$defs/x/properties/a/typ"] and len(caplog.messages) == 1


@pytest.mark.parametrize("word", ["typ", "foo", "nullable"])
@pytest.mark.parametrize("around", [lambda s: s, lambda s: {"properties": {"a": s}, "type": "object"}])
def test_refused_on_request(word: str, around: Any) -> None:
    schema = around({word: 1, "type": "object", "properties": {}})
    lower(schema)
    with pytest.raises(UnknownKeywordError, match="unknown_keywords") as caught:
        compile_json_schema(schema, TextVocabulary(), STRICT)
    assert caught.value.keyword == word and caught.value.pointer.endswith(f"/{word}")
    assert isinstance(caught.value, SchemaError)


def test_what_is_not_refused() -> None:
    schema = {"x-foo": 1, "title": "a", "discriminator": {}, "example": 1, "extends": {}, "$comment": "", "const": 1}
    lower(schema, STRICT)
    lower({**schema, "properties": {"foo": {"enum": [{"typ": 1}]}}}, STRICT)


def test_grammars_tell() -> None:
    grammar = compile_json_schema({"typ": "object"}, TextVocabulary())
    assert [entry.keyword for entry in grammar.misspelt] == ["typ"]


def test_published_schemas_have_few() -> None:
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    files = sorted((Path(os.environ.get("STRUCTGEN_DATA", beside)) / "maskbench").glob("*.json"))[::10]
    if not files:
        pytest.skip("STRUCTGEN_DATA names no folder with maskbench/")
    found = [path for path in files if lower(json.loads(path.read_text(encoding="utf-8"))["schema"]).misspelt]
    assert len(found) < len(files) / 40
