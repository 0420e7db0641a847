"""Guesses of continuations: prefixes of one text are read in one call."""

from __future__ import annotations

import math

from structgen.core.constraints.text import regex
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.models.tiny import TinyModel
from structgen.generation.target.store import PrefixStore
from structgen.generation.target.target import Target


def test_calls_are_saved_where_walks_come() -> None:
    """With guesses it takes fewer calls, and the bounds are the same in the end."""
    vocabulary = Vocabulary([None, b"a", b"b", b"c", b"d"], eos_token_ids=0)
    prompt = [3, 1, 2, 3, 4, 1, 2, 4, 3, 1]
    target = Target(TinyModel(5, scale=0.3), prompt, regex("bcdabd"), vocabulary)
    plain, guided = PrefixStore(target), PrefixStore(target, draft=lambda prefix: [2, 3, 4, 1, 2, 4][len(prefix) :])
    for store in (plain, guided):
        store.expand_best_first(100, batch=1)
    assert plain.reader.calls == 7 and guided.reader.calls < 4
    assert math.isclose(plain.log_z_bounds[0], guided.log_z_bounds[0], rel_tol=1e-9)
