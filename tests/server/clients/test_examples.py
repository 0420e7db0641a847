"""The examples of docs/integrations/ run unmodified against a server; `make test-clients` installs their clients.

STRUCTGEN_CLIENTS names the interpreters whose packages they are, as PATH does; without it they run in this one, where
it has them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from tests.server.tiny import generator
from tests.server.tiny_server import RunningServer, serving

ROOT = Path(__file__).parents[3]
INTERPRETERS = os.environ.get("STRUCTGEN_CLIENTS", sys.executable).split(os.pathsep)
EXAMPLES = {
    "with_openai": "openai",
    "with_instructor": "instructor",
    "with_pydantic_ai": "pydantic-ai-slim",
    "with_langchain": "langchain-openai",
    "with_smolagents": "smolagents",
    "with_llama_index": "llama-index-llms-openai-like",
    "with_litellm": "litellm",
    "with_dspy": "dspy",
}
TICKET = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 60},
        "area": {"enum": ["login", "billing", "other"]},
        "urgent": {"type": "boolean"},
    },
    "required": ["title", "area", "urgent"],
}
WEATHER = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with serving(generator(), model_names=("SmolLM2-135M-Instruct", "gpt-4o-mini")) as running:
        yield running


def test_every_example_is_run() -> None:
    assert {path.stem for path in (ROOT / "docs/integrations").glob("*.py")} == set(EXAMPLES)


@pytest.mark.full
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(server: RunningServer, name: str) -> None:
    pythons = [each for each in INTERPRETERS if has(each, EXAMPLES[name])]
    if not pythons:
        pytest.skip(f"{EXAMPLES[name]} is not installed (make test-clients)")
    for python in pythons:
        found = run(python, ROOT / "docs/integrations" / f"{name}.py", server.url)
        errors = [told["error"] for told in found.values() if "error" in told]
        assert not errors, "\n".join(errors)
        assert {"structured", "structured_streamed", "tools", "tools_streamed"} <= set(found)
        for part, told in found.items():
            if part == "answered":
                assert isinstance(told["values"][-1], str)
                continue
            jsonschema.validate(told["values"][-1], TICKET if part.startswith("structured") else WEATHER)
            if part.endswith("streamed") and (name, part) != ("with_dspy", "tools_streamed"):
                assert len(told["values"]) >= 2, f"{name}: {part} came at once: {told['values']}"


def has(python: str, distribution: str) -> bool:
    """Whether an interpreter has a package."""
    code = f"import importlib.metadata; importlib.metadata.version({distribution!r})"
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def run(python: str, example: Path, url: str) -> dict[str, Any]:
    """What each part of an example gave, or its error."""
    finished = subprocess.run(
        [python, str(Path(__file__).with_name("run_example.py")), str(example)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "STRUCTGEN_URL": f"{url}/v1"},
    )
    assert finished.returncode == 0, finished.stderr
    return {told.pop("part"): told for told in map(json.loads, finished.stdout.splitlines())}
