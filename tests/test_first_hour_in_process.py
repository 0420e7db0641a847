"""What a new user tries in one process in the first hour, each as a script of its own: how it ends, what it says, how
long it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("lark")
ROOT = Path(__file__).parents[1]
SECONDS = 60  # of the clock, for a script of a second: machines of tests have much to do
BEGIN = """
import asyncio, logging, sys, threading, time
import structgen
from structgen import Generator
from tests.server.tiny import EOS, VOCABULARY, ByteTokenizer, generator
"""
ASYNC = """
gen = generator(0.002)
endless = {"max_new_tokens": 100_000, "logit_bias": {EOS: -100.0}}
async def main():
    answers = await asyncio.gather(*(gen.agenerate(f"p{n}", ["yes", "no"]) for n in range(8)))
    print(sorted({answer.value for answer in answers} | {"no", "yes"}))
    async for event in gen.astream("p", {"type": "integer", "maximum": 99, "minimum": 0}):
        last = event
    print(0 <= last.result.value <= 99)
    task = asyncio.ensure_future(gen.agenerate("p", **endless))
    await asyncio.sleep(0.2)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")
    try:
        async with asyncio.timeout(0.2):
            await gen.agenerate("p", **endless)
    except TimeoutError:
        print("too late")
asyncio.run(main())
until = time.monotonic() + 20
while (left := [t.name for t in threading.enumerate() if "structgen-" in t.name and "progress" not in t.name]):
    assert time.monotonic() < until, left
    time.sleep(0.01)
print("nothing left")
"""
AGENTS = """
from structgen.server.in_process import InProcessServer
model = generator().model
model.parameter_count = 135_000_000
server = InProcessServer(Generator(model, ByteTokenizer(), vocabulary=VOCABULARY))
import json
async def ask(step):
    body = {"model": "structgen", "messages": [{"role": "user", "content": "Go on"}], "logit_bias": {str(EOS): -100}}
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/v1/chat/completions", "raw_path": b"/v1/chat/completions", "query_string": b"", "root_path": "",
        "headers": [(b"content-type", b"application/json"), (b"host", b"localhost")],
        "server": ("localhost", 80), "client": ("localhost", 1)}
    exchange = await server.exchange(scope, json.dumps(body).encode())
    await exchange.head()
    answer = b""
    while (piece := await exchange.piece()) is not None:
        answer += piece
    return json.loads(answer)
