"""One answer from several, against brute force over random JSON values."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from typing import Any

import pytest

import structgen
from structgen.errors import OptionsError
from structgen.generation.consensus import consensus, leaf_overlap, leaves
from tests.many import cases


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def record(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(5 if depth < 2 else 3)
    if kind == 3:
        return [record(rng, depth + 1) for _ in range(rng.randrange(3))]
    if kind == 4:
        return {name: record(rng, depth + 1) for name in rng.sample(["a", "b", "/~"], rng.randrange(4))}
    return rng.choice([None, True, 0, 1, 2, "x", "y"])


def drawn(seed: int) -> tuple[list[Any], list[float]]:
    rng = random.Random(seed)
    pool = [record(rng) for _ in range(4)]
    values = [rng.choice(pool) for _ in range(rng.randint(1, 7))]
    return values, [rng.choice([0.5, 1.0, 2.0]) for _ in values]


def overlap(one: Any, other: Any) -> float:
    """Pairs of equal leaves, taken away one by one."""
    first, second = ([(path, text(leaf)) for path, leaf in leaves(each, "*")] for each in (one, other))
    size, common = len(first) + len(second), 0
    for each in first:
        if each in second:
            second.remove(each)
            common += 1
    return 2 * common / size


@pytest.mark.parametrize("seed", cases(2000, 60))
def test_each_choice_is_the_best_by_brute_force(seed: int) -> None:
    values, weights = drawn(seed)
    sums = Counter[str]()
    for value, weight in zip(values, weights, strict=True):
        sums[text(value)] += weight  # type: ignore[assignment]
    by_value = consensus(values, weights, by="value")
    assert sums[text(by_value.value)] == max(sums.values())
    assert by_value.share == pytest.approx(sums[text(by_value.value)] / sum(weights))
    useful = consensus(values, weights, by="mbr")
    means = [math.fsum(w * overlap(one, each) for each, w in zip(values, weights, strict=True)) for one in values]
    assert means[[text(each) for each in values].index(text(useful.value))] == pytest.approx(max(means))
    for chosen in (by_value, useful, consensus(values, weights)):
        for pointer, vote in chosen.fields.items():
            said = Counter[str]()
            for value, weight in zip(values, weights, strict=True):
                for each, leaf in leaves(value):
                    if each == pointer:
                        said[text(leaf)] += weight / sum(weights)  # type: ignore[assignment]
            assert {text(each): share for each, share in vote.values} == pytest.approx(dict(said))
            assert vote.share == pytest.approx(said[text(vote.value)])


@pytest.mark.parametrize("seed", cases(500, 20))
def test_flat_records_give_the_mode_of_each_member(seed: int) -> None:
    rng = random.Random(seed)
    records = [{name: rng.randrange(3) for name in "abc"} for _ in range(rng.randint(1, 9))]
    chosen = consensus(records)
    for name in "abc":
        counts = Counter(each[name] for each in records)
        assert counts[chosen.value[name]] == max(counts.values())


def test_what_the_fields_say_together_may_be_refused() -> None:
    records = [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2}]
    assert consensus(records).value == {"a": 1, "b": 2}
    mixed = [{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "c": 2}, {"a": 2, "b": 1, "c": 2}]
    assert consensus(mixed).value == {"a": 1, "b": 1, "c": 2} and consensus(mixed).share == 0
    refused = structgen.consensus(mixed, accepts=lambda value: False)
    assert refused.by == "mbr" and refused.value in mixed


def test_weights_of_any_size() -> None:
    for size in (1e308, 1.0, 1e-300):
        chosen = consensus(["a", "b", "b"], [size] * 3)
        assert chosen.value == "b" and chosen.share == pytest.approx(2 / 3)


def test_equal_as_json() -> None:
    assert consensus([1, 1.0, True]).share == pytest.approx(2 / 3)
    assert leaf_overlap([1, 2, 2], [2, 1]) == pytest.approx(0.8)
    assert consensus([1, 2]).is_split and not consensus([1, 1, 2]).is_split


@pytest.mark.parametrize(
    "values, options",
    [
        ([], {}), ("ab", {}), ({"a": 1}, {}), ([math.nan], {}), ([object()], {}), ([{1: 2}], {}), ([(1, 2)], {}),
        ([1], {"weights": [1, 2]}), ([1], {"weights": [-1]}), ([1], {"weights": [0]}), ([1], {"weights": ["1"]}),
        ([1], {"by": "mean"}), ([1], {"by": "mbr", "utility": lambda one, other: math.nan}),
        ([1], {"weights": 5}), ([1], {"by": "mbr", "utility": lambda one, other: None}),
        ([1], {"by": "mbr", "utility": lambda one, other: 10**400}), ([1], {"by": "mbr", "utility": "overlap"}),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(values: Any, options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError):
        consensus(values, **options)
