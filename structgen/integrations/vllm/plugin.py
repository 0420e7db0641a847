"""The entry point of group ``vllm.general_plugins``: with STRUCTGEN_VLLM=1, structgen constrains structured outputs.

vLLM calls it in every process: front end, engine core, workers. It has no hook for backends, so two methods are
replaced, once: `SamplingParams._validate_structured_outputs` (front end: reads and compiles what is asked for, so that
errors come before anything is queued) and `StructuredOutputManager.grammar_init` (engine core: makes the backend).
All else is vLLM's own. Made for vLLM 0.33.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from structgen.errors import IntegrationError, StructgenError, dotted
from structgen.integrations.vllm import dialects
from structgen.integrations.vllm.settings import JSON_SETTING, SWITCH, json_options, refused_field

NAME = "structgen"
MADE_FOR = "0.33"
KINDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")

_log = logging.getLogger("structgen.vllm")


def register() -> None:
    """Make structgen vLLM's backend for structured outputs, if STRUCTGEN_VLLM=1. Calling it again changes nothing.

    Raises:
        IntegrationError: this vLLM has another interface.
        OptionsError: STRUCTGEN_VLLM_JSON cannot be read.
    """
    if os.environ.get(SWITCH) != "1":
        return
    json_options()  # what cannot be read is reported at the start
    try:
        from vllm.sampling_params import SamplingParams
        from vllm.v1.structured_output import StructuredOutputManager

        from structgen.integrations.vllm.backend import check_interface
    except ImportError as error:
        raise _other_version(str(error)) from error
    for owner, name, parameters in (
        (SamplingParams, "_validate_structured_outputs", ["model_config", "structured_outputs_config", "tokenizer"]),
        (StructuredOutputManager, "grammar_init", ["request"]),
    ):
        method = getattr(owner, name, None)
        found = list(inspect.signature(method).parameters)[1:] if method else None
        if found != parameters:
            raise _other_version(f"{owner.__name__}.{name} takes {found}, not {parameters}")
    wrong = check_interface()
    if wrong:
        raise _other_version(wrong)
    _replace(SamplingParams, "_validate_structured_outputs", _validating)
    _replace(StructuredOutputManager, "grammar_init", _initialising)
    missing = dialects.patch()
    if missing:
        _log.warning("tool calls without a structural tag of vLLM's stay without one: %s", missing)


def _other_version(what: str) -> IntegrationError:
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("vllm")
    except PackageNotFoundError:
        found = "of no known version"
    return IntegrationError(
        f"structgen's backend is made for vLLM {MADE_FOR}; vLLM {found} has another interface ({what}). "
        f"Install vllm {MADE_FOR}, or unset {SWITCH}"
    )


def _replace(owner: type, name: str, wrapping: Callable[[Any], Any]) -> None:
    """Put a wrapper around a method, unless it is there."""
    original = getattr(owner, name)
    if not hasattr(original, "structgen_original"):
        wrapper: Any = wraps(original)(wrapping(original))
        wrapper.structgen_original = original
        setattr(owner, name, wrapper)


def _validating(original: Callable[..., None]) -> Callable[..., None]:
    """`SamplingParams._validate_structured_outputs`, with structgen in place of vLLM's choice of a backend."""

    def validate(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
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
        _check(asked, model_config, tokenizer, self.all_stop_token_ids)
        asked._backend, asked._backend_was_auto = NAME, True
        asked.__post_init__()

    return validate


def _check(asked: Any, model_config: Any, tokenizer: Any, stop_token_ids: set[int]) -> None:
    """Compile what is asked for.

    Raises:
        VLLMValidationError: it cannot be; with structgen's message and the parameter.
    """
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import check_json_nesting

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
    try:
        compile_request(kind, value, tokenizer, model_config.get_vocab_size(), stop_token_ids)
    except StructgenError as error:
        place = dotted((parameter, *getattr(error, "place", ())))
        raise VLLMValidationError(str(error), parameter=place) from error


def _initialising(original: Callable[..., None]) -> Callable[..., None]:
    """`StructuredOutputManager.grammar_init`, which knows structgen's backend besides."""

    def grammar_init(self: Any, request: Any) -> None:
        params = None if request.structured_output_request is None else request.sampling_params
        asked = None if params is None else params.structured_outputs
        if asked is not None and asked._backend == NAME and self.backend is None:
            from structgen.integrations.vllm.backend import VllmBackend

            vocab_size = self.vllm_config.model_config.get_vocab_size()
            self.backend = VllmBackend(self.vllm_config, tokenizer=self.tokenizer, vocab_size=vocab_size)
            self.backend_name = NAME
        original(self, request)

    return grammar_init
