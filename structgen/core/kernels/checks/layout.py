"""How descriptions of records are written for the checks, and what they find. No code is here."""

from structgen.core.kernels.json.records import *
from structgen.core.kernels.records import *

CHECK_TABLES, CHECK_AUTOMATON = range(2)  # operations

# --- verdicts ---
(
    FINE, OUT_OF_RANGE, WRONG_KIND, NOT_IN_ORDER, TWO_KINDS, BAD_KEY_SET, BAD_LIMITS, BAD_LENGTHS, BAD_CLASSES,
    BAD_EXISTENTIALS, BAD_DISTINCT, NO_VALUE,
) = range(12)  # fmt: skip
