"""The masks of a step in vLLM's manager: rows without drafts in one call, drafts with one call a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from structgen.integrations.engine_matcher import RequestMatcher, fill_rows
from structgen.integrations.vllm.backend import VllmBackend, is_ours


def bitmask(
    manager: Any,
    requests: dict[str, Any],
    ids: list[str],
    drafts: dict[str, list[int]],
    original: Callable[..., Any],
) -> Any:
    """`StructuredOutputManager.grammar_bitmask` where the backend is structgen's: int32[rows, ceil(V / 32)] or None."""
    config = manager.vllm_config
    if not ids or not isinstance(manager.backend, VllmBackend) or config.model_config.is_diffusion:
        return original(manager, requests, ids, drafts)
    if config.num_speculative_tokens:
        return _walking(manager, requests, ids, drafts, original)
    if manager._grammar_bitmask is None:
        manager._grammar_bitmask = manager.backend.allocate_token_bitmask(config.scheduler_config.max_num_seqs)
    tensor = manager._grammar_bitmask
    constrained: list[tuple[int, RequestMatcher]] = []
    thinks = manager.reasoner_cls is not None and not manager.enable_in_reasoning
    for row, name in enumerate(ids):
        request = requests[name]
        grammar = request.structured_output_request.grammar
        if thinks and manager._get_constraint_bounds(request, ()).constraint_start:
            _fill_thinking(manager, request, grammar, row)
        else:
            constrained.append((row, grammar.request))
    fill_rows(constrained, tensor)
    return tensor[: len(ids)].numpy()


def _fill_thinking(manager: Any, request: Any, grammar: Any, row: int) -> None:
    """A row that the constraint has no say in yet, as vLLM fills it."""
    masked = getattr(manager, "_masked_reasoning_ends", None)  # since 0.33
    manager._fill_bitmasks([(grammar, row, False) if masked is None else (grammar, row, False, masked(request))])


def _walking(
    manager: Any, requests: dict[str, Any], ids: list[str], drafts: dict[str, list[int]], original: Callable[..., Any]
) -> Any:
    """vLLM's own walk along drafts, in which a token is accepted and the mask behind it filled in one call."""
    every = [requests[name].structured_output_request.grammar for name in ids]
    grammars = [grammar for grammar in every if is_ours(grammar)]
    try:
        for grammar in grammars:
            grammar.walks = True
        return original(manager, requests, ids, drafts)
    finally:
        for grammar in grammars:
            grammar.walks = False
