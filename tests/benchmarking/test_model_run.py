"""A whole run with a model without weights: records, losses, resumption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from structgen.benchmarking.model_run import run_benchmark
from structgen.benchmarking.model_server import DECODER, ModelSetting
from structgen.benchmarking.schemas import Case
from structgen.benchmarking.validity import judge_text
from structgen.core.workers import Limits

SCHEMAS = {
    "plain": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
    "hang": {"type": "boolean", "description": "hang"},
    "crash": {"type": "object", "properties": {"long name": {"type": "boolean"}}, "description": "crash"},
    "refused": {"type": "string", "pattern": "(a)\\1"},
    "large": {"type": "array", "minItems": 40},
}
ENGINES = ("structgen", DECODER, "tiny_bench:Troubled", "none")
SETTING = ModelSetting("tiny_bench:load", ENGINES, max_new_tokens=30, max_prompt_tokens=400, shots=0)
CASES = [Case("D", name, json.dumps(schema)) for name, schema in SCHEMAS.items()]


@pytest.mark.full
def test_a_run_with_losses_and_its_resumption(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    records = run_benchmark(CASES, SETTING, Limits(3.0), out, quiet=True)
    assert len(out.read_text().splitlines()) == len(records) + 1
    found = {(r["schema"], r["engine"], r["sampling"]): r for r in records}
    assert len(found) == len(records) == len(CASES) * 7, "the decoder is run greedily only"
    for (schema, engine, _), record in found.items():
        if engine == "tiny_bench:Troubled" and schema in ("hang", "crash"):
            assert record["outcome"] == {"hang": "timeout", "crash": "crash"}[schema]
        elif schema == "refused" and engine != "none":
            assert record["outcome"] == "refused" and "Backreference" in record["error"]
        else:
            assert record["outcome"] == "written", record
            finished = record["finish"] == "stop" or (engine == DECODER and record["finish"] == "length")
            text = json.dumps(SCHEMAS[schema])
            assert record["judgement"] == judge_text(text, record["text"], finished)[0]
            if engine in ("structgen", DECODER) and finished:
                assert record["judgement"] == "valid"
    assert found["large", DECODER, "greedy"]["judgement"] == "unfinished", "40 items do not fit 30 tokens"
    assert found["plain", DECODER, "greedy"]["judgement"] == "valid"
    steps, seconds, free = found["plain", "structgen", "greedy"]["paired"]
    assert steps > 0 and seconds > 0 and free > 0

    again = run_benchmark(CASES, SETTING, Limits(3.0), out, quiet=True)
    assert again == records and len(out.read_text().splitlines()) == len(records) + 1, "nothing ran twice"
    with pytest.raises(ValueError, match="choose another --out"):
        run_benchmark(CASES, ModelSetting("tiny_bench:load", ENGINES), Limits(3.0), out)


def test_an_interrupted_run_goes_on_in_the_middle_of_a_schema(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    setting = ModelSetting("tiny_bench:load", ("structgen", "none"), pace="together", max_new_tokens=20, shots=0)
    whole = run_benchmark(CASES[:1], setting, Limits(30.0), out, quiet=True)
    head, first, *_ = out.read_text().splitlines()
    out.write_text(f"{head}\n{first}\n")
    again = run_benchmark(CASES[:1], setting, Limits(30.0), out, quiet=True)
    told = [(r["engine"], r["sampling"], r.get("text"), r["judgement"]) for r in again]
    assert sorted(told) == sorted((r["engine"], r["sampling"], r.get("text"), r["judgement"]) for r in whole)
