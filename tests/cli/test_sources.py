"""The constraint of a command: every kind, for every command that takes one, by option and as its argument."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import run

KINDS = ["schema", "lark", "gbnf", "ebnf", "regex", "choice"]


def options(kind: str, folder: Path) -> list[str]:
    """Options that ask for "a" or "b" (as a JSON string, of a schema)."""
    texts = {
        "lark": 'start: "a" | "b"',
        "gbnf": 'root ::= "a" | "b"',
        "ebnf": 'root ::= "a" | "b"',
        "schema": '{"enum": ["a", "b"]}',
    }
    file = folder / f"constraint.{kind if kind != 'schema' else 'json'}"
    if kind in texts:
        file.write_text(texts[kind], encoding="utf-8")
    if kind == "lark":
        pytest.importorskip("lark")
    flags = {
        "schema": ["--schema", str(file)],
        "regex": ["--regex", "a|b"],
        "choice": ["--choice", "a", "--choice", "b"],
    }
    return flags.get(kind, ["--grammar", str(file)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_takes_every_kind(kind: str, tmp_path: Path) -> None:
    given = options(kind, tmp_path)
    good, bad = ('"a"', '"c"') if kind == "schema" else ("a", "c")
    assert run("generate", "p", *given)[1].strip().strip('"') in ("a", "b")
    assert run("check", *given)[0] == 0
    assert run("validate", "-", *given, stdin=good)[:2] == (0, "valid\n")
    assert run("validate", "-", *given, stdin=bad)[:2] == (1, "invalid\n")
    assert set(json.loads(run("show-mask", *given, "--json")[1])["next_bytes"].split()) <= {"a-b", '"'}
    assert run("sample", "p", *given, "-n", "1", "--seed", "1")[0] == 0
    if kind not in ("regex", "choice"):  # files are told by their endings
        assert run("check", given[1])[0] == 0
        assert run("validate", given[1], "-", stdin=good)[0] == 0
        assert run("show-mask", given[1], "--text", bad)[0] == 1


def test_how_json_is_spelled() -> None:
    number = ["--schema", '{"type": "integer", "minimum": 100}']
    for flags, text, code in (
        ([], "1234", 0),
        (["-O", "max_number_length=3"], "1234", 1),
        (["--json-option", "max-number-length=3", "-O", "number_spellings=any"], "1e2", 0),
        (["--exact"], "1e2", 0),
        (["-O", "max_number_length=none"], "1e2", 1),
    ):
        assert run("show-mask", *number, *flags, "--text", text)[0] == code, flags
    assert run("generate", "p", "--schema", '{"const": [1]}', "--indent", "2")[1].strip() == "[\n  1\n]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check"], "Give a constraint"),
        (["check", "{}", "--regex", "a"], "Give one constraint"),
        (["check", "--regex", "a", "--choice", "a"], "Give one constraint"),
        (["check", "--grammar", "g.txt"], "a file .lark, .gbnf or .ebnf, not g.txt"),
        (["check", "--grammar", "no.gbnf"], "Cannot read no.gbnf: no such file"),
        (["check", "--regex", "("], "offset 0"),
        (["check", "--schema", ""], "the schema is empty"),
        (["check", "--regex", "a", "--exact"], "no schema was given"),
        (["check", "{}", "-O", "max_number_lenth=3"], "did you mean 'max_number_length'?"),
        (["check", "{}", "-O", "whitespace"], "expected NAME=VALUE"),
        (["check", "{}", "-O", "whitespace=some"], "expected one of 'single'"),
        (["validate"], "Give a document"),
        (["validate", "value.json"], "Give a constraint"),
        (["validate", "{}", "no-such-file.json"], "Cannot read no-such-file.json"),
        (["validate", '{"type": "strin"}', "-"], 'found "strin" (at /type'),
        (["validate", '{"pattern": "("}', "-"], "at /pattern"),
        (["validate", '{"$ref": 5}', "-"], "expected a string"),
        (["validate", '{"pattern": "(a)\\\\1\\\\p{L}"}', "-"], "Backreferences"),
        (["compare-distributions", "p", "--choice", "a", "-n", "1", "--plot", "/no/such/x.png"], "no folder /no/such"),
    ],
)
def test_what_is_wrong_is_said_and_ends_with_2(arguments: list[str], message: str) -> None:
    code, _, stderr = run(*arguments, stdin="1")
    assert code == 2 and message in " ".join(stderr.split()), stderr


def test_a_judge_that_cannot_read_the_schema_is_named() -> None:
    code, _, stderr = run("validate", '{"pattern": "^\\\\p{L}+$"}', "-", stdin='"é"')
    assert code == 0 and "not judged by python-jsonschema" in stderr
    assert run("validate", '{"pattern": "^\\\\p{L}+$"}', "-", stdin='"1"')[0] == 1


def test_the_version() -> None:
    code, stdout, _ = run("--version")
    assert code == 0 and stdout.startswith("structgen 0.")


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_terminal_without_unicode(as_json: list[str]) -> None:
    """What an ASCII terminal cannot show is escaped; JSON stays JSON."""
    command = [sys.executable, "-m", "structgen.cli.main", "check", '{"title": "é", "é": 1, "enum": ["é"]}', *as_json]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    assert not as_json or "/é" in json.loads(result.stdout)["keywords"]
