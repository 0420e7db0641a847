"""``structgen search``, ``vote``, ``calibrate``, ``batch --fields`` and drafts of ``structgen generate``."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from structgen.cli.fields import _ABSENT, _at
from structgen.generation.calibration import report
from structgen.generation.fields.results import Belief, FieldBelief, ValueOption
from structgen.generation.search import METHODS
from tests.cli.running import run

WORDS = ["--choice", "ab", "--choice", "b", "--choice", "abc"]


NEED_A_CRITIC = {"attribute", "rerank", "best_of", "planning"}
"""A critic is a Python function, which no option of a command is."""


@pytest.mark.parametrize("method", sorted(NEED_A_CRITIC))
def test_methods_that_need_a_critic_say_so(method: str) -> None:
    code, stdout, stderr = run("search", "x", *WORDS, "--method", method)
    assert code == 2 and not stdout and "critic" in stderr


@pytest.mark.parametrize("method", [name for name in METHODS if name not in NEED_A_CRITIC])
def test_search_prints_outputs_with_their_log_probabilities(method: str) -> None:
    more = ["--option", 'phrases=["a"]'] if method == "phrases" else []
    code, stdout, stderr = run("search", "x", *WORDS, "-n", "2", "--method", method, "--seed", "1", *more)
    lines = [line.split() for line in stdout.splitlines()]
    assert code == 0 and 1 <= len(lines) <= 2 and "model tokens" in stderr
    assert all(float(value) < 0 and text in ("ab", "b", "abc") for value, text in lines)


def test_options_of_the_method_and_json() -> None:
    code, stdout, _ = run(
        "search", "x", *WORDS, "-n", "3", "--method", "exact", "--option", "merge=none", "--option", "read-ahead=2",
        "--json",
    )  # fmt: skip
    document = json.loads(stdout)
    assert code == 0 and document["proven"] and document["gap"] == 0 and len(document["results"]) == 3
    scores = [result["score"] for result in document["results"]]
    assert scores == sorted(scores, reverse=True)


def test_search_says_what_is_wrong() -> None:
    for arguments, message in (
        ([], "Give a constraint"),
        ([*WORDS, "--method", "beem"], "expected one of beam"),
        ([*WORDS, "--option", "num_beams"], "expected a name and a value"),
        ([*WORDS, "--option", "num_beam=4"], "num_beams"),
        ([*WORDS, "--option", "num_beams=many"], "num_beams"),
        ([*WORDS, "--seconds", "3"], "budget"),
    ):
        code, _, stderr = run("search", "x", *arguments)
        assert code == 2 and message in stderr.replace("\n", " ")
    code, _, stderr = run("search", "x", "--regex", "[a-f]{9}", "--method", "exact", "--model-tokens", "3")
    assert code == 3 and "stopped by model_tokens" in stderr.replace("\n", " ")


@pytest.mark.parametrize("draw", ["iid", "distinct"])
def test_votes_print_an_answer_and_the_shares_of_its_fields(draw: str) -> None:
    options = ["-n", "3", "--draw", draw, "--seed", "1"]
    code, stdout, stderr = run("vote", "x", *WORDS, *options)
    assert code == 0 and stdout.splitlines()[0] in ("ab", "b", "abc") and "3 samples" in stderr
    code, stdout, _ = run("vote", "x", *WORDS, *options, "--json")
    document = json.loads(stdout)
    assert code == 0 and len(document["samples"]) == 3 and 0 < document["fields"][""]["share"] <= 1
    assert document["text"] in [sample["text"] for sample in document["samples"]]
    for wrong, message in ((["--by", "mean"], "'value', 'fields', 'mbr'"), (["--draw", "best"], "'iid', 'distinct'")):
        code, _, stderr = run("vote", "x", *WORDS, *wrong)
        assert code == 2 and message in stderr.replace("\n", " ")


def test_an_output_may_be_written_after_a_draft() -> None:
    options = ["x", *WORDS, "--refine", "--max-new-tokens", "4"]
    code, stdout, _ = run("generate", *options)
    assert code == 0 and stdout.strip() in ("ab", "b", "abc")
    code, stdout, _ = run("generate", *options, "--json")
    document = json.loads(stdout)
    assert code == 0 and document["text"] in ("ab", "b", "abc") and isinstance(document["draft"], str)
    assert run("generate", "x", "--refine")[0] == 2


def test_fields_and_rules_have_budgets() -> None:
    schema = '{"type": "string", "minLength": 3}'
    code, stdout, stderr = run("generate", "x", "--schema", schema, "--region", " max_tokens=5 temperature=1", "--json")
    assert code == 0 and len(json.loads(stdout)["text"]) >= 5, stderr
    for wrong in (
        "/why",
        "/why max_tokens",
        "/why max_tokens=x",
        "/why top_k=3",
        "/why max_tokens=0",
        "",
        "/why max_tokens=1 max_tokens=2",
    ):
        code, _, stderr = run("generate", "x", "--schema", schema, "--region", wrong)
        assert code == 2 and "--region" in stderr, wrong
    twice = [part for tokens in (1, 2) for part in ("--region", f"/why max_tokens={tokens}")]
    assert run("generate", "x", "--schema", schema, *twice)[0] == 2


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [("", {"a": [1, {}]}), ("/a", [1, {}]), ("/a/0", 1), ("/a/1", {}), ("/a/2", None), ("/a/-1", None), ("/a/00", None),
     ("/a/\u0660", None), ("/b", None), ("/a/0/x", None)],
)  # fmt: skip
def test_truths_are_values_of_any_kind(pointer: str, expected: Any) -> None:
    """Options may be objects and arrays."""
    value = _at({"a": [1, {}]}, pointer)
    assert value is _ABSENT if expected is None else value == expected


@pytest.mark.full
def test_a_batch_says_how_likely_its_fields_were(tmp_path: Path) -> None:
    schema = '{"enum": ["ab", "b", true]}'
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "prompt": "x"}\n')
    batch = ["batch", str(tmp_path / "rows.jsonl"), "--schema", schema, "--fields"]
    code, stdout, stderr = run(*batch)
    line = json.loads(stdout.splitlines()[0])
    assert code == 0, stderr
    field = line["fields"][""]
    options = field["value"]["options"]
    assert field["written"] == line["value"] and sum(each["prob"] for each in options) == pytest.approx(1)
    assert {str(each["value"]): each["prob"] for each in options}[str(line["value"])] == field["prob"]
    assert "fields" not in run(*batch[:-1])[1]


@pytest.mark.full
def test_calibrate_reports_what_the_library_does(tmp_path: Path) -> None:
    rng, beliefs, truths, outputs = random.Random(1), list[Belief](), list[str](), list[str]()
    for number in range(60):
        share = rng.uniform(0.5, 1.0)
        options = tuple(ValueOption(value, prob, 0.0, 1.0, prob) for value, prob in (("a", share), ("b", 1 - share)))
        beliefs.append(Belief(options, 0.5, 0.01))
        truths.append("a" if rng.random() < share**2 else "b")
        fields = {"/x": FieldBelief("/x", "a", beliefs[-1]).as_json()}
        outputs.append(json.dumps({"id": number, "value": {"x": "a"}, "fields": fields}))
    right = [json.dumps({"id": number, "value": {"x": each}}) for number, each in enumerate(truths)]
    files = {"out": outputs, "right": right, "few": right[:9], "bad": ["[1]"]}
    for name, lines in files.items():
        (tmp_path / name).write_text("\n".join(lines))
    fitted = str(tmp_path / "t.json")
    command = ["calibrate", str(tmp_path / "out"), str(tmp_path / "right"), "--field", "/x"]
    code, stdout, _ = run(*command, "--json", "-o", fitted)
    document, expected = json.loads(stdout), report(beliefs, truths)
    assert code == 0 and document["examples"] == 60
    for half, numbers in (("raw", expected.raw), ("calibrated", expected.calibrated)):
        assert document[half]["ece"] == pytest.approx(numbers.ece) and document[half]["auroc"] == numbers.auroc
    assert json.loads(Path(fitted).read_text())["temperature"] == document["temperature"]
    assert "accuracy" in run(*command)[1]
    separated = [json.dumps({**json.loads(line), "note": "\u2028\x85"}, ensure_ascii=False) for line in outputs]
    (tmp_path / "out").write_text(
        "\r\n".join(['{"id": 99, "fields": [1]}', '{"id": 0, "fields": {"/x": 1}}', *separated])
    )
    assert json.loads(run(*command, "--json")[1]) == document
    for truth, field, message in (("few", "/x", "too few"), ("bad", "/x", "Line 1"), ("right", "/y", "No output")):
        code, _, stderr = run("calibrate", str(tmp_path / "out"), str(tmp_path / truth), "--field", field)
        assert code == 2 and message in stderr.replace("\n", " ")
