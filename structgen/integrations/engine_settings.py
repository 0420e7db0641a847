"""What becomes of outputs whose token budget runs out: what the environment of an engine, and each request, may say."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Literal, get_args

from structgen.core.text_sets.opening import opened_sources
from structgen.errors import OptionsError

OnBudget = Literal["close", "cut", "length"]
"""The output is closed before, with a token left for its end; it is cut, as masks alone do; it is closed with the last
token, so that the engine reports "length"."""
CHOICES: tuple[OnBudget, ...] = get_args(OnBudget)
SOURCES_SETTING = "STRUCTGEN_SOURCES"
"""Sources that requests' schemas may name, in vLLM and SGLang: ``name=file`` or folders, separated as in PATH."""
BUDGET_SETTING = "STRUCTGEN_VLLM_BUDGET"
"""One of these for requests that do not say, in vLLM and SGLang; unset: close."""


@lru_cache(1)
def engine_sources() -> dict[str, Any]:
    """What names of sources in schemas stand for; opened once for the process.

    Raises:
        ConstraintError: the setting names what cannot be opened.
    """
    return opened_sources(filter(None, os.environ.get(SOURCES_SETTING, "").split(os.pathsep)))


def on_budget(asked: Any = None) -> OnBudget:
    """What becomes of an output whose budget runs out.

    Args:
        asked: what the request says; None: nothing.

    Raises:
        OptionsError: the request or the setting says something else than there is.
    """
    setting = os.environ.get(BUDGET_SETTING) or "close"
    name, value = ("on_budget", asked) if asked is not None else (BUDGET_SETTING, setting)
    for choice in CHOICES:
        if value == choice:
            return choice
    raise OptionsError(f"{name} is {value!r:.60}; it is one of {', '.join(CHOICES)}", option=name, value=value)
