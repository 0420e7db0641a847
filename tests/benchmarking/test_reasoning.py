"""The reasoning tasks: answers by other means than the generator's own, scoring, and local against aligned sampling."""

from __future__ import annotations

import json
import re
import sys
import types
from typing import Any

import jsonschema
import numpy as np
import pytest
from tiny_bench import EOS, VOCABULARY, load

from structgen.benchmarking.reasoning import (
    accuracy_rows,
    correct,
    gsm8k,
    last_letters,
    local_against_aligned,
    shuffled_objects,
)
from structgen.benchmarking.schemas import Case, DataError


def test_last_letters() -> None:
    for case in last_letters(20):
        quoted = re.findall(r'"([^"]*)"', case.prompt[-1][1])[0]
        assert case.answer == "".join(re.findall(r"(\w)\b", quoted))
        check(case, case.answer)
    assert last_letters(5, 1) == last_letters(5, 1) != last_letters(5, 2)


def test_shuffled_objects() -> None:
    """Followed backwards: from the player asked for to who held that ball in the beginning."""
    for case in shuffled_objects(30):
        text = case.prompt[-1][1]
        who = re.findall(r"Which ball does (\w+)", text)[0]
        for one, other in reversed(re.findall(r"(?:First|Then|Finally) (\w+) and (\w+) swap", text)):
            who = {one: other, other: one}.get(who, who)
        assert case.answer == dict(re.findall(r"(\w+) (\w+)[,.]", text.partition(":")[2].partition(".")[0] + "."))[who]
        check(case, case.answer)


def check(case: Case, answer: Any) -> None:
    """The right answer is valid under the schema of the answer, and scored as right."""
    value = {"reasoning": "r", "answer": answer}
    jsonschema.validate(value, json.loads(case.schema_text))
    assert correct({"text": json.dumps(value), "answer": case.answer})


def test_gsm8k(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = types.ModuleType("datasets")
    fake.load_dataset = lambda *_, **__: [{"question": "How many?", "answer": "5 * 241\n#### 1,205"}]
    monkeypatch.setitem(sys.modules, "datasets", fake)
    (case,) = gsm8k(3)
    assert case.answer == "1205" and case.prompt[-1] == ("user", "How many?")
    check(case, 1205)

    def unreachable(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route")

    fake.load_dataset = unreachable
    with pytest.raises(DataError, match="no route"):
        gsm8k(3)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"reasoning": "", "answer": "RED"}', True),
        ('Sure: {"reasoning": "x", "answer": "red", "more', True),
        ('{"answer": "blue"}', False),
        ("red", False),
        ("[1]", False),
        ("", False),
    ],
)
def test_scoring(text: str, right: bool) -> None:
    assert correct({"text": text, "answer": "red"}) is right


def test_accuracy_table() -> None:
    base = {"dataset": "t", "sampling": "greedy", "engine": "e", "answer": "1"}
    records = [{**base, "text": '{"answer": 1}', "judgement": "valid"}, {**base, "text": "", "judgement": "not_json"}]
    assert accuracy_rows(records) == [["t", "greedy", "e", "2", "50.0 %", "50.0 %"]]


def test_local_against_aligned() -> None:
    """A choice of three, whose distributions are known in closed form."""
    generator, words = load(), [b"11", b"12", b"2"]
    case = Case("t", "one", json.dumps({"enum": [11, 12, 2]}), (("user", "q"),))
    prompt = list(b"q\n\n")
    log_p, log_local = [], []
    for word in words:
        steps, masked = 0.0, 0.0
        for place in range(len(word) + 1):
            logits = generator.model.prefill([prompt + list(word[:place])])[0][0][: VOCABULARY.size].astype(float)
            following = {w[place] if place < len(w) else EOS for w in words if w.startswith(word[:place])}
            token = word[place] if place < len(word) else EOS
            steps += logits[token] - np.logaddexp.reduce(logits)
            masked += logits[token] - np.logaddexp.reduce(logits[sorted(following)])
        log_p.append(steps)
        log_local.append(masked)
    aligned = np.exp(log_p) / np.exp(log_p).sum()
    (found,) = local_against_aligned(generator, [case], 300, max_new_tokens=8, method="exact")
    spread = 5 * float(np.std(log_p)) / 300**0.5
    assert np.exp(log_local).sum() == pytest.approx(1)
    assert found["aligned"] == pytest.approx(float(aligned @ log_p), abs=spread)
    assert found["local"] == pytest.approx(float(np.exp(log_local) @ log_p), abs=spread)
