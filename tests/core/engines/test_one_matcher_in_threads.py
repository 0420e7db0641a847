"""One matcher in several threads at once: a typed error, never the end of the process or a text that is not valid."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

import structgen
from structgen.core.engines.batches import batch_advance_and_fill
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.errors import MatcherStateError
from tests.programs import ROOT

VOCABULARY = structgen.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
SCHEMA = {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}}
CONSTRAINTS: dict[str, Any] = {
    "json": structgen.json_schema(SCHEMA),
    "regex": structgen.regex(r"([a-z]+ ?){0,40}"),
    "lark": structgen.lark('start: (A | "(" start ")")*\nA: /[a-z]+/'),
    "composed": structgen.json_lines(SCHEMA),
}
# Each thread steps, looks, forks and rolls back as it likes; all that may be raised is the typed error.
PROGRAM = """
import random, sys, threading
import tests.core.engines.test_one_matcher_in_threads as here
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.errors import MatcherStateError
sys.setswitchinterval(1e-6)
matcher = here.CONSTRAINTS[sys.argv[1]].compile(here.VOCABULARY).matcher()
refused, wrong = [], []
def work(seed):
    rng, mask = random.Random(seed), allocate_token_bitmask(1, here.VOCABULARY.size)
    tokens = list(b'[{"a": 12}, {"b": 3}, (x) hello <a>')
    for _ in range(4000):
        act = rng.choice(["step", "both", "fill", "bytes", "back", "fork", "stop", "next"])
        try:
            if act == "step": matcher.accept_token(rng.choice(tokens))
            elif act == "both": matcher.advance_and_fill(rng.choice(tokens), mask)
            elif act == "fill": matcher.fill_next_token_bitmask(mask)
            elif act == "bytes": matcher.accept_bytes(bytes(rng.choices(tokens, k=2)))
            elif act == "back": matcher.rollback(1)
            elif act == "fork": matcher.fork().accept_token(rng.choice(tokens))
            elif act == "stop": matcher.is_accepting()
            else: matcher.next_bytes()
        except MatcherStateError as error:
            refused.append(str(error))
        except BaseException as error:
            wrong.append(repr(error))
            raise
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong
print(sum("another thread" in text for text in refused))
"""


@pytest.mark.first_case
@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_four_threads(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, name], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_a_call_beside_another_is_refused(name: str) -> None:
    """As another thread would find the matcher."""
    matcher = CONSTRAINTS[name].compile(VOCABULARY).matcher()
    mask = allocate_token_bitmask(1, VOCABULARY.size)
    inner = matcher
    inner._in_use = True
    calls = [
        lambda: matcher.accept_token(65), lambda: matcher.accept_bytes(b"a"), lambda: matcher.rollback(1),
        lambda: matcher.fill_next_token_bitmask(mask), lambda: matcher.advance_and_fill(65, mask), matcher.fork,
        matcher.copy, matcher.reset, matcher.next_bytes, lambda: batch_advance_and_fill([matcher], [65], mask),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(MatcherStateError, match="another thread is in a call of this matcher"):
            call()
    inner._in_use = False
    matcher.fill_next_token_bitmask(mask)
    assert mask.any()


def test_matchers_of_their_own_are_not_refused() -> None:
    grammar = CONSTRAINTS["json"].compile(VOCABULARY)
    found = []

    def work() -> None:
        matcher = grammar.matcher()
        found.append(all(matcher.accept_token(byte) for byte in b'[{"a": 1}]'))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
