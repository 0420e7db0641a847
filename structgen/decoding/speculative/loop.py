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

from structgen.decoding.choosing import choose
from structgen.decoding.output import Output
from structgen.decoding.speculative.speculator import Row, Speculator
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
    """Choose along the drafts of all rows, a token of every row that is still on its tree with each draw.

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
    walking = list(range(len(rows)))
    while walking:
        here = [rows[number] for number in walking]
        places = [number * width + row.place for number, row in zip(walking, here, strict=True)]
        choose([row.output for row in here], flat, places, [row.rule for row in here])
        walking = [number for number in walking if rows[number].follow()]
    return [row.finish(each) for row, each in zip(rows, logits, strict=True)]
