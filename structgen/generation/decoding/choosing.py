"""A token for many outputs with one draw: for one row and for many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from structgen.generation.decoding.output import Output
from structgen.generation.sampling.choose import sampler_for
from structgen.generation.sampling.draws import FirstDraw

OnError: TypeAlias = Callable[[Output, Exception], None]


def choose(
    outputs: Sequence[Output],
    logits: Any,
    rows: Sequence[int] | None = None,
    rules: Sequence[FirstDraw | None] | None = None,
    *,
    failed: OnError | None = None,
) -> None:
    """Take one token for each output. Call ``Output.advance_forced`` of each before, and after.

    What a row gets does not depend on the rows beside it.

    Args:
        logits: floating [N, V'], the model's; they stay where they are, and as they are.
        rows: which row of ``logits`` is each output's; None: the first, the second, and so on.
        rules: what draws a row's token in place of the sampler, if it draws as the probabilities say (drafts that were
            drawn at random are verified so); None: the sampler.
        failed: called with an output that raised, and what; the others go on. None: it is raised here.

    Raises:
        GenerationError: the logits of a row are not numbers, or rule out all that is allowed.
        IncompleteOutputError: see ``Output``.
    """
    for output, take in zip(outputs, drawn(outputs, logits, rows, rules), strict=True):
        with guarded(output, failed):
            take()


def drawn(
    outputs: Sequence[Output],
    logits: Any,
    rows: Sequence[int] | None = None,
    rules: Sequence[FirstDraw | None] | None = None,
) -> list[Callable[[], None]]:
    """Draw one token for each output, as ``choose`` does: what takes it, to be called once for each."""
    places = range(len(outputs)) if rows is None else rows
    takes: dict[int, Callable[[], None]] = {}
    by_sampler = []
    for number, (output, logits_index) in enumerate(zip(outputs, places, strict=True)):
        rule = None if rules is None else rules[number]
        if rule is None or output.params.temperature == 0:
            by_sampler.append((number, output, logits_index))
        else:
            takes[number] = partial(output.take_by_rule, rule, logits[logits_index])
    if by_sampler:
        masks = [output.bitmask for _, output, _ in by_sampler]
        sampler = sampler_for(logits)
        requests = [output.request(logits_index, row) for row, (_, output, logits_index) in enumerate(by_sampler)]
        sent = sampler.send(masks[0] if len(masks) == 1 else np.concatenate(masks))
        choices = sampler.draw(logits, sent, requests, kept=any(output.keeps_mass for _, output, _ in by_sampler))
        mass = [None] * len(requests) if choices.log_kept is None else choices.log_kept.tolist()
        draws = zip(by_sampler, choices.token_ids.tolist(), choices.log_probs.tolist(), mass, strict=True)
        for (number, output, logits_index), token, log_prob, log_mass in draws:
            takes[number] = partial(output.take, token, log_prob, logits, logits_index, log_mass)
    return [takes[number] for number in range(len(outputs))]


@contextmanager
def guarded(output: Output, failed: OnError | None) -> Iterator[None]:
    """Within: what is raised is the output's own, and ``failed`` is told; None: it is raised."""
    try:
        yield
    except Exception as error:
        if failed is None:
            raise
        failed(output, error)
