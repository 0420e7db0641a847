"""What a search gives."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic

from structgen.core.constraints.base import T_co
from structgen.generation.results import GenerationResult
from structgen.generation.search.space import SearchNode
from structgen.generation.target.results import Limit


@dataclass(frozen=True)
class SearchResult(GenerationResult[T_co], Generic[T_co]):
    """A finished output of a search.

    Attributes:
        score: what it was chosen by, after the length penalty.
        log_prob_global: nats, of its tokens and the end under the model, without the mask; ``logprob``: masked and
            renormalised at each step.
        text_logprob: of all spellings of the text that the search came by: no more than that of the text.
    """

    score: float = math.nan
    log_prob_global: float = math.nan
    text_logprob: float = math.nan


@dataclass(frozen=True, slots=True)
class SearchStats:
    """What a search cost.

    Attributes:
        model_calls: the one that read the prompt included.
        expansions: hypotheses of which it was asked what follows.
        tokens_read: by the model, the prompt's not included.
        seconds: wall-clock time.
    """

    model_calls: int
    expansions: int
    tokens_read: int
    seconds: float


@dataclass(frozen=True)
class SearchRun(Generic[T_co]):
    """What one call of ``search`` gave.

    Attributes:
        results: best first; for draws, in their order.
        method: its name.
        gap: how much more than the last of the results an output may score that is not among them; 0: there is none.
            None: the method does not know.
        stopped_by: the budget that ran out; None: none did.
        refused: outputs before the last of the results whose values the type's own validators refuse.
    """

    results: list[SearchResult[T_co]]
    method: str
    gap: float | None
    stopped_by: Limit | None
    stats: SearchStats
    refused: int = 0

    @property
    def texts(self) -> list[str]:
        """Of the results."""
        return [result.text for result in self.results]

    @property
    def values(self) -> list[T_co]:
        """Of the results."""
        return [result.value for result in self.results]


@dataclass(frozen=True, slots=True)
class RankedValue(Generic[T_co]):
    """One of the likeliest values.

    Attributes:
        value: of the text.
        text: as the model would write it.
        logprob: nats, of the text and its end under the model, without a mask: of all spellings in tokens that were
            seen.
        most: what it is at most, with spellings that were not.
    """

    value: T_co
    text: str
    logprob: float
    most: float


@dataclass(frozen=True)
class Ranking(Generic[T_co]):
    """The likeliest values of a constraint.

    Attributes:
        values: likeliest first; those that the type's own validators refuse are left out.
        exact: whether it is certain that these are the likeliest, in this order.
        missed: the model's probability of all other valid texts is no more than this.
        stopped_by: the budget that ran out; None: none did.
    """

    values: list[RankedValue[T_co]]
    exact: bool
    missed: float
    stopped_by: Limit | None
    stats: SearchStats


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What a method gives: finished nodes with what they scored, best first, and what ``SearchRun`` says of them."""

    finished: Sequence[tuple[float, SearchNode]]
    gap: float | None = None
    stopped_by: Limit | None = None


@dataclass(slots=True)
class Merged:
    """Finished hypotheses that count as one output: the best of them, and the probability of all."""

    score: float
    node: SearchNode
    text_logprob: float = field(default=-math.inf)


def merged(
    finished: Sequence[tuple[float, SearchNode]], keys: Sequence[Hashable], texts: Sequence[str]
) -> list[Merged]:
    """One for each key, in the order of the first of it. Spellings that came twice count once."""
    outputs, spelled = dict[Hashable, Merged](), set[tuple[int, ...]]()
    by_text: dict[str, float] = {}
    for (_, node), text in zip(finished, texts, strict=True):
        if node.hypothesis.tokens not in spelled:
            spelled.add(node.hypothesis.tokens)
            by_text[text] = log_add(by_text.get(text, -math.inf), node.log_prob)
    for (score, node), key, text in zip(finished, keys, texts, strict=True):
        outputs.setdefault(key, Merged(score, node, by_text[text]))
    return list(outputs.values())


def log_add(one: float, other: float) -> float:
    """log(eˣ + eʸ)."""
    high, low = max(one, other), min(one, other)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))
