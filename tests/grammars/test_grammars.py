"""The grammars that ship: corpora, mutations of them and random walks, against Lark's complete Earley parser."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from structgen import Vocabulary, compile_lark

lark = pytest.importorskip("lark")
FOLDER = Path(__file__).parents[2] / "grammars"
NAMES = sorted(path.stem for path in FOLDER.glob("*.lark"))
BYTES = Vocabulary([bytes([b]) for b in range(256)] + [None], eos_token_ids=256)


@cache
def grammar(name: str) -> Any:
    return compile_lark(FOLDER / f"{name}.lark", BYTES)


@cache
def judge(name: str) -> Any:
    return lark.Lark((FOLDER / f"{name}.lark").read_text(), parser="earley", lexer="dynamic_complete")


def corpus(name: str) -> list[str]:
    return (FOLDER / "corpus" / f"{name}.txt").read_text().splitlines()


def accepts(name: str, text: str) -> bool:
    matcher = grammar(name).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def parses(name: str, text: str) -> bool:
    try:
        judge(name).parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_corpus(name: str) -> None:
    assert (FOLDER / f"{name}.lark").read_text().startswith("//")
    for text in corpus(name):
        assert accepts(name, text) and parses(name, text), text


@pytest.mark.parametrize("name", NAMES)
def test_mutations(name: str) -> None:
    random = Random(name)
    for text in sorted(corpus(name), key=len)[:3]:
        for _ in range(12):
            place = random.randrange(len(text))
            other = (
                text[:place] + random.choice(["", "a", "1", " ", ",", ")", '"']) + text[place + random.randrange(3) :]
            )
            assert accepts(name, other) == parses(name, other), other


@pytest.mark.parametrize("name", NAMES)
def test_walks(name: str) -> None:
    for seed in range(6):
        random, matcher, text = Random(seed), grammar(name).matcher(), b""
        for _ in range(25):
            following = np.flatnonzero(matcher.next_bytes())
            if not len(following):
                break
            byte = bytes([int(random.choice(following.tolist()))])
            assert matcher.accept_bytes(byte)
            text += byte
        whole = (text + matcher.shortest_completion()).decode()
        assert parses(name, whole), whole


def test_json_is_json() -> None:
    for text in corpus("json"):
        assert json.loads(text) is not None
    for wrong in ("{'a': 1}", "[1,]", "01", '"\\x"', "nul", "[1 2]"):
        assert not accepts("json", wrong)
