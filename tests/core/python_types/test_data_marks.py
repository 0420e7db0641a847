"""``Annotated[str, QuoteOf(...)]`` and ``OneOf(...)``: schemas, values with places, what is refused."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import Annotated, Any

import pydantic
import pytest
from typing_extensions import TypedDict

from structgen import (
    ConstraintError,
    Corpus,
    NameSet,
    OneOf,
    Quote,
    QuoteOf,
    RefusedValueError,
    Region,
    UnsupportedSchemaError,
    Vocabulary,
    avoiding,
    json_schema,
)
from structgen.core.text_sets.references import SourceReference

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
LETTER = "Dear Sir, the roof leaks. The landlord knew. Yours, é"


class Claim(pydantic.BaseModel):
    claim: str
    quote: Annotated[str, QuoteOf(LETTER)]
    city: Annotated[str, OneOf(["Paris", "Rome"])] | None = None


@dataclass
class Record:
    quotes: list[Annotated[str, QuoteOf(LETTER, "word")]]


class Later(pydantic.BaseModel):
    quote: Annotated[str, QuoteOf.named("letter", "word")]
    city: Annotated[str, OneOf.named("cities")]


class Typed(TypedDict):
    quote: Annotated[str, QuoteOf({"letter": LETTER, "note": "roof"}), pydantic.Field(max_length=9)]


def takes(kind: Any, text: str) -> bool:
    matcher = json_schema(kind).compile(BYTES).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def test_models_dataclasses_and_typed_dictionaries() -> None:
    assert takes(Claim, '{"claim":"x","quote":"the roof leaks"}')
    assert not takes(Claim, '{"claim":"x","quote":"the roof leaked"}')
    assert takes(Claim, '{"claim":"x","quote":"é","city":"Rome"}')
    assert not takes(Claim, '{"claim":"x","quote":"é","city":"Bonn"}')
    assert takes(Record, '{"quotes":["the roof","Yours"]}') and not takes(Record, '{"quotes":["he roof"]}')
    assert takes(Typed, '{"quote":"the roof"}') and not takes(Typed, '{"quote":"the roof leaks"}')


def test_values_carry_places() -> None:
    claim = json_schema(Claim).parse('{"claim":"x","quote":"roof"}')
    assert isinstance(claim.quote, Quote)
    assert claim.quote.places == (("", LETTER.index("roof"), LETTER.index("roof") + 4),)
    typed = json_schema(Typed).parse('{"quote":"roof"}')
    quote = typed["quote"]
    assert isinstance(quote, Quote) and [place.document for place in quote.places] == ["letter", "note"]
    with pytest.raises(RefusedValueError, match="do not say"):
        json_schema(Claim).parse('{"claim":"x","quote":"cellar"}')
    with pytest.raises(pydantic.ValidationError, match="none of the 2 names"):
        Claim(claim="x", quote="roof", city="Bonn")


def test_the_report_has_nothing_to_add() -> None:
    constraint = json_schema(Claim)
    assert not constraint.report.entries
    assert "/properties/quote/x-structgen" in str(constraint.compile(BYTES).report)
    assert LETTER not in constraint.instruction()


def test_pydantics_own_schema_says_the_same() -> None:
    """So the type can be sent to a server as it is."""
    matcher = json_schema(Claim.model_json_schema()).compile(BYTES).matcher()
    assert matcher.accept_bytes(b'{"claim":"x","quote":"the roof') and not matcher.accept_bytes(b"s")


def test_named_sources_come_with_the_request() -> None:
    given = {"letter": "the roof leaks", "cities": NameSet.build(["Rome"])}
    grammar = json_schema(Later, sources=given).compile(BYTES)
    assert grammar.matcher().accept_bytes(b'{"quote":"roof leaks","city":"Rome"}')
    with pytest.raises(ConstraintError, match="no source is called 'letter'"):
        json_schema(Later).compile(BYTES)


def test_wrong_marks() -> None:
    with pytest.raises(ConstraintError, match="quotes need"):
        QuoteOf(7)  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="at least one name"):
        OneOf([])


def test_a_type_refers_to_what_is_large() -> None:
    """The schema that is compiled holds a reference; the one that is sent holds the names and the text."""
    names = NameSet.build(f"name {number}" for number in range(5000))
    corpus = Corpus.build("the roof leaks " * 500, "word")

    class Record(pydantic.BaseModel):
        name: Annotated[str, OneOf(names)]
        quote: Annotated[str, QuoteOf(corpus)]

    constraint = json_schema(Record)
    assert len(repr(constraint.content_key())) < 1500 and len(json.dumps(Record.model_json_schema())) > 50_000
    assert isinstance(constraint.schema, dict)
    assert constraint.schema["properties"]["name"]["x-structgen"] == {"oneOf": list(names)}
    sent = pickle.loads(pickle.dumps(SourceReference(corpus)))
    assert sent == SourceReference(corpus) and sent.source == corpus
    value = constraint.parse('{"name":"name 4999","quote":"roof leaks the"}')
    assert value.quote.occurrences == 499  # type: ignore[attr-defined]
    assert Record.model_json_schema()["properties"]["quote"]["x-structgen"]["boundary"] == "word"


def test_marks_of_one_string_hold_together() -> None:
    """A mark takes nothing away from those before it."""

    def accepts(kind: Any, *texts: str) -> list[bool]:
        grammar = json_schema(kind).compile(BYTES)
        found = []
        for text in texts:
            matcher = grammar.matcher()
            found.append(matcher.accept_bytes(text.encode()) and matcher.is_accepting())
        return found

    letter, names = QuoteOf("the roof leaks"), OneOf(["roof", "floor"])
    for kind in (Annotated[str, letter, names], Annotated[str, names, letter]):
        assert accepts(kind, '"roof"', '"floor"', '"leaks"') == [True, False, False]
    assert accepts(Annotated[str, OneOf(["a", "b"]), OneOf(["b", "c"])], '"a"', '"b"', '"c"') == [False, True, False]
    for kind in (Annotated[str, avoiding("a"), OneOf(["ab", "b"])], Annotated[str, OneOf(["ab", "b"]), avoiding("a")]):
        assert accepts(kind, '"ab"', '"b"') == [False, True]
    with pytest.raises(UnsupportedSchemaError):
        accepts(Annotated[str, QuoteOf("ab"), QuoteOf("bc")])
    schema = json_schema(Annotated[str, Region(temperature=0.5), names]).schema
    assert isinstance(schema, dict) and schema["x-structgen"]["temperature"] == 0.5


def test_marks_of_what_is_a_string_or_not() -> None:
    for kind in (Annotated[str | None, QuoteOf("the roof")], Annotated[str | None, OneOf(["roof"])]):
        constraint = json_schema(kind)
        assert constraint.parse("null") is None and constraint.parse('"roof"') == "roof"
    wrong: list[Any] = [Annotated[list[str], OneOf(["roof"])], Annotated[int, QuoteOf("the roof")]]
    for kind in wrong:
        with pytest.raises(ConstraintError, match="marks strings"):
            json_schema(kind)


def test_sources_that_nobody_would_read() -> None:
    constraint = json_schema(Annotated[str, QuoteOf.named("letter")], sources={"letter": "the roof"})
    with pytest.raises(ConstraintError, match="made already"):
        json_schema(constraint, sources={"letter": "another"})
    sources: Any = ["letter"]
    with pytest.raises(ConstraintError, match="by their names"):
        json_schema({"type": "string"}, sources=sources)
    with pytest.raises(ConstraintError, match="not one text"):
        NameSet.build(["roof"]).changed(add="floor")
