"""Folded documents: what each rule does, by Python's own means; values map back to the source exactly."""

from __future__ import annotations

import random
import re
import unicodedata
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest

from structgen import Corpus, OptionsError, Quote, QuoteOf, SchemaError, Vocabulary, json_schema, substring_of
from structgen.core.text_sets.folding import FOLDS, folded

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
PAGE = "The  land-\nlord “knew”\r\n of it’s leak: a ﬁne ef\u00adfect.\u00a0Mid-\n1990, X-\nray"
FOLDED = 'The landlord "knew" of it\'s leak: a fine effect. Mid- 1990, Xray'


def test_each_rule() -> None:
    assert folded(PAGE, FOLDS).text == FOLDED
    assert folded("a \n b", ("spaces",)).text == "a b" and folded("a \n b", ("quotes",)).text == "a \n b"
    assert folded("e-\n  f", ("hyphens",)).text == "ef" and folded("e- f", ("hyphens",)).text == "e- f"
    assert folded("1-\n2", ("hyphens",)).text == "1-\n2"
    assert folded("a\u00adb", ("soft-hyphens",)).text == "ab"
    assert folded("‘a’ “b”", ("quotes",)).text == "'a' \"b\""
    assert folded("ﬂ ﬃ", ("ligatures",)).text == "fl ffi"


@pytest.mark.parametrize("seed", range(8))
def test_places_map_back(seed: int, tmp_path: Path) -> None:
    """What a place holds folds to what was written, and letters and digits are those of the source."""
    rng = random.Random(seed)
    for _ in range(40):
        text = "".join(rng.choice("ab1 -\n\r\u00ad“’ﬁ\u00a0日") for _ in range(rng.randint(1, 30)))
        folds = tuple(fold for fold in FOLDS if rng.random() < 0.8)
        short, origin = folded(text, folds)
        assert folded(short, tuple(fold for fold in folds if fold != "hyphens")).text == short
        letters = [re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", each)) for each in (text, short)]
        assert letters[0] == letters[1]
        if not short:
            continue
        corpus = Corpus.build({"one": text, "two": text}, fold=folds)
        corpus.save(tmp_path / "x")
        corpus = rng.choice([corpus, Corpus.open(tmp_path / "x", verify=True)])
        begin = rng.randrange(len(short))
        end = rng.randint(begin + 1, len(short))
        quote = corpus.quote(short[begin:end])
        expected = int(origin[0, begin]), int(origin[1, end - 1])
        assert quote.occurrences > 16 or any(place[1:] == expected for place in quote.places)
        assert quote == text[quote.places[0].start : quote.places[0].end]
        assert corpus.texts() == {"one": text, "two": text}


def test_the_model_writes_the_folded_form() -> None:
    constraint = substring_of({"page": PAGE}, fold=True)
    matcher = constraint.compile(BYTES).matcher()
    assert matcher.accept_bytes(b'landlord "knew" of it\'s leak: a fine effect')
    value = constraint.parse('landlord "knew" of it\'s')
    assert value == "land-\nlord “knew”\r\n of it’s" == PAGE[value.places[0].start : value.places[0].end]


def test_in_schemas_and_types() -> None:
    class Claim(pydantic.BaseModel):
        quote: Annotated[str, QuoteOf(PAGE, "word", fold=True)]

    constraint = json_schema(Claim)
    matcher = constraint.compile(BYTES).matcher()
    assert matcher.accept_bytes(b'{"quote":"landlord \\"knew\\""}') and matcher.is_accepting()
    claim = constraint.parse('{"quote": "landlord \\"knew\\""}')
    assert isinstance(claim.quote, Quote) and claim.quote == "land-\nlord “knew”"
    assert Claim.model_validate_json(claim.model_dump_json()).quote == claim.quote
    schema: dict[str, Any] = {"x-structgen": {"quoteOf": {"text": PAGE}, "fold": ["spaces"]}}
    assert json_schema(schema).compile(BYTES).matcher().accept_bytes('"knew” of'.encode()[:1])
    for wrong in ("dashes", ["dashes"], [7]):
        with pytest.raises(SchemaError):
            json_schema({"x-structgen": {"quoteOf": {"text": PAGE}, "fold": wrong}}).compile(BYTES)
    no_list: list[Any] = [None, 3]
    for each in no_list:
        with pytest.raises(OptionsError, match="fold must be a list of rules"):
            Corpus.build("ab", fold=each)
    with pytest.raises(OptionsError, match="fold must be of"):
        substring_of("x", fold=["dashes"])
