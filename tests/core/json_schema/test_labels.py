"""Truth of lowered schemas against published labels: the official suite (all of it) and MaskBench (a sample)."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7, DRAFT202012

from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.lowering import Lowered, lower
from structgen.options import JsonOptions

REQUIRED = {"draft7": 927, "draft2020-12": 1299}
SPECIFICATIONS: dict[str, Any] = {"draft7": DRAFT7, "draft2020-12": DRAFT202012}
SAMPLED = 300  # of 5,545 files; all of them take 40 s


def wrong(lowered: Lowered, tests: list[dict[str, Any]]) -> list[str]:
    return [
        str(test.get("description", test["data"]))
        for test in tests
        if evaluate(lowered.root, test["data"], lowered.refs) is not test["valid"]
    ]


@pytest.mark.parametrize("dialect", REQUIRED)
def test_official_suite(suite: Path, dialect: str) -> None:
    remotes = suite / "remotes"
    registry: Registry[Any] = Registry().with_resources(
        (
            f"http://localhost:1234/{path.relative_to(remotes).as_posix()}",
            Resource.from_contents(json.loads(path.read_text()), default_specification=SPECIFICATIONS[dialect]),
        )
        for path in remotes.rglob("*.json")
    )
    options = JsonOptions(dialect=dialect, assert_formats=False)  # type: ignore[arg-type]
    count, failures = 0, []
    for path in sorted((suite / "tests" / dialect).glob("*.json")):
        for group in json.loads(path.read_text()):
            lowered = lower(group["schema"], options, registry)
            count += len(group["tests"])
            failures += [f"{path.name}: {group['description']}: {name}" for name in wrong(lowered, group["tests"])]
    assert failures == []
    assert count == REQUIRED[dialect]


def test_maskbench(maskbench: Path) -> None:
    """Formats asserted."""
    paths = sorted(maskbench.glob("*.json"))
    failures = []
    for path in paths[:: max(1, len(paths) // SAMPLED)]:
        case = json.loads(path.read_text(), parse_float=Decimal)
        failures += [f"{path.name}: {name}" for name in wrong(lower(case["schema"]), case["tests"])]
    assert failures == []
