"""vLLM's HTTP server with structgen, asked through the openai client: strict tools, formats, budgets, refusals."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import jsonschema
import pytest

if os.environ.get("STRUCTGEN_TEST_VLLM") != "1":
    pytest.skip("a vLLM that starts is not here; `make test-vllm` fetches it", allow_module_level=True)

openai = pytest.importorskip("openai")

WAIT = 600  # seconds, for the start
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "days": {"type": "integer", "minimum": 2, "maximum": 14, "multipleOf": 2},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "forecast", "strict": True, "parameters": PARAMETERS}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += [
        "--model",
        os.environ["STRUCTGEN_TEST_VLLM_MODEL"],
        "--served-model-name",
        "small",
        "--dtype",
        "float32",
    ]
    command += ["--max-model-len", "1024", "--max-num-seqs", "4", "--enforce-eager", "--port", str(port)]
    command += ["--host", "127.0.0.1", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    command += ["--middleware", "structgen.integrations.vllm.middleware.ReportHeader"]
    log = Path(tmp_path_factory.mktemp("server")) / "log"
    with log.open("wb") as out:
        own = {name: value for name, value in os.environ.items() if name != "VLLM_ENABLE_V1_MULTIPROCESSING"}
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=own)
    try:
        end = time.monotonic() + WAIT
        while True:
            assert server.poll() is None and time.monotonic() < end, log.read_text()[-4000:]
            try:
                urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except (URLError, OSError):
                time.sleep(1)
        yield openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", timeout=300, max_retries=0)
    finally:
        server.terminate()
        server.wait(120)


def ask(client: Any, **options: Any) -> Any:
    question = [{"role": "user", "content": "What is the weather in Porto in the next days?"}]
    return client.chat.completions.create(model="small", messages=question, **options)


@pytest.mark.parametrize("budget", [40, 80])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "forecast"}}], ids=str)
def test_strict_tools_within_their_budget(client: Any, choice: Any, budget: int) -> None:
    """The call is whole, with `multipleOf`, however few tokens are left: nothing comes back as text."""
    answer = ask(client, tools=[TOOL], tool_choice=choice, max_tokens=budget, temperature=0).choices[0]
    calls = answer.message.tool_calls
    assert calls, answer.message.content
    for call in calls:
        assert call.function.name == "forecast"
        jsonschema.validate(json.loads(call.function.arguments), PARAMETERS)


def test_a_response_format_is_closed_or_cut_as_the_request_says(client: Any) -> None:
    schema = {"type": "array", "minItems": 30, "items": {"enum": ["sun", "rain"]}}
    text = {"type": "object", "properties": {"report": {"type": "string"}}, "required": ["report"]}
    form = {"type": "json_schema", "json_schema": {"name": "report", "strict": True, "schema": text}}
    answer = ask(client, response_format=form, max_tokens=24, temperature=0).choices[0]
    assert answer.finish_reason == "stop"
    jsonschema.validate(json.loads(answer.message.content), text)
    form["json_schema"]["schema"] = schema  # type: ignore[index]
    body = {"vllm_xargs": {"on_budget": "cut"}}
    cut = ask(client, response_format=form, max_tokens=24, temperature=0, extra_body=body).choices[0]
    assert cut.finish_reason == "length"
    with pytest.raises(ValueError):
        json.loads(cut.message.content)


@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_says_what_is_enforced(client: Any, stream: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "title": "A"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    question = [{"role": "user", "content": "A number, please."}]
    answer = client.chat.completions.with_raw_response.create(
        model="small", messages=question, response_format=form, max_tokens=24, temperature=0, stream=stream
    )
    said = json.loads(answer.headers["x-structgen-report"])
    assert said["kind"] == "json" and said["counts"]["enforced"] == 4 and "/properties/a/title" in said["keywords"]


def test_what_is_wrong_is_refused_with_its_place(client: Any) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"properties": {"a": {"type": "intger"}}}}}
    with pytest.raises(openai.BadRequestError, match="/properties/a/type"):
        ask(client, response_format=form, max_tokens=24)
    with pytest.raises(openai.BadRequestError, match="on_budget"):
        fine = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
        ask(client, response_format=fine, max_tokens=24, extra_body={"vllm_xargs": {"on_budget": "stretch"}})
