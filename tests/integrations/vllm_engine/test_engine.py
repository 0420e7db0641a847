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


def test_log_probabilities_are_those_of_the_masked_policy() -> None:
    """What a trainer gets of a rollout, against the model read anew by transformers, and the masks made again."""
    import os

    import torch
    from transformers import AutoModelForCausalLM
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    from structgen import rl
    from structgen.integrations.engine_requests import engine_vocabulary

    llm, schema = engine().llm, TASKS[0][1]
    tokenizer = llm.get_tokenizer()
    vocabulary = engine_vocabulary(tokenizer, llm.llm_engine.model_config.get_vocab_size())
    params = SamplingParams(
        structured_outputs=StructuredOutputsParams(json=schema), logprobs=0, temperature=1.0, max_tokens=80, seed=11,
        extra_args={"on_budget": "cut"},
    )  # fmt: skip
    with engine().drafters(None):
        (output,) = llm.generate(["Ada, 36, London. As JSON: "] * 1, params, use_tqdm=False)
    tokens = list(output.outputs[0].token_ids)
    drawn = [entry[token].logprob for entry, token in zip(output.outputs[0].logprobs or (), tokens, strict=True)]
    model = AutoModelForCausalLM.from_pretrained(os.environ["STRUCTGEN_TEST_VLLM_MODEL"], dtype=torch.float32)
    start = len(output.prompt_token_ids or ())
    with torch.inference_mode():
        logits = model(torch.tensor([[*(output.prompt_token_ids or ()), *tokens]])).logits[0, start - 1 : -1]
    masks = rl.masks(schema, vocabulary, tokens)
    policy, mass = rl.log_probs(logits, torch.tensor(tokens), masks)
    difference = float((policy - torch.tensor(drawn)).abs().max())
    print(f"{len(tokens)} tokens, largest difference {difference:.1e}, least log-mass {float(mass.min()):.2f}")
    assert difference <= 1e-4
