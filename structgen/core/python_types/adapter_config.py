"""What settings a pydantic adapter reads its type with: the one place that touches what pydantic keeps private.

They change what is read (``ser_json_bytes``, ``strict``, ``str_max_length``), and pydantic names them nowhere else
where the type is no class with settings of its own.
"""

from __future__ import annotations

from typing import Any

import pydantic

from structgen.errors import ConstraintError

KNOWN = (2, 7), (3, 0)
"""Versions of pydantic that keep it so: from the first, below the second."""


def config_of(adapter: pydantic.TypeAdapter[Any]) -> Any:
    """The settings of an adapter; None: it has none of its own.

    Raises:
        ConstraintError: this version of pydantic keeps them elsewhere.
    """
    try:
        return adapter._config
    except AttributeError:
        first, end = (".".join(map(str, version)) for version in KNOWN)
        raise ConstraintError(
            f"pydantic {pydantic.VERSION} keeps the settings of a type where structgen does not find them; expected "
            f"pydantic>={first},<{end}. Install one: pip install 'pydantic>={first},<{end}'"
        ) from None
