"""Run the parts of an example and print, a line each, what they gave as JSON. Runs in the clients' own environment."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARTS = ("structured", "structured_streamed", "tools", "tools_streamed", "answered")


def plain(value: Any) -> Any:
    """A value of the client's classes as JSON has it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return value if value is None or isinstance(value, dict | list | str | int | float) else str(value)


def main(path: Path) -> None:
    """Run all parts, whatever becomes of each."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    for part in (part for part in PARTS if hasattr(module, part)):
        told: dict[str, Any] = {"part": part}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                value = getattr(module, part)()
                values = [*value] if isinstance(value, Iterator) else [value]
            told["values"] = [plain(each) for each in values]
        except Exception:
            told["error"] = traceback.format_exc()
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
