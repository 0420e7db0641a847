"""Scores of the JSONSchemaBench tasks for lm-evaluation-harness, by python-jsonschema with formats asserted."""

from __future__ import annotations

from typing import Any

from structgen.benchmarking.validity import judge_text


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """``json``: the output is JSON; ``valid``: and valid under the schema."""
    judgement, _ = judge_text(doc["json_schema"], results[0].strip(), finished=True)
    return {"valid": float(judgement == "valid"), "json": float(judgement != "not_json")}
