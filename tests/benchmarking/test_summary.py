"""Figures of a run against figures worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from structgen.benchmarking import summary
from structgen.benchmarking.report import Run, Section, Table, as_html, as_markdown, make_sections


def record(schema: str, engine: str = "e", judgement: str = "valid", **fields: Any) -> dict[str, Any]:
    base = {"dataset": "D", "schema": schema, "engine": engine, "sampling": "greedy", "outcome": "written"}
    return {**base, "judgement": judgement, "reason": "required: 'x'", "text": "{}", "compile_s": 0.002, **fields}


def lost(schema: str, outcome: str, error: str = "", engine: str = "e") -> dict[str, Any]:
    return {
        "dataset": "D",
        "schema": schema,
        "engine": engine,
        "sampling": "greedy",
        "outcome": outcome,
        "error": error,
    }


RECORDS = [
    record("a"),
    record("b"),
    record("c", judgement="invalid"),
    record("d", judgement="unfinished"),
    record("e", judgement="undecided"),
    lost("f", "refused", "[08:00:01] keyword 'not' (at #/x)"),
    lost("g", "timeout", "over 60 s"),
    lost("h", "crash", "exit code 5"),
]


def test_coverage() -> None:
    found = summary.coverage(RECORDS)
    assert (found.schemas, found.declared, found.finished, found.valid) == (8, 5, 3, 2)
    assert (found.declared_share, found.empirical_share) == (5 / 8, 2 / 8)
    assert found.compliance == 2 / 5 and found.finished_compliance == 2 / 3
    assert math.isnan(summary.coverage([]).compliance)


def test_failures_by_class() -> None:
    found = summary.failures([*RECORDS, record("i", judgement="invalid")])
    assert [(label, count) for label, count, _ in found] == [
        ("invalid: required", 2),
        ("unfinished", 1),
        ("undecided", 1),
        ("refused: keyword", 1),
        ("timeout: over 60 s", 1),
        ("crash: exit code 5", 1),
    ]
    assert found[0][2]["schema"] == "c"


def test_ratio_is_of_sums_and_lies_in_its_interval() -> None:
    records = [record(str(i), paired=[10, 1.0 + 0.1 * (i % 2), 1.0], mask_us=[i], tpot_s=0.1) for i in range(40)]
    records.append(record("without"))
    found = summary.efficiency(records)
    assert found.ratio == pytest.approx(1.05) and found.steps == 400
    assert found.interval[0] < 1.05 < found.interval[1] < 1.08
    assert list(found.mask_us) == list(range(40)) and len(found.compile_s) == 41
    assert math.isnan(summary.efficiency([record("x")]).ratio)


def test_common_schemas_and_order() -> None:
    records = [
        record("a", "none"),
        record("a", "structgen"),
        record("b", "none"),
        lost("b", "refused", "", "structgen"),
    ]
    assert {r["schema"] for r in summary.common_schemas(records)} == {"a"}
    assert summary.engines_of(records) == ["structgen", "none"]
    names = [{"dataset": name} for name in ("Zzz", "Github_ultra", "Glaiveai2K", "Aaa")]
    assert summary.datasets_of(names) == ["Glaiveai2K", "Github_ultra", "Aaa", "Zzz"]


def test_report_text() -> None:
    run = Run([*RECORDS, *(record(name, "none", "not_json") for name in "abcdefgh")], {"model": "M"}, {"e": "1.0"})
    text = as_markdown(make_sections([run], "a command"))
    assert text.startswith("# JSONSchemaBench\n\n8 schemas of 1 dataset,")
    assert "engines: e 1.0." in text and "```\na command\n```" in text
    assert "| e | 8 | 62.5 % | 25.0 % | 40.0 % | 66.7 % | 3 |" in text
    assert "| none (unconstrained) | 8 | 100.0 % | 0.0 % | 0.0 % | 0.0 % | 8 |" in text
    assert "| D | 8 | 62 / 25 | 100 / 0 |" in text
    assert "| crash: exit code 5 | 1 | h (greedy): exit code 5 |" in text


def test_cells_cannot_break_the_page() -> None:
    section = Section("t <b>", "a & b", Table(["x", "an example"], [["<script>", "a | b"]]), "<svg></svg>")
    page, markdown = as_html([section]), as_markdown([section])
    assert "&lt;script&gt;" in page and "<script>" not in page and "<svg></svg>" in page
    assert "a \\| b" in markdown
