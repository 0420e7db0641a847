"""What SGLang's hook registry wraps for structgen: tool calls, budgets of requests, the walk along draft trees.

Nothing here imports structgen's engines before a request needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from structgen.errors import OptionsError
from structgen.integrations.engine_hooks import Hook
from structgen.integrations.engine_settings import on_budget
from structgen.integrations.sglang import dialects

_MANAGER = "sglang.srt.constrained.grammar_manager.GrammarManager"


def closing(original: Callable[..., Any], manager: Any, request: Any) -> Any:
    """Around `GrammarManager.process_req_with_grammar`: what is asked for knows its request's prompt, and a grammar
    that was ready its budget."""
    if dialects.is_backend():
        give_prompt(request)
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


def give_prompt(request: Any) -> None:
    """Let what a request asks for name its prompt as a source."""
    from structgen.integrations.engine_requests import with_prompt

    params = request.sampling_params
    for field, kind in (("json_schema", "json"), ("structural_tag", "structural_tag")):
        value = getattr(params, field)
        if value is not None:
            setattr(params, field, with_prompt(kind, value, request.origin_input_ids))


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
    reqs: Any,
    retrieve_next_token_cpu: Any,
    retrieve_next_sibling_cpu: Any,
    draft_tokens_cpu: Any,
    vocab_size: int,
) -> tuple[Any, Any]:
    """Around `generate_token_bitmask`: one walk for all trees of ours whose budget does not narrow masks; SGLang's own
    for each of the others.

    Rows that no allowed draft leads to stay all allowed, as SGLang leaves them: nothing is drawn there.
    """
    tokens = draft_tokens_cpu.numpy()
    ours = [number for number, request in enumerate(reqs) if _walks(request.grammar, tokens[number])]
    if not ours:
        given = (reqs, retrieve_next_token_cpu, retrieve_next_sibling_cpu, draft_tokens_cpu, vocab_size)
        return cast(tuple[Any, Any], original(*given))
    grammars = [request.grammar for request in reqs if request.grammar is not None]
    bitmask = grammars[0].allocate_vocab_mask(vocab_size=vocab_size, batch_size=draft_tokens_cpu.numel(), device="cpu")
    links = [links.numpy()[ours] for links in (retrieve_next_token_cpu, retrieve_next_sibling_cpu)]
    _fill([reqs[number].grammar.request for number in ours], links, tokens[ours], bitmask.numpy(), ours)
    from sglang.srt.speculative.spec_utils import traverse_tree

    nodes = tokens.shape[1]
    for number, request in enumerate(reqs):
        if request.grammar is not None and number not in ours:
            tree = (each[number] for each in (retrieve_next_token_cpu, retrieve_next_sibling_cpu, draft_tokens_cpu))
            traverse_tree(*tree, request.grammar, bitmask[nodes * number : nodes * (number + 1)], vocab_size)
    return bitmask, grammars[-1]


def _walks(grammar: Any, tokens: Any) -> bool:
    """Whether a grammar is ours, goes on, and has masks that nothing else narrows along so many tokens."""
    from structgen.integrations.sglang.backend import SglangGrammarObject

    if not isinstance(grammar, SglangGrammarObject) or grammar.is_terminated():
        return False
    request, size = grammar.request, grammar.request.matcher.grammar.vocabulary.size
    is_near = request.budget is not None and request.taken + len(tokens) >= request.budget.awake_at
    return not is_near and bool(((tokens[1:] >= 0) & (tokens[1:] < size)).all())


def _fill(requests: list[Any], links: list[Any], tokens: Any, bitmask: Any, numbers: list[int]) -> None:
    """The masks of trees, each where its number says; all tokens at nodes that are not taken or behind the end."""
    import numpy as np

    from structgen.core.engines.draft_trees import DraftTrees, fill_trees_of

    matchers, count = [request.matcher for request in requests], tokens.shape[1]
    vocabulary = matchers[0].grammar.vocabulary
    children, siblings, ids = (each.astype(np.int64) for each in (*links, tokens))
    trees = DraftTrees.checked(children, siblings, ids, vocabulary.size)
    rows = count * np.array(numbers)
    taken = fill_trees_of(matchers, trees, bitmask, rows.tolist())
    numbered = rows[:, None] + np.arange(count)
    bitmask[numbered[~taken]] = -1
    ends = numbered[taken & np.isin(tokens, vocabulary.eos_token_ids)]
    bitmask[ends[~bitmask[ends].any(axis=1)]] = -1


HOOKS = (
    dialects.HOOK,
    Hook("closing within token budgets", _MANAGER, "process_req_with_grammar", ("req",), closing),
    Hook("closing within token budgets", _MANAGER, "get_ready_grammar_requests", (), closing_later),
    Hook(
        "draft trees in one walk",
        "sglang.srt.speculative.spec_utils",
        "generate_token_bitmask",
        ("reqs", "retrieve_next_token_cpu", "retrieve_next_sibling_cpu", "draft_tokens_cpu", "vocab_size"),
        walking,
        needs="sgl_kernel",
    ),
)
"""Each may be absent alone."""
