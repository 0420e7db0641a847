"""What a newcomer gets wrong on the command line: one message that says what was given and what was expected, the right
exit code, no traceback, and no waiting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from structgen.cli import commands
from tests.cli.running import run
from tests.test_wrong_input import CASES as API_CASES

NULL = '{"type": "null"}'
SCHEMA = ["--schema", NULL]

# arguments, exit code, phrases
CASES: list[tuple[list[str], int, list[str]]] = [
    (["generate"], 2, ["a prompt or --prompt-file"]),
    (["generate", "p", "--prompt-file", "x"], 2, ["a prompt or --prompt-file"]),
    (["generate", "p", "--schema", "."], 2, ["cannot read the schema from '.'", "directory"]),
    (["generate", "p", "--schema", "empty.json"], 2, ["the schema is empty"]),
    (["generate", "p", "--schema", "utf16.json"], 2, ["not UTF-8", "looks like UTF-16"]),
    (["generate", "p", "--schema", "person.jsn"], 2, ["person.jsn", "No such file"]),
    (["generate", "p", "--schema", "yaml.json"], 2, ["not JSON", "line 1, column 1"]),
    (["generate", "p", "--schema", '{"type": "int"}'], 2, ['Did you mean "integer"?', "/type"]),
    (["generate", "p", *SCHEMA, "--max-tokens", "3"], 2, ["--max-tokens", "--max-new-tokens"]),
    (["generate", "p", *SCHEMA, "--max-new-tokens", "0"], 2, ["--max-new-tokens", "1"]),
    (["generate", "p", *SCHEMA, "--temperature", "hot"], 2, ["--temperature", "number"]),
    (["generate", "p", *SCHEMA, "--top-p", "2"], 2, ["--top-p", "1"]),
    (["generate", "p", *SCHEMA, "--seed", "x"], 2, ["--seed", "integer"]),
    (["generate", "p", *SCHEMA, "--draft", "ngrm"], 2, ["did you mean 'ngram'?"]),
    (["generate", "p", *SCHEMA, "--choice", "a"], 2, ["Give one constraint"]),
    (["generate", "p", *SCHEMA, "-O"], 2, ["-O", "argument"]),
    (["generate", "p", *SCHEMA, "-O", "max_number_length=abc"], 2, ["max_number_length", "'abc'", "'auto'"]),
    (["generate", "p", *SCHEMA, "-O", "white_space=2"], 2, ["did you mean 'whitespace'?"]),
    (["generate", "p", *SCHEMA, "--indent", "-1"], 2, ["--indent"]),
    (["generate", "p", "--regex", "["], 2, ["unterminated", "^"]),
    (["generate", "p", "--regex", "a", "--closed"], 2, ["no schema was given"]),
    (["generate", "p", "--grammar", "."], 2, [".lark, .gbnf or .ebnf"]),
    (["generate", "p", "--grammar", "empty.gbnf"], 2, ["'root'", "empty"]),
    (["generate", "p", "--grammar", "start.gbnf"], 2, ["line 1, column 6", "^"]),
    (["generate", "--prompt-file", ".", *SCHEMA], 2, ["Cannot read .", "directory"]),
    (["generate", "--prompt-file", "utf16.json", *SCHEMA], 2, ["not UTF-8", "0xff at offset 0"]),
    (["generate", "p", "--schema", '{"const": "long"}', "--max-new-tokens", "2"], 3, ["Raise max_new_tokens"]),
    (["check"], 2, ["Give a constraint"]),
    (["check", "no.json"], 2, ["no.json", "No such file"]),
    (["check", '{"enum": []}'], 1, ["no JSON value"]),
    (["check", "utf16.lark"], 2, ["not UTF-8"]),
    (["validate", NULL], 2, ["Give a constraint"]),
    (["validate", NULL, "."], 2, ["Cannot read .", "directory"]),
    (["validate", NULL, "utf16.json"], 2, ["not UTF-8"]),
    (["validate", NULL, "empty.json"], 1, ["no JSON", "refused at byte 0"]),
    (["batch", "no.jsonl"], 2, ["Cannot read no.jsonl"]),
    (["batch", "."], 2, ["Cannot read .", "directory"]),
    (["batch", "yaml.json"], 2, ["yaml.json, line 1", "no JSON"]),
    (["batch", "rows.jsonl", "--json", *SCHEMA], 2, ["--output"]),
    (["show-mask", NULL, "--limit", "0"], 2, ["--limit", "1"]),
    (["show-mask", NULL, "--text", "x"], 1, ["refused at byte 0"]),
    (["demo", "--only", "persn"], 2, ["persn", "person"]),
    (["demo", "--schemas", "no"], 2, ["No schemas in no"]),
    (["datastore", "-o", "x.npz"], 2, ["files"]),
    (["datastore", "yaml.json", "-o", "rows.jsonl"], 2, ["rows.jsonl is no datastore", "-o"]),
    (["batch", "rows.jsonl", *SCHEMA, "-o", "yaml.json"], 2, ["yaml.json, line 1 was not written by a batch"]),
    (["batch", "rows.jsonl", "--max-prompt-length", "0"], 2, ["--max-prompt-length", "1"]),
    (["sample"], 2, ["prompt"]),
    (["sample", "p"], 2, ["Give a constraint"]),
    (["sample", "p", *SCHEMA, "--method", "exat"], 2, ["'exat'", "exact"]),
    (["sample", "p", *SCHEMA, "-n", "0"], 2, ["-n", "1"]),
    (["compare-distributions", "p", *SCHEMA, "--n", "3"], 2, ["--n"]),
    (["serve", "--port", "99999"], 2, ["--port", "65535"]),
    (["serve", "--schema-in-prompt", "usr"], 2, ["none, user or system", "'usr'"]),
    (["serve", "--schema-form", "skelton"], 2, ["schema_form", "'skelton'", '"skeleton"']),
    (["serve", "--api-keys", "no.txt"], 2, ["no.txt", "No such file"]),
    (["bench", "covrage"], 2, ["covrage", "coverage"]),
    (["bench", "coverage", "nowhere"], 2, ["No .json files in nowhere"]),
    (["bench", "coverage", "plain", "--engines", "structgen"], 2, ["no MaskBench file", '"tests"', "structgen check"]),
    (["bench", "coverage", "plain", "--engines", "structgn"], 2, ["structgn", "structgen"]),
    (["bench", "report", "yaml.json", "--out", "r"], 2, ["yaml.json", "no file of records"]),
    (["bench", "reasoning", "--tasks", "sums"], 2, ["--tasks", "'sums'", "gsm8k"]),
    (["generate", "p", "--schema", '{"properties": {"a": "int"}}'], 2, ['Did you mean {"type": "integer"}?']),
    (["generate", "p", "--regex", "(?<=a)b"], 2, ["no text matches '(?<=a)b'"]),
    (["check", "quotes.gbnf"], 2, ["double quotes", "^"]),
    (["check", "gbnf.lark"], 2, ["gbnf(...)"]),
    (["generate", "p", *SCHEMA, "--draft", "no.npz"], 2, ["no.npz", "no file of a model"]),
    (["chek"], 2, ["chek", "check"]),
    (["--verson"], 2, ["--verson", "--version"]),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "empty.gbnf").write_text("")
    (tmp_path / "start.gbnf").write_text('start: "a"')
    (tmp_path / "yaml.json").write_text("type: object\n")
    (tmp_path / "utf16.json").write_text(NULL, encoding="utf-16")
    (tmp_path / "utf16.lark").write_text('start: "a"', encoding="utf-16")
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "prompt": "p"}\n')
    (tmp_path / "quotes.gbnf").write_text("root ::= 'a'")
    (tmp_path / "gbnf.lark").write_text('root ::= "a"')
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "person.json").write_text(NULL)


@pytest.mark.first_case
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("arguments", "code", "phrases"), CASES, ids=lambda value: str(value)[:60])
def test_it_is_said_at_once(arguments: list[str], code: int, phrases: list[str]) -> None:
    began = time.monotonic()
    got, stdout, stderr = run(*arguments)
    said = " ".join(stderr.replace("│", " ").split())
    assert got == code, (stdout, stderr)
    assert [phrase for phrase in phrases if phrase not in said] == [], said
    assert "Traceback" not in stderr and time.monotonic() - began < 20


def test_the_table_is_long() -> None:
    assert len(CASES) >= 55 and len(CASES) + len(API_CASES) >= 80


LOCALES = [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX", "COLUMNS": "20"}]


@pytest.mark.first_case
@pytest.mark.parametrize("environment", LOCALES, ids=str)
def test_terminals_without_unicode(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "structgen.cli.main", "check", '{"type": "é"}']
    result = subprocess.run(command, capture_output=True, env={**os.environ, **environment}, check=False, timeout=120)
    assert result.returncode == 2 and b"Traceback" not in result.stderr and b"expected one of" in result.stderr


def test_who_reads_may_leave() -> None:
    """``structgen check ... | head -0``"""
    command = [sys.executable, "-m", "structgen.cli.main", "check", json.dumps({"enum": [1]}), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.wait(120)
    assert b"Traceback" not in said


def test_the_fixture_is_used() -> None:
    assert commands.load.__name__ == "<lambda>", "no case loads a model of its own"


@pytest.mark.parametrize("command", ["generate", "sample", "compare-distributions"])
@pytest.mark.parametrize("wrong", [["--schema", '{"type": "int"}'], ["--regex", "a(?=b"], ["--regex", "(a)\\1"]])
def test_a_wrong_constraint_is_told_before_a_model_is_loaded(
    command: str, wrong: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "load", lambda *_: pytest.fail("a model was loaded"))
    code, printed, told = run(command, "p", *wrong)
    assert (code, printed) == (2, "") and "Error" in told