for step in range(3):  # an agent whose model never ends
    answer = server.submit(ask(step)).result()
    print(answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"])
"""
TOOLS = """
import structgen.tools
def add(a: int, b: int) -> int:
    return a + b
class Qwen(ByteTokenizer):
    def __init__(self):
        super().__init__("<function={{ name }}> {{ messages }}")
gen = Generator(generator().model, Qwen(), vocabulary=VOCABULARY)
run = structgen.tools.run(gen, "Add.", [add], tool_choice="required", max_calls=1, max_new_tokens=150)
print(run.calls[0].call.name, run.messages[1]["content"].startswith("<tool_call>\\n<function=add>"))
"""
ATTEMPTS = """
import pydantic
class Trip(pydantic.BaseModel):
    days: int = pydantic.Field(ge=0, le=99)
    @pydantic.field_validator("days")
    @classmethod
    def even(cls, value):
        if value % 2:
            raise ValueError("days come in pairs")
        return value
tokenizer = ByteTokenizer()
gen = Generator(generator().model, tokenizer, vocabulary=VOCABULARY)
for seed in range(99):
    result = gen.generate("A trip.", Trip, temperature=1.0, seed=seed, attempts=99, refusal_in_prompt=True)
    if result.attempts > 1:
        break
shown = tokenizer.fields["messages"]
print(result.value.days % 2, shown[-2]["role"], shown[-1]["content"].splitlines()[0])
"""
OPEN = """
gen = generator()
for prompt in ("p", "q"):
    gen.generate(prompt, {"type": "object", "properties": {"a": {"type": "null"}}}, max_new_tokens=60)
gen.generate("p", {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": False})
closed = structgen.JsonOptions(additional_members="closed")
gen.generate("p", structgen.json_schema({"type": "object", "properties": {"b": {"type": "null"}}}, closed))
"""
SILENCE = """
began = time.monotonic()
class Log(logging.Handler):
    def emit(self, record):
        print(f"{time.monotonic() - began:.1f} {record.getMessage()}", flush=True)
logging.getLogger("structgen").addHandler(Log())
logging.getLogger("structgen").setLevel(logging.INFO)
generator(0.03).batch([f"p{n}" for n in range(4)], max_new_tokens=30, batch_size=1, logit_bias={EOS: -100.0})
"""
GUESSES = """
text = 'start: "if" _NL _INDENT "pass" _NL _DEDENT\\n_NL: /(\\\\r?\\\\n[\\\\t ]*)+/\\n%declare _INDENT _DEDENT'
for guess in ({"parser": "lalr"}, {"postlex": object()}, {}):
    try:
        structgen.lark(text, **guess).compile(VOCABULARY)
    except structgen.StructgenError as error:
        print(type(error).__name__, 'lexer="contextual"' in str(error), flush=True)
matcher = structgen.lark(text, lexer="contextual").compile(VOCABULARY).matcher()
print(matcher.accept_bytes(b"if\\n  pass\\n"))
"""


def ran(program: str) -> tuple[str, str, float]:
    """What a script says on standard output and error, and the seconds of the processor that it took; it ends well."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    after = os.times()
    assert done.returncode == 0, done.stderr
    taken = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout, done.stderr, taken


@pytest.mark.full
def test_coroutines() -> None:
    out, errors, taken = ran(ASYNC)
    assert out.splitlines() == ["['no', 'yes']", "True", "cancelled", "too late", "nothing left"]
    assert errors == "" and taken < 15


@pytest.mark.full
def test_an_agent_stops_at_its_steps_and_the_process_ends_without_a_with() -> None:
    for package in ("starlette", "prometheus_client"):
        pytest.importorskip(package)
    began = time.monotonic()
    out, errors, taken = ran(AGENTS)
    assert [line.split() for line in out.splitlines()] == [[reason, "256"] for reason in ["length"] * 3]
    assert errors == "" and taken < 15 and time.monotonic() - began < SECONDS


@pytest.mark.full
def test_tools_are_called_in_the_format_of_the_template() -> None:
    out, errors, taken = ran(TOOLS)
    assert out.splitlines() == ["add True"] and errors == "" and taken < 15


@pytest.mark.full
def test_attempts_tell_what_was_refused() -> None:
    out, errors, taken = ran(ATTEMPTS)
    said = "Your answer does not fit: days: Value error, days come in pairs"
    assert out.splitlines() == [f"0 assistant {said}"] and errors == "" and taken < 15


def test_open_objects_are_said_once() -> None:
    out, errors, taken = ran(OPEN)
    (line,) = errors.splitlines()  # without any logging set up
    assert "leaves objects open" in line and 'additional_members="closed"' in line and out == "" and taken < 15


@pytest.mark.full
def test_a_batch_says_something_soon_and_then_every_row() -> None:
    out, errors, taken = ran(SILENCE)
    said = [re.match(r"([\d.]+) writing a batch \((\d) of 4\)", line) for line in out.splitlines()]
    first, *rows = [match for match in said if match]
    assert float(first[1]) < 2.5 and len(rows) >= 3 and errors == "" and taken < 15  # 1 s, on a quiet machine
    assert [int(row[2]) for row in rows] == sorted({int(row[2]) for row in rows}) and int(rows[-1][2]) == 4


@pytest.mark.full
def test_guesses_of_lark_are_answered_with_the_form() -> None:
    out, errors, taken = ran(GUESSES)
    assert out.splitlines() == ["OptionsError True", "OptionsError True", "GrammarError True", "True"]
    assert errors == "" and taken < 15
