"""The judge: right on the official suite, and its expressions are JavaScript's."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.core.regex import ecma_oracle
from tests.fuzz.ecma import searcher
from tests.fuzz.judge import BeyondJudgeError, Judge, read
from tests.suite import official

SUITE = official.suite_folder()
FILES = [
    path
    for dialect in sorted(path.name for path in (SUITE / "tests").iterdir())
    for path in official.files(SUITE, dialect)
    if "optional" not in path.parts and path.stem not in ("refRemote", "vocabulary", "format")
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SUITE / "tests").as_posix())
def test_official_suite(path: Path) -> None:
    wrong = []
    for group in json.loads(path.read_text(encoding="utf-8")):
        judge = Judge(group["schema"], path.relative_to(SUITE / "tests").parts[0])
        for test in group["tests"]:
            try:
                if judge.valid(read(json.dumps(test["data"]))) != test["valid"]:
                    wrong.append((group["description"], test["description"]))
            except (BeyondJudgeError, ValueError):  # a metaschema, \p{...}
                continue
    assert not wrong


@pytest.mark.skipif(ecma_oracle.node() is None, reason="needs node")
def test_expressions_are_javascript_s() -> None:
    from tests.fuzz.schemas import PATTERNS

    rng = random.Random(1)
    texts = ["".join(rng.choice("ab1_ -\n\r\u2028é😀٣A\x00") for _ in range(rng.randrange(6))) for _ in range(300)]
    cases = [(pattern, texts) for pattern in PATTERNS]
    for (pattern, _), expected in zip(cases, ecma_oracle.search_all(cases), strict=True):
        assert [searcher(pattern)(text) is not None for text in texts] == expected, pattern


def test_integers_of_old_drafts_are_spelled_without_a_fraction() -> None:
    for draft, valid in (("draft3", False), ("draft4", False), ("draft6", True)):
        judge = Judge({"type": "integer"}, draft)
        assert judge.valid(read("1")) and judge.valid(read("1.0")) is valid and judge.valid(read("1e0")) is valid
