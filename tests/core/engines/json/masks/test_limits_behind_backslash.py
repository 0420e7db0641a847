"""Limits on strings behind a backslash: what looks like an escape of the token's own is then text, and longer."""

from __future__ import annotations

import pytest

from structgen import JsonOptions, Vocabulary, compile_json_schema
from tests.core.engines.json.masks.taking import checked_mask

ESCAPES = [
    b"\\u0041bcdefgh",
    b"\\ud83d__proto__",
    b"\\ude00efale",
    b"\\n\\n\\n\\n",
    b"\\\\\\\\\\\\",
    b"\\ud83d\\ude00",
    b"n\\u0041",
]
VOCABULARY = Vocabulary(
    [*(bytes([b]) for b in range(256)), *ESCAPES, *(e + b'"' for e in ESCAPES), None],
    eos_token_ids=256 + 2 * len(ESCAPES),
)


@pytest.mark.parametrize("most", range(1, 24))
@pytest.mark.parametrize("before", [b'"', b'"aa', b'"aa\\', b'"\\', b'"\\ud83d\\ude00\\', b'"\\\\\\', b'"\\u00'])
def test_a_mask_is_what_is_accepted(before: bytes, most: int) -> None:
    schemas = [{"type": "string", "maxLength": most}, {"type": "string", "maxLength": most, "pattern": "^[^z]*$"}]
    for schema in schemas:
        matcher = compile_json_schema(schema, VOCABULARY, JsonOptions.exact()).matcher()
        if not matcher.accept_bytes(before):
            continue
        checked_mask(matcher)
