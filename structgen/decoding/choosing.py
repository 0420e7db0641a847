"""A token for many outputs with one draw: for one row and for many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from structgen.decoding.output import Output
from structgen.decoding.sampling.draws import FirstDraw
from structgen.device.choose import sampler_for

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
        failed: told of an output that raised, and what; the others go on. None: it is raised here.

    Raises:
        GenerationError: the logits of a row are not numbers, or rule out all that is allowed.
        IncompleteOutputError: see ``Output``.
    """
    places = range(len(outputs)) if rows is None else rows
    drawn, numbers = [], []
    for number, (output, place) in enumerate(zip(outputs, places, strict=True)):
        rule = None if rules is None else rules[number]
        if rule is None or output.params.temperature == 0:
            drawn.append(output)
            numbers.append(place)
        else:
            with guarded(output, failed):
                output.take_by_rule(rule, logits[place])
    if not drawn:
        return
    bitmask = drawn[0].bitmask if len(drawn) == 1 else np.concatenate([output.bitmask for output in drawn])
    sampler = sampler_for(logits)
    requests = [output.request(place, row) for row, (output, place) in enumerate(zip(drawn, numbers, strict=True))]
    choices = sampler.draw(logits, sampler.send(bitmask), requests)
    tokens, log_probs = choices.token_ids.tolist(), choices.log_probs.tolist()
    for output, place, token, log_prob in zip(drawn, numbers, tokens, log_probs, strict=True):
        with guarded(output, failed):
            output.take(token, log_prob, logits, place)


@contextmanager
def guarded(output: Output, failed: OnError | None) -> Iterator[None]:
    """Within: what is raised is the output's own, and ``failed`` is told; None: it is raised."""
    try:
        yield
    except Exception as error:
        if failed is None:
            raise
        failed(output, error)
