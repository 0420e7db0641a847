"""Limits on strings behind a backslash: what looks like an escape of the token's own is then text, and longer."""

from __future__ import annotations

import numpy as np
import pytest

from structgen import JsonOptions, Vocabulary, allocate_token_bitmask, compile_json_schema

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
        bitmask = allocate_token_bitmask(1, VOCABULARY.size)
        matcher.fill_next_token_bitmask(bitmask)
        allowed = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")
        for token in range(VOCABULARY.size):
            taken = matcher.accept_token(token)
            assert taken == allowed[token], (before, most, VOCABULARY.tokens[token])
            if taken:
                matcher.rollback()
