"""vLLM's two classes over structgen's engines. Imports vLLM; `plugin` imports it where it is wanted."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.protocols import Grammar
from structgen.integrations.engine_matcher import RequestMatcher
from structgen.integrations.engine_requests import ending_at, engine_constraint, engine_vocabulary
from structgen.integrations.vllm.settings import json_options


def compile_request(kind: str, value: Any, tokenizer: Any, vocab_size: int, stop_token_ids: set[int] | None) -> Grammar:
    """What a request asks for, compiled for the engine's vocabulary; a few are kept for the process.

    Stop tokens that spell text end the output like the others: in the text they cannot be.

    Raises:
        StructgenError: what is asked for, or the tokenizer, cannot be read; or compiled.
    """
    vocabulary = engine_vocabulary(tokenizer, vocab_size)
    ends = frozenset(i for i in stop_token_ids or () if 0 <= i < vocab_size and vocabulary.tokens[i])
    constraint = engine_constraint(kind, value, vocabulary, json_options())
    return constraint.compile(ending_at(vocabulary, ends) if ends else vocabulary)


class VllmGrammar(StructuredOutputGrammar):
    """One request's grammar; what its methods promise is said by vLLM's class.

    Attributes:
        request: the matcher.
        num_processed_tokens: tokens accepted, without those after the end.
    """

    def __init__(self, request: RequestMatcher) -> None:
        self.request = request
        self.num_processed_tokens = 0

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance; False, and nothing changes, if a token is not allowed. What follows the end is passed over."""
        for taken, token in enumerate(tokens):
            if self.request.matcher.is_terminated():
                break
            if not self.request.accept(token):
                self.rollback(taken)
                return False
            self.num_processed_tokens += 1
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest beginning that would be accepted."""
        return self.request.valid_prefix(tokens)

    def rollback(self, num_tokens: int) -> None:
        """Undo the last tokens."""
        self.request.rollback(num_tokens)
        self.num_processed_tokens -= num_tokens

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the mask of the next token into a row."""
        self.request.fill(bitmask, batch_index)

    def is_terminated(self) -> bool:
        """Whether the end was accepted."""
        return self.request.matcher.is_terminated()

    def reset(self) -> None:
        """Back to the start."""
        self.request.reset()
        self.num_processed_tokens = 0


@dataclass
class VllmBackend(StructuredOutputBackend):
    """The backend of an engine. Compiled forms are kept for the process, up to a number and a sum of bytes
    (`structgen.core.constraints.cache`)."""

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

    def destroy(self) -> None:
        """Nothing to free: compiled forms belong to the process."""


def check_interface() -> str:
    """What of vLLM's classes is not as these are made for; "" if all is."""
    for ours, theirs in ((VllmBackend, StructuredOutputBackend), (VllmGrammar, StructuredOutputGrammar)):
        unknown = sorted(getattr(ours, "__abstractmethods__", ()))
        if unknown:
            return f"{theirs.__name__} asks for {', '.join(unknown)}"
        for name in sorted(getattr(theirs, "__abstractmethods__", ())):
            wanted = list(inspect.signature(getattr(theirs, name)).parameters)
            if list(inspect.signature(getattr(ours, name)).parameters) != wanted:
                return f"{theirs.__name__}.{name} takes {wanted}"
    return ""
