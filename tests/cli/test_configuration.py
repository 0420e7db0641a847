"""Options of ``structgen serve`` from files and the environment: their order, and what is said of wrong ones."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import typer
from typer.testing import CliRunner

from structgen.cli import serve
from structgen.cli.commands import app
from structgen.generation.models.llamacpp.files import is_installed
from tests.generation.models.llamacpp.gguf_files import write_llama

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command: the settings that it would serve with, the address and the models; or code and words."""
    for name in [name for name in os.environ if name.startswith("STRUCTGEN_SERVE")]:
        monkeypatch.delenv(name)
    asked: dict[str, Any] = {}

    def served(load: Any, settings: Any, host: str, port: int, **options: Any) -> int:
        asked.update(settings=settings, host=host, port=port, models=load.args[0], draft=load.args[1], **options)
        return 0

    monkeypatch.setattr(serve, "run", served)

    def call(*arguments: str, **environment: str) -> Any:
        asked.clear()
        result = CliRunner().invoke(app, ["serve", *arguments], env=environment, catch_exceptions=False)
        words = re.sub(r"[\u2500-\u257f]+", " ", result.output).split()  # without the frame
        return dict(asked) if result.exit_code == 0 else (result.exit_code, " ".join(words))

    return call


TOML = (
    'port = 9001\nmax-rows = 7\nname = ["a", "b"]\nmodel = "m.gguf"\ndefault_temperature = 0.5\ndeterministic = true\n'
)
YAML = (
    "port: 9001\nmax-rows: 7\nname: [a, b]\nmodel: m.gguf\ndefault_temperature: 0.5\ndeterministic: true\nhost: null\n"
)
JSON = (
    '{"port": 9001, "max-rows": 7, "name": ["a", "b"], "model": "m.gguf", "default_temperature": 0.5,'
    '"deterministic": true}'
)


@pytest.mark.parametrize(("name", "text"), [("c.toml", TOML), ("c.yaml", YAML), ("c.yml", YAML), ("c.json", JSON)])
def test_a_file(run: Any, tmp_path: Path, name: str, text: str) -> None:
    if name.endswith("ml") and "y" in name:
        pytest.importorskip("yaml")
    path = tmp_path / name
    path.write_text(text)
    for asked in (run("--config", str(path)), run(STRUCTGEN_SERVE_CONFIG=str(path))):
        settings = asked["settings"]
        assert (asked["port"], settings.max_rows, settings.model_names) == (9001, 7, ("a", "b"))
        assert asked["models"].model == "m.gguf" and asked["models"].deterministic
        assert settings.default_temperature == 0.5 and asked["host"] == "127.0.0.1"


