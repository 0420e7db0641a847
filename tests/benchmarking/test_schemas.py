"""Reading JSONSchemaBench from its three homes, and drawing samples."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from structgen.benchmarking.schemas import Case, DataError, choose_cases, read_cases

SCHEMA = {"type": "object", "description": "é"}


def maskbench(folder: Path, *stems: str) -> Path:
    folder.mkdir(exist_ok=True)
    for stem in stems:
        (folder / f"{stem}.json").write_text(json.dumps({"schema": SCHEMA, "tests": [], "meta": {}}))
    return folder


def test_maskbench_files(tmp_path: Path) -> None:
    folder = maskbench(tmp_path / "m", "Github_easy---o1", "BFCL_java_3")
    cases = read_cases(str(folder))
    assert [(case.dataset, case.name) for case in cases] == [
        ("BFCL", "BFCL_java_3"),
        ("Github_easy", "Github_easy---o1"),
    ]
    assert json.loads(cases[0].schema_text) == SCHEMA


@pytest.mark.parametrize("inner", ["", "data"])
def test_github_folders(tmp_path: Path, inner: str) -> None:
    for dataset, name in (("Kubernetes", "a"), ("Snowplow", "a")):
        (tmp_path / inner / dataset).mkdir(parents=True)
        (tmp_path / inner / dataset / f"{name}.json").write_text('{"type": "object", "description": "é"}')
    cases = read_cases(str(tmp_path))
    assert [case.name for case in cases] == ["Kubernetes---a", "Snowplow---a"], "names are unique over datasets"
    assert json.loads(cases[0].schema_text) == SCHEMA


def test_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_dataset(hub: str, name: str, split: str) -> list[dict[str, str]]:
        asked.append((hub, name, split))
        if split == "nonsense":
            raise ValueError("no such split")
        return [{"unique_id": "x1", "json_schema": "{}"}]

    fake: Any = types.ModuleType("datasets")
    fake.get_dataset_config_names = lambda hub: ["default", "Snowplow"]
    fake.load_dataset = load_dataset
    fake.exceptions = types.SimpleNamespace(DatasetsError=KeyError)
    monkeypatch.setitem(sys.modules, "datasets", fake)
    assert read_cases("hub") == [Case("Snowplow", "Snowplow---x1", "{}")]
    assert asked == [("epfl-dlab/JSONSchemaBench", "Snowplow", "test")]
    with pytest.raises(DataError, match="nonsense"):
        read_cases("hub", "nonsense")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"structgen-lm\[bench\]"):
        read_cases("hub")


def test_data_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No folder"):
        read_cases(str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"No \.json files"):
        read_cases(str(tmp_path))
    with pytest.raises(DataError, match="has no splits"):
        read_cases(str(maskbench(tmp_path, "A---1")), "test")
    (tmp_path / "B---2.json").write_text("{")
    with pytest.raises(DataError, match="json is no JSON"):
        read_cases(str(tmp_path))


def test_samples() -> None:
    cases = [Case(dataset, f"{dataset}{i}", "{}") for dataset in "AB" for i in range(30)]
    drawn = choose_cases(cases, limit=5, seed=1)
    assert [case.dataset for case in drawn] == ["A", "B"] * 5, "the datasets take turns"
    assert len(set(drawn)) == 10
    assert drawn == choose_cases(reversed(cases), limit=5, seed=1)
    assert drawn != choose_cases(cases, limit=5, seed=2)
    assert [case for case in drawn if case.dataset == "B"] == choose_cases(cases, ["B"], 5, 1)
    assert sorted(choose_cases(cases, limit=99)) == sorted(cases)
    with pytest.raises(DataError, match="there are A, B"):
        choose_cases(cases, ["C"])


def test_a_plain_folder_is_one_dataset(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    for name in ("invoice", "order_line", "order_head", "my_own_address"):
        (folder / f"{name}.json").write_text('{"type": "object", "properties": {"tests": {}, "schema": {}}}')
    cases = read_cases(str(folder))
    assert {case.dataset for case in cases} == {"orders"}
    assert [case.name for case in cases] == ["invoice", "my_own_address", "order_head", "order_line"]
    assert len(choose_cases(cases, limit=2)) == 2, "a limit is of the folder, not of each file"


def test_a_plain_folder_is_called_by_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    (folder / "a_b.json").write_text("true")
    monkeypatch.chdir(folder)
    assert {case.dataset for source in (".", "../orders", "../orders/") for case in read_cases(source)} == {"orders"}


def test_own_files_with_tests_are_one_dataset(tmp_path: Path) -> None:
    cases = read_cases(str(maskbench(tmp_path / "mine", "invoice", "order")))
    assert {case.dataset for case in cases} == {"mine"}
