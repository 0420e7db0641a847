"""``structgen compare``: exit codes, directions and forms."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import run

WIDE, NARROW = {"type": "string"}, {"type": "string", "maxLength": 3}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    paths = tmp_path / "wide.json", tmp_path / "narrow.json"
    for path, schema in zip(paths, (WIDE, NARROW), strict=True):
        path.write_text(json.dumps(schema, indent=2))
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize(
    ("flags", "narrowing", "widening"),
    [([], 1, 0), (["--backward"], 1, 0), (["--forward"], 0, 1), (["--full"], 1, 1),
     (["--request"], 1, 0), (["--response"], 0, 1)],
)  # fmt: skip
def test_directions(files: tuple[str, str], flags: list[str], narrowing: int, widening: int) -> None:
    wide, narrow = files
    assert run("compare", wide, narrow, *flags)[0] == narrowing
    assert run("compare", narrow, wide, *flags)[0] == widening
    assert run("compare", wide, wide, *flags)[0] == 0


def test_forms(files: tuple[str, str]) -> None:
    code, text, _ = run("compare", *files)
    assert code == 1 and "narrower" in text and '"aaaa"' in text and "/maxLength: 3 (new)" in text
    answer = json.loads(run("compare", *files, "--json")[1])
    assert answer["verdict"] == "narrower" and answer["old_only"]["document"] == '"aaaa"'
    (result,) = json.loads(run("compare", *files, "--sarif")[1])["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (result["level"], region["startLine"]) == ("error", 3)


def test_what_is_not_decided_is_not_compatible(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(r'{"type": "string", "pattern": "^(a+)\\1$"}')
    new.write_text('{"type": "string", "minLength": 2}')
    assert run("compare", str(old), str(new))[0] == 3
    assert run("compare", str(old), str(new), "--undecided", "pass")[0] == 0


def test_bad_input(files: tuple[str, str], tmp_path: Path) -> None:
    for text in ("{", '{"type":\n'):
        (tmp_path / "bad.json").write_text(text)
        assert run("compare", files[0], str(tmp_path / "bad.json"))[0] == 2
    assert run("compare", files[0], str(tmp_path / "none.json"))[0] == 2
    assert run("compare", files[0])[0] == 2
    assert run("compare", *files, "--undecided", "perhaps")[0] == 2
    assert run("compare", files[0], "--against", "HEAD")[0] == 2  # no repository


def test_against_a_revision(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(WIDE))
    author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "a schema"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    path.write_bytes(b"\xff")
    subprocess.run(["git", *author, "commit", "-qam", "no text"], cwd=tmp_path, check=True)
    path.write_text(json.dumps(NARROW))
    assert run("compare", str(path), "--against", "HEAD")[0] == 2
    assert run("compare", str(path), "--against", "--output=written")[0] == 2  # a revision, not an option of git's
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["schema.json"]
    subprocess.run(["git", "reset", "-q", "--soft", "HEAD~1"], cwd=tmp_path, check=True)
    assert run("compare", str(path), "--against", "HEAD")[0] == 1
    assert run("compare", str(path), "--against", "HEAD", "--forward")[0] == 0


def test_grammars(tmp_path: Path) -> None:
    old, new = tmp_path / "old.lark", tmp_path / "new.gbnf"
    old.write_text('start: sum\nsum: sum "+" sum | "1"\n')
    new.write_text('root ::= "1" ("+1")*')
    assert run("compare", str(old), str(new))[0] == 0
    code, text, _ = run("lint", str(old))
    assert code == 0 and "'1+1+1' has two readings: (sum (sum 1) + (sum (sum 1) + (sum 1)))" in text
    assert run("examples", str(old), "--style", "minimal")[1] == "1\n"
