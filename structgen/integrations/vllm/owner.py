"""How many tokens a request of vLLM's may write, as its grammar counts them."""

from __future__ import annotations

import weakref
from typing import Any

from structgen.integrations.budgets import BudgetedMask
from structgen.integrations.engine_settings import on_budget
from structgen.integrations.vllm.backend import VllmGrammar


class Owner:
    """A request's budget in tokens of its grammar.

    Tokens that the grammar does not see, such as thinking, are those that the request has and the grammar has not
    taken; in the middle of a draft these are too few, so the most that were ever seen count.
    """

    def __init__(self, request: Any, max_model_len: int) -> None:
        self._request, self._max_model_len = weakref.proxy(request), max_model_len
        self._unseen = 0

    def total(self, taken: int) -> int:
        """Tokens that the grammar may take in all, given that it has taken so many."""
        request = self._request
        self._unseen = max(self._unseen, request.num_output_tokens - taken)
        return min(request.max_tokens, self._max_model_len - request.num_prompt_tokens) - self._unseen


def give_budget(grammar: Any, request: Any, model_config: Any) -> None:
    """Let a grammar of structgen's close its output within what the request may write, unless it is to be cut."""
    if not isinstance(grammar, VllmGrammar):
        return
    asked = request.sampling_params.extra_args or {}
    mode = on_budget(asked.get("on_budget"))
    if mode != "cut":
        owner = Owner(request, model_config.max_model_len)
        grammar.request.budget = BudgetedMask(grammar.request.matcher, owner.total, mode)
