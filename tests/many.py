"""How many random cases a test tries: few in ``make test-full``, many in ``make nightly`` (``STRUCTGEN_MANY=1``)."""

from __future__ import annotations

import os


def cases(many: int, few: int) -> range:
    """The numbers of random cases, from 0 on."""
    return range(many if os.environ.get("STRUCTGEN_MANY") else few)
