"""One answer from several: the most frequent value, the one that is most like the others, or the mode field by field.

Values are plain JSON. ``Generator.vote`` draws them; ``consensus`` takes them from anywhere.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Generic, Literal, TypeAlias, get_args

from structgen.core.constraints.base import T_co
from structgen.core.json_schema.pointers import escape
from structgen.errors import OptionsError
from structgen.generation.fields.events import canonical, check_plain, named_value
from structgen.options import as_number, check_choice

By: TypeAlias = Literal["value", "fields", "mbr"]
Utility: TypeAlias = "Callable[[Any, Any], float]"


@dataclass(frozen=True)
class FieldVote:
    """What samples say of one field.

    Attributes:
        value: that of the answer.
        share: of the weight, what the samples have that say so.
        values: what samples say there, with their shares, highest first; those that lack the field are in none.
    """

    value: Any
    share: float
    values: tuple[tuple[Any, float], ...]


@dataclass(frozen=True)
class Consensus(Generic[T_co]):
    """One answer from several.

    Attributes:
        value: the answer.
        share: of the weight, what the samples have that are equal to it.
        by: how it was chosen: "mbr" in place of "fields" where what the fields say together was refused.
        fields: by JSON Pointer, each value of the answer that is neither an object nor an array with something in it.
    """

    value: T_co
    share: float
    by: By
    fields: Mapping[str, FieldVote] = field(default_factory=dict)

    @property
    def is_split(self) -> bool:
        """Whether some field has no more than half of the weight; of answers without fields, the answer itself."""
        return min((each.share for each in self.fields.values()), default=self.share) <= 0.5


def consensus(
    values: Sequence[Any],
    weights: Sequence[float] | None = None,
    *,
    by: By = "fields",
    utility: Utility | None = None,
    accepts: Callable[[Any], bool] = lambda value: True,
) -> Consensus[Any]:
    """One answer from several plain JSON values, equal as JSON has it (1 and 1.0 are one value, 1 and true two).

    Args:
        values: at least one.
        weights: of each, at least 0; None: 1 for each.
        by: "value": the value of the highest weight. "mbr": the value of the highest mean utility against all.
            "fields": of each field the value of the highest weight; where ``accepts`` refuses them together, "mbr".
            Of equals, what comes first.
        utility: of "mbr": how good the first value is where the second is right; None: ``leaf_overlap``.
        accepts: whether a value that no sample has may be the answer.

    Raises:
        OptionsError: no values, one that is no plain JSON, weights that are no weights of these, another ``by``.
    """
    check_choice("by", by, get_args(By))
    names = _named(values)
    weighted = list(zip(values, _checked_weights(weights, len(names)), strict=True))
    votes, total = _summed(zip(names, (weight for _, weight in weighted), strict=True)), _total(weighted)
    mixed = _mode(weighted) if by == "fields" else None
    if by == "fields" and canonical(mixed) not in votes and not accepts(mixed):
        by = "mbr"
    value = mixed if by == "fields" else values[names.index(max(votes, key=votes.__getitem__))]
    if by == "mbr":
        value = _most_useful(weighted, utility or leaf_overlap)
    return Consensus(value, votes.get(canonical(value), 0.0) / total, by, _field_votes(value, weighted, total))


def leaf_overlap(one: Any, other: Any) -> float:
    """The share of leaves that two JSON values have in common, 0 to 1; items of arrays in any order."""
    first, second = (Counter((path, canonical(leaf)) for path, leaf in leaves(each, "*")) for each in (one, other))
    return 2 * (first & second).total() / (first.total() + second.total())


def leaves(value: Any, index: str | None = None, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """What is neither an object nor an array with anything in it, by JSON Pointer; ``index`` is for every index."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from leaves(inner, index, f"{pointer}/{escape(name)}")
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, index, f"{pointer}/{number if index is None else index}")
    else:
        yield pointer, value


def _named(values: Any) -> list[str]:
    """The canonical text of each value."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Sequence) or not values:
        raise OptionsError(f"a consensus needs a list of values, at least one, not {values!r:.100}", option="values")
    for index, value in enumerate(values):
        check_plain(value, f"value {index}")
    return [canonical(value) for value in values]


def _checked_weights(weights: Sequence[float] | None, count: int) -> list[float]:
    if weights is None:
        return [1.0] * count
    given = list(weights) if isinstance(weights, Iterable) else []
    numbers = all(isinstance(each, Real) and math.isfinite(each) and each >= 0 for each in given)
    if len(given) != count or not numbers or not any(given):
        raise OptionsError(
            f"weights are {weights!r:.100}; expected {count} numbers of at least 0, not all 0: one for each value",
            option="weights",
        )
    highest = max(given)  # shares are of ratios, and sums shall not overflow
    return [float(each / highest) for each in given]


def _summed(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The weights by name."""
    sums = dict[str, float]()
    for name, weight in pairs:
        sums[name] = sums.get(name, 0.0) + weight
    return sums


def _total(weighted: Sequence[tuple[Any, float]]) -> float:
    return math.fsum(weight for _, weight in weighted)


def _mode(weighted: Sequence[tuple[Any, float]]) -> Any:
    """Objects member by member, all else as a whole: what has the highest weight."""
    names = ["{}" if isinstance(value, dict) else canonical(value) for value, _ in weighted]
    kinds = _summed(zip(names, (weight for _, weight in weighted), strict=True))
    kind = max(kinds, key=kinds.__getitem__)
    if kind != "{}":
        return weighted[names.index(kind)][0]
    objects = [(value, weight) for value, weight in weighted if isinstance(value, dict)]
    merged = dict[str, Any]()
    for name in dict.fromkeys(name for value, _ in objects for name in value):
        having = [(value[name], weight) for value, weight in objects if name in value]
        if 2 * _total(having) > _total(objects):
            merged[name] = _mode(having)
    return merged


def _most_useful(weighted: Sequence[tuple[Any, float]], utility: Utility) -> Any:
    """The value of the highest mean utility."""
    if not callable(utility):
        raise OptionsError(f"utility must be a function of two values, not {utility!r:.80}", option="utility")
    best, highest = None, -math.inf
    for value, _ in weighted:
        scores = [as_number(utility(value, other)) for other, _ in weighted]
        if not all(map(math.isfinite, scores)):
            raise OptionsError(f"the utility of {value!r:.80} is no finite number", option="utility")
        mean = math.fsum(weight * score for (_, weight), score in zip(weighted, scores, strict=True))
        if mean > highest:
            best, highest = value, mean
    return best


def _field_votes(value: Any, weighted: Sequence[tuple[Any, float]], total: float) -> dict[str, FieldVote]:
    said = dict[str, list[tuple[Any, float]]]()
    for each, weight in weighted:
        for pointer, leaf in leaves(each):
            said.setdefault(pointer, []).append((leaf, weight / total))
    return {pointer: _field_vote(leaf, said.get(pointer, [])) for pointer, leaf in leaves(value)}


def _field_vote(leaf: Any, said: Sequence[tuple[Any, float]]) -> FieldVote:
    shares = _summed((canonical(each), share) for each, share in said)
    order = sorted(shares, key=lambda name: -shares[name])
    return FieldVote(leaf, shares.get(canonical(leaf), 0.0), tuple((named_value(name), shares[name]) for name in order))
