"""``structgen vllm-check`` and ``sglang-check``: which parts of structgen fit the installed engine."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal

from structgen.cli.common import INVALID, BadInput, print_json
from structgen.cli.consoles import out


def run(engine: Literal["vllm", "sglang"], as_json: bool) -> int:
    """Print a line for each part; 1 if the backend itself does not fit.

    Raises:
        BadInput: the engine is not installed.
    """
    if importlib.util.find_spec(engine) is None:
        raise BadInput(f"{engine} is not installed in this environment")
    if engine == "vllm":
        from structgen.integrations.vllm.plugin import fits, installed_version
    else:
        from structgen.integrations.sglang.plugin import fits, installed_version
    parts: list[dict[str, Any]] = [
        {"part": part, "hangs_on": name, "differs": misfit or None, "needed": needed}
        for part, name, misfit, needed in fits()
    ]
    if as_json:
        print_json({"engine": engine, "version": installed_version(), "parts": parts})
    else:
        out.print(f"{engine} {installed_version()}", markup=False)
        for line in parts:
            says = "fits" if line["differs"] is None else f"left out: {line['differs']}"
            out.print(f"{line['part']} ({line['hangs_on']}): {says}", markup=False, soft_wrap=True)
    return INVALID if any(line["needed"] and line["differs"] for line in parts) else 0
