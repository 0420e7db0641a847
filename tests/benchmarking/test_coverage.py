"""The benchmark's harness with a fake engine: verdicts, lost processes, resumption, and the tables' figures."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import maskbench
import pytest

from structgen.benchmarking.judge import Record, Timing, judge
from structgen.benchmarking.table import is_right, tables
from structgen.benchmarking.vocabularies import load_vocabulary

# File name → (schema of the fake engine, instances with their labels, expected outcome, expected verdicts).
CASES: dict[str, tuple[dict[str, Any], list[tuple[Any, bool]], str, list[str] | None]] = {
    "right": ({"texts": ["[1, 2]"]}, [([1, 2], True), ([1, 3], False)], "compiled", ["right", "right"]),
    "no_tests": ({"texts": ["1"]}, [], "compiled", []),
    "narrow": ({"texts": ["[1, 2]"]}, [([2], True)], "compiled", ["rejects_valid"]),
    "wide": ({"texts": ["1"]}, [(1, False)], "compiled", ["accepts_invalid"]),
    "endless": ({"texts": ["[1, 2]   "]}, [([1, 2], True), ([1, 2], False)], "compiled", ["cannot_stop", "right"]),
    "lying": ({"texts": ["1"], "lie": True}, [(1, True)], "compiled", ["mask_differs"]),
    "refused": ({"refuse": "no such keyword"}, [(1, True)], "refused", None),
    "raising": ({"raise": "oops"}, [(1, True)], "error", None),
    "crashing": ({"crash": 3}, [(1, True)], "crash", None),
    "slow": ({"sleep": 60}, [(1, True)], "timeout", None),
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of MaskBench files for CASES; the fake engine can be imported, also by child processes."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    folder = tmp_path / "data"
    folder.mkdir()
    for name, (schema, instances, _, _) in CASES.items():
        tests = [{"description": "", "valid": valid, "data": value} for value, valid in instances]
        (folder / f"{name}.json").write_text(json.dumps({"schema": schema, "tests": tests}))
    return folder


def read(out: Path) -> dict[str, Record]:
    entries = [json.loads(line) for line in out.read_text().splitlines()]
    return {entry["schema"]: entry for entry in entries if "schema" in entry}


@pytest.mark.full
def test_run_through_all_outcomes_and_resume(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    arguments = [str(data), "--engines", "fake_engine:Fake", "--vocabulary", "bytes", "--time-limit", "1.5"]
    arguments += ["--out", str(out), "--wrong"]
    assert maskbench.main([*arguments, "--match", "[lr]*.json"]) == 0
    with out.open("a") as file:
        file.write('{"engine": "fake_engi')  # as an interruption leaves it
    assert maskbench.main(arguments) == 0
    records = read(out)
    assert len(out.read_text().splitlines()) == len(CASES) + 2, "one record a schema, one line a run: nothing ran twice"
    for name, (_, _, outcome, verdicts) in CASES.items():
        assert records[name]["outcome"] == outcome, name
        assert records[name].get("verdicts") == verdicts, name
    assert records["crashing"]["error"] == "exit code 3"
    printed = capsys.readouterr().out
    assert "| fully right | 2 |" in printed
    assert "- 1: no such keyword" in printed
    assert "fake_engine:Fake\tnarrow\tcompiled\t0:rejects_valid" in printed
    assert maskbench.main([*arguments, "--only-coverage"]) == 2, "another kind of run may not be mixed in"


@pytest.mark.full
def test_judge_measures_every_token_and_where_an_instance_died(data: Path) -> None:
    import fake_engine

    vocabulary = load_vocabulary("bytes", data)
    record = judge(fake_engine.Fake(vocabulary), vocabulary, data / "right.json", Timing(again=True))
    assert record["died_at"] == [-1, len("[1, ")]
    assert len(record["times_ns"]) == len("[1, 2]") + len("[1, "), "a step is the token and the mask behind it"
    assert record["compile_ns"] > 0 and min(record["times_ns"]) > 0
    assert len(record["again_ns"]) == len(record["times_ns"])
    untimed = judge(fake_engine.Fake(vocabulary), vocabulary, data / "right.json", None)
    assert "times_ns" not in untimed and untimed["verdicts"] == record["verdicts"]


def record(engine: str, schema: str, times_us: list[int], compile_ms: int = 1) -> Record:
    times = [1000 * time for time in times_us]
    base: Record = {"engine": engine, "schema": schema, "outcome": "compiled", "verdicts": ["right"], "died_at": [-1]}
    return {**base, "times_ns": times, "compile_ns": 1_000_000 * compile_ms}


def test_tables_compare_over_the_schemas_that_all_engines_compile() -> None:
    refused: Record = {"engine": "b", "schema": "y", "outcome": "refused", "error": "keyword 'not' (at #/x)"}
    text = tables([record("a", "x", [1, 2, 3]), record("a", "y", [894]), record("b", "x", [4, 4, 4], 5), refused])
    common, overall = text.split("## Speed over all schemas")
    assert "over the 1 schemas that every engine compiles" in common
    assert f"| mask + advance, mean µs | {statistics.mean([1, 2, 3])} | 4 | 0.500 |" in common
    assert "| compile to first mask, p50 ms | 1 | 5 | 0.200 |" in common
    assert f"| mask + advance, mean µs | {statistics.mean([1, 2, 3, 894])} | 4 |" in overall
    assert "| masks | 4 | 3 |  |" in overall
    assert "- 1: keyword 'not'" in overall
    assert not is_right(refused)


def test_vocabulary_names() -> None:
    vocabulary = load_vocabulary("bytes", Path())
    assert b"".join(vocabulary.tokens[i] for i in vocabulary.encode('{"é": 1}')) == '{"é": 1}'.encode()
    assert vocabulary.special_token_ids == [vocabulary.eos_token_id]
    with pytest.raises(ValueError, match="o200k"):
        load_vocabulary("gpt5", Path())


def test_no_schema_files(tmp_path: Path) -> None:
    assert maskbench.main([str(tmp_path)]) == 2


@pytest.mark.parametrize("engine", ["llguidance", "xgrammar"])
def test_peers_if_installed(engine: str, data: Path, tmp_path: Path) -> None:
    pytest.importorskip(engine)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    tests = [{"valid": True, "data": {"a": 12}}, {"valid": False, "data": {"a": "x"}}, {"valid": False, "data": {}}]
    (data / "peer.json").write_text(json.dumps({"schema": schema, "tests": tests}))
    out = tmp_path / "out.jsonl"
    arguments = [str(data), "--engines", engine, "--vocabulary", "bytes", "--match", "peer.json", "--out", str(out)]
    assert maskbench.main(arguments) == 0
    assert is_right(read(out)["peer"])
