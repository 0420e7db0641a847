"""``structgen bench``: whole runs over a model without weights, and bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from structgen.cli.commands import app

HELPERS = Path(__file__).parents[1] / "benchmarking"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(HELPERS))
    folder = tmp_path / "data"
    folder.mkdir()
    tests = [{"valid": True, "data": True}, {"valid": False, "data": 1}]
    for name in ("A---one", "A---two", "B---one"):
        (folder / f"{name}.json").write_text(json.dumps({"schema": {"type": "boolean"}, "tests": tests}))
    return folder


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["bench", *arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.mark.full
def test_a_run_and_its_report(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out, report = tmp_path / "out.jsonl", tmp_path / "report"
    options = ["--data", str(data), "--model", "tiny_bench:load", "--engines", "structgen,structgen_decoder,none"]
    options += ["--limit", "1", "--max-new-tokens", "20", "--shots", "0", "--out", str(out)]
    run("jsonschemabench", *options, "--report", str(report), "--workers", "2")
    markdown, page = (report / "report.md").read_text(), (report / "report.html").read_text()
    assert "2 schemas of 2 datasets" in markdown and "| structgen, own decoder | 2 | 100.0 % |" in markdown
    assert page.count("<svg") >= 4 and page.count("<section>") == page.count("</section>")
    assert "src=" not in page and "<link" not in page, "the page needs nothing else"
    before = out.read_text()
    assert "| none (unconstrained) | 2 |" in run("jsonschemabench", *options)
    assert out.read_text() == before, "nothing runs twice"
    run("report", str(out), "--out", str(tmp_path / "again"), "--command", "structgen bench <x>")
    assert "structgen bench &lt;x&gt;" in (tmp_path / "again" / "report.html").read_text()


@pytest.mark.full
def test_a_report_leaves_files_of_others_alone(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named before anything runs, and a report that is there is replaced."""
    pytest.importorskip("matplotlib")
    out, report = tmp_path / "out.jsonl", tmp_path / "report"
    options = ["--data", str(data), "--model", "tiny_bench:load", "--engines", "structgen", "--limit", "1"]
    options += ["--max-new-tokens", "8", "--shots", "0", "--out", str(out), "--report"]
    for name, text in (("report.md", "# JSONSchemaBench\n"), ("report.html", "<!DOCTYPE html>"), ("report.md", "")):
        folder = tmp_path / f"{name} of {len(text)}"
        folder.mkdir()
        (folder / name).write_text(text)
        message = f"{folder / name} is no report of structgen bench, and would be overwritten; choose another --out"
        assert message in run("jsonschemabench", *options, str(folder), code=2) and not out.exists()
        assert (folder / name).read_text() == text and list(folder.iterdir()) == [folder / name]
    assert "is no folder" in run("jsonschemabench", *options, str(data / "A---one.json"), code=2)
    run("jsonschemabench", *options, str(report))
    before = (report / "report.html").read_text()
    run("report", str(out), "--out", str(report), "--command", "again")
    assert "again" in (report / "report.html").read_text() != before
    (report / "report.md").write_text("notes")
    assert "would be overwritten" in run("report", str(out), "--out", str(report), code=2)
    assert (report / "report.md").read_text() == "notes"
    monkeypatch.setattr("structgen.cli.bench.find_spec", lambda name: None)
    out.unlink()
    assert "need matplotlib" in run("jsonschemabench", *options, str(tmp_path / "new"), code=2) and not out.exists()


@pytest.mark.full
def test_a_plain_folder_is_one_dataset(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    for name in ("invoice", "order_line", "address"):
        (folder / f"{name}.json").write_text('{"type": "boolean"}')
    options = ["--data", str(folder), "--model", "tiny_bench:load", "--engines", "none", "--limit", "2"]
    options += ["--max-new-tokens", "8", "--shots", "0", "--sampling", "greedy", "--out", str(tmp_path / "out.jsonl")]
    printed = run("jsonschemabench", *options)
    assert "2 schemas of 1 dataset," in printed and "| orders | 2 |" in printed


def test_coverage_without_a_model(data: Path, tmp_path: Path) -> None:
    printed = run("coverage", str(data), "--engines", "structgen", "--out", str(tmp_path / "c.jsonl"), "--wrong")
    assert "| fully right | 3 |" in printed


def test_reasoning(data: Path, tmp_path: Path) -> None:
    options = [
        "--model",
        "tiny_bench:load",
        "--limit",
        "2",
        "--max-new-tokens",
        "40",
        "--out",
        str(tmp_path / "r.jsonl"),
    ]
    printed = run("reasoning", "--tasks", "shuffled_objects", *options)
    assert "| shuffled_objects | greedy | structgen_decoder | 2 |" in printed
    assert "| 100.0 % |" in printed, "under the constraint all are valid"


OURS = ["--engines", "structgen"]  # the peers need not be installed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jsonschemabench", *OURS, "--data", "nowhere"], "No folder nowhere"),
        (["jsonschemabench", "--data", "{data}", "--engines", "vllm"], "expected one of none, structgen"),
        (["jsonschemabench", "--data", "{data}", "--engines", ","], "No engines given"),
        (["jsonschemabench", "--data", "{data}", "--sampling", "beam", *OURS], "expected one of greedy, sampled"),
        (["jsonschemabench", "--data", "{data}", "--pace", "x", *OURS], "expected one of turns, together"),
        (["jsonschemabench", "--data", "{data}", "--datasets", "C", *OURS], "there are A, B"),
        (["jsonschemabench", "--data", "{data}", "--split", "test", *OURS], "has no splits"),
        (["coverage", "nowhere"], "No .json files"),
        (["reasoning", "--tasks", "chess"], "expected one of last_letters"),
        (["report", "nowhere.jsonl", "--out", "x"], "is no file of records"),
    ],
)
def test_bad_input(arguments: list[str], message: str, data: Path) -> None:
    assert message in run(*(argument.format(data=data) for argument in arguments), code=2)


def test_a_package_that_is_missing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import structgen.cli.bench

    monkeypatch.setattr(structgen.cli.bench, "find_spec", lambda name: None)
    told = run("jsonschemabench", "--data", str(data), code=2)  # all that are missing, and what is left
    assert "Not installed: llguidance, xgrammar. Install: pip install 'structgen-lm[bench]'" in told
    assert "--engines structgen,structgen_decoder,none" in told
    assert "leave" not in run("coverage", str(data), "--engines", "xgrammar", code=2)
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "structgen-lm[bench]" in run("jsonschemabench", "--data", "hub", "--engines", "none", code=2)
