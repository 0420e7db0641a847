"""The one model loop of all engines, at two paces.

*By turns*: the outputs take turns, token by token, one model call each. What slows one engine down on a machine that
others use too slows its neighbours down alike, so times are comparable. *Together*: one batched call a step for all
outputs, where outputs that agree so far are one row; nothing but masks can be timed, but it is several times as fast.

Every output has its own random numbers, so each is what it would be alone (up to the last bits of batched logits). All
engines share the code that applies the mask and draws; only fill and accept are theirs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.benchmarking.engines import Session
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.choosing import choose
from structgen.generation.decoding.output import Output
from structgen.generation.models.language_model import LanguageModel
from structgen.generation.sampling import SamplingParams, to_numpy

Row = npt.NDArray[np.float32]
Mark = Callable[[str | None], None]


class DecodingError(Exception):
    """An engine cannot go on: its mask allows nothing, or it refuses a token that its mask allows."""


@dataclass
class Draft:
    """One output on its way.

    Attributes:
        label: whose it is.
        token_ids: so far, without end of sequence.
        pending: the last of them, not yet read by the model.
        finish: "stop" at the end of sequence, "length" when the budget is spent, None before.
        mask_ns: for each choice, fill and accept together. step_ns: by turns, each model call and the choice after it.
        first_ns: from the prompt's logits to the first token.
        logprob_masked: of the output (end included) under the model masked and renormalised at each token;
            logprob_model: under the model as it is (NaN where it is not kept). Nats, temperature 1.
        error: why it was given up, "" where it was not.
    """

    label: str
    token_ids: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    finish: str | None = None
    mask_ns: list[int] = field(default_factory=list)
    step_ns: list[int] = field(default_factory=list)
    first_ns: int = 0
    logprob_masked: float = 0.0
    logprob_model: float = 0.0
    error: str = ""

    def choose(self, logits_row: Any) -> int:
        """Take a token, given the model's logits for it; returns the nanoseconds that this took.

        Raises whatever an engine raises, and DecodingError.
        """
        raise NotImplementedError


class MaskedDraft(Draft):
    """An output of any engine: fill the mask, draw, accept."""

    def __init__(
        self,
        label: str,
        session: Session,
        row: npt.NDArray[np.int32],
        vocabulary: Vocabulary,
        params: SamplingParams,
        budget: int,
    ) -> None:
        super().__init__(label)
        self._session, self._row, self._vocabulary = session, row, vocabulary
        self._params, self._budget = params, budget
        self._rng = np.random.default_rng(params.seed)

    def choose(self, logits_row: Any) -> int:
        """See Draft."""
        began = perf_counter_ns()
        self._session.fill()
        filled = perf_counter_ns()
        logits = to_numpy(logits_row)[: self._vocabulary.size]
        scores = logits if self._session.free else _masked(logits, self._row)
        token = draw(scores, self._params, self._rng)
        drawn = perf_counter_ns()
        if not self._session.accept(token):
            raise DecodingError(f"token {token} is refused, but the mask allows it")
        accepted = perf_counter_ns()
        self.mask_ns.append(filled - began + accepted - drawn)
        if token in self._vocabulary.eos_token_ids:
            self.finish = "stop"
        else:
            self.token_ids.append(token)
            self.pending.append(token)
            self.finish = "length" if len(self.token_ids) >= self._budget else None
        self.logprob_model += log_prob(logits, token)  # the diagnosis is not timed
        self.logprob_masked += log_prob(scores, token)
        return accepted - began


class DecoderDraft(Draft):
    """An output of structgen's own decoder: forced tokens without the model, closed within the budget."""

    def __init__(
        self,
        label: str,
        session: Session,
        vocabulary: Vocabulary,
        params: SamplingParams,
        budget: int,
    ) -> None:
        super().__init__(label, logprob_model=float("nan"))
        self._output = Output(vocabulary, session.matcher, params, max_new_tokens=budget)
        self._output.advance_forced()
        self._read()

    def choose(self, logits_row: Any) -> int:
        """See Draft."""
        began, masked = perf_counter_ns(), self._output.stats.mask_seconds
        choose([self._output], logits_row[None])
        self._output.advance_forced()
        self._read()
        self.mask_ns.append(round(1e9 * (self._output.stats.mask_seconds - masked)))
        return perf_counter_ns() - began

    def _read(self) -> None:
        """Take over what the output says of itself."""
        self.token_ids, self.pending = self._output.token_ids, self._output.pending
        self.finish, self.logprob_masked = self._output.finish_reason, self._output.log_prob


