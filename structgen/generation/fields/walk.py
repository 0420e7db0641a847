"""What the model gives to each event after a text: sums over all token paths that decide it.

After the tokens h, a path c of tokens spells g + s: g are the bytes that are fixed (from h's end to the offset where
the event begins; tokens may cross it), s decides the event. Over the minimal paths with d(s) = e

    m(e) = sum of P(c | h), the model's own probability            (unmasked)
    l(e) = sum of the product of P / Z, Z what the mask keeps      (masked: the law of generate at temperature 1)

The walk reads the heaviest undecided paths until what is open is below a bound. It only asks and is answered; whoever
runs it merges the questions of several walks into one call of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.protocols import Matcher
from structgen.core.vocabulary.sorted_tokens import sorted_tokens
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.drawing import AllowedProbs
from structgen.generation.fields.events import Decider
from structgen.generation.sampling import allowed_token_ids, masked_log_probs, to_numpy

Path = tuple[int, ...]
LEFT_OPEN = 0.9  # of ``eps``: paths that weigh so little together are not asked; what others leave open is as little
LIGHT = 1e-3  # of ``eps``: the masked mass of a path that is not looked at
MAX_ASKED = 64  # paths of a walk that are read in one call


@dataclass(slots=True)
class _Open:
    """A path that has decided nothing yet.

    Attributes:
        data: its bytes, those of the gap first.
        mass, local: unmasked and masked probability of the path.
        steps: masked log-probability (nats) of each of its tokens.
        sure: the only event that it can become; None: several, or not looked at.
    """

    data: bytes
    mass: float
    local: float
    steps: tuple[float, ...] = ()
    sure: str | None = None
    is_looked_at: bool = False


@dataclass(slots=True)
class Sums:
    """What a walk has summed.

    Attributes:
        mass, local: by event, m and l of the paths that were read.
        sure: by event, masked mass of open paths that can become nothing else.
        best: by event, the path to it of the highest masked probability: that, the path, its tokens' masked
            log-probabilities; a path that is sure may end before the event is decided.
        gap: unmasked mass of all that goes on with the gap's bytes, allowed or not.
    """

    mass: dict[str, float] = field(default_factory=dict)
    local: dict[str, float] = field(default_factory=dict)
    sure: dict[str, float] = field(default_factory=dict)
    best: dict[str, tuple[float, Path, tuple[float, ...]]] = field(default_factory=dict)
    gap: float = 0.0


class EventWalk:
    """The sums of one kind of event at one offset.

    Args:
        matcher: after h; the walk's own.
        decide: names the events.
        gap: the bytes between h's end and where the event begins.
        seeds: likely paths: read with a path that they begin with, to save calls; no sum depends on them.
        written_probs: what the model gave to the allowed tokens after paths that were read when the output was written.
        eps: how much may stay open, of what is summed.
        most_tokens: paths that are read at the most.
    """

    def __init__(
        self,
        matcher: Matcher,
        decide: Decider,
        *,
        gap: bytes = b"",
        seeds: Iterable[Path] = (),
        written_probs: Mapping[Path, AllowedProbs] = MappingProxyType({}),
        eps: float = 0.02,
        most_tokens: int = 256,
    ) -> None:
        self.sums = Sums()
        self._is_finished = False
        self.read = 0
        self._matcher, self._decide, self._gap, self._eps, self._left = matcher, decide, gap, eps, most_tokens
        vocabulary = matcher.grammar.vocabulary
        self._vocabulary, self._ends = vocabulary, list(vocabulary.eos_token_ids)
        self._mask = np.zeros((1, (vocabulary.size + 31) // 32), np.int32)
        self._open: dict[Path, _Open] = {(): _Open(b"", 1.0, 1.0)}
        self._waiting: dict[Path, Any] = dict(written_probs)  # logits of paths that are not open yet
        self._seeds = tuple(dict.fromkeys(seeds))
        self._follow()

    def ask(self) -> list[Path]:
        """Paths after h of which the logits are wanted next; none where the sums are as close as asked for."""
        if self._left <= 0 or self.is_done:
            return []
        asked, heavy = self._heaviest()
        begun = set(asked[:heavy])
        seeds = [seed for seed in self._seeds if any(seed[:end] in begun for end in range(len(seed)))]
        return list(dict.fromkeys([*asked, *(seed for seed in seeds if seed not in self._waiting)]))[: self._left]

    def answer(self, logits: dict[Path, Any]) -> None:
        """The model's logits [V'] after the paths that were asked for."""
        self._left -= len(logits)
        self.read += len(logits)
        self._waiting.update(logits)
        self._follow()

    def _follow(self) -> None:
        """Put the continuations of open paths that were read in their place."""
        ready = [path for path in self._waiting if path in self._open]
        while ready:
            for path in ready:
                self._expand(path, self._waiting.pop(path))
            ready = [path for path in self._waiting if path in self._open]

    @property
    def remaining(self) -> float:
        """Unmasked mass of the paths that are open: R."""
        return math.fsum(each.mass for each in self._open.values())

    @property
    def is_done(self) -> bool:
        """Whether what is open is within ``eps``, unmasked and masked (paths that are sure left out)."""
        decided, unsure = self._masses()
        remaining = self.remaining
        return remaining <= self._eps * (decided + remaining) and unsure <= self._eps * max(self._local_total(), 1e-300)

    def can_become(self, event: str) -> float:
        """Unmasked mass of the open paths that can still become this event: R_e."""
        return math.fsum(each.mass for each in self._open.values() if each.sure in (None, event))

    def finish(self) -> Sums:
        """The sums, those of sure paths included. No more may be asked."""
        if not self._is_finished:
            self.sums.gap += math.fsum(each.mass for each in self._open.values() if len(each.data) < len(self._gap))
        self._is_finished = True
        self.sums.sure = {}
        for path, each in self._open.items():
            self._look_at(path, each)
            if each.sure is not None:
                self.sums.sure[each.sure] = self.sums.sure.get(each.sure, 0.0) + each.local
                self._prefer(each.sure, each.local, path, each.steps)
        return self.sums

    @property
    def unsure(self) -> float:
        """Masked mass of the open paths that may become several events."""
        return self._masses()[1]

    def _masses(self) -> tuple[float, float]:
        """Unmasked mass that is decided, and masked mass that is open and not sure."""
        for path, each in self._open.items():
            self._look_at(path, each)
        unsure = math.fsum(each.local for each in self._open.values() if each.sure is None)
        return math.fsum(self.sums.mass.values()), unsure

    def _local_total(self) -> float:
        return math.fsum(self.sums.local.values()) + math.fsum(each.local for each in self._open.values())

    def _heaviest(self) -> tuple[list[Path], int]:
        """The heaviest open paths, until what is left is below ``LEFT_OPEN`` of ``eps``, of either measure; how many of
        them are above ``eps`` alone: what follows these is needed, too."""
        decided, _ = self._masses()
        of_mass, of_local = decided + self.remaining or 1.0, self._local_total() or 1.0

        def weight(each: _Open) -> float:
            return max(each.mass / of_mass, each.local / of_local if each.sure is None else 0.0)

        order = sorted(((weight(each), path) for path, each in self._open.items()), reverse=True)
        remaining, asked = math.fsum(each for each, _ in order), list[Path]()
        for each, path in order[: min(MAX_ASKED, self._left)]:
            if remaining <= self._eps * LEFT_OPEN or each <= 0:
                break
            asked.append(path)
            remaining -= each
        heavy = sum(each > self._eps for each, _ in order[: len(asked)])
        return asked or [path for _, path in order[:1]], heavy

    def _look_at(self, path: Path, each: _Open) -> None:
        """See whether an open path can become one event only. Of the lightest it is not worth the time: they count as
        if they could become any."""
        if each.is_looked_at or each.local < self._eps * LIGHT or len(each.data) < len(self._gap):
            return
        each.is_looked_at = True
        self._accept(path)
        forced = self._matcher.forced_bytes()
        if forced:
            each.sure = self._decide((each.data + forced)[len(self._gap) :], False)
        self._matcher.rollback(len(path))

    def _accept(self, path: Path) -> None:
        for token in path:
            if not self._matcher.accept_token(token):
                raise AssertionError(f"the matcher refuses token {token} of a path that its masks allow")

    def _expand(self, path: Path, logits: Any) -> None:
        """Put an open path's continuations in its place."""
        one = self._open.pop(path)
        missing = self._gap[len(one.data) :]
        if isinstance(logits, AllowedProbs):
            assert not missing, "what goes through the gap is not known"
            allowed, log_probs = logits.allowed, logits.log_probs
        else:
            all_log_probs = masked_log_probs(to_numpy(logits)[: self._vocabulary.size], None)
            self._accept(path)
            self._matcher.fill_next_token_bitmask(self._mask, 0)
            self._matcher.rollback(len(path))
            allowed = allowed_token_ids(self._mask[0], self._vocabulary.size)
            log_probs = all_log_probs[allowed]
        local = np.exp(masked_log_probs(log_probs, None))
        if missing:
            through, within = agreeing(self._vocabulary, missing)
            self.sums.gap += one.mass * float(np.exp(all_log_probs[through]).sum())
            agreed = np.isin(allowed, np.concatenate([through, within]))
            allowed, log_probs, local = allowed[agreed], log_probs[agreed], local[agreed]
        elif not path:
            self.sums.gap = 1.0
        steps = zip(allowed.tolist(), np.exp(log_probs).tolist(), local.tolist(), strict=True)
        self._put(path, one, list(steps))

    def _prefer(self, event: str, local: float, path: Path, steps: tuple[float, ...]) -> None:
        if event not in self.sums.best or local > self.sums.best[event][0]:
            self.sums.best[event] = local, path, steps

    def _put(self, path: Path, one: _Open, following: list[tuple[int, float, float]]) -> None:
        """Tokens after an open path with their probabilities, unmasked and masked: what they decide, or leave open."""
        for token, prob, local in following:
            is_end = token in self._ends
            data = one.data if is_end else one.data + self._vocabulary.tokens[token]
            event = self._decide(data[len(self._gap) :], is_end) if is_end or len(data) > len(self._gap) else None
            steps = (*one.steps, math.log(local) if local else -math.inf)
            if event is None:
                assert not is_end, "an output ends where its last event is decided"
                self._open[*path, token] = _Open(data, one.mass * prob, one.local * local, steps)
            else:
                self._prefer(event, one.local * local, path if is_end else (*path, token), steps)
                self.sums.mass[event] = self.sums.mass.get(event, 0.0) + one.mass * prob
                self.sums.local[event] = self.sums.local.get(event, 0.0) + one.local * local


def agreeing(vocabulary: Vocabulary, missing: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The tokens whose bytes begin with some bytes, and those that are a proper beginning of these, ascending."""
    tokens = sorted_tokens(vocabulary)
    within = [tokens.spelling(missing[:length]) for length in range(1, len(missing))]
    return np.sort(tokens.beginning_with(missing)), np.sort(np.concatenate([np.zeros(0, np.int64), *within]))
