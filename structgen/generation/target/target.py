"""The distribution that is sampled: a language model after a prompt, given that its text satisfies a constraint."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, get_args, get_origin

import numpy as np
import numpy.typing as npt

from structgen.core.constraints.base import T
from structgen.core.constraints.parts import without_regions
from structgen.core.constraints.rules import compile_masks
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, OptionsError
from structgen.generation.models.capabilities import capabilities_of
from structgen.generation.sampling import (
    LogProbs,
    SamplingParams,
    deviation,
    filtered_probs,
    masked_log_probs,
    to_numpy,
)
from structgen.options import check_count

_THIS_PROCESS = "\0this process: "  # no text of a value has it: repr escapes it
_PLAIN = (str, bytes, int, float, bool, type(None))


def is_lasting(name: str) -> bool:
    """Whether a name means the same in another process."""
    return _THIS_PROCESS not in name


def model_id(model: Any) -> str:
    """A digest of what a model says that it is (``fingerprint``); else the object's identity."""
    fingerprint = capabilities_of(model).fingerprint
    return _identity(model) if fingerprint is None else str(fingerprint())


def value_id(value: Any) -> str:
    """All that a value is compared by: plain values, containers, dataclasses and types; anything else by identity.

    A file counts with its content. O(size of the value).
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # equal values, equal names
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if get_origin(value) is not None:  # list[int] and its like
        return f"{value_id(get_origin(value))}{value_id(get_args(value))}"
    if isinstance(value, Path):
        return f"file {hashlib.blake2b(value.read_bytes(), digest_size=16).hexdigest()}"
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(value_id, value))})"
    if isinstance(value, (set, frozenset)):
        return f"{{{','.join(sorted(map(value_id, value)))}}}"
    if isinstance(value, dict):
        return f"{{{','.join(sorted(f'{value_id(key)}:{value_id(item)}' for key, item in value.items()))}}}"
    if is_dataclass(value):
        compared = (f"{item.name}={value_id(getattr(value, item.name))}" for item in fields(value) if item.compare)
        return f"{value_id(type(value))}({','.join(compared)})"
    return _identity(value)


def _identity(value: Any) -> str:
    return f"{_THIS_PROCESS}{type(value).__qualname__} {id(value)}"


DEFAULT_MAX_TOKENS = 256


@dataclass(frozen=True, eq=False)
class Target(Generic[T]):
    """P(tokens) / P(L) over sequences of tokens that spell a text of the constraint, of at most ``max_tokens`` tokens.

    P is the model at the temperature, after the filters over its **whole** vocabulary (a filter after the mask would
    be another distribution), with end of sequence after the text; ids of end of sequence count as one. The target is
    over token sequences: a text that can be spelled in several ways has the sum of their probabilities.

    Equal and hashed by content (``key``).

    Attributes:
        model: a ``LanguageModel``.
        prompt_ids: tokens of the prompt, at least one.
        constraint: a ``Constraint``, or a compiled ``Grammar``.
        vocabulary: the model's tokens.
        params: temperature (greater than 0) and filters. A distribution has no seed: it is dropped.
        max_tokens: most tokens of a text, end of sequence not counted. A condition like the constraint: the target
            is exact for texts that fit.
        model_id, constraint_id: names that stand for them in ``key``; computed where not given. Needed to save and
            load a store where the model is no transformers model or the constraint is a compiled grammar.

    Raises:
        OptionsError: a value out of range.
    """

    model: Any
    prompt_ids: Sequence[int]
    constraint: Any
    vocabulary: Vocabulary
    params: SamplingParams = field(default=SamplingParams(1.0))
    max_tokens: int = DEFAULT_MAX_TOKENS
    model_id: str | None = None
    constraint_id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.params, SamplingParams):
            raise OptionsError(
                f"params is {self.params!r:.100}; expected SamplingParams(...)", option="params", value=self.params
            )
        check_count("max_tokens", self.max_tokens)
        if self.params.temperature == 0:
            raise OptionsError(
                "temperature is 0, which is no distribution to sample; use generate() for greedy text",
                option="temperature",
                value=0,
            )
        if self.params.has_penalties or self.params.logit_bias:
            raise OptionsError("penalties and logit_bias are for generate(); a target is the model's own distribution")
        if not self.prompt_ids:
            raise OptionsError("the prompt has no tokens; a model needs at least one (its start token, say)")
        object.__setattr__(self, "params", replace(self.params, seed=None))
        object.__setattr__(self, "prompt_ids", tuple(map(_token, self.prompt_ids)))

    @cached_property
    def grammar(self) -> Grammar:
        """The compiled constraint."""
        compile_ = getattr(self.constraint, "compile", None)
        return without_regions(self.constraint) if compile_ is None else compile_masks(self.constraint, self.vocabulary)

    def matcher(self) -> Matcher:
        """A matcher at the start of the text."""
        return self.grammar.matcher()

    @property
    def ends(self) -> tuple[int, ...]:
        """The ids of end of sequence, but for those that the constraint names as parts of its texts."""
        return self.grammar.vocabulary.eos_token_ids

    def text(self, token_ids: Sequence[int]) -> str:
        """The text of some tokens, with the names of those that the constraint names."""
        vocabulary = self.grammar.vocabulary
        return vocabulary.rendered(vocabulary.decode(token_ids)).decode("utf-8", errors="replace")

    def log_probs(self, logits_row: Any) -> LogProbs:
        """Log-probabilities (nats, float64 [V]) of the next token under P: temperature and filters, no mask."""
        logits = to_numpy(logits_row)[: self.vocabulary.size]
        params = self.params
        if params.steps == ("temperature",):
            return _log_softmax(logits if params.temperature == 1.0 else logits / params.temperature)
        with np.errstate(divide="ignore"):
            log_probs = masked_log_probs(logits, None)
            return np.asarray(np.log(filtered_probs(log_probs, params, deviation(logits, params))))

    def cannot_end(self, matcher: Matcher, remaining: int) -> bool:
        """Whether no completion fits in ``remaining`` more tokens, as far as the automaton knows (sound: never wrongly
        True). The shortest completion in bytes over the longest token; only where that is a shortest one, it tells.
        """
        if matcher.is_accepting():
            return False
        if remaining <= 0:
            return True
        if not self.grammar.completions_are_shortest:
            return False
        return len(matcher.shortest_completion()) > remaining * self._longest_token

    @cached_property
    def _longest_token(self) -> int:
        return int(np.diff(self.grammar.vocabulary.token_offsets).max(initial=1))

    @cached_property
    def key(self) -> str:
        """A digest of the distribution (hexadecimal, 128 bits)."""
        return hashlib.blake2b(self._name.encode(), digest_size=16).hexdigest()

    @cached_property
    def _name(self) -> str:
        """All fields, each by what stands for it: a field that the class gains tells targets apart."""
        named = {
            "model": self.model_id or model_id(self.model),
            "constraint": self.constraint_id or value_id(self.constraint),
            "vocabulary": self.vocabulary.digest,
            "model_id": "",
            "constraint_id": "",
        }
        parts = [named[f.name] if f.name in named else value_id(getattr(self, f.name)) for f in fields(self)]
        return "\n".join(parts)

    @property
    def lasting(self) -> bool:
        """Whether ``key`` means the same in another process."""
        return is_lasting(self._name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _token(value: Any) -> int:
    check_count("a token of prompt_ids", value, 0)
    return int(value)


def _log_softmax(logits: npt.NDArray[np.floating[Any]]) -> LogProbs:
    """Log-probabilities in float64; exponentials in the logits' own precision (a vocabulary is long)."""
    highest = logits.max()
    if not np.isfinite(highest):
        raise GenerationError(f"The model gave {highest} as the highest of {logits.size} logits; check weights, dtype.")
    total = float(np.exp(logits - highest).sum(dtype=np.float64))
    return np.asarray(logits.astype(np.float64) - (float(highest) + math.log(total)))


def text_log_prob(log_probs: npt.NDArray[np.float64], eos: Sequence[int]) -> float:
    """The log-probability of ending: the ids of end of sequence together."""
    values = log_probs[list(eos)]
    top = float(values.max())
    return top if top == -math.inf else top + math.log(float(np.exp(values - top).sum()))
