"""Drafts of vLLM's requests, made in its scheduler, where the grammars are; its workers' proposer proposes nothing.

    --speculative-config '{"method": "custom_class", "model": "structgen.integrations.vllm.drafts.Nothing",
                           "num_speculative_tokens": 8}'

With vLLM's own n-gram drafts the same comes in where those are shorter. Requires model runner V1 and steps that are not
asynchronous: elsewhere draft tokens do not go through the scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structgen.core.vocabulary.vocabulary import Vocabulary
    from structgen.integrations.vllm.backend import VllmGrammar


FEW = 16
"""Rows of a step, up to which each is drafted for; beyond, those where drafts pay."""


class Nothing:
    """A proposer for vLLM's method "custom_class": it has no drafts. Imports nothing of structgen's engines."""

    def __init__(self, vllm_config: Any) -> None:
        pass

    def load_model(self, *args: Any, **options: Any) -> None:
        """There is none."""

    def propose(self, sampled_token_ids: Sequence[Sequence[int]], *args: Any, **options: Any) -> list[list[int]]:
        """No tokens for each row."""
        return [[] for _ in sampled_token_ids]


class WrittenRequest:
    """What drafters look at of a request: the text of its constraint so far.

    Attributes:
        vocabulary: of its grammar.
    """

    def __init__(self, request: Any, grammar: VllmGrammar) -> None:
        self._request = request
        self.vocabulary: Vocabulary = grammar.request.matcher.grammar.vocabulary
        self.seen = request.num_output_tokens - grammar.num_processed_tokens
        self._data = bytearray()

    @property
    def data(self) -> bytes:
        """See `Written`."""
        return bytes(self._data)

    @property
    def remaining(self) -> int:
        """See `Written`: a token is left for the end."""
        left: int = self._request.max_tokens - self._request.num_output_tokens - 1
        return left

    def new_tokens(self) -> list[int]:
        """The tokens that were written since the last time."""
        new = list(self._request.output_token_ids[self.seen :])
        self.seen += len(new)
        for token in new:
            self._data += self.vocabulary.tokens[token] if token < self.vocabulary.size else b""
        return new


def draft(scheduler: Any, names: Sequence[str]) -> None:
    """Set `spec_token_ids` of the requests of a step, where ours are more than there are.

    Args:
        scheduler: vLLM's, after its own `update_draft_token_ids`.
        names: of the requests.
    """
    from structgen.integrations.vllm.backend import is_ours

    manager = scheduler.structured_output_manager
    for name in names:
        request = scheduler.requests.get(name)
        if request is None or request.is_finished() or request.is_prefill_chunk or not request.use_structured_output:
            continue
        grammar = request.structured_output_request.grammar
        if not is_ours(grammar) or grammar.is_terminated():
            continue
        if manager._get_constraint_bounds(request, ()).constraint_start:
            continue  # it is still thinking
        most = min(scheduler.num_spec_tokens, request.max_tokens - request.num_output_tokens - 1)
        ours = _ours(manager, request, grammar, most, len(names) > FEW)
        if len(ours) > len(request.spec_token_ids):
            request.spec_token_ids = ours


def _ours(manager: Any, request: Any, grammar: VllmGrammar, most: int, pauses: bool) -> list[int]:
    if grammar.drafts is None:
        written = WrittenRequest(request, grammar)
        prompt = [*(request.prompt_token_ids or ()), *request.output_token_ids[: written.seen]]
        grammar.drafts = written, manager.backend.follower(written).start(prompt, written)
    written, sequence = grammar.drafts
    sequence.extend(written.new_tokens())
    return manager.validate_tokens(request, sequence.propose(grammar.request.matcher, most, pauses=pauses))
