"""The distribution that is sampled: a language model after a prompt, given that its text satisfies a constraint."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.decoding.sampling import LogProbs, SamplingParams, filtered_probs, masked_log_probs, to_numpy
from structgen.engines.protocols import Grammar, Matcher
from structgen.errors import GenerationError, OptionsError
from structgen.vocabulary.vocabulary import Vocabulary

DEFAULT_MAX_TOKENS = 256


@dataclass(frozen=True, eq=False)
class Target:
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
        temperature: greater than 0.
        top_k, top_p: as in ``SamplingParams``.
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
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    max_tokens: int = DEFAULT_MAX_TOKENS
    model_id: str | None = None
    constraint_id: str | None = None
    params: SamplingParams = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            params = SamplingParams(self.temperature, self.top_k, self.top_p)
        except ValueError as error:
            raise OptionsError(str(error)) from error
        if self.temperature == 0:
            raise OptionsError("temperature is 0, which is no distribution to sample; use generate() for greedy text")
        if self.max_tokens < 1:
            raise OptionsError(f"max_tokens must be at least 1, not {self.max_tokens!r}")
        if not self.prompt_ids:
            raise OptionsError("the prompt has no tokens; a model needs at least one (its start token, say)")
        object.__setattr__(self, "params", params)
        object.__setattr__(self, "prompt_ids", tuple(int(token) for token in self.prompt_ids))

    @cached_property
    def grammar(self) -> Grammar:
        """The compiled constraint."""
        compile_ = getattr(self.constraint, "compile", None)
        grammar: Grammar = self.constraint if compile_ is None else compile_(self.vocabulary)
        return grammar

    def matcher(self) -> Matcher:
        """A matcher at the start of the text."""
        return self.grammar.matcher()

    def log_probs(self, logits_row: Any) -> LogProbs:
        """Log-probabilities (nats, float64 [V]) of the next token under P: temperature and filters, no mask."""
        logits = to_numpy(logits_row)[: self.vocabulary.size]
        params = self.params
        if params.top_k is None and params.top_p == 1.0:
            return _log_softmax(logits if params.temperature == 1.0 else logits / params.temperature)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(filtered_probs(masked_log_probs(logits, None), params)))

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
        return int(np.diff(self.vocabulary.token_offsets).max(initial=1))

    @cached_property
    def key(self) -> str:
        """A digest of the distribution (hexadecimal, 128 bits)."""
        parts = [
            self.model_id or _model_id(self.model),
            self.constraint_id or _constraint_id(self.constraint),
            self.vocabulary.digest,
            json.dumps([list(self.prompt_ids), self.temperature, self.top_k, self.top_p, self.max_tokens]),
        ]
        return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    @property
    def lasting(self) -> bool:
        """Whether ``key`` means the same in another process."""
        ids = (self.model_id or _model_id(self.model), self.constraint_id or _constraint_id(self.constraint))
        return not any(id_.startswith(_THIS_PROCESS) for id_ in ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


_THIS_PROCESS = "this process: "


def _model_id(model: Any) -> str:
    """The configuration and a glance at every parameter of a transformers model; else the object's identity."""
    inner: Any = getattr(model, "model", None)
    if not hasattr(inner, "named_parameters"):
        return f"{_THIS_PROCESS}{type(model).__qualname__} {id(model)}"
    digest = hashlib.blake2b(inner.config.to_json_string().encode(), digest_size=16)
    for name, parameter in inner.named_parameters():
        glance = to_numpy(parameter.detach().reshape(-1)[:16])
        digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode() + glance.tobytes())
    return digest.hexdigest()


def _constraint_id(constraint: Any) -> str:
    """All fields of a constraint that is a value; else the object's identity."""
    if not is_dataclass(constraint) or not hasattr(constraint, "parse"):
        return f"{_THIS_PROCESS}{type(constraint).__qualname__} {id(constraint)}"
    values = {item.name: getattr(constraint, item.name) for item in fields(constraint) if item.name[:1] != "_"}
    if "registry" in values and values["registry"] is not None:
        return f"{_THIS_PROCESS}{type(constraint).__qualname__} {id(constraint)}"
    return repr((type(constraint).__qualname__, values, getattr(constraint, "_key", None)))


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
