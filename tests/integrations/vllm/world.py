"""vLLM's own manager and requests around structgen's backend: all of vLLM that stands between requests and masks."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not here; `make test-engines` fetches it")

from vllm.config.structured_outputs import StructuredOutputsConfig
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1 import structured_output
from vllm.v1.request import Request

from tests.integrations.engine_world import LOGITS, special_id, tokenizer

END, TURN = "<|end|>", "<|turn|>"


class ModelConfig(SimpleNamespace):
    """What the manager asks of a model's configuration."""

    skip_tokenizer_init = False
    is_diffusion = False
    max_model_len = 4096
    hf_config = SimpleNamespace(model_type="llama")

    def get_vocab_size(self) -> int:
        return LOGITS


def engine_config(drafts: int = 0, rows: int = 8, **settings: Any) -> Any:
    """What the manager asks of `VllmConfig`."""
    return SimpleNamespace(
        model_config=ModelConfig(),
        structured_outputs_config=StructuredOutputsConfig(**settings),
        scheduler_config=SimpleNamespace(max_num_seqs=rows),
        parallel_config=SimpleNamespace(distributed_executor_backend="mp"),
        speculative_config=SimpleNamespace(num_speculative_tokens=drafts) if drafts else None,
        num_speculative_tokens=drafts,
    )


class Engine:
    """The front end's check and the core's manager, as vLLM calls them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        monkeypatch.setattr(structured_output, "cached_tokenizer_from_config", lambda model_config: tokenizer())
        self.config = engine_config(**settings)
        self.manager = structured_output.StructuredOutputManager(self.config)
        self.requests: dict[str, Request] = {}

    def ask(
        self,
        kind: str,
        value: Any,
        stop_token_ids: list[int] | None = None,
        max_tokens: int = 4000,
        prompt: tuple[int, ...] = (1,),
        **fields: Any,
    ) -> Request:
        """A request that the front end has let through, and whose grammar is compiled."""
        wanted = json.loads(value) if kind == "choice" and isinstance(value, str) else value
        wanted = True if kind == "json_object" else wanted
        params = SamplingParams(
            structured_outputs=StructuredOutputsParams(**{kind: wanted}, **fields),
            stop_token_ids=stop_token_ids,
            max_tokens=max_tokens,
        )
        ends = [special_id(END), special_id(TURN)]
        params.update_from_generation_config({"eos_token_id": ends}, special_id(END))
        params._validate_structured_outputs(
            self.config.model_config, self.config.structured_outputs_config, tokenizer()
        )
        request = Request(f"r{len(self.requests)}", list(prompt), params, None)
        self.manager.grammar_init(request)
        assert request.structured_output_request is not None
        while not request.structured_output_request.is_grammar_ready:
            pass
        grammar = request.structured_output_request.grammar
        if isinstance(grammar, Exception):
            raise grammar
        self.requests[request.request_id] = request
        return request

    def grammar(self, request: Request) -> Any:
        """The object that vLLM drives."""
        assert request.structured_output_request is not None
        return request.structured_output_request.grammar

    def masks(self, drafts: dict[str, list[int]]) -> Any:
        """The bitmask of a step, int32[requests * (1 + drafts), words], as it goes to the workers."""
        return self.manager.grammar_bitmask(self.requests, list(self.requests), drafts).copy()
