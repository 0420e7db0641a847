"""Critics: what they promise, what they give, and what is refused."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from structgen.core.constraints.json import json_schema
from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.critics import Candidate, critic


def lengths(candidates: Sequence[Candidate]) -> list[float]:
    return [float(len(each.text)) for each in candidates]


@pytest.mark.parametrize("seed", range(20))
def test_scores_do_not_depend_on_what_is_asked_with_them(seed: int) -> None:
    rng = random.Random(seed)
    texts = [Candidate(rng.choice("ab") * rng.randrange(6)) for _ in range(40)]
    judged = critic(lengths, weight=0.5, batch=rng.randint(1, 9), memo=rng.choice([0, 1, 5, 100]))
    while texts:
        count = rng.randint(1, 7)
        part, texts = texts[:count], texts[count:]
        assert judged(part) == [0.5 * len(each.text) for each in part]


def test_each_text_is_asked_about_once() -> None:
    judged = critic(lengths)
    judged([Candidate("a"), Candidate("a"), Candidate("b")])
    judged([Candidate("b")])
    assert judged.asked == 2


def test_a_weight_of_zero_is_no_critic() -> None:
    judged = critic(lambda candidates: [math.nan], weight=0)
    assert judged([Candidate("a"), Candidate("b", is_whole=False)]) == [0.0, 0.0] and judged.asked == 0


def test_refusals_stay_refusals_and_numpy_scores_are_scores() -> None:
    assert critic(lambda each: np.array([-np.inf, 1.5]), weight=2.0)([Candidate("a"), Candidate("b")]) == [-math.inf, 3]


@pytest.mark.parametrize("score", [math.nan, math.inf, None, "1", [1.0], 1j])
def test_what_is_no_score_is_refused(score: Any) -> None:
    with pytest.raises(GenerationError, match=r"for 'a'"):
        critic(lambda candidates: [score])([Candidate("a")])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_one_score_each(count: int) -> None:
    with pytest.raises(GenerationError, match=f"{count} scores for 2"):
        critic(lambda candidates: [0.0] * count)([Candidate("a"), Candidate("b")])


def test_what_a_critic_raises_names_the_text() -> None:
    def broken(candidates: Sequence[Candidate]) -> list[float]:
        raise KeyError("x")

    with pytest.raises(GenerationError, match="raised KeyError") as caught:
        critic(broken)([Candidate("text")])
    assert caught.value.text == "text" and isinstance(caught.value.__cause__, KeyError)


def test_promises_are_kept() -> None:
    with pytest.raises(GenerationError, match="for whole texts only"):
        critic(lengths)([Candidate("a", is_whole=False)])
    with pytest.raises(GenerationError, match="at most 1"):
        critic(lengths, most=1.0, weight=2.0)([Candidate("ab")])
    judged = critic(lengths, most=1.0, weight=2.0, prefixes=True)
    assert judged.most == 2 and judged([Candidate("ab", is_whole=False), Candidate("a")]) == [4.0, 2.0]


@pytest.mark.parametrize(
    "options",
    [{"weight": -1}, {"weight": math.nan}, {"weight": True}, {"most": math.inf}, {"most": "1"}, {"prefixes": 1},
     {"batch": 0}, {"memo": -1}],
)  # fmt: skip
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError):
        critic(lengths, **options)


def test_a_critic_keeps_its_promises() -> None:
    """Other ones would not be heard."""
    made = critic(lengths, most=9.0)
    assert critic(made) is made
    for options in ({"weight": 3.0}, {"prefixes": True}, {"most": 2.0}, {"batch": 1}, {"memo": 0}):
        with pytest.raises(OptionsError, match="promises"):
            critic(made, **options)


def test_values_are_read_when_asked_for() -> None:
    schema = json_schema({"type": "object"})
    assert Candidate('{"a": 1}', constraint=schema).value == {"a": 1}
    assert Candidate('{"a": 1, "b": "x', is_whole=False, constraint=schema).partial == {"a": 1, "b": "x"}
    assert Candidate("x", constraint=schema).text == "x"
    with pytest.raises(OptionsError, match="function of candidates"):
        critic(5)  # type: ignore[arg-type]
