"""The plain constrained loop, an oracle for schedulers: one model call a step for all outputs, which read equally many
tokens; no drafts, no joining, no sharing."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.generation.decoding.choosing import choose
from structgen.generation.decoding.output import Output
from structgen.generation.models.language_model import LanguageModel


def decode(model: LanguageModel, prompts: Sequence[Sequence[int]], outputs: Sequence[Output]) -> Sequence[Output]:
    """Write all outputs to their ends; the outputs."""
    for output in outputs:
        output.advance_forced()
    rows = [row for row, output in enumerate(outputs) if output.finish_reason is None]
    live = [outputs[row] for row in rows]
    if not live:
        return outputs
    logits, cache = model.prefill([[*prompts[row], *outputs[row].pending] for row in rows])
    for output in live:
        output.pending.clear()
    while True:
        choosing = [row for row, output in enumerate(live) if not output.pending]
        choose([live[row] for row in choosing], logits, choosing)
        for row in choosing:
            live[row].advance_forced()
        keep = [row for row, output in enumerate(live) if output.finish_reason is None]
        if not keep:
            return outputs
        if len(keep) < len(live):
            cache.select(keep)
            live = [live[row] for row in keep]
        count = min(len(output.pending) for output in live)
        logits = model.forward([output.pending[:count] for output in live], cache)[:, -1]
        for output in live:
            del output.pending[:count]
