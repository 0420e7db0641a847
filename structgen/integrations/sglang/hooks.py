"""What SGLang's hook registry wraps for structgen: budgets of requests, and the walk along draft trees.

Nothing here imports structgen's engines before a request needs them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from structgen.errors import OptionsError
from structgen.integrations.engine_hooks import parameters_of
from structgen.integrations.engine_settings import on_budget

_MANAGER = "sglang.srt.constrained.grammar_manager"


def closing(original: Callable[..., Any], manager: Any, request: Any) -> Any:
    """Around `GrammarManager.process_req_with_grammar`: a grammar that was ready knows its request's budget."""
    waits = original(manager, request)
    if not waits:
        give_budget(request)
    return waits


def closing_later(original: Callable[..., Any], manager: Any) -> Any:
    """Around `GrammarManager.get_ready_grammar_requests`: those that have become ready do."""
    ready = original(manager)
    for request in ready:
        give_budget(request)
    return ready


def give_budget(request: Any) -> None:
    """Let a grammar of structgen's close its output within what the request may write, unless it is to be cut.

    A request that says something else than there is, is aborted.
    """
    from structgen.integrations.budgets import BudgetedMask, Total
    from structgen.integrations.sglang.backend import SglangGrammarObject

    grammar = getattr(request.grammar, "grammar", request.grammar)  # inside of what defers it behind the thinking
    if not isinstance(grammar, SglangGrammarObject) or request.sampling_params.max_new_tokens is None:
        return
    try:
        mode = on_budget((request.sampling_params.custom_params or {}).get("on_budget"))
    except OptionsError as error:
        request.set_finish_with_abort(str(error))
        return
    if mode != "cut":
        total = Total(request, lambda one: len(one.output_ids), lambda one: one.sampling_params.max_new_tokens)
        grammar.request.budget = BudgetedMask(grammar.request.matcher, total, mode)


def walking(
    original: Callable[..., Any],
    retrieve_next_token: Any,
    retrieve_next_sibling: Any,
    draft_tokens: Any,
    grammar: Any,
    allocate_token_bitmask: Any,
    vocab_size: int | None = None,
) -> None:
    """Around `traverse_tree`: one walk of ours where the grammar is, and its budget does not narrow masks.

    Rows that no allowed draft leads to stay all allowed, as SGLang leaves them: nothing is drawn there.
    """
    from structgen.core.engines.draft_masks import traverse_draft_tree
    from structgen.integrations.sglang.backend import SglangGrammarObject

    given = (retrieve_next_token, retrieve_next_sibling, draft_tokens, grammar, allocate_token_bitmask, vocab_size)
    tokens = draft_tokens.tolist()
    if not isinstance(grammar, SglangGrammarObject) or grammar.is_terminated():
        original(*given)
        return
    request, size = grammar.request, grammar.request.matcher.grammar.vocabulary.size
    is_near = request.budget is not None and request.taken + len(tokens) >= request.budget.awake_at
    if is_near or not all(0 <= token < size for token in tokens[1:]):
        original(*given)
        return
    rows = request.rows(allocate_token_bitmask)[: len(tokens)]
    traverse_draft_tree(retrieve_next_token.numpy(), retrieve_next_sibling.numpy(), tokens, request.matcher, rows)
    rows[~rows.any(axis=1)] = -1


HOOKS: tuple[tuple[str, str, str, tuple[str, ...], Callable[..., Any]], ...] = (
    ("closing within token budgets", f"{_MANAGER}.GrammarManager", "process_req_with_grammar", ("req",), closing),
    ("closing within token budgets", f"{_MANAGER}.GrammarManager", "get_ready_grammar_requests", (), closing_later),
    (
        "draft trees in one walk",
        "sglang.srt.speculative.spec_utils",
        "traverse_tree",
        (
            "retrieve_next_token",
            "retrieve_next_sibling",
            "draft_tokens",
            "grammar",
            "allocate_token_bitmask",
            "vocab_size",
        ),
        walking,
    ),
)
"""What each gives, its owner and name, what it must take, and what is put around it. Each may be absent alone."""


def misfit(owner: str, name: str, parameters: tuple[str, ...]) -> str:
    """What differs in the installed SGLang; "" if nothing does. Imports the module."""
    import pkgutil

    if owner.startswith("sglang.srt.speculative") and importlib.util.find_spec("sgl_kernel") is None:
        return f"{owner} needs sgl_kernel, which is not installed"
    try:
        method = getattr(pkgutil.resolve_name(owner), name, None)
    except (ImportError, AttributeError) as error:
        return f"{owner} is not there ({error})"
    if method is None:
        return f"{owner}.{name} is not there"
    found = parameters_of(method)
    return "" if found == parameters else f"{owner}.{name} takes {list(found)}, not {list(parameters)}"