def write_by_turns(model: LanguageModel, prompt: tuple[Any, Any], drafts: Sequence[Draft], mark: Mark) -> None:
    """Write all drafts to their ends, a token each by turns; who is first changes from round to round.

    Args:
        prompt: logits [1, V] and cache (one row) after the prompt, as ``LanguageModel.prefill`` gives them; kept.
        mark: is told whose turn it is. An engine that fails leaves its reason in ``Draft.error``.
    """
    logits, prefix = prompt
    live, turn = [draft for draft in drafts if draft.finish is None], 0
    caches = {id(draft): copy.deepcopy(prefix) for draft in live}
    while live:
        for draft in live[turn % len(live) :] + live[: turn % len(live)]:
            mark(draft.label)
            began = perf_counter_ns()
            read = bool(draft.pending)
            row = model.forward([draft.pending], caches[id(draft)])[0, -1] if read else logits[0]
            draft.pending.clear()
            called = perf_counter_ns()
            took = _choose(draft, row)
            draft.first_ns = draft.first_ns or took + called - began
            if read:
                draft.step_ns.append(took + called - began)
        live, turn = [draft for draft in live if draft.finish is None and not draft.error], turn + 1
    mark(None)


def write_together(model: LanguageModel, prompt: tuple[Any, Any], drafts: Sequence[Draft], mark: Mark) -> None:
    """Write all drafts to their ends, one model call a step; arguments as ``write_by_turns``, but the cache is used up.

    A row of the cache is a text; drafts with the same text so far share it, and part when their tokens differ.
    """
    logits, cache = prompt
    live = [draft for draft in drafts if draft.finish is None]
    index, width = {id(draft): 0 for draft in live}, 1
    while live:
        for draft in live:
            if not draft.pending:
                mark(draft.label)
                took = _choose(draft, logits[index[id(draft)]])
                draft.first_ns = draft.first_ns or took
        mark(None)
        live = [draft for draft in live if draft.finish is None and not draft.error]
        if not live:
            return
        texts = list(dict.fromkeys((index[id(draft)], draft.pending[0]) for draft in live))
        rows = [row for row, _ in texts]
        if rows != list(range(width)):
            cache.select(rows)
            width = len(rows)
        logits = model.forward([[token] for _, token in texts], cache)[:, -1]
        for draft in live:
            index[id(draft)] = texts.index((index[id(draft)], draft.pending.pop(0)))


def _choose(draft: Draft, logits_row: Any) -> int:
    """``Draft.choose``, with an engine's defect put on record: it must not end the run."""
    try:
        return draft.choose(logits_row)
    except Exception as error:
        draft.error = f"{type(error).__name__}: {error}"
        return 0


def draw(scores: Row, params: SamplingParams, rng: np.random.Generator) -> int:
    """A token id: the highest score at temperature 0, else by inverting the cumulative distribution.

    Raises:
        DecodingError: no token has a score above −inf.
    """
    best = int(scores.argmax())
    if not np.isfinite(scores[best]):
        raise DecodingError("the mask allows no token")
    if params.temperature == 0:
        return best
    edges = np.cumsum(np.exp((scores - scores[best]) / np.float32(params.temperature)), dtype=np.float64)
    token = int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
    # Rounding can only go wrong at the very end of the cumulative sum.
    return token if token < len(scores) and np.isfinite(scores[token]) else best


def log_prob(scores: Row, token: int) -> float:
    """Of a token, nats, temperature 1."""
    highest = scores.max()
    return float(scores[token] - highest) - float(np.log(np.exp(scores - highest).sum(dtype=np.float64)))


def _masked(logits: Row, row: npt.NDArray[np.int32]) -> Row:
    """A copy of the logits with −inf where the bit of a token is not set."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(logits)].view(np.bool_)
    return np.where(bits, logits, np.float32(-np.inf))
