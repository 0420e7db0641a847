"""The page: what is sent, what it may load, what it asks the server; its functions, where there is node."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2

import structgen
from structgen.generation.generator import Generator
from structgen.generation.models.built_in import DEFAULT_MODEL_PACKAGE
from tests.server.tiny import generator
from tests.server.tiny_server import serving

FOLDER = Path(structgen.__file__).parent / "server" / "page"


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    with serving(generator(draft="ngram")) as running, httpx2.Client(base_url=running.url, timeout=60) as client:
        yield client


def test_the_page_and_its_parts(http: httpx2.Client) -> None:
    page = http.get("/")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    names = re.findall(r'(?:src|href)="([^"#:]+\.\w+)"', page.text)
    names += re.findall(r'from "\./([^"]+)"', (FOLDER / "page.js").read_text("utf-8"))
    assert {"index.html", *names} == {path.name for path in FOLDER.iterdir() if not path.name.startswith("docs.")}
    for name in names:
        part = http.get(f"/{name}")
        assert part.status_code == 200 and part.content == (FOLDER / name).read_bytes()
        policy = part.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert part.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_nothing_comes_from_elsewhere(name: str) -> None:
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", (FOLDER / name).read_text("utf-8"))


def test_labels_name_what_is_there() -> None:
    text = (FOLDER / "index.html").read_text("utf-8")
    ids = re.findall(r'id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:for|aria-labelledby|aria-describedby)="([^"]+)"', text)) <= set(ids)
    assert set(re.findall(r'\$\("([^"]+)"\)', (FOLDER / "page.js").read_text("utf-8"))) <= set(ids)


def test_coverage(http: httpx2.Client) -> None:
    schema = {"type": "object", "title": "t", "properties": {"a": {"type": "integer"}}}
    report = http.post("/check", json={"structured_outputs": {"json": json.dumps(schema)}}).json()
    assert {"pointer": "/properties/a/type", "status": "enforced", "reason": ""} in report["keywords"]
    assert "1 keywords annotation" in report["summary"]
    assert http.post("/check", json={"structured_outputs": {"regex": "a+"}}).json()["keywords"] == []
    bad = http.post("/check", json={"structured_outputs": {"json": '{\n"a": oops}'}}).json()["error"]
    assert bad["pointer"] == "/structured_outputs/json" and bad["message"].splitlines()[-1].strip() == "^"
    assert http.post("/check", json={"x": 1}).status_code == 400


def test_why_a_text_is_refused(http: httpx2.Client) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 20}}, "required": ["a"]}

    def judged(text: str, **more: Any) -> Any:
        asked = {"structured_outputs": {"json": schema}, "text": text, **more}
        return http.post("/check", json=asked).json()["text"]

    def reason(pointer: str, keyword: str, **more: str) -> dict[str, str]:
        return {"pointer": pointer, "keyword": keyword, **more}

    assert judged('{"a": 7}') == {"refused_at_byte": None, "is_begun": False, "reasons": []}
    above = [reason("/properties/a/maximum", "maximum")]
    assert judged('{"a": 21}') == {"refused_at_byte": 7, "is_begun": False, "reasons": above}
    assert judged('{"a": 2', token="1")["reasons"] == above
    assert judged("{}")["reasons"] == [reason("/required", "required", name="a")]
    assert judged('{"a": 2') == {"refused_at_byte": 7, "is_begun": True, "reasons": []}
    answer = http.post("/check", json={"structured_outputs": {"regex": "a+"}, "text": "aab"}).json()
    assert answer["text"] == {"refused_at_byte": 2, "is_begun": False, "reasons": []}


@pytest.mark.parametrize(
    ("asked", "code", "pointer"),
    [
        ({"json": '{"properties": {"a": {"type": "strin"}}}'}, "invalid_schema", "/json/properties/a/type"),
        ({"json": '{"minimum": 5, "maximum": 3, "type": "integer"}'}, "unsatisfiable_schema", "/json"),
        ({"grammar": 'root ::= "a" ('}, "invalid_grammar", "/grammar"),
        ({"regex": "(a"}, "invalid_pattern", "/regex"),
        ({"choice": []}, "invalid_constraint", "/choice"),
        ({}, "invalid_value", ""),
    ],
)
def test_what_is_wrong_is_typed_and_placed(http: httpx2.Client, asked: Any, code: str, pointer: str) -> None:
    answer = http.post("/check", json={"structured_outputs": asked})
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["code"] == code
    assert error["pointer"] == f"/structured_outputs{pointer}"
    assert answer.headers["x-request-id"].startswith("check-")


def test_the_page_is_open_and_what_it_asks_for_is_not() -> None:
    with serving(api_keys=("sesame",)) as running, httpx2.Client(base_url=running.url) as client:
        assert client.get("/").status_code == 200
        asked = {"structured_outputs": {"regex": "a"}}
        assert client.post("/check", json=asked).json()["error"]["code"] == "invalid_api_key"
        assert client.get("/v1/models").status_code == 401
        assert client.post("/check", json=asked, headers={"authorization": "Bearer sesame"}).status_code == 200


def test_several_outputs_of_one_request_are_traced_apart(http: httpx2.Client) -> None:
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "structured_outputs": {"regex": "[a-f]{6}"},
        "stream": True,
        "structgen": {"trace": True},
        "n": 4,
        "seed": 1,
    }
    lines = http.post("/v1/chat/completions", json=body).text.splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    for index in range(4):
        own = [chunk for chunk in chunks if chunk["choices"][0]["index"] == index]
        text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in own)
        tokens = [token for chunk in own for token in chunk.get("structgen", {}).get("tokens", ())]
        assert re.fullmatch("[a-f]{6}", text) and "".join(token["token"] for token in tokens) == text
        assert [token["allowed"] for token in tokens[:6]] == [6] * 6  # six letters; a token a byte


def test_traces_say_how_tokens_came_about(http: httpx2.Client) -> None:
    schema: Any = {"type": "object", "properties": {"kind": {"enum": ["cat", "dog"]}}, "required": ["kind"]}
    schema["additionalProperties"] = False
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "structured_outputs": {"json": schema},
        "stream": True,
        "structgen": {"trace": True},
        "seed": 1,
    }
    lines = [line.removeprefix("data: ") for line in http.post("/v1/chat/completions", json=body).text.splitlines()]
    chunks = [json.loads(line) for line in lines if line.startswith("{")]
    tokens = [token for chunk in chunks for token in chunk.get("structgen", {}).get("tokens", ())]
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert b"".join(bytes(token["bytes"]) for token in tokens).decode() == text
    assert {token["kind"] for token in tokens} <= {"forced", "drafted", "chosen"}
    for token in tokens:
        assert (token["kind"] == "forced") == (token["allowed"] == 1)
        assert token["kind"] != "forced" or token["logprob"] == 0
    first = next(token for token in tokens if token["token"] in "cd" and token["kind"] != "forced")
    assert first["allowed"] == 2


def test_tokens_say_what_the_mask_left(http: httpx2.Client) -> None:
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "structured_outputs": {"regex": "[a-f]{6}"},
        "logprobs": True,
        "structgen": {"log_mass": True},
        "seed": 1,
    }
    tokens = http.post("/v1/chat/completions", json=body).json()["choices"][0]["logprobs"]["content"]
    assert len(tokens) >= 6 and all(token["log_mass"] < 0 for token in tokens[:6])
    plain = http.post("/v1/chat/completions", json={**body, "structgen": {}}).json()["choices"][0]
    assert all("log_mass" not in token for token in plain["logprobs"]["content"])


@pytest.mark.parametrize("stream", [False, True])
def test_answers_say_how_likely_their_values_were(http: httpx2.Client, stream: bool) -> None:
    schema: Any = {"type": "object", "properties": {"kind": {"enum": ["cat", "dog"]}}, "required": ["kind"]}
    schema["additionalProperties"] = False
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "structured_outputs": {"json": schema},
        "structgen": {"fields": True},
        "stream": stream,
    }
    answer = http.post("/v1/chat/completions", json=body)
    if stream:
        lines = [line.removeprefix("data: ") for line in answer.text.splitlines()]
        choice = [json.loads(line) for line in lines if line.startswith("{")][-1]["choices"][0]
    else:
        choice = answer.json()["choices"][0]
    field = choice["structgen"]["fields"]["/kind"]
    assert {option["value"] for option in field["value"]["options"]} == {"cat", "dog"}
    assert sum(option["prob"] for option in field["value"]["options"]) == pytest.approx(1)
    assert 0 <= field["value"]["kept"] <= 1 and choice["structgen"]["field_tokens"] > 0


def test_fields_that_are_not_there_are_named(http: httpx2.Client) -> None:
    flags = {"type": "array", "items": {"type": "boolean"}, "minItems": 70, "maxItems": 70}
    schema = {"type": "object", "properties": {"f": flags}, "required": ["f"], "additionalProperties": False}
    asked: list[Any] = [["/f/0", "/other/*", "/f/99"], True]
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}], "structured_outputs": {"json": schema}}
    named, counted = (
        http.post("/v1/chat/completions", json={**body, "structgen": {"fields": each}}).json()["choices"][0][
            "structgen"
        ]
        for each in asked
    )
    assert named["fields"].keys() == {"/f/0"} and named["absent_fields"] == ["/other/*", "/f/99"]
    assert 0 < len(counted["fields"]) == 70 - counted["fields_left_out"] < 70


@pytest.mark.parametrize("fields", [["kind"], ["/knid"], "x", [1], [f"/{number}" for number in range(65)]])
def test_fields_that_there_cannot_be_are_refused(http: httpx2.Client, fields: Any) -> None:
    schema = {"type": "object", "properties": {"kind": {"enum": ["cat", "dog"]}}, "required": ["kind"]}
    body = {"messages": [{"role": "user", "content": "x"}], "structured_outputs": {"json": schema}}
    answer = http.post("/v1/chat/completions", json={**body, "structgen": {"fields": fields}})
    assert answer.status_code == 400 and "fields" in answer.json()["error"]["param"]
    free = {**body, "structured_outputs": None, "structgen": {"fields": True}}
    assert http.post("/v1/chat/completions", json=free).status_code == 400


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_functions_of_the_page() -> None:
    program = """
    import { eventReader, counted, visible, percent, explained, judgement } from PAGE;
    const refused = { refused_at_byte: 3, is_begun: false };
    const judged = [{ refused_at_byte: null, reasons: [] }, { ...refused, reasons: [{ pointer: "/a", name: "b" }] },
      { refused_at_byte: 3, is_begun: true, reasons: [] }, { ...refused, reasons: [] }];
    import { structuredOutputs } from REQUEST;
    const events = [], read = eventReader((event) => events.push(event));
    const text = 'data: {"a": 1}\\n\\nevent: x\\ndata: {"b": "é"}\\n\\ndata: [DONE]\\n\\n';
    for (const character of text) read(character);
    console.log(JSON.stringify([events, structuredOutputs("choice", "a\\n\\nb"), structuredOutputs("regex", "a"),
      structuredOutputs("none", ""), counted([{ kind: "forced" }, { kind: "chosen" }, { kind: "forced" }]),
      visible("a\\n b"), [0, -1e-9, -0.7, -9].map(percent),
      explained({ message: "no", pointer: "/structured_outputs/json/a" }),
      explained({ message: "no (at /a)", pointer: "/structured_outputs/json/a" }), explained({ message: "no" }),
      ...judged.map((one) => judgement("[1,é", one))]));
    """
    expected: Any = [
        [{"a": 1}, {"b": "é"}],
        {"choice": ["a", "b"]},
        {"regex": "a"},
        None,
        {"chosen": 1, "drafted": 0, "forced": 2},
        "a↵\n␣b",
        ["100%", ">99.9%", "49.7%", "<0.1%"],
        "no\nat /a",
        "no (at /a)",
        "no",
        "Valid: the constraint allows it.",
        'Refused by /a ("b").',
        "Not whole, but it may go on.",
        'Refused after "[1," (byte 3): no keyword alone forbids what stands there, or the spelling does.',
    ]
    assert run_node(program) == expected


def run_node(program: str) -> Any:
    """What a module prints as JSON; PAGE and REQUEST are the page's own."""
    for name in ("page", "request"):
        program = program.replace(name.upper(), json.dumps((FOLDER / f"{name}.js").as_uri()))
    command = ["node", "--input-type=module", "-e", program]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


