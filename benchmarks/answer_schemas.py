"""Real schemas in random order, what judges documents of them, and quantiles of times."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.validators import validator_for

from structgen.core.json_schema.exact_validator import exact_validator


def schemas(data: Path, seed: int) -> Iterator[tuple[str, Any]]:
    """Real schemas, in random order."""
    paths = sorted(data.glob("*.json"))
    random.Random(seed).shuffle(paths)
    for path in paths:
        schema = json.loads(path.read_text(encoding="utf-8"))["schema"]
        if isinstance(schema, dict):
            yield path.stem, schema


def is_valid(schema: Any, value: Any) -> bool:
    """By python-jsonschema with exact division; formats are judged where it can."""
    kind = exact_validator(validator_for(schema, default=jsonschema.Draft202012Validator))
    return bool(kind(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).is_valid(value))


def quantile(times: list[float], share: float) -> float:
    """Of sorted times."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] if times else 0.0
