"""Findings as SARIF 2.1.0 (OASIS, 2020), which code hosts show beside the lines that they are about."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from structgen.core.answers.text_positions import TextPositions

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


@dataclass(frozen=True)
class SarifResult:
    """One finding in one file; ``evidence``: what shows that it is right, as JSON."""

    rule: str
    level: str
    message: str
    file: str
    pointer: str
    evidence: Any = None


def sarif_log(
    results: Iterable[SarifResult], rules: Mapping[str, str], texts: Mapping[str, str], version: str
) -> dict[str, Any]:
    """The log of one run.

    Args:
        results: what was found. ``rules``: what each rule is about, by id. ``texts``: files, for lines and columns.
        version: of structgen.
    """
    positions = {file: TextPositions(text) for file, text in texts.items()}
    driver = {
        "name": "structgen",
        "version": version,
        "informationUri": "https://pypi.org/project/structgen-lm/",
        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in rules.items()],
    }
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(one, positions) for one in results]}],
    }


def _result(one: SarifResult, positions: Mapping[str, TextPositions]) -> dict[str, Any]:
    line, column = positions[one.file].of(one.pointer) if one.file in positions else (1, 1)
    physical = {"artifactLocation": {"uri": one.file}, "region": {"startLine": line, "startColumn": column}}
    logical = [{"fullyQualifiedName": one.pointer or "/", "kind": "element"}]
    fingerprint = hashlib.sha256(f"{one.rule}\n{one.file}\n{one.pointer}".encode()).hexdigest()[:32]
    return {
        "ruleId": one.rule,
        "level": _LEVELS.get(one.level, "note"),
        "message": {"text": one.message},
        "locations": [{"physicalLocation": physical, "logicalLocations": logical}],
        "partialFingerprints": {"rulePointer/v1": fingerprint},
        "properties": {"evidence": one.evidence},
    }
