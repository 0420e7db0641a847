"""Strings with a limit whose automaton comes back to its start: there, too, a text must have room to end."""

from __future__ import annotations

import itertools
import re

import pytest

from structgen import JsonOptions, Vocabulary, allocate_token_bitmask, compile_json_schema
from structgen.core.engines.laws import check_laws

LETTERS = "a7"
TEXTS = ["a", "7", '"', "a7", "77", "7a", 'a"', '7"', "777", 'aaa"']
VOCABULARY = Vocabulary([text.encode() for text in TEXTS] + [None], eos_token_ids=len(TEXTS))


@pytest.mark.parametrize("pattern", ["[^0-9]$", "a$", "7a$", "^(?:[^a]*a)+$", "^(?:7{2}a|a7)*$", "^[a7]*$", "a77$"])
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_masks_are_what_can_be_completed(pattern: str, most: int) -> None:
    schema = {"type": "string", "pattern": pattern, "maxLength": most}
    values = ["".join(letters) for n in range(most + 1) for letters in itertools.product(LETTERS, repeat=n)]
    valid = [f'"{value}"'.encode() for value in values if re.search(pattern, value)]
    if not valid:
        return
    grammar = compile_json_schema(schema, VOCABULARY, JsonOptions(whitespace="compact"))
    for text in {whole[:end] for whole in valid for end in range(len(whole))}:
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text)
        wanted = {token for token, said in enumerate(TEXTS) if any(w.startswith(text + said.encode()) for w in valid)}
        bitmask = allocate_token_bitmask(1, VOCABULARY.size)
        matcher.fill_next_token_bitmask(bitmask)
        assert {token for token in range(len(TEXTS)) if bitmask[0, 0] >> token & 1} == wanted, (text, pattern)
    check_laws(grammar, walks=3)
