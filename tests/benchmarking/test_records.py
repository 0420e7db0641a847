"""Record files: what an interruption leaves is gone on with, other runs are kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from structgen.benchmarking.records import RecordFile


def test_resume_after_an_interruption(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "records.jsonl"
    with RecordFile(path, {"model": "m", "seed": 0}) as file:
        file.begin({"engine": "1.0"}, "a machine")
        file.append({"schema": "a", "text": "é"}, {"schema": "b"})
    with path.open("a") as cut:
        cut.write('{"schema": "c", "te')
    again = RecordFile(path, {"seed": 0, "model": "m"})
    assert again.records == [{"schema": "a", "text": "é"}, {"schema": "b"}]
    assert again.versions == {"engine": "1.0"}
    with again:
        again.append({"schema": "c"})
    assert [record["schema"] for record in RecordFile(path, {"model": "m", "seed": 0}).records] == ["a", "b", "c"]


def test_another_run_and_another_kind_of_file(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with RecordFile(path, {"seed": 0}) as file:
        file.begin({}, "")
    with pytest.raises(ValueError, match="choose another --out"):
        RecordFile(path, {"seed": 1})
    path.write_text("not json\n")
    with pytest.raises(ValueError, match="1 is no record"):
        RecordFile(path, {"seed": 0})
