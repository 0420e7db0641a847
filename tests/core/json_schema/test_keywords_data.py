"""The keyword of quotes and names, against ``in`` and sets: spelled in any legal way, with other keywords, refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from structgen import (
    Corpus,
    JsonOptions,
    NameSet,
    SchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    Vocabulary,
    json_schema,
)
from structgen.core.engines.laws import check_laws

WORDS = [b"ab", b'a"', b'"a', b"\\n", b'b"}', b'": "', b'{"q', b'\\"', b"\\u00", b'",', b'b"]', "é".encode()]
TOKENS: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), *WORDS, None]
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)
ANY = JsonOptions(string_escapes="any", whitespace="any")
ALPHABETS = ["ab", 'a"\\b', "a\nb\té", "日😀a "]


def quoted(**more: Any) -> dict[str, Any]:
    return {"type": "string", "x-structgen": {"quoteOf": "letter"}, **more}


def in_object(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"q": value}, "required": ["q"], "additionalProperties": False}


@pytest.mark.parametrize("seed", range(8))
def test_quotes(seed: int) -> None:
    rng = random.Random(seed)
    alphabet = rng.choice(ALPHABETS)
    letter = "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 12)))
    limits = rng.choice([{}, {"maxLength": 3}, {"minLength": 2}, {"minLength": 1, "maxLength": 2}])
    constraint = json_schema(in_object(quoted(**limits)), rng.choice([JsonOptions(), ANY]), sources={"letter": letter})

    def valid(text: bytes) -> bool:
        quote = json.loads(text)["q"]
        fits = limits.get("minLength", 0) <= len(quote) <= limits.get("maxLength", 99)
        return bool(quote) and quote in letter and fits

    if len(letter) < limits.get("minLength", 0):
        with pytest.raises(UnsatisfiableSchemaError):
            constraint.compile(VOCABULARY)
        return
    grammar = constraint.compile(VOCABULARY)
    check_laws(grammar, valid=valid, walks=2, steps=14, likely=b'qa"\\ubn', seed=seed, exact=True)
    every = {letter[i:j] for i in range(len(letter)) for j in range(i + 1, len(letter) + 1)}
    for quote in [*rng.sample(sorted(every), min(12, len(every))), letter + "a", "", "ba"]:
        matcher = grammar.matcher()
        data = json.dumps({"q": quote}, ensure_ascii=False, separators=(",", ":")).encode()
        taken = matcher.accept_bytes(data) and matcher.is_accepting()
        assert taken == valid(data), (letter, quote)


@pytest.mark.parametrize("seed", range(3))
def test_distinct_quotes(seed: int) -> None:
    rng = random.Random(seed)
    letter = "".join(rng.choice("ab") for _ in range(3))
    schema = {"type": "array", "items": quoted(maxLength=2), "uniqueItems": True, "maxItems": 4}
    grammar = json_schema(schema, sources={"letter": letter}).compile(VOCABULARY)

    def valid(text: bytes) -> bool:
        items = json.loads(text)
        return len(items) == len(set(items)) <= 4 and all(item and item in letter and len(item) < 3 for item in items)

    check_laws(grammar, valid=valid, walks=3, steps=14, likely=b'ab",[', seed=seed)


def test_names_combine_with_what_strings_may_say() -> None:
    names = ["Paris", "Rome", "Oslo", 'a "b"', "日本", "x\ny"]
    for more, expected in (
        ({}, set(names)),
        ({"maxLength": 4}, {"Rome", "Oslo", "日本", "x\ny"}),
        ({"pattern": "o"}, {"Rome", "Oslo"}),
        ({"enum": ["Rome", "Bonn"]}, {"Rome"}),
        ({"not": {"const": "Rome"}}, set(names) - {"Rome"}),
    ):
        schema = {"type": "string", "x-structgen": {"oneOf": "cities"}, **more}
        for given in (names, NameSet.build(names)):
            grammar = json_schema(schema, ANY, sources={"cities": given}).compile(VOCABULARY)
            for name in [*names, "Bonn"]:
                matcher = grammar.matcher()
                taken = matcher.accept_bytes(json.dumps(name).encode()) and matcher.is_accepting()
                assert taken == (name in expected)


def test_an_enumeration_beside_a_quote_is_filtered() -> None:
    schema = quoted(enum=["roof", "floor", 7])
    grammar = json_schema(schema, sources={"letter": "the roof leaks"}).compile(VOCABULARY)
    assert grammar.matcher().shortest_completion() == b'"roof"'
    with pytest.raises(UnsatisfiableSchemaError):
        json_schema(schema, sources={"letter": "nothing"}).compile(VOCABULARY)


@pytest.mark.parametrize(
    ("more", "keyword"),
    [
        ({"pattern": "^t"}, "pattern"),
        ({"format": "date"}, "format"),
        ({"not": {"pattern": "a"}}, "not"),
        ({"allOf": [{"x-structgen": {"quoteOf": {"text": "other"}}}]}, "x-structgen"),
    ],
)
def test_what_cannot_be_combined_is_refused_by_pointer(more: dict[str, Any], keyword: str) -> None:
    schema = {"properties": {"q": quoted(**more)}, "type": "object"}
    with pytest.raises(UnsupportedSchemaError) as error:
        json_schema(schema, sources={"letter": "the letter"}).compile(VOCABULARY)
    assert error.value.pointer.startswith("/properties/q/") and keyword in error.value.pointer


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"quoteOf": "absent"}, "no source is called 'absent'"),
        ({"oneOf": "absent"}, "no source is called 'absent'"),
        ({"quoteOf": 7}, "quoteOf"),
        ({"quoteOf": {"text": ""}}, "empty"),
        ({"quoteOf": {"text": 7}}, "int"),
        ({"quoteOf": {"file": "/etc/passwd"}}, "quoteOf"),
        ({"quoteOf": {"documents": {}}}, "at least one"),
        ({"quoteOf": {"text": "x"}, "boundary": "page"}, "boundary"),
        ({"quoteOf": {"text": "\ud800"}}, "surrogate"),
        ({"oneOf": []}, "oneOf"),
        ({"oneOf": [""]}, "oneOf"),
        ({"oneOf": ["a", 7]}, "oneOf"),
        ({"quotesOf": "x"}, "x-structgen"),
        ({}, "x-structgen"),
        (True, "x-structgen"),
    ],
)
def test_wrong_values_are_refused(value: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as error:
        json_schema({"items": {"x-structgen": value}}).compile(VOCABULARY)
    assert error.value.pointer.startswith("/items/x-structgen")


def test_sources_are_written_in() -> None:
    schema = {
        "anyOf": [quoted(), {"x-structgen": {"oneOf": "cities"}}],
        "default": {"x-structgen": {"quoteOf": "letter"}},
    }
    corpus = Corpus.build({"a": "one", "b": "two"}, "word")
    written = json_schema(schema, sources={"letter": corpus, "cities": ["Rome"]}).schema
    assert isinstance(written, dict)
    documents = {"quoteOf": {"documents": {"a": "one", "b": "two"}}, "boundary": "word"}
    assert written["anyOf"] == [{**quoted(), "x-structgen": documents}, {"x-structgen": {"oneOf": ["Rome"]}}]
    assert written["default"] == schema["default"]  # that is data
    shown = json_schema(schema, sources={"letter": corpus}).instruction()
    assert "one" not in shown.replace("anyOf", "").replace("oneOf", "")


def test_the_report_says_that_it_is_enforced() -> None:
    grammar = json_schema(in_object(quoted()), sources={"letter": "abc"}).compile(VOCABULARY)
    assert "/properties/q/x-structgen" in str(grammar.report) and "ignored" not in str(grammar.report)


TEXT = "alpha beta"
QUOTE = {"x-structgen": {"quoteOf": {"text": TEXT}}}
NAMES = {"x-structgen": {"oneOf": ["alpha", "cd"]}}
LESS = {"x-structgen": {"without": ["zz", 1]}}
PLACES: dict[str, tuple[Any, str]] = {  # a schema around it, and a text of it with a place for a string
    "items": (lambda own: {"type": "array", "items": own}, '["%s"]'),
    "contains": (lambda own: {"type": "array", "contains": own}, '["%s"]'),
    "unevaluatedItems": (lambda own: {"unevaluatedItems": own}, '["%s"]'),
    "patternProperties": (lambda own: {"patternProperties": {"a": own}}, '{"a": "%s"}'),
    "additionalProperties": (lambda own: {"additionalProperties": own}, '{"a": "%s"}'),
    "unevaluatedProperties": (lambda own: {"unevaluatedProperties": own}, '{"a": "%s"}'),
    "dependentSchemas": (lambda own: {"dependentSchemas": {"a": {"properties": {"a": own}}}}, '{"a": "%s"}'),
    "propertyNames": (lambda own: {"type": "object", "propertyNames": own}, '{"%s": 1}'),
    "declared names": (lambda own: {"propertyNames": own, "properties": {"alpha": {}, "zz": {}}}, '{"%s": 1}'),
    "names in patterns": (lambda own: {"propertyNames": own, "patternProperties": {"": {}}}, '{"%s": 1}'),
    "anyOf": (lambda own: {"anyOf": [own, {"type": "null"}]}, '"%s"'),
    "oneOf": (lambda own: {"oneOf": [own, {"type": "null"}]}, '"%s"'),
    "allOf": (lambda own: {"allOf": [own, {"type": "string"}]}, '"%s"'),
    "then": (lambda own: {"if": {"type": "string"}, "then": own}, '"%s"'),
    "twice not": (lambda own: {"not": {"not": own}}, '"%s"'),
    "$ref": (lambda own: {"$ref": "#/$defs/a", "$defs": {"a": own}}, '"%s"'),
    "beside $ref": (lambda own: {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}, **own}, '"%s"'),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("own", [QUOTE, NAMES, LESS], ids=["quote", "names", "less"])
def test_it_holds_wherever_a_schema_stands_or_is_refused(place: str, own: dict[str, Any]) -> None:
    schema, text = PLACES[place][0](own), PLACES[place][1]
    try:
        grammar = json_schema(schema).compile(VOCABULARY)
    except UnsupportedSchemaError as error:
        assert own is QUOTE and error.keyword == "x-structgen" and "quote" in str(error)
        return
    for word, expected in (("alpha", True), ("zz", False)):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes((text % word).encode()) and matcher.is_accepting()) == expected, word


@pytest.mark.parametrize("own", [QUOTE, NAMES, LESS], ids=["quote", "names", "less"])
@pytest.mark.parametrize("draft", ["draft3", "draft4", "draft6", "draft7"])
def test_it_holds_beside_references_that_hide_keywords(draft: Any, own: dict[str, Any]) -> None:
    schema = {"$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}, "maxLength": 1, **own}
    constraint = json_schema(schema, JsonOptions(dialect=draft))
    grammar = constraint.compile(VOCABULARY)
    for word, expected in (("alpha", True), ("zz", False)):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(b'"%s"' % word.encode()) and matcher.is_accepting()) == expected, word
    report = grammar.report.to_dict()
    assert report["/x-structgen"]["status"] == "enforced" and report["/maxLength"]["status"] == "ignored"


@pytest.mark.parametrize("draft", ["draft3", "draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"])
def test_without_takes_values_away_in_every_draft(draft: Any) -> None:
    schema = {"$ref": "#/definitions/a", "definitions": {"a": {"enum": ["p", "q", 1, [1]]}}}
    constraint = json_schema(schema, JsonOptions(dialect=draft, string_escapes="any", number_spellings="any"))
    grammar = constraint.without(["p"]).without([1]).compile(VOCABULARY)
    for text, expected in (('"p"', False), ('"\\u0070"', False), ('"q"', True), ("1.0", False), ("[1]", True)):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == expected, text


def test_without_takes_values_away_and_none_of_those_within() -> None:
    tree = {
        "type": "object",
        "properties": {"p": {"$ref": "#"}, "z": {"type": "string"}},
        "additionalProperties": False,
    }
    grammar = json_schema(tree).without([{"z": "b"}]).compile(VOCABULARY)
    for text, expected in (('{"z":"b"}', False), ('{"p":{"z":"b"}}', True), ('{"z":"a"}', True)):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == expected, text


def test_what_is_said_of_the_document_stands_at_the_root() -> None:
    with pytest.raises(SchemaError, match="root") as error:
        json_schema({"items": {"x-structgen": {"document": {"without": [1]}}}}).compile(VOCABULARY)
    assert error.value.pointer == "/items/x-structgen"


@pytest.mark.parametrize("name", ["default", "const", "enum", "examples", "x-structgen", "properties", "$ref", "$defs"])
def test_members_and_definitions_may_be_called_like_keywords(name: str) -> None:
    sources: dict[str, Any] = {"letter": "ab c", "names": ["x", "xy"]}
    named = {"type": "string", "x-structgen": {"oneOf": "names"}}
    for map_, schema in (
        ("properties", {"type": "object", "properties": {name: quoted()}, "required": [name]}),
        ("patternProperties", {"type": "object", "patternProperties": {name: quoted()}, "required": [name]}),
        ("dependentSchemas", {"type": "object", "dependentSchemas": {name: in_object(quoted())}}),
        ("$defs", {"$defs": {name: named}, "$ref": f"#/$defs/{name}"}),
    ):
        constraint = json_schema(schema, sources=sources)
        constraint.compile(VOCABULARY)
        if map_ != "$defs":
            assert "letter" not in json.dumps(constraint.schema) and "ab c" in json.dumps(constraint.schema)
        shown = constraint.instruction("schema")
        assert shown is not None and "ab c" not in shown and '"xy"' not in shown and name in shown
    matcher = json_schema(in_object(named) | {"properties": {"q": named, name: quoted()}}, sources=sources)
    grammar = matcher.compile(VOCABULARY)
    for value, valid in (("b c", True), ("c b", False)):
        one = grammar.matcher()
        data = json.dumps({"q": "x", name: value}, separators=(",", ":")).encode()
        assert (one.accept_bytes(data) and one.is_accepting()) == valid


def test_sources_of_the_document_alone() -> None:
    schema = {"x-structgen": {"document": {"oneOf": "names"}}}
    grammar = json_schema(schema, sources={"names": ["x", "y"]}).compile(VOCABULARY)
    for text, valid in ((b'"x"', True), (b'"z"', False)):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(text) and matcher.is_accepting()) == valid


def test_names_that_no_output_can_have_and_words_that_nothing_reads() -> None:
    for keyword, where, what in (
        ({"oneOf": ["a", "b\ud800"]}, "/x-structgen/oneOf/1", "half of a surrogate pair"),
        ({"oneOf": ["a"], "fold": True}, "/x-structgen/fold", "quoteOf"),
        ({"oneOf": ["a"], "boundary": "word"}, "/x-structgen/boundary", "quoteOf"),
    ):
        with pytest.raises(SchemaError, match=what) as caught:
            json_schema({"type": "string", "x-structgen": keyword}).compile(VOCABULARY)
        assert caught.value.pointer == where
