"""``structgen serve``: its options, its keys, what is missing, signals."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from structgen.cli import serve
from structgen.cli.common import BadInput

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from structgen.cli import serve
from structgen.server.settings import ServingSettings
from tests.server.tiny import generator
settings = ServingSettings(model_names=("tiny",), drain_seconds=float(sys.argv[2]), compile_workers=0)
raise SystemExit(serve.run(lambda: generator(0.005), settings, "127.0.0.1", int(sys.argv[1])))
"""


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"needs starlette, uvicorn, .*pip install 'structgen-lm\[serve\]'"):
        serve.check_installed()


def test_keys_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(serve.KEYS_VARIABLE, "a, b,")
    assert serve.read_keys(None) == {"a", "b"}
    monkeypatch.delenv(serve.KEYS_VARIABLE)
    assert serve.read_keys(None) == frozenset()
    (tmp_path / "keys").write_text("one\n\n two \n")
    assert serve.read_keys(tmp_path / "keys") == {"one", "two"}
    (tmp_path / "none").write_text("\n")
    for path in ("none", "missing"):
        with pytest.raises(BadInput, match="keys"):
            serve.read_keys(tmp_path / path)


def test_hosts_on_the_own_machine_are_its_names() -> None:
    assert serve.hosts_of("127.0.0.1", ()) == serve.LOOPBACK and serve.hosts_of("0.0.0.0", ()) == frozenset()
    assert serve.hosts_of("127.0.0.1", ["LLM.example"]) == serve.LOOPBACK | {"llm.example"}
    assert serve.hosts_of("0.0.0.0", ["llm.example"]) == {"llm.example"}


@pytest.fixture
def port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def started(port: int, drain_seconds: float, program: str = PROGRAM) -> Any:
    """The server in a process of its own, once it is ready."""
    httpx2 = pytest.importorskip("httpx2")
    for package in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(package)
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(port), str(drain_seconds)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx2.get(f"http://127.0.0.1:{port}/ready").status_code == 200:
                return process
        except httpx2.TransportError:
            time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate()[1])


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(port: int, number: int) -> None:
    httpx2 = pytest.importorskip("httpx2")
    process = started(port, 20)
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 200, "stream": True}
    with httpx2.stream("POST", f"http://127.0.0.1:{port}/v1/chat/completions", json=body, timeout=60) as answer:
        lines = answer.iter_lines()
        next(lines)
        process.send_signal(number)
        rest = list(lines)
    assert rest[-2:] == ["data: [DONE]", ""] or "data: [DONE]" in rest
    errors = process.communicate(timeout=30)[1]
    assert process.returncode in (0, -number, 128 + number), errors
    assert '"status": 200' in errors and "Traceback" not in errors


@pytest.mark.full
def test_a_port_in_use_is_told(port: int) -> None:
    import socket

    pytest.importorskip("uvicorn")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        finished = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(port), "1"],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert finished.returncode != 0 and "address already in use" in finished.stderr.lower()


PREPARING = """
import sys, time
from structgen.cli import serve
from structgen.server.settings import ServingSettings
from tests.server import tiny
{change}
settings = ServingSettings(model_names=("tiny",), compile_workers=0)
raise SystemExit(serve.run(lambda: tiny.generator(draft="auto"), settings, "127.0.0.1", int(sys.argv[1])))
"""


def preparing(port: int, change: str) -> subprocess.Popen[str]:
    for package in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(package)
    return subprocess.Popen(
        [sys.executable, "-c", PREPARING.format(change=change), str(port)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_what_prepares_itself_at_once(port: int, number: int) -> None:
    """It listens meanwhile, is healthy but not ready, and says on its log what takes so long."""
    httpx2 = pytest.importorskip("httpx2")
    process = preparing(
        port,
        "from structgen.generation.speculative import draft_options\n"
        "draft_options.prepare_for_trees = lambda *_: time.sleep(100)  # weights are copied",
    )
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            statuses = [httpx2.get(f"http://127.0.0.1:{port}/{path}").status_code for path in ("ready", "health")]
            break
        except httpx2.TransportError:
            time.sleep(0.05)
    assert statuses == [503, 200]
    process.send_signal(number)
    started = time.monotonic()
    errors = process.communicate(timeout=60)[1]
    assert time.monotonic() - started < 5 and process.returncode == 0
    assert "preparing drafts" in errors and "Traceback" not in errors


@pytest.mark.full
def test_drafts_that_cannot_be_used_end_the_server(port: int) -> None:
    process = preparing(port, "del tiny.TinyModel.forward_tree")
    errors = process.communicate(timeout=60)[1]
    assert process.returncode != 0 and "ModelError: Drafts need a model with forward_tree" in errors


FEW_FILES = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n" + PROGRAM


@pytest.mark.full
def test_more_connections_than_files_stop_nobody(port: int) -> None:
    """300 idle connections under ``ulimit -n 256``: who asks is answered; the log stays short, JSON line by line."""
    import json
    import socket
    from contextlib import ExitStack

    pytest.importorskip("resource")
    httpx2 = pytest.importorskip("httpx2")
    process = started(port, 1, FEW_FILES)
    with ExitStack() as stack:
        for number in range(300):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            connection.sendall(b"" if number % 3 else b"GET /health HT" if number % 2 else b"nonsense\r\n\r\n")
        begun = time.monotonic()
        for path in ("health", "metrics", "v1/models"):
            assert httpx2.get(f"http://127.0.0.1:{port}/{path}", timeout=10).status_code == 200
        body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 3}
        assert httpx2.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body, timeout=10).status_code == 200
        assert time.monotonic() - begun < 8
    process.send_signal(signal.SIGTERM)
    lines = process.communicate(timeout=30)[1].splitlines()
    found = [json.loads(line) for line in lines]
    assert 3 < len(lines) < 300 and {"ready", "serving"} <= {line.get("event") for line in found}
