"""Two schemas compared: what is said of each direction, by documents that the fuzzer's own judge reads."""

from __future__ import annotations

from collections import Counter
from typing import Any

import structgen
from structgen.errors import SchemaTooComplexError, UnresolvableReferenceError
from tests.core.answers.random_pairs import Pair, verdict_errors

NAMED = ("uniqueItems", "more than", "maxProperties", "states", "conditions")
"""What of an open question's reason names a budget or keyword."""


def unit(seed: int, tally: Counter[str]) -> list[dict[str, Any]]:
    """Compare one pair, of one draft."""
    pair = Pair(seed)
    try:
        answer = structgen.compare(*pair.schemas, options=pair.options())
    except (UnresolvableReferenceError, SchemaTooComplexError):
        return []
    tally["pairs"] += 1
    tally["pairs open"] += bool(answer.unknown)
    decided = answer.old_in_new, answer.new_in_old
    texts = tuple(one.text if one else None for one in (answer.old_only, answer.new_only))
    wrong = verdict_errors(pair, decided, texts, 10)
    wrong += [reason for reason in answer.unknown if not any(word in reason for word in NAMED)]
    return [{"kind": "wrong comparison", "detail": f"{pair.schemas!r:.300}: {wrong[0]:.200}"}] if wrong else []
