"""The constrained loop with drafts: one model call a step reads what is certain and a tree of what may follow.

Every token is chosen by ``choosing.choose`` from the target's logits after exactly the tokens before it, as in the
plain loop (``structgen.decoding.plain``): masks, filters, steering by the budget and random numbers are the same. So
greedy outputs are those of the plain loop, and samples too where no draft was drawn at random (a seed gives the same
text); with random drafts the verification rules keep the distribution. Both up to the last bits of the logits: float32
sums come out in another order when several tokens are read at once, which can decide a tie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from structgen.decoding.choosing import choose
from structgen.decoding.output import Output
from structgen.decoding.sampling.host import HostSampler
from structgen.decoding.speculative.speculator import Row, Speculator
from structgen.device.choose import sampler_for
from structgen.models.language_model import TreeLanguageModel, check_reads_trees


def decode(
    model: TreeLanguageModel, prompts: Sequence[Sequence[int]], outputs: Sequence[Output], speculator: Speculator
) -> Iterator[None]:
    """Write all outputs to their ends, yielding after every step. Each row is what it would be on its own.

    Args:
        prompts: token ids of each prompt, at least one.
        outputs: one a prompt, fresh.

    Raises:
        ModelError: the model cannot read trees.
    """
    check_reads_trees(model)
    for output, prompt in zip(outputs, prompts, strict=True):
        output.stats.prompt_tokens = len(prompt)
        output.advance_forced()
    live = [row for row, output in enumerate(outputs) if output.finish_reason is None]
    if not live:
        return
    rows = [speculator.start(prompts[row], outputs[row]) for row in live]
    logits, cache = model.prefill([[*prompts[row], *outputs[row].pending] for row in live])
    for row in rows:
        row.output.pending.clear()
        row.output.stats.target_forwards += 1
    choose([row.output for row in rows], logits)
    for row in rows:
        row.output.advance_forced()
    while True:
        yield
        keep = [place for place, row in enumerate(rows) if row.output.finish_reason is None]
        if not keep:
            return
        if len(keep) < len(rows):
            cache.select(keep)
            rows = [rows[place] for place in keep]
        trees = speculator.draft(rows)
        flat = [tree.flat(row.output.pending) for tree, row in zip(trees, rows, strict=True)]
        logits = model.forward_tree([tokens for tokens, _ in flat], [parents for _, parents in flat], cache)
        cache.keep(verify(rows, logits))


def verify(rows: Sequence[Row], logits: Any) -> list[list[int]]:
    """Choose along the drafts of all rows, a token of every row that is still on its tree with each draw. On a device,
    what comes after every node is drawn at once, and the paths are found there.

    Args:
        logits: [rows, n, V] after each row's pending tokens and the nodes of its tree.

    Returns:
        for each row, which of the tokens that the target read are output: indices, ascending.
    """
    width = logits.shape[1]
    flat = logits.reshape(-1, logits.shape[-1])
    for row in rows:
        row.output.stats.target_forwards += 1
        row.begin()
    drawn = draw_paths(rows, flat, width)
    walking = list(range(len(rows)))
    while walking:
        waiting = []
        for number in walking:
            row, place = rows[number], number * width + rows[number].place
            known = drawn.get(place)
            if known is None:
                waiting.append((number, place))
            else:
                row.output.take(*known, flat, place)
        here = [rows[number] for number, _ in waiting]
        choose([row.output for row in here], flat, [place for _, place in waiting], [row.rule for row in here])
        walking = [number for number in walking if rows[number].follow()]
    return [row.finish(each) for row, each in zip(rows, logits, strict=True)]


def draw_paths(rows: Sequence[Row], flat: Any, width: int) -> dict[int, tuple[int, float]]:
    """On a device: the tokens along each row's accepted path, and their log-probabilities, by their place in ``flat``.

    The masks of all nodes are made while the model reads. Rows with penalties, whose adjustments depend on the path, or
    with drafts that were drawn at random are left out; so are all on the processor, where looking at what is visited
    only is cheaper.
    """
    sampler = sampler_for(flat)
    if isinstance(sampler, HostSampler):
        return {}
    from structgen.device.torch_sampler import TorchSampler
    from structgen.device.trees import verify_trees

    assert isinstance(sampler, TorchSampler), "what draws on devices"

    judged = [(number, row) for number, row in enumerate(rows) if row.is_drawn_alone]
    if not judged:
        return {}
    masks = sampler.send(np.concatenate([row.masks() for _, row in judged]))
    trees, first = [], 0
    for number, row in judged:
        trees.append(row.drafted(number * width, first))
        first += len(trees[-1].tokens)
    found: dict[int, tuple[int, float]] = {}
    for tree, path in zip(trees, verify_trees(sampler, flat, masks, trees), strict=True):
        drawn = zip(path.nodes.tolist(), path.token_ids.tolist(), path.log_probs.tolist(), strict=True)
        found.update((int(tree.logits_rows[node]), (token, log_prob)) for node, token, log_prob in drawn)
    return found
