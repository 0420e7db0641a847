"""The fuzzer itself: it finds planted faults, shrinks them, survives lost processes, and says what it did."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from structgen import JsonOptions, compile_json_schema
from tests.fuzz import areas, json_checks, spelling
from tests.fuzz.log import line, report, write_cases
from tests.fuzz.random_grammars import derived, random_rules, recognise
from tests.fuzz.runner import Run, fuzz, isolated, shrunk
from tests.fuzz.schemas import DRAFTS, Schemas
from tests.fuzz.shrink import shrink
from tests.fuzz.vocabularies import vocabulary
from tests.fuzz.walks import Walk, Wrong


def test_units_are_the_same_each_time() -> None:
    for area in areas.SHARES:
        if area not in ("threads", "hostile"):
            one, two = Counter[str](), Counter[str]()
            assert areas.run(area, 3, one) == areas.run(area, 3, two) and one == two


def test_every_draft_and_keyword_is_written() -> None:
    from tests.fuzz.judge_keywords import keywords

    for draft in DRAFTS:
        written = "".join(json.dumps(Schemas(random.Random(seed), draft).root()) for seed in range(600))
        missing = {word for word in keywords(draft) if f'"{word}"' not in written}
        assert missing <= ({"dependencies"} if draft.startswith("draft20") else set()), draft


@pytest.mark.full
def test_a_planted_fault_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that forgets maxItems."""

    def forgetful(schema: Any, *rest: Any, **more: Any) -> Any:
        return compile_json_schema(json.loads(json.dumps(schema).replace('"maxItems"', '"comment"')), *rest, **more)

    monkeypatch.setattr(json_checks, "compile_json_schema", forgetful)
    case = {"area": "json", "draft": "draft7", "schema": '{"type": "array", "maxItems": 1, "minItems": 1}'}
    case |= {"text": "[1, 2, [3]]"}
    assert areas.replay(case) == "accepts invalid"
    small = shrink(case, lambda smaller: areas.replay(smaller) == "accepts invalid", 10)
    assert json.loads(small["schema"]) in ({"maxItems": 0}, {"maxItems": 1}) and len(small["text"]) <= 6
    found: Counter[str] = Counter(c["kind"] for seed in range(150) for c in areas.run("json", seed, Counter()))
    assert found["accepts invalid"] > 3 and found["writes invalid"] > 1


def test_walks_notice_wrong_masks() -> None:
    grammar = compile_json_schema({"enum": ["ab", 1]}, vocabulary(1))
    walk = Walk(grammar, random.Random(1), lambda text: "writes invalid", b"")
    with pytest.raises(Wrong, match="writes invalid"):
        walk.run(3)
    walk = Walk(grammar, random.Random(1), lambda text: None, b"")
    allowed = [token in (5, 9) for token in range(grammar.vocabulary.size)]
    with pytest.raises(Wrong, match="mask = accept"):
        walk.compare(allowed)  # type: ignore[arg-type]


def test_spellings() -> None:
    options = JsonOptions(whitespace=2, max_string_length=2)
    assert spelling.fault('{\n  "abc": [\n    1.5,\n    {}\n  ]\n}', options) is None
    for text, wrong in (
        ("1.0", "number spelled"),
        ('"abc"', "string over limit"),
        (r'"\u0061"', "escape"),
        ("[1]", "whitespace"),
    ):
        assert spelling.fault(text, options) == wrong
    assert spelling.fault("[1,  2]", JsonOptions()) == "whitespace"
    assert spelling.fault('{"b": 1, "a": 2}', JsonOptions(), {"properties": {"a": {}, "b": {}}}) == "key order"
    assert spelling.texts({"a": 1, "b": 2**70}, JsonOptions()) == [
        '{"a":1,"b":1180591620717411303424}',
        '{"b":1180591620717411303424,"a":1}',
    ]


def test_long_numbers_may_not_fit() -> None:
    """Plain numbers that a schema leaves open are cut by default: that is no refusal."""
    assert spelling.fits([10**39, 0.5], JsonOptions()) and not spelling.fits([10**40], JsonOptions())
    assert spelling.fits(-(10**40), JsonOptions(max_number_length=None))
    assert spelling.fits(10**40, JsonOptions(number_spellings="any"))


def test_the_recogniser_knows_its_own_texts() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        rules = random_rules(rng, "start")
        for _ in range(20):
            text = derived(rules, "start", rng)
            assert text is None or len(text) > 20 or recognise(rules, "start", text)
    left: Any = {"start": ["alt", ["seq", ["ref", "start"], ["lit", "a"]], ["lit", "b"]]}
    assert recognise(left, "start", "baa") and not recognise(left, "start", "ab")


def _crash(case: dict[str, Any]) -> None:
    os._exit(7)


def test_lost_processes_are_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    case = {"area": "json", "draft": "draft7", "schema": "{}", "text": "1"}
    assert isolated(case) is None
    monkeypatch.setattr(areas, "replay", _crash)
    assert isolated(case) == "crash"


@pytest.mark.full
def test_a_short_run(tmp_path: Path) -> None:
    run = fuzz(77, 0.2, 1, only=["expressions"], texts=300)
    assert run.tally["texts"] >= 300 or run.seconds > 10
    assert "seed 77" in report(run, shrunk(run.cases), False) and "texts" in line(run)
    write_cases(tmp_path / "new.jsonl", [{"area": "json"}, {"area": "json"}])
    write_cases(tmp_path / "new.jsonl", [{"area": "json"}])
    assert (tmp_path / "new.jsonl").read_text().count("\n") == 2


def test_failures_are_counted_and_kept_within_bounds() -> None:
    run = Run(1, ())
    for seed in range(500):
        run.fail({"area": "json", "seed": seed, "kind": "dead end"})
    assert run.kinds["json: dead end"] == 500 and len(run.cases) == 20
