"""A started vLLM engine in this process, with SmolLM2 on the processor: `make test-vllm`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

if os.environ.get("STRUCTGEN_TEST_VLLM") != "1":
    pytest.skip("a vLLM that starts is not here; `make test-vllm` fetches it", allow_module_level=True)

DRAFTS = 8
ROWS = 8
LENGTH = 1024


@dataclass(frozen=True)
class Answer:
    """What the engine wrote."""

    text: str
    finish_reason: str
    token_ids: tuple[int, ...]


class StartedEngine:
    """The engine, its scheduler, and how many steps of it gave tokens."""

    def __init__(self, folder: str) -> None:
        # The plugin is loaded here and imports none of structgen's engines: vLLM's platform for processors looks at all
        # modules before the model is loaded, and cannot look at llvmlite's.
        from vllm import LLM

        self.llm = LLM(
            folder,
            dtype="float32",
            max_model_len=LENGTH,
            max_num_seqs=ROWS,
            enforce_eager=True,
            disable_log_stats=True,
            speculative_config={
                "method": "custom_class",
                "model": "structgen.integrations.vllm.drafts.Nothing",
                "num_speculative_tokens": DRAFTS,
            },
        )
        self.core: Any = self.llm.llm_engine.engine_core.engine_core
        self.steps = 0
        step = self.core.step_fn

        def counted(*given: Any, **options: Any) -> Any:
            outputs, is_run = step(*given, **options)
            self.steps += any(each.outputs for each in (outputs or {}).values())
            return outputs, is_run

        self.core.step_fn = counted

    def answers(self, questions: Sequence[str], asked: Sequence[dict[str, Any]], **params: Any) -> list[Answer]:
        """Answers to questions, each under a constraint, all at once.

        Args:
            asked: fields of `StructuredOutputsParams`, for each question.
            params: of `SamplingParams`, for all.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        each = [SamplingParams(structured_outputs=StructuredOutputsParams(**fields), **params) for fields in asked]
        chats: Any = [[{"role": "user", "content": question}] for question in questions]
        outputs = [request.outputs[0] for request in self.llm.chat(chats, each, use_tqdm=False)]
        return [Answer(output.text, str(output.finish_reason), tuple(output.token_ids)) for output in outputs]

    @contextmanager
    def drafters(self, names: str | None) -> Iterator[None]:
        """Within: only these drafters; None: no drafts at all."""
        from structgen.integrations.vllm import drafts

        with pytest.MonkeyPatch.context() as patch:
            if names is None:
                patch.setattr(drafts, "_ours", lambda *_: [])
            elif self.core.structured_output_manager.backend is not None:
                patch.setattr(self.core.structured_output_manager.backend, "_followers", {})
            if names:
                patch.setenv("STRUCTGEN_VLLM_DRAFTS", names)
            yield


@cache
def engine() -> StartedEngine:
    """One for all tests of the process."""
    return StartedEngine(os.environ["STRUCTGEN_TEST_VLLM_MODEL"])
