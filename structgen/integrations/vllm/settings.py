"""What the environment says: vLLM starts processes of its own, and has no place for settings of others."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import Any

from structgen.errors import OptionsError
from structgen.options import JsonOptions, changed_options

NAME = "structgen"
"""The backend's, where vLLM names one."""
SWITCH = "STRUCTGEN_VLLM"
"""1: structgen constrains structured outputs."""
JSON_SETTING = "STRUCTGEN_VLLM_JSON"
"""Fields of `JsonOptions` for all requests, as a JSON object."""
DRAFTS_SETTING = "STRUCTGEN_VLLM_DRAFTS"
"""The drafters of `structgen.integrations.vllm.drafts`, by their names, with commas between; unset: all."""


def json_options() -> JsonOptions:
    """How JSON may be spelled.

    Raises:
        OptionsError: the setting is no JSON object, or no options.
    """
    return _read(os.environ.get(JSON_SETTING, "{}"))


def draft_names() -> tuple[str, ...]:
    """The drafters that are asked.

    Raises:
        OptionsError: the setting names one that is not there.
    """
    from structgen.generation.speculative.followed import NAMES

    names = tuple(name.strip() for name in os.environ.get(DRAFTS_SETTING, ",".join(NAMES)).split(","))
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise OptionsError(f"{DRAFTS_SETTING} names {unknown[0]!r:.60}; there are {', '.join(NAMES)}")
    return names


@lru_cache(1)
def _read(text: str) -> JsonOptions:
    try:
        changes = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionsError(f"{JSON_SETTING} is no JSON object: {error}; it is {text!r:.100}") from None
    return changed_options(JsonOptions(), changes)


def refused_field(asked: Any) -> str | None:
    """The field of a request's `StructuredOutputsParams` that asks for another spelling than all requests have."""
    options = json_options()
    if asked.disable_any_whitespace and options.whitespace != "compact":
        return "disable_any_whitespace"
    if asked.disable_additional_properties and options.additional_members != "closed":
        return "disable_additional_properties"
    return "whitespace_pattern" if asked.whitespace_pattern else None
