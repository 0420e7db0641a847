"""``SamplingParams``: how a token is drawn from the masked distribution; one value that travels whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from structgen.errors import OptionsError
from structgen.generation.filters.table import FILTER_NAMED, FILTERS, FilterParams
from structgen.options import check_count

ORDER = ("temperature", *FILTER_NAMED)
"""Temperature and filters in the order of transformers, each over what those before have left, renormalised."""
PREFIX_FILTERS = ("temperature", *(one.name for one in FILTERS if one.keeps_a_prefix))
"""Steps that, in this order, keep the likeliest tokens up to a place: what kernels do without a full sort."""


@dataclass(frozen=True, slots=True)
class SamplingParams(FilterParams):
    """How a token is drawn: ``logit_bias``, penalties, the constraint's mask, then the steps of ``order``.

    The mask comes before the filters, so these never leave a row empty. Attributes with their neutral defaults:

    Attributes:
        temperature: logits are divided by it; 0 (default) is greedy (the lowest id wins a tie), whatever the filters.
        top_k, top_p, min_p and the other filters: see ``FilterOptions``.
        seed: of the random numbers; None takes fresh entropy. A token's number depends on the seed and its place in
            the output only.
        repetition_penalty: logits of tokens of prompt and output are divided by it where positive, else multiplied
            (Keskar et al. 2019). presence_penalty, frequency_penalty: taken off the logits of the output's tokens,
            once, and for each occurrence. Forced tokens do not count: punishing quotes and braces makes odd spellings.
        dry_multiplier: what DRY takes off the logit of a token that would go on with a repetition, as llama.cpp has it
            (p-e-w 2024): where the last m tokens of prompt and output, forced ones too, came before it already,
            dry_multiplier · dry_base ** (m - dry_allowed_length), from m = dry_allowed_length on; 0: nothing. No
            repetition reaches over a token that holds one of dry_sequence_breakers, and none of those is punished.
        logit_bias: added to logits, by token id; a mapping, kept as sorted pairs.
        order: temperature and filters in the order of their application; must name each that is used.

    Raises:
        OptionsError: a value out of range.
    """

    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    logit_bias: Mapping[int, float] | tuple[tuple[int, float], ...] = ()
    order: tuple[str, ...] = ORDER

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0, math.inf)
        check_count("seed", self.seed, 0, optional=True)
        for one in FILTERS:
            value = getattr(self, one.name)
            if one.is_count:
                check_count(one.name, value, optional=True)
            elif value is not None or one.neutral is not None:
                _check(one.name, value, 0, one.high, above=one.above)
        _check("repetition_penalty", self.repetition_penalty, 0, math.inf, above=True)
        _check("presence_penalty", self.presence_penalty, -math.inf, math.inf)
        _check("frequency_penalty", self.frequency_penalty, -math.inf, math.inf)
        _check("dry_multiplier", self.dry_multiplier, 0, math.inf)
        _check("dry_base", self.dry_base, 1, math.inf)
        check_count("dry_allowed_length", self.dry_allowed_length)
        object.__setattr__(self, "dry_sequence_breakers", _breakers(self.dry_sequence_breakers))
        object.__setattr__(self, "logit_bias", _bias(self.logit_bias))
        object.__setattr__(self, "order", self._checked_order())

    @property
    def steps(self) -> tuple[str, ...]:
        """What ``order`` names and is not neutral; nothing if greedy."""
        return _steps(self)

    @property
    def bias_pairs(self) -> tuple[tuple[int, float], ...]:
        """``logit_bias`` as it is kept: pairs of token id and bias, ascending."""
        assert isinstance(self.logit_bias, tuple)
        return self.logit_bias

    @property
    def has_penalties(self) -> bool:
        """Whether logits depend on the tokens before: penalties."""
        counted = (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != (1.0, 0.0, 0.0)
        return counted or self.dry_multiplier > 0

    def _checked_order(self) -> tuple[str, ...]:
        order = tuple(self.order) if isinstance(self.order, (list, tuple)) else ()
        if not order or not set(order) <= set(ORDER) or len(set(order)) < len(order):
            raise OptionsError(
                f"order must name different steps of {', '.join(ORDER)}, not {self.order!r:.200}",
                option="order",
                value=self.order,
            )
        used = ["temperature", *(one.name for one in FILTERS if getattr(self, one.name) != one.neutral)]
        missing = [name for name in used if name not in order]
        if missing:
            raise OptionsError(
                f"order {order} does not say where {', '.join(missing)} comes; name it, or leave it out",
                option="order",
                value=order,
            )
        return order


@lru_cache(256)
def _steps(params: SamplingParams) -> tuple[str, ...]:
    if params.temperature == 0:
        return ()
    return tuple(
        name for name in params.order if name == "temperature" or getattr(params, name) != FILTER_NAMED[name].neutral
    )


def keeps_a_prefix(params: SamplingParams) -> bool:
    """Whether the steps keep the likeliest tokens up to a place, and are in the order that kernels know."""
    return params.steps == tuple(name for name in PREFIX_FILTERS if name in params.steps)


def _check(name: str, value: Any, low: float, high: float, *, above: bool = False) -> None:
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and low <= value <= high and not (above and value == low)):
        bounds = f"> {low:g}" if above else f">= {low:g}" if math.isfinite(low) else ""
        bounds += f" and <= {high:g}" if math.isfinite(high) else ""
        raise OptionsError(
            f"{name} must be a finite number {bounds}".rstrip() + f", not {value!r:.100}", option=name, value=value
        )


def _breakers(given: Any) -> tuple[str, ...]:
    texts = tuple(given) if isinstance(given, (list, tuple, set, frozenset)) else (given,)
    if not all(isinstance(text, str) and text for text in texts):
        raise OptionsError(
            f"dry_sequence_breakers must be strings, none empty, not {given!r:.100}",
            option="dry_sequence_breakers",
            value=given,
        )
    return texts


def _bias(given: Any) -> tuple[tuple[int, float], ...]:
    try:
        pairs = dict(given)
    except (TypeError, ValueError):
        raise OptionsError(
            f"logit_bias must be a mapping of token ids to numbers, not {given!r:.100}",
            option="logit_bias",
            value=given,
        ) from None
    for token, value in pairs.items():
        check_count("a token id of logit_bias", token, 0)
        _check("a value of logit_bias", value, -math.inf, math.inf)
    return tuple(sorted((int(token), float(value)) for token, value in pairs.items()))
