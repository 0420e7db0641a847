"""`RemoteGenerator` against servers over loopback: our own, and ones that ignore, refuse, cut off and go wrong."""

from __future__ import annotations

import asyncio
import json
import random
import re
from typing import Any, Literal

import jsonschema
import pydantic
import pytest

pytest.importorskip("openai")

from structgen import GenerationError, StructgenError, choice, gbnf, json_schema, lark, regex
from structgen.errors import ConstraintError, IntegrationError, OptionsError, RemoteOutputError, RemoteServerError
from structgen.integrations.remote import AsyncRemoteGenerator, RemoteEvent, RemoteGenerator
from structgen.integrations.remote.checking import TextCheck, check_of
from structgen.integrations.remote.request_formats import provider_at
from tests.core.json_schema.random_schemas import Schemas
from tests.integrations.remote.servers import Answer, ScriptedServer, in_turn, refusal
from tests.server.tiny_server import serving

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
GOOD = '{"name": "Ada", "age": 36}'


class Person(pydantic.BaseModel):
    name: str
    age: int

    @pydantic.field_validator("age")
    @classmethod
    def adult(cls, age: int) -> int:
        if age < 18:
            raise ValueError("too young")
        return age


def ask(server: ScriptedServer, constraint: Any, how: str = "generate", **options: Any) -> Any:
    """The result, by one of four ways, with what the events said where there are any."""
    if how == "generate":
        return RemoteGenerator(server.url).generate("Who?", constraint, **options)
    if how == "stream":
        return followed(list(RemoteGenerator(server.url).stream("Who?", constraint, **options)))

    async def run() -> Any:
        remote = AsyncRemoteGenerator(server.url)
        if how == "agenerate":
            return await remote.generate("Who?", constraint, **options)
        return followed([event async for event in remote.stream("Who?", constraint, **options)])

    return asyncio.run(run())


def followed(events: list[RemoteEvent]) -> Any:
    """The result; texts grow by deltas within an attempt, and every one is a beginning of something valid."""
    text, attempt = "", 0
    for event in events[:-1]:
        if event.attempt != attempt:
            text, attempt = event.text[: len(event.text) - len(event.delta)], event.attempt
        text += event.delta
        assert event.text == text and event.result is None
        _ = event.partial
    assert events[-1].result is not None and events[-1].text == events[-1].result.text
    return events[-1].result


WAYS = ["generate", "stream", "agenerate", "astream"]


