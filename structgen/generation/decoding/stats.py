"""What is counted and timed of one output."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class GenerationStats:
    """Counts and times of one output.

    Attributes:
        prompt_tokens: tokens of the rendered prompt.
        output_tokens: tokens of the output, end of sequence not included.
        target_forwards: calls of the model, reading the prompt included (a batched call counts for each row in it).
        forced_tokens: output tokens that were the only ones allowed, taken without asking the model.
        steered_tokens: drawn tokens that were turned down so that the output, or a section of it, can be closed within
            its budget.
        refused_tokens: drawn tokens that were turned down because of names that a slow monitor suggests; see
            docs/composition.md.
        mask_seconds: time spent on masks and on advancing the matcher.
        seconds: wall-clock time from the first mask to the end.
        drafted: draft tokens that the model read, by what proposed them (several may have proposed one).
        accepted: those of them that became output.
        draft_trees: model calls that read drafts. draft_tokens, accepted_draft_tokens: drafts in them, and those that
            became output, each counted once.
        draft_seconds: time spent on drafting (in a batch, of all rows), the draft model's included.
        accepted_prediction_tokens, rejected_prediction_tokens: of a predicted text, tokens that the output has where
            they were expected, and the others.
        monitors: of a constraint with monitors, how often a suggestion left nothing and was put aside
            (``empty_suggestions``), came too late (``monitor_timeouts``), or failed (``monitor_failures``).
        closed_loops: how often a repetition was left (``loop_guard``).
        exceeded_regions: values of fields that have more tokens than their regions' ``max_tokens``.
    """

    prompt_tokens: int = 0
    output_tokens: int = 0
    target_forwards: int = 0
    forced_tokens: int = 0
    steered_tokens: int = 0
    refused_tokens: int = 0
    mask_seconds: float = 0.0
    seconds: float = 0.0
    drafted: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)
    draft_trees: int = 0
    draft_tokens: int = 0
    accepted_draft_tokens: int = 0
    draft_seconds: float = 0.0
    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0
    exceeded_regions: int = 0
    closed_loops: int = 0
    monitors: dict[str, int] = field(default_factory=dict)
