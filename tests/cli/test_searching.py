"""``structgen search``."""

from __future__ import annotations

import json

import pytest

from structgen.generation.search import METHODS
from tests.cli.running import run

WORDS = ["--choice", "ab", "--choice", "b", "--choice", "abc"]


@pytest.mark.parametrize("method", METHODS)
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