@pytest.mark.first_case
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(
    "answer",
    [GOOD, ' {"age":36,\n "name":"\\u0041da"} ', '{"name": "Ada", "age": 36.0}'],
    ids=["as asked", "spelled otherwise", "number"],
)
def test_an_answer_that_conforms_is_taken_at_once(how: str, answer: str) -> None:
    with ScriptedServer(in_turn(answer)) as server:
        result = ask(server, SCHEMA, how)
    assert result.value == {"name": "Ada", "age": 36} and result.text == answer and result.finish_reason == "stop"
    assert [(attempt.form, attempt.outcome) for attempt in result.attempts] == [("json_schema", "conforms")]
    assert result.usage == {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    assert server.bodies[0]["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "JSON Schema" in server.bodies[0]["messages"][-1]["content"]


@pytest.mark.parametrize(
    "answer",
    [f"```json\n{GOOD}\n```", f"Sure! Here it is:\n\n{GOOD}\n\nAnything else?", f"Here:\n```\n{GOOD}\n```\nDone.",
     f"I considered {{it}} and [this].\n{GOOD}"],
)  # fmt: skip
def test_what_stands_around_the_only_value_is_left_out(answer: str) -> None:
    with ScriptedServer(in_turn(answer)) as server:
        result = RemoteGenerator(server.url).generate("Who?", SCHEMA)
    assert result.text == GOOD and result.value["age"] == 36
    assert result.attempts[0].text == answer and len(result.attempts) == 1


def test_where_two_values_fit_none_is_taken() -> None:
    other = GOOD.replace("Ada", "Bob")
    with ScriptedServer(in_turn(f"{GOOD} or {other}", GOOD)) as server:
        result = ask(server, SCHEMA)
    assert [attempt.outcome for attempt in result.attempts] == ["violates", "conforms"]


@pytest.mark.parametrize("how", WAYS)
def test_a_wrong_answer_is_asked_for_again_with_what_was_wrong(how: str) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if body.get("continue_final_message"):
            return refusal("continue_final_message: Extra inputs are not permitted", 400)
        return GOOD if len(body["messages"]) > 1 else '{"name": "Ada", "age": "old"}'

    with ScriptedServer(answer) as server:
        result = ask(server, SCHEMA, how)
    assert [(attempt.form, attempt.outcome) for attempt in result.attempts] == [
        ("json_schema", "violates"), ("continue", "refused"), ("json_schema", "conforms"),
    ]  # fmt: skip
    first = result.attempts[0]
    assert first.position == len('{"name": "Ada", "age": ') and first.reason and "stands '\"" in first.reason
    assert first.reason in server.bodies[-1]["messages"][-1]["content"]
    assert server.bodies[-1]["messages"][-2]["role"] == "assistant"


@pytest.mark.parametrize("how", WAYS)
def test_a_server_that_goes_on_with_a_message_keeps_what_fits(how: str) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if body.get("continue_final_message"):
            kept = body["messages"][-1]["content"]
            assert (
                body["messages"][-1]["role"] == "assistant" and GOOD.startswith(kept) and "response_format" not in body
            )
            return GOOD[len(kept) :]
        return '{"name": "Ada", "age": true, "and so on and so on": "..."}'

    with ScriptedServer(answer, piece=1) as server:
        result = ask(server, SCHEMA, how)
    assert result.text == GOOD
    assert [(attempt.form, attempt.kept) for attempt in result.attempts] == [("json_schema", 0), ("continue", 23)]
    if how.endswith("stream"):
        # Stopped at the first wrong byte: what the server had sent by then lay in buffers, at most.
        assert len(result.attempts[0].text) == 24 and result.attempts[0].text.endswith("t")


@pytest.mark.parametrize("how", WAYS)
def test_an_answer_that_is_cut_off_is_continued_or_written_anew(how: str) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if body.get("continue_final_message"):
            return GOOD  # it takes the field, and begins anew
        return GOOD if body["messages"][-1]["content"].startswith("Your answer") else (GOOD[:20], "length")

    with ScriptedServer(answer) as server:
        result = ask(server, SCHEMA, how)
    assert result.text == GOOD and result.attempts[0].outcome == "truncated"
    assert result.attempts[0].finish_reason == "length" and "ends before it is whole" in (
        result.attempts[0].reason or ""
    )


def test_what_a_server_does_not_know_is_found_out_once() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        for name in ("response_format", "structured_outputs"):
            if name in body:
                return refusal(f"Unknown parameter: {name!r}", param=name)
        return GOOD

    with ScriptedServer(answer) as server:
        remote = RemoteGenerator(server.url)
        first = remote.generate("Who?", SCHEMA)
        asked = len(server.bodies)
        second = remote.generate("Who?", SCHEMA)
        assert len(server.bodies) == asked + 1
    assert [a.form for a in first.attempts] == [
        "json_schema", "json_schema, not strict", "structured_outputs", "guided_json",
    ]  # fmt: skip
    assert [a.outcome for a in first.attempts] == ["refused"] * 3 + ["conforms"] and first.attempts[0].reason
    assert [a.form for a in second.attempts] == ["guided_json"]
    assert second.usage == first.usage


def test_a_schema_that_a_server_does_not_like_is_asked_for_otherwise_and_only_this_time() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        given = body.get("response_format", {}).get("json_schema", {})
        if given.get("strict") and "minimum" in json.dumps(given):
            return refusal("Invalid schema for response_format 'answer': 'minimum' is not a known keyword.")
        return "3"

    with ScriptedServer(answer) as server:
        remote = RemoteGenerator(server.url)
        first = remote.generate("?", {"type": "integer", "minimum": 2})
        second = remote.generate("?", {"type": "integer"})
    assert [a.form for a in first.attempts] == ["json_schema", "json_schema, not strict"]
    assert [a.form for a in second.attempts] == ["json_schema"]


def test_a_server_that_ignores_the_field_is_asked_in_the_next_form() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        return "yes" if body.get("structured_outputs") else "Well, I think so."

    with ScriptedServer(answer) as server:
        remote = RemoteGenerator(server.url)
        assert remote.generate("?", choice(["yes", "no"])).value == "yes"
        with pytest.raises(RemoteOutputError) as caught:
            remote.generate("?", {"type": "null"}, max_attempts=2)
        assert [a.form for a in caught.value.attempts] == ["json_schema", "structured_outputs"]
        assert remote.server.ignored == {"response_format", "structured_outputs"}


@pytest.mark.parametrize("how", WAYS)
def test_typed_errors_with_attempts(how: str) -> None:
    with (
        ScriptedServer(in_turn("no", "never", '{"name": "A', "!")) as server,
        pytest.raises(RemoteOutputError, match="none of 3 answers of the server conforms") as caught,
    ):
        ask(server, SCHEMA, how)
    assert isinstance(caught.value, GenerationError)
    attempts = [a for a in caught.value.attempts if a.outcome != "refused"]
    assert [a.outcome for a in attempts] == ["violates", "violates", "truncated"]
    assert caught.value.partial == '{"name": "A' and all(a.reason for a in attempts)
    with (
        ScriptedServer(in_turn(refusal("no such key", 401))) as server,
        pytest.raises(RemoteServerError, match=r"401.*no such key") as refused,
    ):
        ask(server, SCHEMA, how)
    assert len(refused.value.attempts) == 1


def test_errors_name_the_keywords_that_refuse_an_answer() -> None:
    schema = {"properties": {"age": {"type": "integer", "maximum": 9}}}
    with (
        ScriptedServer(in_turn('{"age": "x"}', "10}")) as server,  # the second goes on after what fits
        pytest.raises(RemoteOutputError) as caught,
    ):
        RemoteGenerator(server.url).generate("?", schema, max_attempts=2)
    named = [[str(reason) for reason in attempt.reasons] for attempt in caught.value.attempts]
    assert named == [["/properties/age/type"], ["/properties/age/maximum"]]
    assert caught.value.reasons == caught.value.attempts[-1].reasons


def test_a_server_that_is_not_there() -> None:
    import openai

    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="x", max_retries=0)
    with pytest.raises(RemoteServerError, match=r"cannot reach 127\.0\.0\.1"):
        RemoteGenerator(client=client).generate("?", SCHEMA)


def test_the_field_for_the_budget() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if "max_tokens" in body:
            return refusal(
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", param="max_tokens"
            )
        assert body["max_completion_tokens"] == 50 and body["temperature"] == 0.5
        return GOOD

    with ScriptedServer(answer) as server:
        result = ask(server, SCHEMA, max_new_tokens=50, temperature=0.5)
    assert [a.outcome for a in result.attempts] == ["refused", "conforms"]


def test_validators_of_types_are_asked_for_again() -> None:
    with ScriptedServer(in_turn('{"name": "Ada", "age": 3}', GOOD)) as server:
        result = RemoteGenerator(server.url).generate("Who?", Person)
    assert result.value == Person(name="Ada", age=36)
    assert "too young" in (result.attempts[0].reason or "")
    with ScriptedServer(in_turn('"b"')) as server:
        assert RemoteGenerator(server.url).generate("?", Literal["a", "b"]).value == "b"


TEXTS = [
    (regex("[0-9]{3}"), "structured_outputs", "regex", "123"),
    (choice(["red", "blue"]), "structured_outputs", "choice", "red"),
    (lark('start: "a" "b"*'), "structured_outputs", "grammar", "abb"),
    (gbnf('root ::= "x" [0-9]'), "structured_outputs", "grammar", "x7"),
]


@pytest.mark.parametrize("constraint, field, kind, text", TEXTS, ids=lambda value: str(value)[:20])
def test_other_constraints(constraint: Any, field: str, kind: str, text: str) -> None:
    with ScriptedServer(in_turn("wrong", f"{text}\n")) as server:
        result = ask(server, constraint)
    assert result.value == text and kind in server.bodies[0][field]
    assert "Answer with" in server.bodies[0]["messages"][0]["content"]
    with ScriptedServer(in_turn(text)) as server:
        both = ask(server, constraint | regex("zzz"), schema_in_prompt=False)
    assert both.attempts[0].form == "prompt" and both.text == text and len(server.bodies[0]["messages"]) == 1


def test_without_a_constraint_and_bad_arguments() -> None:
    with ScriptedServer(in_turn("anything")) as server:
        assert ask(server, None).value == "anything"
        remote = RemoteGenerator(server.url)
        for error, given in (
            (OptionsError, {"max_attempts": 0}),
            (OptionsError, {"max_new_tokens": -1}),
            (OptionsError, {"schema_in_prompt": "there"}),
            (OptionsError, {"schema_form": "bones"}),
        ):
            with pytest.raises(error):
                remote.stream("?", SCHEMA, **given)
        with pytest.raises(ConstraintError):
            remote.generate("?", {"type": "nothing"})
        with pytest.raises(GenerationError):
            remote.generate([], SCHEMA)
        assert len(server.bodies) == 1


def test_an_answer_without_choices() -> None:
    from starlette.responses import JSONResponse

    with (
        ScriptedServer(in_turn(JSONResponse({"detail": "?"}))) as server,
        pytest.raises(RemoteServerError, match="no choices"),
    ):
        ask(server, SCHEMA)


@pytest.mark.full
def test_our_own_server() -> None:
    """The tiny model behind `structgen serve`: it writes what is asked for, in its best forms, whole and streamed."""
    with serving() as running:
        remote = RemoteGenerator(f"{running.url}/v1", "tiny")
        for constraint in (SCHEMA, regex("[0-9]{3}"), choice(["red", "blue"]), gbnf('root ::= "x" [0-9]')):
            for seed in range(3):
                result = remote.generate("?", constraint, max_new_tokens=200, temperature=1.0, seed=seed)
                assert [a.outcome for a in result.attempts] == ["conforms"]
                assert (
                    followed(list(remote.stream("?", constraint, max_new_tokens=200, temperature=1.0, seed=seed))).text
                    == result.text
                )
        jsonschema.validate(remote.generate("?", SCHEMA, max_new_tokens=200).value, SCHEMA)
        assert not remote.server.unknown and not remote.server.ignored
        with pytest.raises(RemoteServerError, match=r"404|model"):
            RemoteGenerator(f"{running.url}/v1", "other").generate("?", SCHEMA)


@pytest.mark.parametrize("seed", range(150))
def test_the_first_wrong_byte_is_where_no_text_goes_on(seed: int) -> None:
    """Random schemas, valid values spelled at random and then damaged, cut at random into pieces: what `TextCheck`
    takes whole is valid by python-jsonschema, and what it stops at cannot be undone by another cut."""
    rng = random.Random(seed)
    schema = Schemas("draft2020-12", seed, without=("format", "dependencies")).root()
    try:
        grammar = check_of(json_schema(schema))
    except StructgenError:
        return
    validator = jsonschema.Draft202012Validator(schema)
    values = [Schemas("draft2020-12", 1000 * seed + number).value() for number in range(12)]
    for value in values:
        text = json.dumps(value, indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5)
        if rng.random() < 0.5 and text:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(['"', "x", "}", "9", ""]) + text[at + rng.randint(0, 1) :]
        seen = []
        for _ in range(2):
            check, at, shown = TextCheck(grammar), 0, ""
            while at < len(text):
                step = rng.randint(1, 5)
                shown += check.feed(text[at : at + step])
                at += step
            assert shown == check.text and text.startswith(shown)
            seen.append((shown, bool(check.wrong), check.is_whole() and not check.wrong))
        assert seen[0] == seen[1]
        try:
            is_valid = validator.is_valid(json.loads(text)) and not re.search(r"NaN|Infinity", text)
        except ValueError:
            is_valid = False
        assert seen[0][2] == is_valid, text


def test_coroutines_of_a_generator_in_several_loops() -> None:
    async def both(remote: RemoteGenerator) -> list[str]:
        texts = [result.value for result in await asyncio.gather(*(remote.agenerate("?", ["red"]) for _ in range(3)))]
        return [*texts, *[event.text async for event in remote.astream("?", ["red"]) if event.result is not None]]

    with ScriptedServer(lambda _: "red") as server:
        remote = RemoteGenerator(server.url)
        assert asyncio.run(both(remote)) == asyncio.run(both(remote)) == ["red"] * 4

        async def with_a_client() -> None:
            await RemoteGenerator(client=remote.client).agenerate("?", ["red"])

        with pytest.raises(IntegrationError, match="AsyncRemoteGenerator"):
            asyncio.run(with_a_client())


OPEN = {"type": "object", "properties": {"name": {"type": "string"}, "notes": {"type": "object"}}, "required": ["name"]}


@pytest.mark.parametrize("how", ["generate", "stream"])
def test_a_provider_is_asked_for_what_it_reads(how: str) -> None:
    """The schema is lowered, the prompt says that shape, and the answer is mapped back and checked."""
    sent = '{"name": "Ada", "notes": {"entries": [{"key": "born", "value": 1815}]}}'
    with ScriptedServer(lambda body: sent) as server:
        remote = RemoteGenerator(server.url, target="openai")
        if how == "generate":
            result: Any = remote.generate("Who?", OPEN)
        else:
            events = list(remote.stream("Who?", OPEN))
            assert [event.delta for event in events] == [""]
            result = events[-1].result
        assert result.value == {"name": "Ada", "notes": {"born": 1815}} == json.loads(result.text)
        asked = server.bodies[0]["response_format"]["json_schema"]
        assert asked["schema"]["required"] == ["name", "notes"] and "entries" in json.dumps(
            server.bodies[0]["messages"]
        )
        assert [attempt.form for attempt in result.attempts] == ["json_schema, lowered"]


def test_a_mapped_answer_that_does_not_conform_is_asked_for_again() -> None:
    schema = {**OPEN, "properties": {"name": {"type": "string", "not": {"const": "x"}}}}
    answers = ['{"name": "x"}', '{"name": "y"}']
    with ScriptedServer(in_turn(*answers)) as server:
        result = RemoteGenerator(server.url, target="openai").generate("Who?", schema)
        assert result.value == {"name": "y"} and result.attempts[0].outcome == "violates"


def test_a_provider_that_refuses_the_lowered_schema_is_asked_otherwise() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        lowered = "entries" in json.dumps(body.get("response_format", {}))
        return refusal("response_format is not supported") if lowered else '{"name": "Ada", "notes": {}}'

    with ScriptedServer(answer) as server:
        result = RemoteGenerator(server.url, target="openai").generate("Who?", OPEN)
        assert result.value == {"name": "Ada", "notes": {}} and len(result.attempts) > 1
        assert "entries" not in json.dumps(server.bodies[-1]["messages"])


def test_providers_are_known_by_their_address() -> None:
    assert provider_at("https://api.openai.com/v1/") == "openai" == provider_at("https://x.openai.azure.com/openai")
    assert provider_at("https://api.openai.com.example.org") is None and provider_at("http://localhost:8000/v1") is None
    with pytest.raises(OptionsError, match="target"):
        RemoteGenerator("http://127.0.0.1:1/v1", target="nobody")


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        (None, {"n": 2}),
        (None, {"stream": True}),
        (None, {"tools": [{"type": "function", "function": {"name": "f"}}]}),
        (None, {"logprobs": True}),
        (None, {"messages": [{"role": "user", "content": "x"}]}),
        (None, {"extra_body": {"n": 2}}),
        (None, {"extra_body": [1]}),
        (SCHEMA, {"response_format": {"type": "json_object"}}),
        (SCHEMA, {"extra_body": {"structured_outputs": {"regex": "a"}}}),
        (SCHEMA, {"max_tokens": 5, "max_new_tokens": 9}),
        (SCHEMA, {"max_completion_tokens": 5, "max_new_tokens": 9}),
    ],
)
def test_fields_that_results_would_say_nothing_of_are_refused(constraint: Any, fields: dict[str, Any]) -> None:
    remote = RemoteGenerator("http://127.0.0.1:9/v1")
    more = fields.get("extra_body")
    name = next(iter(more if isinstance(more, dict) else fields))
    with pytest.raises(OptionsError, match=name):
        remote.generate("Who?", constraint, **fields)
    with pytest.raises(OptionsError, match=name):
        next(iter(remote.stream("Who?", constraint, **fields)))


def test_fields_that_say_nothing_are_taken() -> None:
    with ScriptedServer(in_turn(GOOD)) as server:
        nothing: dict[str, Any] = {"n": 1, "tools": [], "stream": False, "extra_body": None, "stream_options": None}
        for how in ("generate", "stream"):
            assert ask(server, SCHEMA, how, **nothing, max_tokens=50).text == GOOD
