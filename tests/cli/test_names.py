"""``structgen names``: what is built is what is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from structgen import Corpus, NameSet
from tests.cli.running import run


def test_names(tmp_path: Path) -> None:
    (tmp_path / "cities.txt").write_text("Rome\nOslo\n\nRome\nOsnabrück\n", "utf-8")
    code, stdout, _ = run("names", "build", str(tmp_path / "cities.txt"), "-o", str(tmp_path / "x"), "--json")
    assert code == 0 and json.loads(stdout)["names"] == 3
    assert set(NameSet.open(tmp_path / "x")) == {"Rome", "Oslo", "Osnabrück"}
    code, stdout, _ = run("names", "show", str(tmp_path / "x"), "--begin", "Os", "--json")
    assert code == 0 and json.loads(stdout)["found"] == ["Oslo", "Osnabrück"]
    assert "Rome" in run("names", "show", str(tmp_path / "x"))[1]


def test_documents(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("the land-\nlord", "utf-8")
    options = ("--documents", "--boundary", "word", "--fold")
    assert run("names", "build", str(letter), "-o", str(tmp_path / "x"), *options)[0] == 0
    assert Corpus.open(tmp_path / "x").quote("landlord").places[0].start == 4
    code, stdout, _ = run("names", "show", str(tmp_path / "x"), "--begin", "landlord", "--json")
    assert code == 0 and json.loads(stdout)["found"] == [[str(letter), 4, 14]]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_damaged_files(damage: str, tmp_path: Path) -> None:
    NameSet.build(["abc", "abd"]).save(tmp_path / "x")
    data = bytearray((tmp_path / "x").read_bytes())
    if damage == "changed":
        data[data.rindex(b"abcabd")] ^= 1
    (tmp_path / "x").write_bytes(b"" if damage == "empty" else data[:-3] if damage == "cut" else data)
    code, _, stderr = run("names", "show", str(tmp_path / "x"))
    assert code == 2 and str(tmp_path / "x") in stderr.replace("\n", "")
