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


@pytest.mark.parametrize(
    "content",
    [
        b'{"type":"object"}', b"x", b'{"a": 1}\n{"b": 2}', b'{"a": 1}\n', b"7\n",
        b'{"run":{"seed":0},"versions":{}}\nx', b"\xff", b'{"run":{"seed":1}', b"{}", b"\n",
    ],
)  # fmt: skip
def test_nothing_is_cut_from_a_file_of_another_kind(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="choose another --out"):
        RecordFile(path, {"seed": 0})
    assert path.read_bytes() == content


def test_a_run_is_taken_up_wherever_it_was_broken_off(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with RecordFile(path, {"seed": 0}) as file:
        file.begin({"engine": "1"}, "a machine")
        file.append({"schema": "a"})
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        RecordFile(path, {"seed": 0})
        assert path.read_bytes() == whole[: whole[:cut].rfind(b"\n") + 1]
    with pytest.raises(ValueError, match="no regular file"):
        RecordFile(tmp_path, {"seed": 0})
