"""Drafts over many requests: what is learned of one kind of text pays more and more; another kind is learned, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.output import Output
from structgen.generation.models.tiny import TinyModel, TinyReader
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Handle, Request, State
from structgen.generation.scheduler.scheduler import Scheduler
from structgen.generation.speculative.cost import TYPICAL
from structgen.generation.speculative.length import CostAware
from structgen.generation.speculative.ngram import MemoryDrafter, NgramDrafter
from structgen.generation.speculative.recycling import RecyclingDrafter
from structgen.generation.speculative.speculator import Speculator

VOCABULARY = Vocabulary([None, *(bytes([byte]) for byte in range(97, 123))], eos_token_ids=0)


class Topical(TinyModel):
    """What it writes depends on the first token of the prompt, and on the last two."""

    def _logits(self, history: list[int]) -> Any:
        rng = np.random.default_rng([history[0], *history[-2:]])
        return rng.normal(scale=5.0, size=self.vocab_size).astype(np.float32)


@pytest.mark.full
def test_drafts_learn_and_learn_anew() -> None:
    """Tokens a forward rise over 200 requests of one kind, and are back within 50 of another."""
    speculator = Speculator([NgramDrafter(), RecyclingDrafter(VOCABULARY.size), MemoryDrafter()], CostAware(TYPICAL))
    scheduler = Scheduler(TinyReader(Topical(VOCABULARY.size)), SchedulerLimits(sequences=4, late_seconds=None))
    written: list[float] = []
    waiting: list[Handle] = []
    for number in range(300):
        output = Output(VOCABULARY, None, SamplingParams(0.7, seed=number, logit_bias={0: -99}), max_new_tokens=24)
        topic = 9 if number < 200 else 10
        waiting.append(scheduler.submit(Request([topic, 5, 6], output, speculator)))
        while len(waiting) == 4 or (number == 299 and waiting):
            scheduler.step()
            done = [handle for handle in waiting if handle.state is State.DONE]
            written += [len(each.output.token_ids) / each.output.stats.target_forwards for each in done]
            waiting = [handle for handle in waiting if handle not in done]
    first, late, switched, again = (
        float(np.mean(written[part])) for part in (slice(0, 20), slice(150, 200), slice(204, 214), slice(250, 300))
    )
    assert late > 1.3 * first, "what was learned pays"
    assert switched < 0.8 * late, "the other kind is another one"
    assert again > 0.75 * late, "and is learned within 50 requests"
