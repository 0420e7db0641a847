"""Compile the kernels side by side, each once: test processes that start together would wait for one another.

python tests/compile_kernels.py

With ``NUMBA_BOUNDSCHECK=1`` those that check every access, which lie beside the others.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "structgen"


def main() -> int:
    """Without the package itself, whose import would build them one after the other; 0 if all are there."""
    package = types.ModuleType("structgen")
    package.__path__ = [str(PACKAGE)]
    sys.modules["structgen"] = package
    from structgen.kernels import loading

    return 0 if loading.build() else 1


if __name__ == "__main__":
    sys.exit(main())
