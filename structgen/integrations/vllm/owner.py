"""How a grammar comes to know its request's token budget."""

from __future__ import annotations

from typing import Any

from structgen.integrations.budgets import BudgetedMask, Total
from structgen.integrations.engine_settings import on_budget
from structgen.integrations.vllm.backend import is_ours


def give_budget(grammar: Any, request: Any, model_config: Any) -> None:
    """Let a grammar of structgen's close its output within what the request may write, unless it is to be cut."""
    if not is_ours(grammar):
        return
    mode = on_budget((request.sampling_params.extra_args or {}).get("on_budget"))
    if mode == "cut":
        return
    room = model_config.max_model_len
    total = Total(
        request, lambda one: one.num_output_tokens, lambda one: min(one.max_tokens, room - one.num_prompt_tokens)
    )
    grammar.request.budget = BudgetedMask(grammar.request.matcher, total, mode)
