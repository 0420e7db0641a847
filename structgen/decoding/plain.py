"""The plain constrained loop: one model call a step for all outputs. Samples the local target exactly, outputs that
their budget steers excepted (see ``structgen.decoding.output``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from structgen.decoding.choosing import choose
from structgen.decoding.output import Output
from structgen.models.language_model import LanguageModel, reads_asynchronously


def decode(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    outputs: Sequence[Output],
    *,
    overlapped: bool | None = None,
) -> Iterator[None]:
    """Write all outputs to their ends, yielding after every step. Each row is what it would be on its own.

    Forced tokens cost no step of their own: a row reads them together with its next token. Where rows wait with
    different numbers of tokens, all read as many as the shortest has, and only rows that have read all their tokens
    choose. Finished rows leave the batch.

    Args:
        prompts: token ids of each prompt, at least one.
        outputs: one a prompt, fresh.
        overlapped: whether masks are made while the model reads, for models that only begin to read when they are
            called (on an accelerator). Forced tokens are then seen a step later, and read in the next call; the outputs
            are the same. None: as the model is.
    """
    for output, prompt in zip(outputs, prompts, strict=True):
        output.stats.prompt_tokens = len(prompt)
        output.advance_forced()
    rows = [row for row, output in enumerate(outputs) if output.finish_reason is None]
    live = [outputs[row] for row in rows]
    if not live:
        return
    overlapped = reads_asynchronously(model) if overlapped is None else overlapped
    logits, cache = model.prefill([[*prompts[row], *outputs[row].pending] for row in rows])
    for output in live:
        output.pending.clear()
    while True:
        for output in live:
            output.stats.target_forwards += 1
        choosing = [row for row, output in enumerate(live) if not output.pending and output.finish_reason is None]
        choose([live[row] for row in choosing], logits, choosing)
        if not overlapped:
            _look_ahead(live[row] for row in choosing)
        yield
        keep = [row for row, output in enumerate(live) if output.finish_reason is None]
        if not keep:
            return
        if len(keep) < len(live):
            cache.select(keep)
            live = [live[row] for row in keep]
        count = min(len(output.pending) for output in live)
        logits = model.forward([output.pending[:count] for output in live], cache)[:, -1]
        for output in live:
            del output.pending[:count]
        if overlapped:
            _look_ahead(output for output in live if not output.pending)


def _look_ahead(outputs: Iterable[Output]) -> None:
    for output in outputs:
        output.advance_forced()
