"""``structgen sample`` and ``structgen compare-distributions``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run

WORDS = ["--choice", "ab", "--choice", "b"]


def test_sample_prints_texts() -> None:
    code, stdout, stderr = run("sample", "x", *WORDS, "-n", "5", "--seed", "1")
    assert code == 0 and len(stdout.split()) == 5 and set(stdout.split()) <= {"ab", "b"}
    assert "5 of 5 samples" in stderr and "ln P(L) between" in stderr
    code, stdout, _ = run("sample", "x", *WORDS, "-n", "5", "--seed", "1", "--method", "weighted", "--json")
    document = json.loads(stdout)
    assert code == 0 and len(document["samples"]) == 5 and document["complete"] and document["method"] == "weighted"


def test_sample_takes_every_kind_of_constraint(tmp_path: Path) -> None:
    lark, gbnf = tmp_path / "g.lark", tmp_path / "g.gbnf"
    lark.write_text('start: "a" | "b"')
    gbnf.write_text('root ::= "a" | "b"')
    for constraint in (
        ["--grammar", str(lark)], ["--grammar", str(gbnf)], ["--regex", "a|b"], ["--schema", '{"enum": ["a", "b"]}'],
    ):  # fmt: skip
        code, stdout, _ = run("sample", "x", *constraint, "-n", "2", "--seed", "0")
        assert code == 0 and {line.strip('"') for line in stdout.split()} <= {"a", "b"}


def test_sample_says_what_is_wrong(tmp_path: Path) -> None:
    for arguments, message in (
        ([], "Give a constraint"),
        ([*WORDS, "--regex", "a"], "Give one constraint"),
        (["--grammar", "g.txt"], "a file .lark, .gbnf or .ebnf"),
        (["--grammar", str(tmp_path / "no.lark")], "no such file"),
        ([*WORDS, "--method", "greedy"], "expected one of exact"),
        ([*WORDS, "--temperature", "0"], "temperature is 0"),
    ):
        code, _, stderr = run("sample", "x", *arguments)
        assert code == 2 and message in stderr.replace("\n", " ")
    code, _, stderr = run("sample", "x", "--regex", "[a-f]{9}", "-n", "99", "--model-tokens", "3", "--seed", "0")
    assert code == 3 and "stopped by model_tokens" in stderr.replace("\n", " ")
    code, _, stderr = run("sample", "x", "--regex", "aaaa", "--max-new-tokens", "2")
    assert code == 3 and "UnsatisfiableTargetError" in stderr


def test_compare_distributions(tmp_path: Path) -> None:
    code, stdout, _ = run("compare-distributions", "x", *WORDS, "-n", "50")
    assert code == 0 and "local: total variation distance" in stdout and "ASAp" in stdout
    code, stdout, _ = run("compare-distributions", "x", *WORDS, "-n", "50", "--json")
    document = json.loads(stdout)
    assert code == 0 and {text["text"] for text in document["texts"]} == {"ab", "b"}
    for text in document["texts"]:
        low, high = text["target"]
        assert low <= high and text["shares"]["exact"] == pytest.approx((low + high) / 2, abs=0.3)
    pytest.importorskip("matplotlib")
    assert run("compare-distributions", "x", *WORDS, "-n", "20", "--plot", str(tmp_path / "plot.png"))[0] == 0
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
    assert run("compare-distributions", "x", *WORDS, "-n", "20", "--plot", str(tmp_path / "plot.png"))[0] == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [("notes.svg", "is no known plot"), ("plot.txt", "ends in one of"), ("no/plot.png", "there is no folder")],
)
def test_a_plot_that_cannot_be_written_is_told_before_samples_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("structgen.cli.aligned.compare", lambda *_, **__: pytest.fail("samples were drawn"))
    (tmp_path / "notes.svg").write_text("<svg/>")
    code, _, stderr = run("compare-distributions", "x", *WORDS, "--plot", str(tmp_path / name))
    assert code == 2 and message in stderr and (tmp_path / "notes.svg").read_text() == "<svg/>"
