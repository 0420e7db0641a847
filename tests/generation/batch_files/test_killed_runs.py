"""A run that is killed twice and taken up again gives the file of an unbroken one, with what ``generate`` gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from structgen.core.json_text import loads_exact
from structgen.errors import StructgenError
from structgen.generation.batch_files.job import BatchJob
from structgen.generation.generator import Generator
from tests.generation.batch_files.killed_runs import COUNT, ITEM, command, rows, run, run_and_kill, write_rows
from tests.tiny_folder import make_folder

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.mark.full
def test_killed_twice(tmp_path: Path) -> None:
    model, file = make_folder(tmp_path / "model"), write_rows(tmp_path / "in.jsonl")
    unbroken, broken = tmp_path / "unbroken.jsonl", tmp_path / "broken.jsonl"
    whole = run(command(file, unbroken, model))
    assert whole.returncode == 3, whole.stderr.decode()
    assert b"200 of 200 rows written" in whole.stderr and b'rows with an "error" in' in whole.stderr

    arguments = command(file, broken, model)
    first = run_and_kill(arguments, broken, COUNT // 4)
    with broken.open("ab") as torn:
        torn.write(unbroken.read_bytes().splitlines(keepends=True)[first][:-5])  # as a kill may leave it
    second = run_and_kill(arguments, broken, COUNT // 2)
    assert COUNT // 4 <= first < second < COUNT
    last = run(arguments)
    assert last.returncode == 3 and f"{second} were there already".encode() in last.stderr
    assert broken.read_bytes() == unbroken.read_bytes()

    assert run(arguments).returncode == 3 and broken.read_bytes() == unbroken.read_bytes()  # nothing is left to do
    other = run([*arguments, "--temperature", "0.5"])
    assert other.returncode == 2 and b"written from another prompt" in other.stderr
    assert broken.read_bytes() == unbroken.read_bytes()
    _check_against_single_calls(unbroken, model)


def _check_against_single_calls(output: Path, model: Path) -> None:
    generator, job = Generator(str(model)), BatchJob(seed=3)
    lines = [json.loads(line) for line in output.read_bytes().split(b"\n")[:-1]]
    assert [line["id"] for line in lines] == [row["id"] for row in rows()]
    assert {line["id"] for line in lines if "error" in line} == {7, "row 90"}
    for row, line in list(zip(rows(), lines, strict=True))[::3]:
        if line["id"] == 7:
            continue
        constraint = generator_constraint(row)
        try:
            result = generator.generate(
                row["prompt"], constraint, temperature=1.0, max_new_tokens=50, seed=job.line_seed(row["id"])
            )
        except StructgenError as error:
            assert line["error"]["message"] == str(error) and line["error"]["type"] == type(error).__name__
            continue
        found = line["value"] if "value" in line else line["text"]
        assert found == (json.loads(result.text) if "value" in line else result.text)
        assert (line["finish_reason"], line["tokens"]) == (result.finish_reason, len(result.token_ids))
        assert loads_exact(json.dumps(found)) == found


def generator_constraint(row: dict[str, object]) -> object:
    import structgen

    if "regex" in row:
        return structgen.regex(str(row["regex"]))
    if "choice" in row:
        return structgen.choice(["yes", "no", "naïve"])
    return ITEM if "schema" in row else {"type": "string", "maxLength": 30}
