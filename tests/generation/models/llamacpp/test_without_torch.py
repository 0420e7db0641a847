"""Loading, generating, sampling, the command line and the server with a GGUF file import neither torch nor
transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from structgen.generation.models.llamacpp import files

ROOT = Path(__file__).parents[4]
HEAVY = "[name for name in ('torch', 'transformers', 'tokenizers', 'safetensors') if name in sys.modules]"
LIBRARY = """
import sys, structgen
generator = structgen.Generator(sys.argv[1], draft="auto")
constraint = structgen.json_schema({"type": "object", "properties": {"a": {"type": "integer"}}})
generator.generate("ab", constraint, max_new_tokens=30)
generator.batch(["ab", "c"], constraint, max_new_tokens=20, temperature=0.8, top_p=0.9, repetition_penalty=1.1)
list(generator.stream("ab", structgen.regex("[a-z]+"), max_new_tokens=10))
generator.sample("ab", structgen.choice(["ab", "cd"]), 3, max_new_tokens=8)
generator.choice("ab", ["x", "y"])
"""
COMMAND = """
import sys
from structgen.cli.main import app
try:
    app()
except SystemExit as exit:
    assert not exit.code, exit.code
"""
SERVER = """
import sys
import structgen.cli.commands
from structgen.cli.main import app
try:
    app()
finally:
    print(HEAVY, flush=True)
"""


@pytest.fixture(autouse=True)
def installed() -> None:
    if not files.is_installed():
        pytest.skip("neither llama_cpp nor cyllama is installed")


def run(code: str, *arguments: str) -> list[str]:
    """Lines that the program prints, the last of them the heavy modules that it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint({HEAVY})", *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_library(tiny_file: Path) -> None:
    assert run(LIBRARY, str(tiny_file))[-1] == "[]"


@pytest.mark.full
def test_the_command_line(tiny_file: Path) -> None:
    for package in ("typer", "rich"):
        pytest.importorskip(package)
    schema = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
    *lines, heavy = run(
        COMMAND, "generate", "ab", "--schema", schema, "--model", str(tiny_file), "--max-new-tokens", "20", "--json"
    )
    assert heavy == "[]"
    assert isinstance(json.loads(lines[-1])["value"]["a"], int)
    assert run(COMMAND, "show-mask", schema, "--tokenizer", str(tiny_file), "--json")[-1] == "[]"


@pytest.mark.full
def test_the_demo(built_in_file: Path) -> None:
    for package in ("typer", "rich"):
        pytest.importorskip(package)
    *lines, heavy = run(COMMAND, "demo", "--only", "sentiment", "--json")
    assert heavy == "[]"
    assert json.loads(lines[-1])[0]["valid"]


@pytest.mark.full
def test_the_server(tiny_file: Path) -> None:
    httpx2 = pytest.importorskip("httpx2")
    for package in ("starlette", "uvicorn", "prometheus_client", "typer"):
        pytest.importorskip(package)
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER.replace("HEAVY", HEAVY), "serve", str(tiny_file), "--port", str(port)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 90
        url = f"http://127.0.0.1:{port}"
        while time.monotonic() < until and process.poll() is None:
            try:
                if httpx2.get(f"{url}/ready").status_code == 200:
                    break
            except httpx2.TransportError:
                time.sleep(0.1)
        body = {
            "model": str(tiny_file), "prompt": "ab", "max_tokens": 30,
            "structured_outputs": {"json": {"type": "object"}},
        }  # fmt: skip
        answer = httpx2.post(f"{url}/v1/completions", json=body, timeout=60).json()
        assert isinstance(json.loads(answer["choices"][0]["text"]), dict), answer
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=60)
    assert out.splitlines()[-1] == "[]"
