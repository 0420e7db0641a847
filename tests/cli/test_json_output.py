"""``--json``, for every command that prints a result: JSON on standard output and nothing else, errors as JSON too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer.main

from structgen import NameSet
from structgen.cli import datastore
from structgen.cli.commands import app
from tests.cli.running import run
from tests.fakes import CharTokenizer, vocabulary

SCHEMA = '{"enum": ["a", "b"]}'
NO_RESULT = {"serve"}
OF_ENGINES = {"vllm-check", "sglang-check"}  # which are not installed here


def commands(command: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    command = command or typer.main.get_command(app)
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
    for part, one in (inner or {}).items():
        yield from commands(one, f"{name} {part}".strip())


def belief_line(number: int) -> str:
    """A row as ``batch --fields`` writes it, and as truths are read."""
    options = [{"value": each, "prob": 0.5, "least": 0.4, "most": 0.6, "local": 0.5} for each in (True, False)]
    fields = {"": {"value": {"options": options, "kept": 1.0, "slack": 0.1}, "written": True, "prob": 0.5}}
    return json.dumps({"id": number, "value": number % 2 == 0, "fields": fields})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarking"))
    monkeypatch.setattr(datastore, "load_tokenizer", lambda _: CharTokenizer(eos=1))
    monkeypatch.setattr(datastore, "Vocabulary", SimpleNamespace(from_transformers=lambda _: vocabulary(eos=1)))
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "prompt": "p"}\n')
    (tmp_path / "schema.json").write_text(SCHEMA)
    (tmp_path / "beliefs.jsonl").write_text("\n".join(map(belief_line, range(40))))
    (tmp_path / "text.txt").write_text("abc")
    NameSet.build(["abc"]).save(tmp_path / "known.names")
    (tmp_path / "data").mkdir()
    tests = [{"valid": True, "data": True}, {"valid": False, "data": 1}]
    (tmp_path / "data" / "A---one.json").write_text(json.dumps({"schema": {"type": "boolean"}, "tests": tests}))
    return tmp_path


MODEL_RUN = ["--model", "tiny_bench:load", "--limit", "1", "--max-new-tokens", "30"]
BENCH = ["bench", "jsonschemabench", "--data", "data", *MODEL_RUN, "--engines", "none", "--shots", "0"]
GOOD: dict[str, list[str]] = {
    "generate": ["generate", "p", "--schema", SCHEMA],
    "compare": ["compare", SCHEMA, SCHEMA],
    "examples": ["examples", SCHEMA],
    "lint": ["lint", "schema.json"],
    "lower": ["lower", SCHEMA, "--for", "openai"],
    "check": ["check", '{"properties": {"a": {"type": "integer"}}}'],
    "validate": ["validate", SCHEMA, "-"],
    "batch": ["batch", "rows.jsonl", "--schema", SCHEMA, "-o", "out.jsonl"],
    "show-mask": ["show-mask", SCHEMA, "--text", '"'],
    "demo": ["demo", "--only", "sentiment"],
    "search": ["search", "p", "--schema", SCHEMA],
    "vote": ["vote", "p", "--schema", SCHEMA, "-n", "2", "--seed", "1"],
    "calibrate": ["calibrate", "beliefs.jsonl", "beliefs.jsonl", "--field", ""],
    "datastore": ["datastore", "text.txt", "-o", "x.npz"],
    "names build": ["names", "build", "text.txt", "-o", "x.names"],
    "names show": ["names", "show", "known.names"],
    "sample": ["sample", "p", "--schema", SCHEMA, "-n", "2", "--seed", "1"],
    "compare-distributions": ["compare-distributions", "p", "--schema", SCHEMA, "-n", "5"],
    "bench jsonschemabench": BENCH,
    "bench coverage": ["bench", "coverage", "data", "--engines", "structgen"],
    "bench reasoning": ["bench", "reasoning", "--tasks", "shuffled_objects", *MODEL_RUN, "--engines", "none"],
    "bench report": ["bench", "report", "jsonschemabench.jsonl", "--out", "report"],
}
BAD: dict[str, list[str]] = {
    "generate": ["generate", "p", "--schema", '{"type": "strin"}'],
    "compare": ["compare", "no.json", "no.json"],
    "examples": ["examples", "no.json"],
    "lint": ["lint", "schema.json", "--fail-on", "perhaps"],
    "lower": ["lower", SCHEMA, "--for", "nobody"],
    "check": ["check", "no.json"],
    "validate": ["validate", SCHEMA],
    "batch": ["batch", "no.jsonl"],
    "show-mask": ["show-mask", SCHEMA, "-O", "nothing=1"],
    "demo": ["demo", "--only", "nothing"],
    "search": ["search", "p", "--regex", "("],
    "vote": ["vote", "p", "--regex", "("],
    "calibrate": ["calibrate", "rows.jsonl", "rows.jsonl", "--field", ""],
    "vllm-check": ["vllm-check"],
    "sglang-check": ["sglang-check"],
    "datastore": ["datastore", "no.txt", "-o", "x.npz"],
    "names build": ["names", "build", "no.txt", "-o", "x.names"],
    "names show": ["names", "show", "text.txt"],
    "sample": ["sample", "p", "--regex", "("],
    "compare-distributions": ["compare-distributions", "p"],
    "bench jsonschemabench": ["bench", "jsonschemabench", "--data", "nowhere"],
    "bench coverage": ["bench", "coverage", "nowhere"],
    "bench reasoning": ["bench", "reasoning", "--tasks", "nothing"],
    "bench report": ["bench", "report", "no.jsonl", "--out", "report"],
}
NAMES = [name for name, _ in commands() if name not in NO_RESULT]


def test_every_command_is_here() -> None:
    assert {name for name, _ in commands()} - NO_RESULT == set(BAD) == set(GOOD) | OF_ENGINES
    for name, command in commands():
        has = any("--json" in parameter.opts for parameter in command.params)
        assert has == (name not in NO_RESULT), name


@pytest.mark.first_case
@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_ENGINES])
def test_standard_output_is_json_alone(name: str, folder: Path) -> None:
    if name == "bench report":
        pytest.importorskip("matplotlib")
        run(*BENCH)
    code, stdout, stderr = run(*GOOD[name], "--json", stdin='"a"')
    assert code == 0, stderr
    assert stdout and [json.loads(line) for line in stdout.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_an_error_is_json_on_standard_error(name: str, folder: Path) -> None:
    code, stdout, stderr = run(*BAD[name], "--json")
    assert code == 2 and stdout == "" and run(*BAD[name])[0] == 2
    error = json.loads(stderr)["error"]
    assert error["message"] and error["type"] and set(error) <= {"type", "message", "pointer", "keyword", "hint"}


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["generate", "p", "--shema", SCHEMA], "No such option: --shema"),
        (["generate", "p", "--temperature", "hot"], "--temperature"),
        (["sample"], "Missing argument"),
        (["bench", "covrage"], "No such command 'covrage'"),
        (["chek"], "No such command 'chek'"),
    ],
)
def test_wrong_usage_is_json_too(arguments: list[str], phrase: str) -> None:
    code, stdout, stderr = run(*arguments, "--json")
    assert (code, stdout) == (2, "") and phrase in json.loads(stderr)["error"]["message"]


def test_help_is_for_people() -> None:
    code, stdout, _ = run("generate", "--json", "--help")
    assert code == 0 and "Usage" in stdout