NASTY = 'It\'s "quoted" \\ $HOME `id` !x %s\n\ttwo\u2028lines """ é 😀\n'
FORMS: list[dict[str, Any]] = [
    {"prompt": NASTY, "kind": "regex", "constraint": "[a-f'\"]{3}\\d"},
    {"prompt": "x", "kind": "json", "constraint": '{"const": "it\'s\\n \\"\\"\\" é"}\n'},
    {"prompt": "x", "kind": "json", "constraint": '{\n  "enum": [true, null, 1.50, 12345678901234567890]\n}'},
    {"prompt": "two\nlines", "kind": "grammar", "constraint": 'root ::= "a" [bc]{2}\n'},
    {"prompt": "x", "kind": "choice", "constraint": 'it\'s\n"a"\n\\n'},
    {"prompt": "x", "kind": "none", "constraint": "", "tokens": 5, "temperature": "0.3", "count": 2},
]


@pytest.mark.full
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_request_as_code_is_the_request(http: httpx2.Client) -> None:
    """The curl command and the Python program are run, and get what the page gets."""
    pytest.importorskip("openai")
    filled = [{"count": 1, "tokens": 40, "temperature": "", "seed": 0, **form} for form in FORMS]
    program = """
    import { curlOf, pythonOf, requestOf } from REQUEST;
    const given = FORMS.map((form) => requestOf(form));
    const codes = (one) => [curlOf, pythonOf].map((as) => as(URL, "tiny", one, false));
    console.log(JSON.stringify(given.map((one) => [one, ...codes(one)])));
    """.replace("FORMS", json.dumps(filled)).replace("URL", json.dumps(f"{str(http.base_url).rstrip('/')}/v1"))
    for request, curl, python in run_node(program):
        answer = http.post("/v1/chat/completions", json=request).json()
        expected = [choice["message"]["content"] for choice in answer["choices"]]
        environment = {**os.environ, "NO_PROXY": "*", "PYTHONIOENCODING": "utf-8"}
        printed = subprocess.run([sys.executable, "-c", python], capture_output=True, timeout=60, env=environment)
        assert printed.stdout.decode() == "".join(f"{text}\n" for text in expected), (python, printed.stderr.decode())
        if shutil.which("curl") and shutil.which("bash"):
            shown = subprocess.run(["bash", "-c", curl], capture_output=True, timeout=60, env=environment)
            got = json.loads(shown.stdout)
            assert [choice["message"]["content"] for choice in got["choices"]] == expected, curl


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_key_is_not_written_into_code() -> None:
    program = """
    import { curlOf, pythonOf, requestOf } from REQUEST;
    const one = requestOf({ prompt: "x", kind: "none", constraint: "", count: 1, tokens: 5, temperature: "", seed: 0 });
    console.log(JSON.stringify([curlOf, pythonOf].map((as) => as("u", "tiny", one, true))));
    """
    curl, python = run_node(program)
    assert 'authorization: Bearer $STRUCTGEN_API_KEY"' in curl
    assert 'api_key=os.environ["STRUCTGEN_API_KEY"]' in python and python.startswith("import os\n")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_first_output_is_a_good_one_and_the_same_twice() -> None:
    """Of the built-in model, with the example and the seed that the page begins with."""
    if None in (find_spec("cyllama"), find_spec(DEFAULT_MODEL_PACKAGE)):
        pytest.skip("the built-in model, or its llama.cpp, is not installed")
    program = """
    import { EXAMPLES, sent } from PAGE;
    import { requestOf } from REQUEST;
    const form = { count: 1, tokens: 200, temperature: "", seed: 0 };
    console.log(JSON.stringify(EXAMPLES.map((example) => sent(requestOf({ ...form, ...example })))));
    """
    person, _, fruit, time, sentiment, *_ = run_node(program)
    with serving(Generator()) as running, httpx2.Client(base_url=running.url, timeout=120) as client:

        def written(request: Any) -> str:
            lines = client.post("/v1/chat/completions", json=request).text.splitlines()
            chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
            return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"])

        first = written(person)
        found = json.loads(first)
        assert (found["name"], found["city"], found["age"]) == ("Ada Lovelace", "London", 36)
        assert found["profession"].lower() == "mathematician"
        assert written(time) == "14:35" and written(sentiment) == "negative"
        assert written(fruit).endswith(".")
        again, _, fruit_again, *_ = run_node(program)  # the page's next requests
        assert written(again) == first and written(fruit_again) == written(run_node(program)[2])


def test_links_of_the_page_are_answered(http: httpx2.Client) -> None:
    links = re.findall(r'<a href="([^"#]+)"', (FOLDER / "index.html").read_text("utf-8"))
    assert links == ["docs"]
    for link in links:
        answer = http.get(f"/{link}")
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")


def test_the_server_says_how_it_draws_where_nothing_is_said() -> None:
    """The page takes it over: no temperature of its own stands in it."""
    for temperature, expected in ((None, 1.0), (0.4, 0.4)):
        with serving(default_temperature=temperature) as running, httpx2.Client(base_url=running.url) as client:
            (model,) = client.get("/v1/models").json()["data"]
            others = {"top_p": 1.0, "top_k": None, "min_p": 0.0, "repetition_penalty": 1.0}
            assert model["sampling_defaults"] == {"temperature": expected, **others}
            assert client.get("/v1/models/tiny").json() == model
    (field,) = re.findall(r'<input id="temperature"[^>]*>', (FOLDER / "index.html").read_text("utf-8"))
    assert "value=" not in field and "required" not in field
