"""Each engine's masks agree with what it accepts, on a small schema; peers where they are installed."""

from __future__ import annotations

import json

import pytest

from structgen.benchmarking.engines import ENGINES, PACKAGES, Refused, Style, load_engine
from structgen.benchmarking.vocabularies import BenchVocabulary, load_vocabulary

SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "yy"]}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> BenchVocabulary:
    return load_vocabulary("bytes", tmp_path_factory.mktemp("none"))


@pytest.mark.parametrize("style", ["exact", "generation"])
@pytest.mark.parametrize("name", ENGINES)
def test_engines(name: str, style: Style, vocabulary: BenchVocabulary) -> None:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    engine = load_engine(name, vocabulary, style)
    start = engine.compile(json.dumps(SCHEMA))
    for text, valid in (('{"a": "yy"}', True), ('{"a": "z"}', False), ('{"b": 1}', False)):
        session = start()
        alive = True
        for token in vocabulary.encode(text):
            session.fill()
            alive = bool(engine.row[token >> 5] >> (token & 31) & 1)
            if not alive:
                break
            assert session.accept(token)
        assert alive == (valid or name == "none"), text
        if alive:
            session.fill()
            eos = vocabulary.eos_token_id
            assert engine.row[eos >> 5] >> (eos & 31) & 1
            assert session.accept(eos)


@pytest.mark.parametrize("name", ["structgen", "llguidance", "outlines_core"])
def test_what_is_not_covered_is_refused(name: str, vocabulary: BenchVocabulary) -> None:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    with pytest.raises(Refused):
        load_engine(name, vocabulary).compile('{"type": "string", "pattern": "(a)\\\\1"}')
