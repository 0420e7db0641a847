"""vLLM's two classes over structgen's engines. Imports vLLM; `plugin` imports it where it is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from structgen.core.constraints.rules import compile_masks
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.speculative.drafter import Written
from structgen.generation.speculative.followed import Follower
from structgen.integrations.budgets import BudgetedMask, Total
from structgen.integrations.engine_matcher import RequestMatcher
from structgen.integrations.engine_requests import ending_at, engine_constraint, engine_vocabulary, with_prompt
from structgen.integrations.engine_settings import on_budget
from structgen.integrations.vllm.settings import draft_names, json_options


def compile_request(kind: str, value: Any, tokenizer: Any, vocab_size: int, stop_token_ids: set[int] | None) -> Grammar:
    """What a request asks for, compiled for the engine's vocabulary; a few are kept for the process.

    Stop tokens that spell text end the output like the others: in the text they cannot be.

    Raises:
        StructgenError: what is asked for, or the tokenizer, cannot be read; or compiled.
    """
    vocabulary = engine_vocabulary(tokenizer, vocab_size)
    ends = frozenset(i for i in stop_token_ids or () if 0 <= i < vocab_size and vocabulary.tokens[i])
    constraint = engine_constraint(kind, value, vocabulary, json_options())
    return compile_masks(constraint, ending_at(vocabulary, ends) if ends else vocabulary)


class VllmGrammar(StructuredOutputGrammar):
    """One request's grammar; what its methods promise is said by vLLM's class.

    Attributes:
        request: the matcher.
        num_processed_tokens: tokens accepted, without those after the end.
        walks: whether drafts are walked: then a token is accepted together with the mask behind it, which vLLM asks for
            next, in the next row.
    """

    def __init__(self, request: RequestMatcher) -> None:
        self.request = request
        self.num_processed_tokens = 0
        self.walks = False
        self.drafts: Any = None  # what drafts it and looks on, see `drafts.draft`
        self._filled: tuple[torch.Tensor, int] | None = None  # the last row, behind the tokens accepted by then
        self._is_ahead = False  # whether it was filled before vLLM asked for it

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance; False, and nothing changes, if a token is not allowed. What follows the end is passed over."""
        if self.walks and len(tokens) == 1 and self._filled is not None:
            return self._accept_ahead(tokens[0], *self._filled)
        self._filled, self._is_ahead = None, False
        for taken, token in enumerate(tokens):
            if self.request.matcher.is_terminated():
                break
            if not self.request.accept(token):
                self.rollback(taken)
                return False
            self.num_processed_tokens += 1
        return True

    def _accept_ahead(self, token: int, bitmask: torch.Tensor, index: int) -> bool:
        """Advance by a draft and fill the row behind it: one call where the engine has one."""
        self._filled, self._is_ahead = None, False
        if index + 1 >= bitmask.shape[0] or self.request.matcher.is_terminated():
            return self.accept_tokens("", [token])
        if not self.request.accept_and_fill(token, bitmask, index + 1):
            return False
        self.num_processed_tokens += 1
        self._filled, self._is_ahead = (bitmask, index + 1), True
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest beginning that would be accepted."""
        return self.request.valid_prefix(tokens)

    def rollback(self, num_tokens: int) -> None:
        """Undo the last tokens."""
        self._filled, self._is_ahead = None, False
        self.request.rollback(num_tokens)
        self.num_processed_tokens -= num_tokens

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the mask of the next token into a row."""
        is_filled = self._is_ahead and self._filled is not None and self._filled[1] == batch_index
        if not is_filled:
            self.request.fill(bitmask, batch_index)
        self._filled, self._is_ahead = ((bitmask, batch_index), False) if self.walks else (None, False)

    def is_terminated(self) -> bool:
        """Whether the end was accepted."""
        return self.request.matcher.is_terminated()

    def reset(self) -> None:
        """Back to the start."""
        self._filled, self._is_ahead = None, False
        self.request.reset()
        self.num_processed_tokens = 0


@dataclass
class VllmBackend(StructuredOutputBackend):
    """The backend of an engine. Compiled forms are kept for the process, up to a number and a sum of bytes
    (`structgen.core.constraints.cache`)."""

    def __post_init__(self) -> None:
        self._followers: dict[Vocabulary, Follower] = {}

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> VllmGrammar:
        """Compile in the calling thread, which is one of vLLM's own.

        Raises:
            StructgenError: it cannot be compiled; the front end has reported it before.
        """
        kind = request_type.name.lower()
        grammar = compile_request(kind, grammar_spec, self.tokenizer, self.vocab_size, stop_token_ids)
        return VllmGrammar(RequestMatcher(grammar, stop_token_ids))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """int32[max_num_seqs, ceil(vocab_size / 32)], all tokens allowed."""
        return torch.from_numpy(allocate_token_bitmask(max_num_seqs, self.vocab_size))

    def follower(self, written: Written) -> Follower:
        """What drafts outputs over the vocabulary of one of them."""
        follower = self._followers.get(written.vocabulary)
        if follower is None:
            follower = self._followers[written.vocabulary] = Follower(self.tokenizer, written, draft_names())
        return follower

    def destroy(self) -> None:
        """Nothing to free: compiled forms belong to the process."""


def is_ours(grammar: Any) -> TypeGuard[VllmGrammar]:
    """Whether a request's grammar was compiled here; vLLM keeps every backend's in one place."""
    return type(grammar) is VllmGrammar


def give_prompt(request: Any) -> None:
    """Let what a request asks for name its prompt as a source, if the prompt has tokens."""
    asked, ids = request.structured_output_request, request.prompt_token_ids
    if ids is not None:
        kind, value = asked.structured_output_key
        asked.structured_output_key = kind, with_prompt(kind.name.lower(), value, ids)


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
