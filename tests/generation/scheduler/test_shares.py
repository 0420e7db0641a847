"""Whose turn it is: who has used least, and nobody is owed what he did not ask for."""

from __future__ import annotations

import random

from structgen.generation.scheduler.shares import KEPT_CALLERS, Shares


def test_who_comes_begins_with_those_who_are_there() -> None:
    shares = Shares()
    shares.arrive("a")
    shares.charge("a", 5)
    shares.arrive("b", ["a"])
    assert shares.used("b") == shares.used("a") == 5
    shares.charge("b", 2)
    shares.arrive("a", ["b"])
    assert shares.used("a") == 7, "what b had meanwhile is not owed to a"


def test_who_has_used_more_brings_it_along() -> None:
    shares = Shares()
    for who in "ab":
        shares.arrive(who, "ab")
    shares.charge("a", 9)
    shares.arrive("a", ["b"])
    assert shares.used("a") == 9 and shares.used("b") == 0


def test_what_nobody_else_wanted_is_held_against_nobody() -> None:
    shares = Shares()
    shares.arrive("a")
    shares.charge("a", 1000)
    shares.arrive("b")
    shares.arrive("a", ["b"])
    assert shares.used("a") == shares.used("b") == 1000


def test_turns_by_weight() -> None:
    """Of three who always want more, each has a third, whatever their things weigh and whenever they came."""
    rng, shares, had = random.Random(0), Shares(), dict.fromkeys("abc", 0.0)
    present = list[str]()
    for step in range(3_000):
        if step in (0, 500, 1_000):
            present.append("abc"[len(present)])
            shares.arrive(present[-1], present)
        who = min(present, key=shares.used)
        weight = rng.uniform(0, {"a": 1, "b": 5, "c": 20}[who])
        shares.charge(who, weight)
        had[who] += weight if step >= 1_000 else 0
    assert max(had.values()) - min(had.values()) <= 2 * 20


def test_those_who_left_are_forgotten() -> None:
    shares = Shares()
    shares.arrive("here")
    for number in range(3 * KEPT_CALLERS):
        shares.arrive(str(number), ["here"])
    assert len(shares._used) <= KEPT_CALLERS and "here" in shares._used
