"""``best_of`` and ``use_beam_search`` through OpenAI's client, judged by all outputs, each alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("openai")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import openai

from structgen.generation.generator import Generator
from tests.server.tiny import EOS, generator
from tests.server.tiny_server import RunningServer, serving

PETS = ["cat", "dog", "cow", "a horse", "goldfish"]
CHOICE = {"structured_outputs": {"choice": PETS}}
BEAMS = {"use_beam_search": True}
HELLO: Any = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0, timeout=60) as made:
        yield made


@pytest.fixture(scope="module")
def alone() -> Generator:
    return generator()


def written(client: openai.OpenAI, **fields: Any) -> Any:
    return client.completions.create(**{"model": "tiny", "prompt": "Hello", "max_tokens": 12, **fields})


def log_prob_after(model: Any, prompt: bytes, text: bytes) -> float:
    """Nats, of a text and its end, by the model's own logits."""
    tokens = [*text, EOS]
    logits, _ = model.prefill([[*prompt, *tokens[:count]] for count in range(len(tokens))])
    return sum(float(line[token] - np.logaddexp.reduce(line)) for line, token in zip(logits, tokens, strict=True))


def log_prob(choice: Any) -> float:
    return float(sum(choice.logprobs.token_logprobs))


def test_the_best_of_what_was_drawn(client: openai.OpenAI) -> None:
    """Judged by each drawn alone, with its own seed."""
    fields: dict[str, Any] = {"temperature": 1.0, "logprobs": 0}
    single = [written(client, seed=7 + number, **fields).choices[0] for number in range(5)]
    single.sort(key=lambda one: -log_prob(one))
    answer = written(client, seed=7, n=2, best_of=5, **fields)
    assert [choice.text for choice in answer.choices] == [choice.text for choice in single[:2]]
    assert [choice.index for choice in answer.choices] == [0, 1] and answer.usage.completion_tokens == 24
    streamed = list(written(client, seed=7, n=2, best_of=5, stream=True, **fields))
    texts = ["".join(c.choices[0].text for c in streamed if c.choices[0].index == index) for index in range(2)]
    assert texts == [choice.text for choice in answer.choices]


@pytest.mark.parametrize("penalty", [0.0, 1.0, 3.0])
def test_many_beams_find_the_best_outputs(client: openai.OpenAI, alone: Generator, penalty: float) -> None:
    """Judged by the score of each output alone."""
    ranked = [(log_prob_after(alone.model, b"Hello", pet.encode()) / (len(pet) + 1) ** penalty, pet) for pet in PETS]
    ranked.sort(reverse=True)
    extra = {**BEAMS, **CHOICE, "best_of": 8, "length_penalty": penalty, "early_stopping": "never"}
    answer = written(client, n=3, extra_body=extra, logprobs=2)
    assert [one.text for one in answer.choices] == [pet for _, pet in ranked[:3]]
    for one in answer.choices:
        assert "".join(one.logprobs.tokens) == one.text and one.finish_reason == "stop"
        best = [max(top.values()) for top in one.logprobs.top_logprobs]
        assert all(log_prob <= high + 1e-9 for log_prob, high in zip(one.logprobs.token_logprobs, best, strict=True))


def test_beams_of_chats_and_of_several_prompts(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2, "x"]}}, "required": ["a"]}
    form: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    options: dict[str, Any] = {"model": "tiny", "messages": HELLO, "max_tokens": 20, "n": 2, "response_format": form}
    answer = client.chat.completions.create(**options, extra_body=BEAMS)
    texts = [one.message.content for one in answer.choices]
    assert len(set(texts)) == 2 and all(json.loads(text or "")["a"] in (1, 2, "x") for text in texts)
    chunks = list(client.chat.completions.create(**options, extra_body=BEAMS, stream=True))
    deltas = [(chunk.choices[0].index, chunk.choices[0].delta.content or "") for chunk in chunks]
    assert ["".join(text for index, text in deltas if index == number) for number in range(2)] == texts
    several = written(client, prompt=["Hello", "Bye"], n=2, extra_body=BEAMS)
    assert [one.index for one in several.choices] == [0, 1, 2, 3]
    assert [one.text for one in several.choices[2:]] == [
        one.text for one in written(client, prompt="Bye", n=2, extra_body=BEAMS).choices
    ]


def test_beams_of_free_text_are_cut_at_the_budget(client: openai.OpenAI) -> None:
    answer = written(client, n=3, max_tokens=4, extra_body=BEAMS, logit_bias=None)
    assert len({one.text for one in answer.choices}) == 3
    assert {one.finish_reason for one in answer.choices} <= {"length", "stop"}
    assert all(one.finish_reason == "length" for one in answer.choices if len(one.text.encode()) == 4)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n": 3, "best_of": 2}, "best_of"),
    ({"best_of": 99, "temperature": 1}, "best_of"),
    ({"best_of": 2, "temperature": 0}, "best_of"),
    ({"length_penalty": 2.0}, "length_penalty"),
    ({"early_stopping": True}, "early_stopping"),
    ({**BEAMS, "temperature": 0.5}, "temperature"),
    ({**BEAMS, "top_p": 0.5}, "top_p"),
    ({**BEAMS, "top_k": 3}, "top_k"),
    ({**BEAMS, "presence_penalty": 1}, "presence_penalty"),
    ({**BEAMS, "logit_bias": {"65": 1}}, "logit_bias"),
    ({**BEAMS, "structgen": {"trace": True}}, "structgen.trace"),
    ({**BEAMS, **CHOICE, "n": 9}, "n"),
    ({"early_stopping": "sometimes", **BEAMS}, "early_stopping"),
]


@pytest.mark.parametrize(("fields", "param"), REFUSED)
def test_what_excludes_each_other_is_refused_by_name(client: openai.OpenAI, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        written(client, extra_body=fields)
    assert caught.value.param is not None and caught.value.param.startswith(param)


def test_neutral_values_pass_beside_beams(client: openai.OpenAI) -> None:
    plain = written(client, n=2, extra_body={**BEAMS, **CHOICE})
    neutral = {"temperature": 0, "top_p": 1, "top_k": -1, "min_p": 0, "presence_penalty": 0, "repetition_penalty": 1}
    same = written(client, n=2, extra_body={**BEAMS, **CHOICE, **neutral})
    assert [one.text for one in plain.choices] == [one.text for one in same.choices]


def test_others_are_written_meanwhile_and_late_beams_are_closed() -> None:
    with (
        serving(generator(0.02), total_seconds=0.3) as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="any", max_retries=0, timeout=60) as client,
    ):
        pattern = {"structured_outputs": {"regex": "a{40}b*"}}
        answer = written(client, n=2, max_tokens=400, extra_body={**BEAMS, **pattern})
        assert all(one.text.startswith("a" * 40) and len(one.text) < 400 for one in answer.choices)
        assert running.wait_until_idle()
