"""What the uses of Ray have in common: whether it is there, a cluster, and the errors of its workers."""

from __future__ import annotations

import logging
import re
from typing import Any

from structgen.errors import ModelError, OptionsError, StructgenError


def connect() -> Any:
    """The package ``ray``, connected to the cluster that RAY_ADDRESS names, else to one on this machine.

    Raises:
        OptionsError: it is not installed.
    """
    try:
        import ray
        import ray.data
        import ray.serve
    except ImportError as error:
        raise OptionsError(f"Ray is not here ({error.name}): pip install 'structgen-lm[ray]'") from error
    if not ray.is_initialized():
        ray.init(logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False)
    return ray


def raised_by(error: BaseException) -> BaseException:
    """What a worker raised: the library's own error where there is one, else the error as it is.

    Of an error in an actor's beginning Ray keeps the text only: it becomes a ModelError.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, StructgenError):
            return cause
        cause = getattr(cause, "cause", None) or cause.__cause__
    text = re.search(r"structgen\.errors\.\w+: (.+)", str(error), re.DOTALL)
    return error if text is None else ModelError(text[1].strip())
