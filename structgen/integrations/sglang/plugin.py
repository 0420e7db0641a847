"""The entry point of group ``sglang.srt.plugins``: ``--grammar-backend structgen``. Made for SGLang 0.5.23."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable
from functools import cache
from typing import Any

from structgen.errors import IntegrationError
from structgen.integrations.engine_hooks import make_fitting
from structgen.integrations.sglang.hooks import HOOKS

NAME = "structgen"
MADE_FOR = "0.5.23"

_log = logging.getLogger("structgen.sglang")


def register() -> None:
    """Add structgen to SGLang's grammar backends. Calling it again changes nothing.

    Raises:
        IntegrationError: this SGLang has another interface.
    """
    try:
        from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
        from sglang.srt.constrained.base_grammar_backend import register_grammar_backend
    except ImportError as error:
        raise _other_version(str(error)) from error
    parameters = list(inspect.signature(register_grammar_backend).parameters)
    if parameters != ["name", "init_func"]:
        raise _other_version(f"register_grammar_backend takes {parameters}")
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, make)
    _add_hooks()


@cache
def _add_hooks() -> None:
    """Have SGLang's registry wrap what fits of `HOOKS`, once."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    make_fitting(HOOKS, _log, lambda hook: HookRegistry.register(hook.target, hook.around, HookType.AROUND))


def fits() -> list[tuple[str, str, str, bool]]:
    """For each part: what it gives, what it hangs on, what differs ("" if nothing), whether the backend needs it."""
    try:
        from structgen.integrations.sglang.backend import check_interface

        differs = check_interface()
    except ImportError as error:
        differs = str(error)
    hooks = [(hook.gives, hook.name, hook.misfit(), False) for hook in HOOKS]
    return [("the backend", "BaseGrammarBackend, BaseGrammarObject", differs, True), *hooks]


def make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None) -> Any:
    """The backend of a server, as SGLang's registry asks for it; after its reasoning parser if it has one.

    Raises:
        IntegrationError: this SGLang has another interface, or a setting that structgen does not take.
        TokenizerError: the bytes of the tokens are not known.
    """
    try:
        from structgen.integrations.sglang.backend import SglangBackend, after_reasoning, check_interface
    except ImportError as error:
        raise _other_version(str(error)) from error
    wrong = check_interface()
    if wrong:
        raise _other_version(wrong)
    return after_reasoning(SglangBackend(tokenizer, vocab_size, eos_token_ids or ()), tokenizer)


def installed_version() -> str:
    """The version of SGLang that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("sglang")
    except PackageNotFoundError:
        return "of no known version"


def _other_version(what: str) -> IntegrationError:
    return IntegrationError(
        f"structgen's backend is made for SGLang {MADE_FOR}; SGLang {installed_version()} has another interface "
        f"({what}). Install sglang {MADE_FOR}, or choose another grammar_backend"
    )
