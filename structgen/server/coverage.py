"""What of a constraint is enforced, as answers say it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from structgen.core.constraints.remarks import reports_of


def report_of(grammar: Any) -> dict[str, Any]:
    """What becomes of each keyword of the schemas in a compiled constraint, and how many have which fate; takes a while
    for a large schema."""
    entries = [entry for report in reports_of(grammar) for entry in report.entries]
    keywords = [{"pointer": e.pointer, "status": e.status, "reason": e.reason} for e in entries]
    return {"counts": dict(Counter(entry.status for entry in entries)), "keywords": keywords}
