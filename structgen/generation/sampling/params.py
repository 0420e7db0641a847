"""``SamplingParams``: how a token is drawn from the masked distribution; one value that travels whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from structgen.errors import OptionsError
from structgen.options import check_count

ORDER = (
    "temperature", "top_n_sigma", "top_h", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff",
)  # fmt: skip
"""Temperature and filters in the order of transformers, each over what those before have left, renormalised."""
PREFIX_FILTERS = ("temperature", "top_k", "top_p", "min_p")
"""Steps that, in this order, keep the likeliest tokens up to a place: what kernels do without a full sort."""
_NEUTRAL = {
    "top_n_sigma": None, "top_h": None, "top_k": None, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0,
    "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a token is drawn: ``logit_bias``, penalties, the constraint's mask, then the steps of ``order``.

    The mask comes before the filters, so these never leave a row empty. Attributes with their neutral defaults:

    Attributes:
        temperature: logits are divided by it; 0 (default) is greedy (the lowest id wins a tie), whatever the filters.
        top_k: keep the k likeliest allowed tokens (of equals, the lowest ids); None keeps all.
        top_p: keep the likeliest up to this share of the probability, at least one (Holtzman et al. 2020).
        seed: of the random numbers; None takes fresh entropy. A token's number depends on the seed and its place in
            the output only.
        min_p: keep p >= min_p · max p (Nguyen et al. 2024).
        typical_p: keep tokens whose surprisal is nearest the entropy, up to this share (Meister et al. 2023).
        epsilon_cutoff: keep p >= epsilon. eta_cutoff: keep p >= min(eta, √eta · exp(-entropy)) (Hewitt et al. 2022).
        top_n_sigma: keep logits >= max - n · σ, σ over the whole row of logits (Tang et al. 2024).
        top_h: keep the longest prefix of the likeliest whose entropy is at most this share of all (Potraghloo 2025).
        repetition_penalty: logits of tokens of prompt and output are divided by it where positive, else multiplied
            (Keskar et al. 2019). presence_penalty, frequency_penalty: taken off the logits of the output's tokens,
            once, and for each occurrence. Forced tokens do not count: punishing quotes and braces makes odd spellings.
        logit_bias: added to logits, by token id; a mapping, kept as sorted pairs.
        order: temperature and filters in the order of their application; must name each that is used.

    Raises:
        OptionsError: a value out of range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    min_p: float = 0.0
    typical_p: float = 1.0
    epsilon_cutoff: float = 0.0
    eta_cutoff: float = 0.0
    top_n_sigma: float | None = None
    top_h: float | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] | tuple[tuple[int, float], ...] = ()
    order: tuple[str, ...] = ORDER

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0, math.inf)
        check_count("top_k", self.top_k, optional=True)
        check_count("seed", self.seed, 0, optional=True)
        for name in ("top_p", "typical_p", "top_h", "top_n_sigma"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), 0, 1 if name != "top_n_sigma" else math.inf, above=True)
        for name in ("min_p", "epsilon_cutoff", "eta_cutoff"):
            _check(name, getattr(self, name), 0, 1)
        _check("repetition_penalty", self.repetition_penalty, 0, math.inf, above=True)
        _check("presence_penalty", self.presence_penalty, -math.inf, math.inf)
        _check("frequency_penalty", self.frequency_penalty, -math.inf, math.inf)
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
        return (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != (1.0, 0.0, 0.0)

    def _checked_order(self) -> tuple[str, ...]:
        order = tuple(self.order) if isinstance(self.order, (list, tuple)) else ()
        if not order or not set(order) <= set(ORDER) or len(set(order)) < len(order):
            raise OptionsError(
                f"order must name different steps of {', '.join(ORDER)}, not {self.order!r:.200}",
                option="order",
                value=self.order,
            )
        used = ["temperature", *(name for name, neutral in _NEUTRAL.items() if getattr(self, name) != neutral)]
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
    return tuple(name for name in params.order if name == "temperature" or getattr(params, name) != _NEUTRAL[name])


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
