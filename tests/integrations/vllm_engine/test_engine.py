"""A started engine: outputs within their budgets, drafts, mixed batches. Judged by python-jsonschema."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from tests.integrations.vllm_engine.engine import DRAFTS, engine

TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}


def closed(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


TASKS = [
    ("Ada Lovelace, 36 years old, mathematician in London. As JSON.", closed(name=TEXT, age=WHOLE, city=TEXT)),
    (
        "Order 1182: 3 lamps for Maria Silva, 49.90 EUR, ship to Porto. Fill in the form.",
        closed(order=WHOLE, name=TEXT, city=TEXT, currency={"enum": ["EUR", "USD", "GBP"]}),
    ),
    (
        "The server api-7 in region eu-west-1 has status degraded since 10:42. Report.",
        closed(
            server=TEXT,
            region={"enum": ["us-east-1", "eu-west-1", "ap-south-1"]},
            status={"enum": ["healthy", "degraded", "down"]},
        ),
    ),
    (
        "List the largest cities of Portugal with what is worth seeing there.",
        {"type": "array", "minItems": 1, "items": closed(city=TEXT, sights={"type": "array", "items": TEXT})},
    ),
]
BUDGETS = (30, 45, 60, 90)
SAMPLES = 2


def is_whole(text: str, schema: Any) -> bool:
    try:
        jsonschema.validate(json.loads(text), schema)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


def whole_ones(mode: str) -> tuple[int, int]:
    """How many outputs are whole and valid, and of how many, over all tasks and budgets, sampled."""
    count = total = 0
    for budget in BUDGETS:
        tasks = TASKS * SAMPLES
        answers = engine().answers(
            [question for question, _ in tasks],
            [{"json": schema} for _, schema in tasks],
            max_tokens=budget,
            temperature=1.0,
            seed=budget,
            extra_args={"on_budget": mode},
        )
        count += sum(is_whole(answer.text, schema) for answer, (_, schema) in zip(answers, tasks, strict=True))
        total += len(answers)
        if mode == "close":
            assert {answer.finish_reason for answer in answers} == {"stop"}
    return count, total


def test_budgets() -> None:
    """With masks alone few outputs are whole; closed within their budgets, all are."""
    with engine().drafters(None):
        count, total = whole_ones("close")
        alone, _ = whole_ones("cut")
    print(f"whole and valid: {count} of {total}; masks alone: {alone}")
    assert count == total and alone < total


def test_budgets_under_drafts() -> None:
    with engine().drafters(""):
        count, total = whole_ones("close")
    assert count == total


@pytest.mark.parametrize("names, least", [("forced", 1.1), ("forced,structure,shape,copy,closing,ngram", 1.3)])
def test_drafts_change_no_greedy_text(names: str, least: float) -> None:
    """And give more tokens a step; the second round has learned from the first."""
    results = []
    for drafters in (None, names, names):
        with engine().drafters(drafters):
            engine().steps = tokens = 0
            texts = []
            for question, schema in TASKS[:3]:
                (answer,) = engine().answers([question], [{"json": schema}], max_tokens=100, temperature=0)
                texts.append(answer.text)
                tokens += len(answer.token_ids)
            results.append((texts, tokens / engine().steps))
            print(f"{drafters}: {tokens} tokens in {engine().steps} steps")
    assert results[0][0] == results[1][0] == results[2][0]
    assert results[0][1] <= 1.0 and results[2][1] >= least


def test_other_constraints_beside_each_other() -> None:
    """A regex, a choice, a grammar and a schema in one batch, with drafts, at a temperature."""
    asked: list[dict[str, Any]] = [
        {"regex": r"[a-z]{3,9}( [a-z]{3,9}){2}"},
        {"choice": ["yes", "no", "maybe"]},
        {"grammar": 'root ::= "(" root ")" | [0-9]+'},
        {"json": TASKS[0][1]},
    ]
    answers = engine().answers(["Say something."] * 4, asked, max_tokens=40, temperature=0.8, seed=3)
    assert re.fullmatch(asked[0]["regex"], answers[0].text)
    assert answers[1].text in asked[1]["choice"]
    assert re.fullmatch(r"(\()*[0-9]+(\))*", answers[2].text) and answers[2].text.count("(") == answers[2].text.count(
        ")"
    )
    assert is_whole(answers[3].text, TASKS[0][1])


def test_no_more_drafts_than_the_engine_has_room_for() -> None:
    """A text of one word 200 tokens long: steps take at most their drafts and one more."""
    before = engine().steps
    (answer,) = engine().answers(["Go."], [{"json": {"const": "word " * 150}}], max_tokens=300, temperature=0)
    assert json.loads(answer.text) == "word " * 150
    steps = engine().steps - before
    assert len(answer.token_ids) / (DRAFTS + 1) <= steps < len(answer.token_ids)
