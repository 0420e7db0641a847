"""One output being written under a constraint: its tokens, its budget and the way to close it in time.

Target distribution: **local**, the model's probabilities masked and renormalised at each step. Two things are not
drawn from it, and both are counted: a token is *forced* where the constraint allows only one (its probability is 1),
and *steered* where a drawn token was turned down because the output could then not be closed within the budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from structgen.core.engines.protocols import TOO_LONG, Matcher
from structgen.core.monitors.protocol import COUNTS
from structgen.core.tokenization.canonical import AT_START, CanonicalSpelling, SpelledSoFar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, IncompleteOutputError
from structgen.generation.decoding.closing_budget import (
    Closer,
    Speller,
    TextSpeller,
    closing_tokens,
    shortest_completion,
)
from structgen.generation.decoding.drawing import SURPRISING, AllowedProbs, Surprise, TokenDrawing
from structgen.generation.decoding.few_tokens import FewTokens, allow_all
from structgen.generation.decoding.loops import LoopGuard, LoopWatch
from structgen.generation.decoding.regions import NO_REGIONS, FieldRegions
from structgen.generation.decoding.rule_regions import region_meter
from structgen.generation.decoding.sections import SectionBudget, SectionMeter
from structgen.generation.decoding.settled import settled_end
from structgen.generation.decoding.spelling import CanonicalCloser, CanonicalSpeller
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.sampling import FirstDraw, Ids, LogProbs, SamplingParams
from structgen.generation.sampling.sampler import DrawRequest

FinishReason = Literal["stop", "length"]

# Longer completions that do not fit are not spelled in the fewest tokens, which takes seconds for a megabyte, only to
# say how many these are.
MOST_SPELLED = 1 << 16


class Output:
    """The mutable state of one output; a scheduler (``structgen.generation.scheduler``) drives it.

    Invariant under a constraint: there is a text that completes the output from here, and it can be spelled in the
    tokens that are left of the budget. So the output can always be closed. Mostly the matcher's bound on its length
    says so; where that is more than what is left, the text is written, and kept as the closer's plan.

    Attributes:
        token_ids: the tokens so far, without end of sequence.
        bitmask: int32 [1, ceil(V / 32)], what may come next, once ``advance_forced`` has left a choice.
        pending: the last of them, not yet read by the model.
        token_log_probs: the log-probability (nats) of each token as ``log_prob`` has it; 0 where it was forced.
        token_log_mass: the mass (log, nats) that the mask left of the model's distribution where each token was chosen;
            None where it was forced, or the mass was not asked for. ``token_log_probs`` plus this is the model's own
            log-probability of the token (after bias and penalties).
        log_mass: sum of the mass (log, nats) over the choices made, end of sequence included.
        allowed_probs: where few tokens were allowed, what the model gave to each, by the chosen token's index; if kept.
        surprises: where the mask left less than half of the mass, by the token's index: see ``Surprise``.
        log_prob: sum of the log-probabilities (nats) of the choices made, end of sequence included, under the model
            at temperature 1 masked by the constraint and renormalised (before the filters and before steering).
        looks_ahead: whether a token is taken together with the mask after it, which ``advance_forced`` would make
            next.
        finish_reason: None while it is being written; "stop": the model ended it, or nothing may follow, or a stop
            string came; "length": the budget shaped the end (it ran out, or tokens were turned down for it).

    Args:
        section: what a section of the output may take, whose marks its constraint demands. None: there is none.
        regions: of its fields, where it is JSON from its first byte on. Those of a grammar are its matcher's.
        keeps_mass: whether ``token_log_mass`` and what is with it is wanted.
        keeps_probs: whether ``allowed_probs`` are wanted; they are of what the matcher alone allows.
        spelling: if it is to be spelled as the tokenizer does; with a matcher only.
        loop_guard: what leaves repetitions; None: nothing does.
        begun: text that it begins with, which the prompt's last token has beyond the prompt (`HealedPrompt`).
        position: where the spelling stands after the prompt.

    Raises:
        IncompleteOutputError: not even the shortest completion known fits in ``max_new_tokens``.
        GenerationError: no canonical spelling is known for what the matcher allows.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        matcher: Matcher | None,
        params: SamplingParams,
        *,
        max_new_tokens: int,
        stop: Sequence[str] = (),
        prompt_ids: Sequence[int] = (),
        section: SectionBudget | None = None,
        regions: FieldRegions = NO_REGIONS,
        keeps_mass: bool = False,
        keeps_probs: bool = False,
        spelling: CanonicalSpelling | None = None,
        loop_guard: LoopGuard | None = None,
        begun: bytes = b"",
        position: SpelledSoFar = AT_START,
    ) -> None:
        self.token_ids: list[int] = []
        self.token_log_probs: list[float] = []
        self.token_log_mass: list[float | None] = []
        self.log_mass = 0.0
        self.allowed_probs: dict[int, AllowedProbs] = {}
        self._keeps_probs = keeps_probs and spelling is None
        self.surprises: dict[int, Surprise] = {}
        self.keeps_mass = keeps_mass
        self.pending: list[int] = []
        self.log_prob = 0.0
        self.looks_ahead = True
        self.finish_reason: FinishReason | None = None
        self.stats = GenerationStats()
        if matcher is not None:
            vocabulary = matcher.grammar.vocabulary  # the same tokens; those that it names stand for themselves
        self.bitmask = allow_all(vocabulary)
        self._vocabulary, self._matcher = vocabulary, matcher
        self._drawing = TokenDrawing(vocabulary, params, self.bitmask, prompt_ids)
        self._budget = max_new_tokens
        self._stop = [text.encode() for text in stop if text]
        self._canonical = None if spelling is None else CanonicalSpeller(spelling, vocabulary, position)
        self._speller: TextSpeller = self._canonical or Speller(closing_tokens(vocabulary))
        self._closer: Closer | None = None
        if matcher is not None and self._canonical is not None:
            self._closer = CanonicalCloser(matcher, self._canonical)
        elif matcher is not None:
            self._closer = Closer(matcher, self._speller)
        self._section = None if section is None or matcher is None else SectionMeter(section, vocabulary)
        self._params, self._regions = params, region_meter(regions, matcher, vocabulary)
        if self._regions is not None:
            self._drawing.params = self._regions.params(params)
        self._loops = None if loop_guard is None else LoopWatch(loop_guard)
        self._upper = upper_bound_of(matcher, params, keeps_mass)
        self._is_refused = False  # whether the token that was tried last is one that the matcher refuses
        self._is_masked = False  # whether the bitmask is that of the matcher's state
        self._is_shaped = False  # whether tokens were turned down for the budget
        self._bytes = bytearray()
        self._few = FewTokens(self.bitmask, len(vocabulary.eos_token_ids))
        self._mass: float | None = None  # of the token that is being taken
        self._started = time.perf_counter()
        self._begin(begun)
        if self.finish_reason is None and self._closer is not None and not self._closer.closes(max_new_tokens):
            self._closer.check_spelled()
            self._fail_incomplete("Even the shortest output known does not fit")

    def _begin(self, text: bytes) -> None:
        """Take text that no token of the output spells.

        Raises:
            GenerationError: the constraint does not allow it.
        """
        if not text:
            return
        if self._matcher is not None and not self._matcher.accept_bytes(text):
            raise GenerationError(f"The constraint allows no text that begins with {text[:80]!r}")
        self._bytes += text
        if self._section is not None:
            self._section.add(self._bytes, 0)
        if self._regions is not None and self._closer is not None:
            self._regions.add(text, self._closer)
            self._drawing.params = self._regions.params(self._params)
        self._stop_at_string(0)

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
        """How its next token is drawn."""
        return self._drawing.params

    @property
    def remaining(self) -> int:
        """Tokens left of the budget; end of sequence costs none."""
        return self._budget - len(self.token_ids)

    @property
    def text(self) -> str:
        """The text so far; bytes that are no UTF-8 (a character cut in two) become U+FFFD.

        Special tokens that the constraint names are shown by their names.
        """
        return self.shown(self._bytes)

    @property
    def data(self) -> bytes:
        """The bytes of the text so far; special tokens that the constraint names as their stand-ins."""
        return bytes(self._bytes)

    def settled_data(self) -> bytes:
        """The part of the bytes that later tokens cannot change: no cut character, no beginning of a stop string."""
        is_open = self.finish_reason is None
        return bytes(self._bytes[: settled_end(self._bytes, self._stop) if is_open else len(self._bytes)])

    def shown(self, data: bytes | bytearray) -> str:
        """Text of its bytes."""
        return self._vocabulary.rendered(data).decode("utf-8", errors="replace")

    def take_up(self, tokens: Sequence[int], log_probs: Sequence[float], steered: int = 0) -> None:
        """Write again what another output of the same request had written when it was lost, without the model.

        Every step is made as it was then, so what remains comes as it would have come there. Forced tokens after these
        follow at once.

        Args:
            tokens, log_probs: its ``token_ids`` and ``token_log_probs``.
            steered: its ``stats.steered_tokens``.

        Raises:
            GenerationError: these are no tokens of this constraint.
        """
        while len(self.token_ids) < len(tokens) and self.finish_reason is None:
            self.advance_forced()
            index = len(self.token_ids)
            if index < len(tokens) and self.finish_reason is None and not self._choose(tokens[index], log_probs[index]):
                self._follow(tokens[index])
                self._count(log_probs[index], index)
        if self.token_ids[: len(tokens)] != list(tokens):
            raise GenerationError(f"The {len(tokens)} tokens to go on from are not of this request.")
        self.stats.steered_tokens = max(self.stats.steered_tokens, steered)
        if steered and self._section is None and not self.is_canonical:  # else it may not have been the budget
            self._is_shaped = True

    def advance_forced(self) -> None:
        """Compute the mask, and take tokens as long as it allows only one; ends the output if nothing may follow."""
        eos = self._vocabulary.eos_token_ids
        while self.finish_reason is None:
            closing = self._closing_token()
            if closing is not None:
                self.stats.forced_tokens += 1
                self._follow(closing)
                continue
            few = self._fill()
            if few is not None and all(token in eos for token in few):
                self._end()
            elif self.remaining <= 0:
                if self._matcher is not None and not self._matcher.is_accepting():
                    self._fail_incomplete("The token budget ran out")
                self.finish_reason = "length"
                self._stop_clock()
            elif few is not None and len(few) == 1:
                self.stats.forced_tokens += 1
                self._follow(few[0], masks=True)
            else:
                return

    def hurry(self) -> None:
        """Close the output as soon as it can be: lowers the budget to what the known completion takes, free text's to
        what there is. Nothing changes where the completion is too long to be written. ``advance_forced`` ends an output
        that is whole already."""
        completion = b"" if self._matcher is None else shortest_completion(self._matcher)
        if completion is None or self.finish_reason is not None:
            return
        plan = None if self._closer is None else self._closer.plan
        if plan is not None and len(plan) < len(completion):
            completion = plan
        tokens = self._speller.fewest(completion)
        if tokens is None and plan is not None:
            completion, tokens = plan, self._speller.fewest(plan)
        if tokens is not None and len(tokens) < self.remaining:
            self._budget = len(self.token_ids) + len(tokens)
            if self._closer is not None:
                self._closer.plan = completion

    @property
    def is_adjusted(self) -> bool:
        """Whether each token must be drawn by itself: its logits, its mask or how it is drawn depend on the path."""
        return self._drawing.is_adjusted or self._regions is not None or self.is_canonical or self._loops is not None

    @property
    def is_canonical(self) -> bool:
        """Whether its mask is narrower than its matcher's: only what the tokenizer would spell is allowed."""
        return self._canonical is not None

    def request(self, logits_row: int, mask_row: int) -> DrawRequest:
        """What is to be drawn next: see ``DrawRequest``."""
        return self._drawing.request(len(self.token_ids), logits_row, mask_row)

    def take(self, token: int, log_prob: float, logits: Any, row: int, log_mass: float | None = None) -> None:
        """Take the token that was drawn, or another if the output could then not be closed within the budget.

        Args:
            token, log_prob: see ``Choices``.
            logits, row: what it was drawn from; looked at where the token is not taken, or some of it is kept.
            log_mass: ``Choices.log_kept``; None: it is computed, where it is asked for.
        """
        if self.keeps_mass:
            self._mass = self._drawing.log_mass(logits[row]) if log_mass is None else log_mass
            if self._mass < SURPRISING and token >= 0:
                index = len(self.token_ids)
                self.surprises[index] = self._drawing.surprise(index, self._mass, logits[row])
        if self._keeps_probs and (probs := self._drawing.own_probs(logits[row])) is not None:
            self.allowed_probs[len(self.token_ids)] = probs
        is_left = self._loops is not None and token >= 0 and self._leaves_loop(self._loops, token, logits[row])
        if token < 0 or not (is_left or self._choose(token, log_prob)):
            self._take_another(token, logits[row])

    def take_by_rule(self, rule: FirstDraw, logits_row: Any) -> None:
        """Take the token that ``rule`` draws from the filtered probabilities of the allowed tokens, ascending by id."""
        token, log_prob = self._drawing.by_rule(rule, len(self.token_ids), logits_row)
        self.take(token, log_prob, [logits_row], 0)

    def _leaves_loop(self, loops: LoopWatch, token: int, logits_row: Any) -> bool:
        """Where a token would go on with a repetition, and the known completion leaves it: follow that instead."""
        if token in self._vocabulary.eos_token_ids:
            return False
        data = self._vocabulary.tokens[token]
        if not loops.is_left(self._bytes, data, 0 if self._closer is None else self._closer.bound()):
            return False
        completion = b"" if self._closer is None or self._closer.bound() >= TOO_LONG else self._closer.completion()
        if completion[:1] == data[:1] or (self._closer is not None and not completion and self._closer.bound()):
            return False
        self.stats.closed_loops += 1
        self._is_shaped = True
        allowed, log_probs = self._drawing.log_probs(logits_row)
        for index in np.argsort(-log_probs, kind="stable"):
            spelled = self._vocabulary.tokens[allowed[index]]
            is_end = not completion and int(allowed[index]) in self._vocabulary.eos_token_ids
            if is_end or (spelled and completion.startswith(spelled)):
                if self._choose(int(allowed[index]), float(log_probs[index])):
                    return True
                break
        self._follow_plan(allowed, log_probs)
        return True

    def _take_another(self, refused: int, logits_row: Any) -> None:
        """After a token was turned down: draw on, and in the end follow the known completion."""
        for token, log_prob in self._drawing.others(refused, len(self.token_ids), logits_row):
            if token != refused and self._choose(token, log_prob):
                return
            self.stats.refused_tokens += self._is_refused
            self.stats.steered_tokens += not self._is_refused
        if self._upper is not None and self._is_refused and self._matcher is not None:
            self._matcher.fill_next_token_bitmask(self.bitmask, 0)  # too many are refused: now by the exact mask
            for token, log_prob in self._drawing.others(-1, len(self.token_ids), logits_row):
                if self._choose(token, log_prob):
                    return
                self.stats.steered_tokens += 1
        self._follow_plan(*self._drawing.log_probs(logits_row))

    def _fill(self) -> list[int] | None:
        """Compute the mask. The allowed tokens, if they are no more than those of end of sequence, or one."""
        matcher = self._matcher
        if matcher is None:
            return None
        start = time.perf_counter()
        if not self._is_masked:
            self._fill_mask(matcher)
        few = self._few()
        self.stats.mask_seconds += time.perf_counter() - start
        if few is not None and not few:
            raise GenerationError(
                f"The constraint allows no token after {len(self.token_ids)} tokens, text {_tail(self.text)!r}, "
                f"accepting: {matcher.is_accepting()}. The vocabulary may lack bytes that the constraint needs.",
                text=self.text,
            )
        return few

    def _fill_mask(self, matcher: Matcher) -> None:
        (self._upper or matcher.fill_next_token_bitmask)(self.bitmask, 0)
        if self._canonical is not None:
            self._canonical.narrow(self.bitmask)

    def _choose(self, token: int, log_prob: float) -> bool:
        """Take a token as a choice, which counts for penalties, if the output can then be closed."""
        before = len(self.token_ids)
        if not self._try(token):
            return False
        self._count(log_prob, before)
        self._drawing.add(token)
        return True

    def _count(self, log_prob: float, before: int) -> None:
        """Add the log-probability of what was just chosen after ``before`` tokens: one more, or the end."""
        self.log_prob += log_prob
        self.log_mass += self._mass or 0.0
        if len(self.token_ids) > before:
            self.token_log_probs[-1] = log_prob
            self.token_log_mass[-1] = self._mass

    def _try(self, token: int) -> bool:
        """Take the token unless the output could then not be closed within the budget."""
        if token in self._vocabulary.eos_token_ids:
            self._end(token)
            return True
        if self._matcher is not None and self._closer is not None:
            start, plan = time.perf_counter(), self._closer.plan
            position = None if self._canonical is None else self._canonical.position
            self._is_refused = self._upper is not None and not self._advance(token, masks=self.looks_ahead)
            if self._is_refused:
                return False
            if self._upper is None:
                self._accept(token, masks=self.looks_ahead)
            closes = self._closer.closes_after(token, self.remaining - 1)
            self._is_shaped |= not closes and self._closer.lacks_budget()
            if closes and not (self._section_closes(token) and self._regions_close(token)):
                closes, self._closer.plan = False, plan
            if not closes:
                self._matcher.rollback(1)
                if self._canonical is not None and position is not None:
                    self._canonical.position = position
                if self.looks_ahead:
                    self._fill_mask(self._matcher)
            self.stats.mask_seconds += time.perf_counter() - start
            if not closes:
                return False
        self._append(token)
        return True

    def _section_closes(self, token: int) -> bool:
        """Whether the section can be closed within its budget after ``token``, which was just accepted."""
        if self._section is None or self._closer is None or not self._section.is_near(1):
            return True
        data = bytes(self._bytes) + self._vocabulary.tokens[token]
        return self._section.fits(data, len(self._bytes), self._closer.completion())

    def _regions_close(self, token: int) -> bool:
        """Whether the fields that are open can be closed within their limits after ``token``, just accepted."""
        if self._regions is None or self._closer is None or not self._regions.is_limited:
            return True
        return self._regions.fits(self._vocabulary.tokens[token], self._closer)

    def _closing_token(self) -> int | None:
        """The next token of what closes a section or field, if its budget is used up."""
        if self._regions is not None and self._closer is not None and self._regions.is_limited:
            tokens = self._regions.closing(self._closer)
            if tokens:
                return self._spelled_first(self._closer.completion(), tokens)
        if self._section is None or self._closer is None or self.remaining <= 0 or not self._section.is_near(0):
            return None
        completion = self._closer.completion()
        return self._spelled_first(completion, self._section.closing(self._bytes, completion))

    def _spelled_first(self, completion: bytes, tokens: Sequence[int]) -> int | None:
        """The first of the tokens that end a part, which the completion begins with; None of none."""
        if not tokens or self.remaining <= 0:
            return None
        if self._canonical is not None:
            return next(iter(self._canonical.fewest(completion) or ()), None)
        remaining = completion[len(self._vocabulary.tokens[tokens[0]]) :]
        if self._speller.fits(remaining, self.remaining - 1):
            return tokens[0]
        return (self._speller.fewest(completion) or tokens)[0]  # spelled so, the output would not fit

    def _follow_plan(self, allowed: Ids, log_probs: LogProbs) -> None:
        """Take the first token of the known completion, the fewest tokens that spell it."""
        tokens = None if self._closer is None else self._speller.fewest(self._closer.completion())
        if tokens is None:
            self._fail_incomplete("No allowed token fits the token budget")
        elif not tokens:  # complete already, and every way on is too long
            self._end()
        else:
            position = int(np.searchsorted(allowed, tokens[0]))
            if position >= len(allowed) or allowed[position] != tokens[0]:
                self._fail_incomplete("The vocabulary cannot spell the known completion")
            before = len(self.token_ids)
            self._follow(tokens[0])
            self._count(float(log_probs[position]), before)

    def _follow(self, token: int, *, masks: bool = False) -> None:
        """Take a token that leaves no choice: the plan may only get better. ``masks``: see ``_accept``."""
        self._accept(token, masks=masks)
        if self._closer is not None and not self._closer.closes_after(token, self.remaining - 1):
            self._closer.plan = None
        self._append(token)

    def _accept(self, token: int, *, masks: bool = False) -> None:
        """Accept a token that is allowed; ``masks``: and make the mask after it."""
        if not self._advance(token, masks=masks):
            raise GenerationError(
                f"The mask allows token {token} ({self._vocabulary.tokens[token]!r}), but the matcher refuses it "
                f"after {_tail(self.text)!r}. Please report this as a bug.",
                text=self.text,
            )

    def _advance(self, token: int, *, masks: bool) -> bool:
        """Whether a token is accepted; then ``masks`` is as in ``_accept``, else nothing changes."""
        matcher = self._matcher
        assert matcher is not None
        if masks and self._upper is None:
            taken = matcher.advance_and_fill(token, self.bitmask, 0)
        else:
            taken = matcher.accept_token(token)
        if not taken:
            return False
        self._is_masked = masks
        if masks and self._upper is not None:
            self._upper(self.bitmask, 0)
        if self._canonical is not None:
            self._canonical.follow(token)
            if masks:
                self._canonical.narrow(self.bitmask)
        return True

    def _append(self, token: int) -> None:
        before = len(self._bytes)
        self.token_log_probs.append(0.0)
        self.token_log_mass.append(None)
        self.token_ids.append(token)
        self.pending.append(token)
        self._drawing.follow(token)
        self._bytes += self._vocabulary.tokens[token]
        self.stats.output_tokens += 1
        if self._section is not None and not self._section.is_over:
            self._section.add(self._bytes, before)
        if self._regions is not None and self._closer is not None:
            self._regions.add(bytes(self._bytes[before:]), self._closer)
            self._drawing.params, self.stats.exceeded_regions = (
                self._regions.params(self._params),
                self._regions.exceeded,
            )
        self._stop_at_string(before)

    def _stop_at_string(self, before: int) -> None:
        """Cut the text at the earliest stop string that ends in the bytes from ``before`` on."""
        stops_at = (self._bytes.find(stop, max(0, before - len(stop) + 1)) for stop in self._stop)
        cut = min((offset for offset in stops_at if offset >= 0), default=-1)
        if cut < 0:
            return
        del self._bytes[cut:]
        if self._matcher is not None:
            self._matcher.reset()
            if not (self._matcher.accept_bytes(bytes(self._bytes)) and self._matcher.is_accepting()):
                self._fail_incomplete(
                    "A stop string came before the output was complete",
                    "Leave out stop strings that occur within outputs; the constraint ends them",
                    option="stop",
                )
        self.finish_reason = "stop"
        self._stop_clock()

    def _end(self, token: int | None = None) -> None:
        """End of sequence: ``token`` if the model chose it, None if nothing else may follow."""
        if self._matcher is not None:
            self._accept(self._vocabulary.eos_token_ids[0] if token is None else token)
        self.finish_reason = "length" if self._is_shaped else "stop"
        self._stop_clock()

    def _stop_clock(self) -> None:
        self.stats.seconds = time.perf_counter() - self._started
        counts = {} if self._matcher is None else self._matcher.stats
        self.stats.monitors = {name: counts[name] for name in COUNTS if name in counts}

    def _fail_incomplete(self, what: str, advice: str = "", option: str = "max_new_tokens") -> None:
        plan = b"" if self._closer is None else self._closer.completion()
        shortest = self._speller.fewest(plan) if len(plan) <= MOST_SPELLED else None
        need = f"at least {len(self.token_ids) + len(shortest)}" if shortest else f"more; it has {len(plan):,} bytes"
        raise IncompleteOutputError(
            f"{what}: {self.remaining} of {self._budget} tokens are left after {_tail(self.text)!r}, "
            f"to be completed by {self._vocabulary.rendered(plan)[:60]!r}. "
            f"{advice or f'Raise max_new_tokens to {need}'}.",
            partial=self.text,
            option=option,
        )


def upper_bound_of(matcher: Matcher | None, params: SamplingParams, keeps_mass: bool) -> Callable[..., None] | None:
    """What fills masks in place of a matcher whose exact ones take long: they may allow more, and what is drawn and
    then refused is drawn again. None: masks are exact, as filters, and whoever asks for mass, need them."""
    if matcher is None or keeps_mass or set(params.steps) - {"temperature"}:
        return None
    fill: Callable[..., None] | None = getattr(matcher, "fill_upper_bound", None)
    return fill


def _tail(text: str, length: int = 80) -> str:
    """The end of a text, for messages."""
    return text if len(text) <= length else "…" + text[-length:]
