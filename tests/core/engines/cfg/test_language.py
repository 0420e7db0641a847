"""The language: against Lark's complete dynamic Earley parser and a textbook recogniser."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from structgen.core.engines.cfg.compiled import compile_grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.core.engines.cfg.lark_grammars import GRAMMARS, judge, normal_form
from tests.core.engines.cfg.reference import Reference

pytest.importorskip("lark")

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=256)
STRINGS = 500


@pytest.mark.first_case
@pytest.mark.parametrize("name", GRAMMARS)
def test_short_strings(name: str) -> None:
    """All short strings: accepted as Lark does; live prefixes as the textbook says; masks and bytes agree."""
    text, alphabet = GRAMMARS[name]
    form = normal_form(text)
    grammar, accepts, reference = compile_grammar(form, BYTES), judge(text), Reference(form)
    length = max(n for n in range(1, 12) if sum(len(alphabet) ** i for i in range(n + 1)) <= STRINGS)
    for size in range(length + 1):
        for characters in itertools.product(alphabet, repeat=size):
            string = "".join(characters)
            matcher = grammar.matcher()
            alive = matcher.accept_bytes(string.encode())
            assert (alive, alive and matcher.is_accepting()) == reference.run(string.encode()), string
            assert (alive and matcher.is_accepting()) == accepts(string), string


@pytest.mark.first_case
@pytest.mark.parametrize("name", GRAMMARS)
def test_walks_and_mutations(name: str) -> None:
    """Random walks end in strings that Lark accepts; mutations of them are judged alike."""
    text, alphabet = GRAMMARS[name]
    grammar, accepts = compile_grammar(normal_form(text), BYTES), judge(text)
    rng = random.Random(name)
    for _ in range(12):
        matcher = grammar.matcher()
        written = bytearray()
        for _ in range(rng.randrange(2, 25)):
            following = np.flatnonzero(matcher.next_bytes()).tolist()
            if not following:
                break
            byte = bytes([rng.choice(following)])
            assert matcher.accept_bytes(byte)
            written += byte
        written += matcher.shortest_completion()
        string = written.decode()
        assert accepts(string), string
        for _ in range(6):
            at = rng.randrange(len(string) + 1)
            mutant = string[:at] + rng.choice(["", rng.choice(alphabet)]) + string[at + rng.randrange(2) :]
            judged = grammar.matcher()
            ours = judged.accept_bytes(mutant.encode()) and judged.is_accepting()
            assert ours == accepts(mutant), mutant