def test_command_line_before_environment_before_file_before_default(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('port = 1\nmax_rows = 1\nqueue_seconds = 1\nmodel = "file"\nname = "f"\n')
    variables = {"STRUCTGEN_SERVE_PORT": "2", "STRUCTGEN_SERVE_MAX_ROWS": "2", "STRUCTGEN_SERVE_MODEL": "variable"}
    asked = run("--config", str(path), "--port", "3", **variables)
    settings = asked["settings"]
    assert (asked["port"], settings.max_rows, settings.queue_seconds, settings.total_seconds) == (3, 2, 1.0, 120.0)
    assert asked["models"].model == "variable" and settings.model_names == ("f",)
    assert run("given", "--config", str(path), **variables)["models"].model == "given"
    assert run(**variables)["port"] == 2 and run()["port"] == 8000


def test_every_option_has_a_variable(run: Any) -> None:
    """By the names that the documentation gives: the option's, in capitals."""
    command: Any = typer.main.get_command(app)
    names = [
        parameter.name for parameter in command.commands["serve"].params if parameter.name not in ("config", "help")
    ]
    values = {
        "host": "0.0.0.0", "port": "81", "name": "one two", "allowed_host": "a b", "draft": "ngram", "dtype": "float16",
        "n_ctx": "64", "n_gpu_layers": "-1", "lora_scale": "0.5", "silence_seconds": "1.5", "max_waiting": "9",
        "chat_template": "{{ messages }}", "lora_path": "a.gguf", "deterministic": "1", "generation_config": "none",
    }  # fmt: skip
    assert set(values) < set(names)
    asked = run(**{f"STRUCTGEN_SERVE_{name.upper()}": value for name, value in values.items()})
    settings, models = asked["settings"], asked["models"]
    assert (asked["host"], asked["port"], settings.model_names) == ("0.0.0.0", 81, ("one", "two"))
    assert settings.hosts == {"a", "b"} and asked["draft"] == ["ngram"] and models.dtype == "float16"
    assert (models.n_ctx, models.n_gpu_layers, models.lora_scale, models.deterministic) == (64, -1, 0.5, True)
    assert (models.chat_template, models.lora_path) == ("{{ messages }}", "a.gguf")
    assert (settings.silence_seconds, settings.max_waiting, settings.generation_settings) == (1.5, 9, {})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.toml", "prot = 1", "c.toml: 'prot' is no option of this command; did you mean port?"),
        ("c.toml", "zzz = 1", "c.toml: 'zzz' is no option of this command; --help lists the options"),
        ("c.toml", 'config = "c.toml"', "'config' is no option"),
        ("c.toml", 'port = "many"', "c.toml: 'port' is 'many': "),
        ("c.toml", "port = 80.5", "c.toml: 'port' is '80.5': "),
        ("c.toml", "port = true", "c.toml: 'port' is true or false; expected what the option takes"),
        ("c.toml", "port = 70000", "c.toml: 'port' is '70000': "),
        ("c.toml", "[port]\na = 1", "c.toml: 'port' is a table"),
        ("c.toml", "port = [1, 2]", "c.toml: 'port' is a list"),
        ("c.toml", "max-rows = 1\nmax_rows = 2", "'max_rows' stands there twice"),
        ("c.toml", "port = 1\nport = 2", "c.toml cannot be read as TOML"),
        ("c.toml", "port", "c.toml cannot be read as TOML"),
        ("c.yaml", "port: 1\nport: 2", "c.yaml cannot be read as YAML: a name stands twice"),
        ("c.yaml", "- port", "c.yaml holds no options: it is a list"),
        ("c.yaml", "port: [", "c.yaml cannot be read as YAML"),
        ("c.yaml", "port: !!python/object/apply:os.system ['true']", "c.yaml cannot be read as YAML"),
        ("c.json", '"port"', "c.json holds no options: it is a str"),
        ("c.ini", "port=1", "has the ending '.ini'; expected .toml, .yaml, .yml or .json"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_key_and_file(
    run: Any, tmp_path: Path, name: str, text: str, said: str
) -> None:
    if name.endswith(".yaml"):
        pytest.importorskip("yaml")
    (tmp_path / name).write_text(text)
    started = time.process_time()
    code, output = run("--config", str(tmp_path / name), COLUMNS="400")
    assert code == 2 and time.process_time() - started < 5
    assert said in output, output


def test_files_that_cannot_be_read(run: Any, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"\xff")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n#")
    for name, said in (
        ("c.toml", "cannot be read as TOML"),
        ("none.toml", "Cannot read"),
        ("large.toml", "holds more"),
    ):
        code, output = run("--config", str(tmp_path / name), COLUMNS="400")
        assert code == 2 and said in output


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("STRUCTGEN_SERVE_PORT", "tcp://10.0.0.1:80", "the variable STRUCTGEN_SERVE_PORT is 'tcp://10.0.0.1:80': "),
        (
            "STRUCTGEN_SERVE_PROT",
            "1",
            "STRUCTGEN_SERVE_PROT is no option of this command; did you mean STRUCTGEN_SERVE_PORT?",
        ),
        ("STRUCTGEN_SERVE_MAX_ROWS", "0", "the variable STRUCTGEN_SERVE_MAX_ROWS is '0': "),
        ("STRUCTGEN_SERVE_RAY", "perhaps", "the variable STRUCTGEN_SERVE_RAY is 'perhaps': "),
    ],
)
def test_what_is_wrong_in_the_environment_is_told(run: Any, variable: str, value: str, said: str) -> None:
    code, output = run(**{variable: value, "COLUMNS": "400"})
    assert code == 2 and said in output, output


def test_what_kubernetes_sets_is_left_alone(run: Any) -> None:
    """For a service of the name structgen-serve, in every container of its namespace."""
    given = {
        "SERVICE_HOST": "10.0.0.1",
        "SERVICE_PORT": "80",
        "PORT_80_TCP": "tcp://10.0.0.1:80",
        "PORT_80_TCP_PORT": "80",
    }
    assert run(**{f"STRUCTGEN_SERVE_{name}": value for name, value in given.items()})["port"] == 8000


def test_generation_settings_of_a_file(run: Any, tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"do_sample": true, "temperature": 0.3}')
    assert run("--generation-config", str(tmp_path))["settings"].generation_settings == {"temperature": 0.3}
    assert run()["settings"].generation_settings is None
    code, output = run("--generation-config", str(tmp_path / "nowhere"), COLUMNS="400")
    assert code == 2 and "Cannot read the generation settings" in output


@pytest.mark.full
def test_the_command_serves_what_a_file_says(tmp_path: Path) -> None:
    """In a process of its own: address, names, template and context of the file; it ends with 0."""
    httpx2 = pytest.importorskip("httpx2")
    pytest.importorskip("gguf", reason="gguf writes the model")
    if not is_installed():
        pytest.skip("no package brings llama.cpp")
    write_llama(tmp_path / "tiny.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = {"model": str(tmp_path / "tiny.gguf"), "port": port, "n-ctx": 128, "chat-template": "{{ messages }}>"}
    path = tmp_path / "serve.json"
    path.write_text(json.dumps(lines))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STRUCTGEN_SERVE_NAME": "me"}
    command = [sys.executable, "-m", "structgen.cli.main", "serve", "--config", str(path)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        url, until = f"http://127.0.0.1:{port}", time.monotonic() + 120
        while process.poll() is None and time.monotonic() < until:
            try:
                if httpx2.get(f"{url}/ready").status_code == 200:
                    break
            except httpx2.TransportError:
                time.sleep(0.1)
        (model,) = httpx2.get(f"{url}/v1/models").json()["data"]
        assert (model["id"], model["max_model_len"]) == ("me", 128)
        asked = {"messages": [{"role": "user", "content": "Hi"}]}
        told = httpx2.post(f"{url}/tokenize", json=asked).json()
        assert httpx2.post(f"{url}/detokenize", json={"tokens": told["tokens"]}).json()["prompt"].endswith("}]>")
    finally:
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors
