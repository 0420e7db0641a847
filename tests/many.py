"""How many random cases a test tries: few in ``make test-full``, many in ``make nightly`` (``STRUCTGEN_MANY=1``)."""

from __future__ import annotations

import os

import pytest

MANY = bool(os.environ.get("STRUCTGEN_MANY"))

nightly = pytest.mark.skipif(not MANY, reason="nightly work: STRUCTGEN_MANY=1")
"""What runs in ``make nightly`` alone: slow cases of what quicker ones try too."""


def cases(many: int, few: int) -> range:
    """The numbers of random cases, from 0 on."""
    return range(many if MANY else few)
