"""One output being written under a constraint: its tokens, its budget and the way to close it in time.

Target distribution: **local**, the model's probabilities masked and renormalised at each step. Two things are not
drawn from it, and both are counted: a token is *forced* where the constraint allows only one (its probability is 1),
and *steered* where a drawn token was turned down because the output could then not be closed within the budget.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from structgen.decoding.closing import ClosingTokens, shortest_completion
from structgen.decoding.sampling import (
    FirstDraw,
    SamplingParams,
    allowed_token_ids,
    deviation,
    draw,
    filtered_probs,
    masked_log_probs,
    to_numpy,
)
from structgen.decoding.sampling.uniforms import generator, seed_or_entropy, uniforms
from structgen.engines.protocols import Matcher
from structgen.errors import GenerationError, IncompleteOutputError
from structgen.vocabulary.vocabulary import Vocabulary

FinishReason = Literal["stop", "length"]

# Drawn tokens that may be turned down for one position before the known completion is followed. Only an output at the
# very end of its budget gets there; the bound keeps that step under a few milliseconds.
MAX_REJECTED = 32


@dataclass(slots=True)
class GenerationStats:
    """Counts and times of one output.

    Attributes:
        prompt_tokens: tokens of the rendered prompt.
        output_tokens: tokens of the output, end of sequence not included.
        target_forwards: calls of the model, reading the prompt included (a batched call counts for each row in it).
        forced_tokens: output tokens that were the only ones allowed, taken without asking the model.
        steered_tokens: drawn tokens that were turned down so that the output can be closed within the budget.
        mask_seconds: time spent on masks and on advancing the matcher.
        seconds: wall-clock time from the first mask to the end.
        drafted: draft tokens that the model read, by what proposed them (several may have proposed one).
        accepted: those of them that became output.
        draft_seconds: time spent on drafting (in a batch, of all rows), the draft model's included.
    """

    prompt_tokens: int = 0
    output_tokens: int = 0
    target_forwards: int = 0
    forced_tokens: int = 0
    steered_tokens: int = 0
    mask_seconds: float = 0.0
    seconds: float = 0.0
    drafted: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)
    draft_seconds: float = 0.0


class Output:
    """The mutable state of one output; drive it with ``structgen.decoding.plain.decode``.

    Invariant under a constraint: ``self._plan`` is a text that completes the output from here, and it can be spelled
    in the tokens that are left of the budget. So the output can always be closed.

    Attributes:
        token_ids: the tokens so far, without end of sequence.
        pending: the last of them, not yet read by the model.
        log_prob: sum of the log-probabilities (nats) of the choices made, end of sequence included, under the model
            at temperature 1 masked by the constraint and renormalised (before the filters and before steering).
        finish_reason: None while it is being written; "stop": the model ended it, or nothing may follow, or a stop
            string came; "length": the budget shaped the end (it ran out, or tokens were turned down for it).

    Raises:
        IncompleteOutputError: not even the shortest completion known fits in ``max_new_tokens``.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        matcher: Matcher | None,
        params: SamplingParams,
        *,
        max_new_tokens: int,
        stop: Sequence[str] = (),
        closing: ClosingTokens | None = None,
    ) -> None:
        self.token_ids: list[int] = []
        self.pending: list[int] = []
        self.log_prob = 0.0
        self.finish_reason: FinishReason | None = None
        self.stats = GenerationStats()
        self._vocabulary, self._matcher, self._params = vocabulary, matcher, params
        self._budget = max_new_tokens
        self._stop = [text.encode() for text in stop if text]
        self._closing = closing or ClosingTokens(vocabulary)
        self._seed = seed_or_entropy(params.seed)
        self._bytes = bytearray()
        self._bitmask = np.zeros((1, (vocabulary.size + 31) // 32), dtype=np.int32)
        self._allowed: npt.NDArray[np.int64] | None = None
        self._plan = b""
        self._started = time.perf_counter()
        if matcher is not None:
            self._plan = matcher.shortest_completion()
            if not self._closing.fits(self._plan, max_new_tokens):
                self._fail_incomplete("Even the shortest output known does not fit")

    @property
    def matcher(self) -> Matcher | None:
        """Where the output stands in its constraint (for looking ahead on copies); None for free text."""
        return self._matcher

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that it is written in."""
        return self._vocabulary

    @property
    def params(self) -> SamplingParams:
        """How its tokens are drawn."""
        return self._params

    @property
    def remaining(self) -> int:
        """Tokens left of the budget; end of sequence costs none."""
        return self._budget - len(self.token_ids)

    @property
    def text(self) -> str:
        """The text so far; bytes that are no UTF-8 (a character cut in two) become U+FFFD."""
        return self._bytes.decode("utf-8", errors="replace")

    def settled_text(self) -> str:
        """The part of the text that later tokens cannot change: no cut character, no beginning of a stop string."""
        end = len(self._bytes)
        if self.finish_reason is None:
            for stop in self._stop:
                overlaps = (n for n in range(min(len(stop) - 1, end), 0, -1) if self._bytes.endswith(stop[:n]))
                end = min(end, len(self._bytes) - next(overlaps, 0))
            end = _whole_characters(self._bytes, end)
        return self._bytes[:end].decode("utf-8", errors="replace")

    def advance_forced(self) -> None:
        """Compute the mask, and take tokens as long as it allows only one; ends the output if nothing may follow."""
        while self.finish_reason is None:
            self._fill()
            allowed = self._allowed
            if allowed is not None and len(allowed) <= len(self._vocabulary.eos_token_ids):
                eos = [token for token in allowed.tolist() if token in self._vocabulary.eos_token_ids]
                if len(eos) == len(allowed):
                    self._end()
                    return
            if self.remaining <= 0:
                if self._plan:
                    self._fail_incomplete("The token budget ran out")
                self.finish_reason = "length"
                self._stop_clock()
            elif allowed is not None and len(allowed) == 1:
                self.stats.forced_tokens += 1
                self._follow(int(allowed[0]))
            else:
                return

    def choose(self, logits_row: Any, first: FirstDraw | None = None) -> None:
        """Take one token, given the model's logits [V] for it. Call ``advance_forced`` before.

        ``first`` may draw the token (over the allowed ones in ascending order), if it draws as the probabilities say.
        """
        allowed, params, place = self._allowed, self._params, len(self.token_ids)
        row = to_numpy(logits_row)[: self._vocabulary.size]
        log_probs = masked_log_probs(row, allowed)
        sigma = None if params.top_n_sigma is None else deviation(row)
        drawn = None
        if first is not None and params.temperature:
            drawn = first(filtered_probs(log_probs, params, sigma), generator(self._seed, place))
        numbers = partial(self._uniform, place)
        for position in islice(draw(log_probs, params, numbers, sigma=sigma, first=drawn), MAX_REJECTED):
            if self._try(position if allowed is None else int(allowed[position])):
                self.log_prob += float(log_probs[position])
                return
            self.stats.steered_tokens += 1
        self._follow_plan(log_probs)

    def _uniform(self, position: int, attempt: int) -> float:
        return float(uniforms([self._seed], [position], attempt)[0])

    def _fill(self) -> None:
        matcher = self._matcher
        if matcher is None:
            return
        start = time.perf_counter()
        matcher.fill_next_token_bitmask(self._bitmask, 0)
        self._allowed = allowed_token_ids(self._bitmask[0], self._vocabulary.size)
        self.stats.mask_seconds += time.perf_counter() - start
        if not len(self._allowed):
            raise GenerationError(
                f"The constraint allows no token after {len(self.token_ids)} tokens, text {_tail(self.text)!r}, "
                f"accepting: {matcher.is_accepting()}. The vocabulary may lack bytes that the constraint needs."
            )

    def _try(self, token: int) -> bool:
        """Take the token unless the output could then not be closed within the budget."""
        if token in self._vocabulary.eos_token_ids:
            self._end(token)
            return True
        matcher = self._matcher
        if matcher is not None:
            start = time.perf_counter()
            self._accept(token)
            plan = self._plan_after(token, matcher)
            if plan is None:
                matcher.rollback(1)
            self.stats.mask_seconds += time.perf_counter() - start
            if plan is None:
                return False
            self._plan = plan
        self._append(token)
        return True

    def _follow_plan(self, log_probs: npt.NDArray[np.float64]) -> None:
        """Take the first token of the known completion, the fewest tokens that spell it."""
        tokens = self._closing.fewest(self._plan)
        if tokens is None or self._allowed is None:
            self._fail_incomplete("No allowed token fits the token budget")
        elif not tokens:  # complete already, and every way on is too long
            self._end()
        else:
            position = int(np.searchsorted(self._allowed, tokens[0]))
            if position >= len(self._allowed) or self._allowed[position] != tokens[0]:
                self._fail_incomplete("The vocabulary does not reach the known completion")
            self.log_prob += float(log_probs[position])
            self._follow(tokens[0])

    def _follow(self, token: int) -> None:
        """Take a token that leaves no choice: the plan may only get better."""
        matcher = self._matcher
        assert matcher is not None
        self._accept(token)
        plan = self._plan_after(token, matcher)
        self._plan = matcher.shortest_completion() if plan is None else plan
        self._append(token)

    def _plan_after(self, token: int, matcher: Matcher) -> bytes | None:
        """A completion that fits in what is left after ``token``, which has just been accepted; None if none known."""
        plan = shortest_completion(matcher)
        if plan is not None and self._closing.fits(plan, self.remaining - 1):
            return plan
        spelled = self._vocabulary.tokens[token]  # the rest of the old plan, should the matcher know none so short
        rest = self._plan[len(spelled) :]
        return rest if self._plan.startswith(spelled) and self._closing.fits(rest, self.remaining - 1) else None

    def _accept(self, token: int) -> None:
        assert self._matcher is not None
        if not self._matcher.accept_token(token):
            raise GenerationError(
                f"The mask allows token {token} ({self._vocabulary.tokens[token]!r}), but the matcher refuses it "
                f"after {_tail(self.text)!r}. Please report this as a bug."
            )

    def _append(self, token: int) -> None:
        before = len(self._bytes)
        self.token_ids.append(token)
        self.pending.append(token)
        self._bytes += self._vocabulary.tokens[token]
        self.stats.output_tokens += 1
        self._stop_at_string(before)

    def _stop_at_string(self, before: int) -> None:
        """Cut the text at the earliest stop string that ends in the bytes from ``before`` on."""
        found = (self._bytes.find(stop, max(0, before - len(stop) + 1)) for stop in self._stop)
        cut = min((place for place in found if place >= 0), default=-1)
        if cut < 0:
            return
        del self._bytes[cut:]
        if self._matcher is not None:
            self._matcher.reset()
            if not (self._matcher.accept_bytes(bytes(self._bytes)) and self._matcher.is_accepting()):
                self._fail_incomplete("A stop string came before the output was complete")
        self.finish_reason = "stop"
        self._stop_clock()

    def _end(self, token: int | None = None) -> None:
        """End of sequence: ``token`` if the model chose it, None if nothing else may follow."""
        if self._matcher is not None:
            self._accept(self._vocabulary.eos_token_ids[0] if token is None else token)
        self.finish_reason = "length" if self.stats.steered_tokens else "stop"
        self._stop_clock()

    def _stop_clock(self) -> None:
        self.stats.seconds = time.perf_counter() - self._started

    def _fail_incomplete(self, what: str) -> None:
        shortest = self._closing.fewest(self._plan)
        need = f"at least {len(self.token_ids) + len(shortest)}" if shortest else "more"
        raise IncompleteOutputError(
            f"{what}: {self.remaining} of {self._budget} tokens are left after {_tail(self.text)!r}, "
            f"to be completed by {self._plan[:60]!r}. Raise max_new_tokens to {need}.",
            partial=self.text,
        )


def _whole_characters(data: bytearray, end: int) -> int:
    """The end of the last whole UTF-8 character in ``data[:end]`` (RFC 3629: at most 3 bytes can be a cut one)."""
    for back in range(1, min(3, end) + 1):
        byte = data[end - back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return end if back >= length else end - back
        if byte < 0x80:
            return end
    return end


def _tail(text: str, length: int = 80) -> str:
    """The end of a text, for messages."""
    return text if len(text) <= length else "…" + text[-length:]
