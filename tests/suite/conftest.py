"""Collects the counts of the official suite and prints them at the end of the test run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

TOTALS: dict[str, Any] = {}


@pytest.fixture
def record_result() -> Callable[[str, Any], None]:
    """Add a file's result to the total of its kind."""

    def record(kind: str, result: Any) -> None:
        TOTALS[kind] = TOTALS[kind] + result if kind in TOTALS else result

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each dialect and kind that ran."""
    if TOTALS:
        terminalreporter.section("official JSON Schema test suite")
    for kind, total in TOTALS.items():
        terminalreporter.write_line(f"{kind}: {total}")
