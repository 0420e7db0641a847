"""SGLang's own registry, grammar manager and sampling batch around structgen's backend."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("sglang", reason="SGLang is not here; `make test-engines` fetches it")

import torch
from sglang.srt import runtime_context
from sglang.srt.constrained.base_grammar_backend import create_grammar_backend
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.runtime_context import get_context, get_parallel
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo
from sglang.srt.server_args import ServerArgs

from tests.integrations.engine_world import LOGITS, special_id, tokenizer

ENDS = {"<|end|>", "<|turn|>"}
FIELDS = {"json": "json_schema", "json_object": "json_schema", "regex": "regex", "grammar": "ebnf"}


def configure(**arguments: Any) -> ServerArgs:
    """Publish server arguments, as SGLang's processes do at their start; without what follows from the model's."""
    wanted = {"grammar_backend": "structgen", **arguments}
    found = ServerArgs(model_path="none", device="cpu", **wanted)
    with mock.patch.object(runtime_context, "_install_derived_leaves"):
        get_context().set_server_args(found)
    return found


def create(**arguments: Any) -> Any:
    """The backend that SGLang's registry gives."""
    return create_grammar_backend(configure(**arguments), tokenizer(), LOGITS, {special_id(name) for name in ENDS})


class Request:
    """What the grammar manager asks of SGLang's `Req`."""

    def __init__(self, require_reasoning: bool = False, **fields: Any) -> None:
        names = ("json_schema", "regex", "ebnf", "structural_tag")
        self.sampling_params = SimpleNamespace(
            **{name: fields.get(name) for name in names},
            ebnf_full_assistant=False,
            custom_params=fields.get("custom_params"),
            max_new_tokens=fields.get("max_new_tokens", 4000),
        )
        self.origin_input_ids = fields.get("prompt", [1])
        self.output_ids: list[int] = []
        self.require_reasoning = require_reasoning
        self.grammar: Any = None
        self.grammar_key: Any = None
        self.grammar_wait_ct = 0
        self.error: str | None = None
        self.rid = "r"

    def finished(self) -> bool:
        return self.error is not None

    def set_finish_with_abort(self, message: str) -> None:
        self.error = message


class Engine:
    """The scheduler's grammar manager, with a backend from SGLang's registry."""

    def __init__(self, **arguments: Any) -> None:
        scheduler: Any = SimpleNamespace(
            server_args=configure(**arguments),
            tokenizer=tokenizer(),
            model_config=SimpleNamespace(
                vocab_size=LOGITS, hf_eos_token_id={special_id(name) for name in ENDS}, think_end_ids=None
            ),
            dp_tp_cpu_group=None,
            dp_tp_group=SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True),
            pp_group=None,
        )
        with get_parallel().override(pp_rank=0, pp_size=1):
            self.manager = GrammarManager(scheduler)
        self.backend = self.manager.grammar_backend

    def ask(self, kind: str, value: Any, **fields: Any) -> Request:
        """A request whose grammar is ready, or that was aborted."""
        if kind == "choice":  # SGLang has none; its server writes an expression
            raise ValueError("no such field")
        if kind == "json_object":
            value = json.dumps({"type": "object"})
        request: Any = Request(**{FIELDS.get(kind, kind): value}, **fields)
        waits = self.manager.process_req_with_grammar(request)
        while waits and self.manager.has_waiting_grammars():
            self.manager.get_ready_grammar_requests()
        found: Request = request
        return found


def masked(requests: list[Any], logits: torch.Tensor) -> torch.Tensor:
    """Logits of a step with the masks of these grammars (None: of no request), by SGLang's sampling batch."""
    batch: Any = SimpleNamespace(
        grammars=requests, temperatures=torch.ones(len(requests)), vocab_size=LOGITS, device="cpu", grammar_mask=None
    )
    SamplingBatchInfo.update_regex_vocab_mask(batch)
    batch.grammar_mask.apply(logits)
    return logits
