"""The command line: outputs, --json, exit codes, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from structgen.cli.common import byte_vocabulary
from structgen.cli.show_mask import byte_ranges, show_bytes
from structgen.cli.validate import schema_errors
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.json_text import loads_exact
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import UnsupportedSchemaError
from tests.cli.running import run

ENUM = '{"enum": ["red", "green", "grey"]}'


def test_generate_streams_the_text() -> None:
    code, stdout, stderr = run("generate", "a colour", "--schema", ENUM)
    assert code == 0 and json.loads(stdout) in ("red", "green", "grey")
    assert "model calls" in stderr


def test_generate_json_is_one_document() -> None:
    code, stdout, _ = run("generate", "a colour", "--schema", ENUM, "--json", "--temperature", "1", "--seed", "3")
    result = json.loads(stdout)
    assert code == 0 and result["value"] == json.loads(result["text"])
    assert result["finish_reason"] == "stop" and result["stats"]["output_tokens"] > 0


def test_generate_reads_a_prompt_file(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_text("a colour")
    assert run("generate", "--prompt-file", str(file), "--schema", ENUM)[0] == 0
    assert run("generate", "--prompt-file", "-", "--schema", ENUM, stdin="a colour")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["generate"], 2, "either a prompt or --prompt-file"),
        (["generate", "p", "--schema", "missing.json"], 2, "cannot read the schema"),
        (["generate", "p", "--schema", "{"], 2, "not JSON"),
        (["generate", "p", "--schema", ENUM, "--max-new-tokens", "2"], 3, "Raise max_new_tokens"),
        (["generate", "p", "--temperature", "-1"], 2, "temperature"),
        (["generate", "--prompt-file", "missing.txt"], 2, "Cannot read missing.txt"),
        (["validate", ENUM, "missing.json"], 2, "Cannot read missing.json"),
        (["check", "missing.json"], 2, "cannot read the schema"),
        (["demo", "--only", "nothing"], 2, "No such example: nothing"),
        (["demo", "--schemas", "/no/such"], 2, "No schemas in"),
        (["no-such-command"], 2, "no-such-command"),
    ],
)
def test_bad_input_and_failures(arguments: list[str], code: int, message: str) -> None:
    got, _, stderr = run(*arguments)
    assert got == code and message in " ".join(stderr.split())


def test_errors_as_json() -> None:
    code, stdout, stderr = run("generate", "p", "--schema", ENUM, "--max-new-tokens", "2", "--json")
    assert code == 3 and stdout == "" and json.loads(stderr)["error"]["type"] == "IncompleteOutputError"


def test_a_prompt_file_that_is_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "latin1.txt"
    file.write_bytes("café".encode("latin-1"))
    code, _, stderr = run("generate", "--prompt-file", str(file))
    assert code == 2 and "is not UTF-8: byte 0xe9 at offset 3" in " ".join(stderr.split())


def test_check_covered_and_not() -> None:
    code, stdout, _ = run("check", '{"title": "x", "enum": [1]}', "--json")
    report = json.loads(stdout)
    assert code == 0 and report["covered"] and report["keywords"]["/enum"]["status"] == "enforced"
    code, stdout, _ = run("check", '{"title": "x", "enum": [1]}')
    assert code == 0 and "1 enforced" in stdout


def test_closed_objects() -> None:
    schema = '{"properties": {"a": {}}}'
    code, stdout, _ = run("check", schema, "--closed", "--json")
    assert code == 0 and json.loads(stdout)["keywords"]["/unevaluatedProperties"]["status"] == "closed"
    assert "closed" not in run("check", schema, "--json")[1]
    masks = [json.loads(run("show-mask", schema, "--text", '{"', "--json", *flag)[1]) for flag in ((), ("--closed",))]
    assert masks[0] != masks[1]
    assert run("generate", "p", "--schema", '{"type": "object", "properties": {}}', "--closed")[1].strip() == "{}"


def test_check_of_what_is_not_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = JsonSchemaConstraint.compile

    def compile(self: JsonSchemaConstraint, vocabulary: Vocabulary) -> Any:
        if self.options.unsupported == "error":
            raise UnsupportedSchemaError("not covered", pointer="/enum", keyword="enum")
        return compiled(self, vocabulary)

    monkeypatch.setattr(JsonSchemaConstraint, "compile", compile)
    code, stdout, _ = run("check", '{"enum": [1]}', "--json")
    assert code == 1 and json.loads(stdout)["error"]["pointer"] == "/enum"
    code, _, stderr = run("check", '{"enum": [1]}')
    assert code == 1 and "not covered" in stderr


def test_check_of_grammars(tmp_path: Path) -> None:
    pytest.importorskip("lark")
    file = tmp_path / "g.lark"
    file.write_text('start: "a"\nother: "b"\n')
    code, stdout, stderr = run("check", str(file))
    assert code == 0 and "covered" in stdout and "'other' is never used (line 2)" in stderr
    code, stdout, _ = run("check", str(file), "--json")
    assert code == 0 and json.loads(stdout)["terminals"] == 1
    file.write_text('start: <think> "a" <[TOOLS]>')
    assert run("check", str(file))[0] == 0  # whichever tokenizer has them
    file = tmp_path / "g.gbnf"
    file.write_text('root ::= "a" root')
    assert run("check", str(file))[0] == 1
    file.write_text("root ::= x")
    code, stdout, stderr = run("check", str(file), "--json")
    assert code == 2 and stdout == "" and json.loads(stderr)["error"]["column"] == 10


def test_check_of_bad_schemas() -> None:
    assert run("check", '{"enum": []}')[0] == 1
    assert run("check", '{"type": "integer", "minimum": 2, "maximum": 1}')[0] == 1
    assert run("check", '{"type": "strin"}')[0] == 2


def test_validate(tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    file.write_text('"red"')
    assert run("validate", ENUM, str(file))[:2] == (0, "valid\n")
    code, stdout, stderr = run("validate", ENUM, "-", stdin='"grex"')
    assert (code, stdout) == (1, "invalid\n")
    assert "is not one of" in stderr and "refused at byte 4" in stderr
    code, stdout, _ = run("validate", ENUM, "-", "--json", stdin='"gre')
    assert code == 1 and json.loads(stdout)["refused_at_byte"] == 4


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        ("1e99999999999999999999", 0, "exponent is too large for Python"),
        ("0e99999999999999999999", 0, ""),
        ("9" * 5000, 0, ""),
        ("-1e-400", 0, ""),
        ("1e", 1, "no JSON"),
    ],
    ids=["1e9...", "0e9...", "9*5000", "1e-400", "1e"],
)
def test_numbers_that_python_cannot_hold_are_judged_by_the_engine(number: str, code: int, said: str) -> None:
    found = run("validate", '{"type": "number"}', "-", stdin=number)
    assert found[:2] == (code, "invalid\n" if code else "valid\n") and said in found[2]
    assert said or not found[2]


def test_show_mask() -> None:
    code, stdout, _ = run("show-mask", ENUM, "--text", '"gre', "--json")
    facts = json.loads(stdout)
    assert code == 0 and facts["next_bytes"] == "e y" and not facts["may_stop"]
    assert sorted(facts["tokens"]) == ["e", "y"]
    facts = json.loads(run("show-mask", ENUM, "--text", '"re', "--json")[1])
    assert (facts["forced"], facts["shortest_completion"]) == ('d"', 'd"')
    code, stdout, _ = run("show-mask", ENUM, "--text", '"red"')
    assert code == 0 and "may stop here  yes" in stdout and "stop now" in stdout


def test_show_mask_of_a_refused_text() -> None:
    code, _, stderr = run("show-mask", ENUM, "--text", '"rex')
    assert code == 1 and "refused at byte 3" in stderr


@pytest.mark.parametrize(
    ("values", "text"),
    [(b"0123456789", "0-9"), (b'" abcxyz', '␣ " a-c x-z'), (bytes(range(0x7E, 0x84)), "~-7f 80-83"), (b"", "")],
)
def test_byte_ranges(values: bytes, text: str) -> None:
    assert byte_ranges(values) == text


def test_bytes_are_shown_on_one_line() -> None:
    assert show_bytes(b'a "\n\xff\xc3\xa9') == 'a␣"\\n\\xffé'
    assert byte_vocabulary().size == 257


def test_missing_packages_are_named() -> None:
    code = "import sys; sys.modules['typer'] = None\nfrom structgen.cli.main import app\napp()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1 and "pip install 'structgen-lm[cli]'" in result.stderr


@pytest.mark.parametrize(
    "number, valid", [("2.05", True), ("0.29", True), ("4.35", True), ("2.055", False), ("1e-3", False)]
)
def test_multiples_are_judged_exactly(number: str, valid: bool) -> None:
    """Floats divide otherwise: 2.05 / 0.01 is 204.99999999999997."""
    errors = schema_errors({"type": "number", "multipleOf": 0.01}, loads_exact(number))
    assert (errors == []) == valid
    assert schema_errors({"multipleOf": 0.01}, "x") == schema_errors({"multipleOf": 0.01}, True) == []


def test_a_grammar_says_that_it_is_llguidances(tmp_path: Path) -> None:
    file = tmp_path / "g.lark"
    for header, code in (("// none\n", 2), ("// first a comment\n%llguidance {}\n", 0)):
        file.write_text(header + 'start: "a"{2,3}')
        assert run("check", str(file))[0] == code
