"""The description of the endpoints: all that there are, as they are, and examples that are answered."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2
import jsonschema

import structgen
from structgen.server.openapi import ENDPOINTS, openapi
from structgen.server.pages import FILES
from tests.server.tiny_server import serving

FOLDER = Path(structgen.__file__).parent / "server" / "page"


def test_it_describes_every_endpoint() -> None:
    with serving() as server:
        routes = {route.path: route.methods for route in server.server.app().routes}  # type: ignore[attr-defined]
        told = httpx2.get(f"{server.url}/openapi.json").json()
    assert told["openapi"] == "3.1.0" and told["info"]["title"] == "structgen"
    pages = {*FILES, "/openapi.json"}
    assert {re.sub(r":\w+}", "}", path) for path in routes if path not in pages} == set(told["paths"]) == set(ENDPOINTS)
    for path, methods in routes.items():
        if path not in pages:
            (method,) = told["paths"][re.sub(r":\w+}", "}", path)]
            assert method.upper() in methods


def test_references_lead_somewhere_and_schemas_are_schemas() -> None:
    document = openapi("/llm")
    assert document["servers"] == [{"url": "/llm"}]
    text = str(document)
    names = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert names <= set(document["components"]["schemas"]) and {"ChatRequest", "Error"} <= names
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_examples_satisfy_their_schemas_and_are_answered() -> None:
    document = openapi()
    with serving() as server, httpx2.Client(base_url=server.url, timeout=60) as http:
        for path, (operation,) in ((path, tuple(each.values())) for path, each in document["paths"].items()):
            if "requestBody" not in operation:
                assert http.get(path.replace("{model}", "tiny")).status_code == 200, path
                continue
            body = operation["requestBody"]["content"]["application/json"]
            schema: Any = {**body["schema"], "components": document["components"]}
            jsonschema.Draft202012Validator(schema).validate(body["example"])
            answer = http.post(path, json=body["example"])
            assert answer.status_code == 200, (path, answer.text)


def test_what_needs_a_key_says_so() -> None:
    document = openapi()
    with serving(api_keys=frozenset({"k"})) as server, httpx2.Client(base_url=server.url) as http:
        for path, each in document["paths"].items():
            for method, operation in each.items():
                status = http.request(method.upper(), path.replace("{model}", "tiny"), json={}).status_code
                assert (status == 401) == ("security" in operation), path
        for path in ("/docs", "/docs.js", "/docs.css", "/openapi.json"):
            assert http.get(path).status_code == 200


def test_the_page_asks_nobody_else() -> None:
    with serving(hosts=frozenset({"127.0.0.1"})) as server, httpx2.Client(base_url=server.url) as http:
        page = http.get("/docs")
        assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
        for name in re.findall(r'(?:src|href)="([^"#:]+)"', page.text):
            part = http.get(f"/{name}")
            assert part.status_code == 200 and "default-src 'none'" in part.headers["content-security-policy"]
            assert "unsafe" not in part.headers["content-security-policy"]
            assert http.get(f"/{name}", headers={"host": "evil.example"}).status_code == 403
    for name in ("docs.html", "docs.js", "docs.css"):
        assert not re.search(r"https?://|//[a-z]+\.|@import|url\(|innerHTML", (FOLDER / name).read_text("utf-8"))


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_what_the_page_says_of_a_schema() -> None:
    program = """
import { curlOf, kindOf, namesWithin } from "./docs.js";
import assert from "node:assert/strict";
const number = { type: "number", minimum: 0, maximum: 2 };
assert.equal(kindOf({ anyOf: [number, { type: "null" }] }), "number (0 to 2) | null");
assert.equal(kindOf({ $ref: "#/components/schemas/Message" }), "Message");
assert.equal(kindOf({ type: "array", items: { enum: ["a", 1] } }), 'list of "a" | 1');
assert.equal(kindOf({}), "anything");
assert.equal(kindOf({ const: "function" }), '"function"');
const to = (name) => ({ $ref: `#/x/${name}` });
const schemas = { A: { properties: { b: to("B"), a: to("A") } }, B: { items: to("C") }, C: {} };
assert.deepEqual(namesWithin(schemas.A, schemas), ["B", "C", "A"]);
assert.equal(curlOf("get", "/health", undefined, "http://h/"), "curl http://h/health");
assert.match(curlOf("post", "/x", { a: "it's" }, "http://h/"), /-d '\\{\\n  "a": "it'\\\\''s"\\n\\}'$/);
"""
    done = subprocess.run(
        ["node", "--input-type=module", "-e", program], cwd=FOLDER, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_the_page_shows_every_endpoint(tmp_path: Path) -> None:
    """With stand-ins for the document and the network."""
    (tmp_path / "openapi.json").write_text(json.dumps(openapi()))
    program = """
import { readFileSync } from "node:fs";
class Element {
  constructor(tag) { this.tag = tag; this.inside = []; }
  append(...parts) { this.inside.push(...parts); }
  replaceChildren(...parts) { this.inside = parts; }
  get text() { return this.textContent ?? this.inside.map((one) => one.text ?? String(one)).join(" "); }
}
const found = { title: new Element("h1"), about: new Element("p"), endpoints: new Element("main") };
globalThis.document = { createElement: (tag) => new Element(tag), getElementById: (id) => found[id] };
globalThis.location = { href: "http://host/llm/docs" };
globalThis.fetch = async () => ({ ok: true, json: async () => JSON.parse(readFileSync(process.argv[1], "utf8")) });
await import("./docs.js");
await new Promise((done) => setTimeout(done, 50));
console.log(found.title.text, found.about.text, found.endpoints.text);
"""
    command = ["node", "--input-type=module", "-e", program, str(tmp_path / "openapi.json")]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for path, one in ENDPOINTS.items():
        assert f"{one.method.upper()} {path}" in done.stdout and one.summary in done.stdout
    assert "curl http://host/llm/v1/models" in done.stdout and "response_format" in done.stdout
    assert "JsonSchemaFormat" in done.stdout and "undefined" not in done.stdout and "[object" not in done.stdout
