"""Prompts of completions whose end is spelled anew: what the library writes, through the server and its engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import httpx2

import structgen as sg
from structgen.generation import prepared_model
from structgen.generation.decoding import healing
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.server.engine import AsyncEngine
from structgen.server.errors import RequestError
from structgen.server.sequence_writer import SequenceWriter
from structgen.server.sequences import SequenceEvent, SequenceRequest, WrittenSoFar
from tests.generation.decoding.test_healing import world
from tests.server.tiny import generator
from tests.server.tiny_server import serving

URL = "/v1/completions"
HEALED: dict[str, Any] = {"structgen": {"heal_prompt": True}, "temperature": 1.0, "max_tokens": 40}
CHOICES = ["he the", "he ab", "e", "eab"]


def fresh(name: str = "digits") -> Generator:
    """A generator of its own, over a tokenizer and texts that are shared."""
    made, _ = world(name)
    return Generator(made.model, made.tokenizer, vocabulary=made.vocabulary)


def asked(http: httpx2.Client, prompt: Any = "the t", path: str = URL, **fields: Any) -> httpx2.Response:
    return http.post(path, json={**({"prompt": prompt} if path == URL else {}), **HEALED, **fields})


@pytest.mark.full
def test_completions_are_those_of_the_library() -> None:
    made = fresh()
    crossing = 0
    with serving(fresh()) as server, httpx2.Client(base_url=server.url, timeout=60) as http:
        for constraint, outputs in ((None, None), (CHOICES, {"choice": CHOICES})):
            for seed in range(4):
                options: Any = {"temperature": 1.0, "max_new_tokens": 40, "heal_prompt": True}
                single = made.generate("the t", constraint, seed=seed, schema_in_prompt=False, **options)
                assert single.healed is not None
                answer = asked(http, seed=seed, structured_outputs=outputs, logprobs=1).json()
                (choice,) = answer["choices"]
                assert choice["text"] == single.text
                assert choice["structgen"] == {"healed": single.healed.as_fields()}
                assert answer["usage"]["completion_tokens"] == len(single.token_ids)
                beyond = single.healed.text
                offsets, tokens = choice["logprobs"]["text_offset"], choice["logprobs"]["tokens"]
                assert beyond + "".join(tokens) == single.text and offsets[:1] in ([], [len(beyond)])
                crossing += bool(beyond)
                deltas, last = [], None
                with http.stream("POST", URL, json={"prompt": "the t", **HEALED, "seed": seed, "stream": True,
                                                    "structured_outputs": outputs}) as stream:  # fmt: skip
                    for line in stream.iter_lines():
                        if line.startswith("data: {"):
                            last = json.loads(line[6:])["choices"][0]
                            deltas.append(last["text"])
                assert last is not None and "".join(deltas) == single.text
                assert last["structgen"] == {"healed": single.healed.as_fields()}
    assert crossing


def test_each_output_has_a_draw_of_its_own() -> None:
    made = fresh()
    with serving(fresh()) as server, httpx2.Client(base_url=server.url, timeout=60) as http:
        choices = asked(http, prompt=["the t", "ab<e>"], n=3, seed=5).json()["choices"]
    for number, choice in enumerate(choices[:3]):
        single = made.generate("the t", temperature=1.0, seed=5 + number, max_new_tokens=40, heal_prompt=True)
        assert single.healed is not None
        assert (choice["text"], choice["structgen"]["healed"]) == (single.text, single.healed.as_fields())
    assert [choice["structgen"] for choice in choices[3:]] == [{"healed": None}] * 3  # there is nothing to be healed


def test_long_prompts_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, prompt = world("digits")[0].tokenizer, "the ab 12 " * 20 + "t"
    vocabulary = fresh().vocabulary

    def made() -> Generator:
        return Generator(TinyModel(vocabulary.size), tokenizer, vocabulary=vocabulary)

    whole = made().generate(prompt, temperature=1.0, seed=1, max_new_tokens=9, heal_prompt=True)
    monkeypatch.setattr(prepared_model, "PROMPT_PIECE", 7)
    again = made()
    calls = list[int]()
    piece = again.healed

    def counted(*arguments: Any, **options: Any) -> Any:
        def asking(work: Any) -> Any:
            calls.append(1)
            return work()

        return piece(*arguments, **options, asking=asking)

    monkeypatch.setattr(again, "healed", counted)
    pieces = again.generate(prompt, temperature=1.0, seed=1, max_new_tokens=9, heal_prompt=True)
    assert (pieces.text, pieces.healed) == (whole.text, whole.healed)
    assert len(calls) > 5


def test_an_output_is_taken_up_with_what_was_drawn() -> None:
    ids = fresh().tokenizer.encode("the t")
    request = SequenceRequest(
        ids, None, SamplingParams(temperature=1.0, seed=3), max_new_tokens=40, streams=True, heal_prompt=True
    )

    def events_of(request: SequenceRequest) -> list[SequenceEvent]:
        writer = SequenceWriter(fresh(), SchedulerLimits(sequences=4, waiting=None))
        writer.submit(request, writer.output(request))
        found = list[SequenceEvent]()
        while not writer.is_idle:
            found += [event for _, event in writer.step()]
        return found

    unbroken = events_of(request)
    end = unbroken[-1].end
    assert end is not None and unbroken[-1].healed is not None and len(unbroken) > 2
    for count in range(len(unbroken)):
        written = WrittenSoFar()
        for event in unbroken[:count]:
            written = written.and_then(event)
        last = events_of(replace(request, written=written))[-1]
        assert last.end is not None
        assert (last.text, last.healed, last.end.token_ids) == (unbroken[-1].text, unbroken[-1].healed, end.token_ids)


def test_coroutines_have_it() -> None:
    made = fresh()
    single = made.generate("the t", CHOICES, temperature=1.0, seed=2, schema_in_prompt=False, heal_prompt=True)
    engine = AsyncEngine(fresh())

    async def call() -> Any:
        options: Any = {"temperature": 1.0, "seed": 2, "schema_in_prompt": False, "heal_prompt": True}
        return await engine.agenerate("the t", CHOICES, **options)

    try:
        result = asyncio.run(call())
    finally:
        engine.close()
    assert (result.text, result.healed, result.token_ids) == (single.text, single.healed, single.token_ids)
    assert result.healed is not None


def test_what_cannot_be_healed_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(fresh()) as server, httpx2.Client(base_url=server.url, timeout=60) as http:
        for fields in (
            {"prompt": [5, 6]},
            {"use_beam_search": True, "temperature": 0},
            {"structgen": {"heal_prompt": True, "fields": True}, "structured_outputs": {"choice": CHOICES}},
            {"structgen": {"heal_prompt": "yes"}},
            {"prompt": "the ab" * 700},
            {"prompt": "12zz the!! t"},  # which the model never writes
        ):
            answer = asked(http, **fields)
            assert answer.status_code == 400, fields
            assert answer.json()["error"]["param"] == "structgen.heal_prompt", answer.json()
        monkeypatch.setattr(healing, "MOST_MEMORY", 1 << 18)
        assert "anywhere or nowhere" in asked(http, prompt="abababab" * 20).json()["error"]["message"]
    with serving(generator()) as server, httpx2.Client(base_url=server.url, timeout=60) as http:
        endpoints: tuple[tuple[str, dict[str, Any]], ...] = (
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
            ("/v1/responses", {"input": "x", "max_tokens": None}),
        )
        for path, given in endpoints:
            sent = {name: value for name, value in {**HEALED, **given}.items() if value is not None}
            error = http.post(path, json=sent).json()["error"]
            assert error["param"] == "structgen.heal_prompt" and "template" in error["message"]
        error = asked(http).json()["error"]  # a tokenizer that is no byte-level BPE
        assert error["param"] == "structgen.heal_prompt" and error["code"] == "unsupported_value"


def test_a_prompt_that_there_is_no_room_for_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fresh()
    engine = AsyncEngine(made)
    tries = list[int]()

    def no_room() -> None:
        tries.append(1)
        if len(tries) > 3:
            monkeypatch.setattr(AsyncEngine, "running", 0)
        raise MemoryError

    monkeypatch.setattr(AsyncEngine, "running", 1)
    monkeypatch.setattr(made, "healed", lambda *_, asking, **__: asking(no_room))
    request = SequenceRequest(made.tokenizer.encode("the t"), max_new_tokens=9, heal_prompt=True)

    async def call() -> None:
        await engine.submit([request]).last()

    try:
        with pytest.raises(RequestError, match="no room") as caught:
            asyncio.run(asyncio.wait_for(call(), 20))
    finally:
        engine.close()
    assert caught.value.status == 429 and len(tries) == 4


def test_the_engine_closes_while_a_prompt_is_healed() -> None:
    engine = AsyncEngine(fresh())
    request = SequenceRequest(fresh().tokenizer.encode("the t"), max_new_tokens=9, heal_prompt=True)

    async def call() -> None:
        streams = [engine.submit([request], str(number)) for number in range(8)]
        await asyncio.to_thread(engine.close)
        for stream in streams:
            with contextlib.suppress(sg.StructgenError):
                await stream.last()

    asyncio.run(asyncio.wait_for(call(), 20))


def test_what_does_not_fit_is_remembered_for_its_spelling_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another request of the same grammar may need fewer tokens, go on after another prompt, or name no stop string."""
    made = fresh()
    writer, grammar = SequenceWriter(made, SchedulerLimits()), sg.choice(["hehe"]).compile(made.vocabulary)
    one = SequenceRequest((1,), grammar, max_new_tokens=9)
    for other, option in (
        (replace(one, spelling="canonical"), "max_new_tokens"),
        (replace(one, heal_prompt=True), "max_new_tokens"),
        (replace(one, stop=("e",)), "stop"),
    ):
        with monkeypatch.context() as patched, pytest.raises(sg.IncompleteOutputError, match="its own"):
            error = sg.IncompleteOutputError("its own", partial="", option=option)
            patched.setattr(writer, "_made", lambda *_, error=error: (_ for _ in ()).throw(error))
            writer.output(other)
        writer.output(one)
    for _ in range(2):  # the second time it is known
        with pytest.raises(sg.IncompleteOutputError, match="at least 2"):
            writer.output(replace(one, max_new_tokens=1))
