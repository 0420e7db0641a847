"""Grammars in GBNF mean what they mean to llama.cpp, whose judgements are recorded (`record_llama_cpp`)."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from structgen.core.compilers import compile_gbnf
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GrammarWarning
from tests.core.grammars.peers.llama_cpp_grammars import GRAMMARS
from tests.core.grammars.peers.walks import Ours, accepts

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
RECORD = json.loads((Path(__file__).parents[1] / "data" / "llama_cpp.json").read_text(encoding="utf-8"))["grammars"]


@pytest.mark.parametrize("name", GRAMMARS)
def test_same_texts_as_llama_cpp(name: str) -> None:
    record = RECORD[name]
    assert record["source"] == GRAMMARS[name][0], "record it again"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        grammar = compile_gbnf(record["source"], BYTES)
    asked = [*record["accepted"], *record["refused"]]
    assert [text for text in asked if accepts(lambda: Ours(grammar), text)] == record["accepted"]
    assert record["accepted"] and record["refused"]


def test_there_are_thirty() -> None:
    assert len(RECORD) >= 30
    assert sum(len(record["accepted"]) + len(record["refused"]) for record in RECORD.values()) > 2_000
