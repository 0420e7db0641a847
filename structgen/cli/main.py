"""Entry point of the command ``structgen``: says what to install if the command line's packages are missing."""

from __future__ import annotations

import gc
import os
import sys

FAULT = 70  # EX_SOFTWARE of sysexits.h
YOUNG_OBJECTS = 100_000
"""How many are made between two looks for garbage. What is loaded stays, so that looking took a sixth of the start."""
WITHOUT_MODEL = ("check", "compare", "examples", "lint", "lower", "show-mask", "validate")
"""Commands that multiply no matrices: the threads that numpy makes for that take a tenth of their start."""


def app() -> None:
    """Run the command line; exits with 0 (done), 1 (invalid or not covered), 2 (bad input or usage), 3 (not written
    whole, or not decided), 70 (a fault of the command, which Python's own 1 would hide)."""
    if sys.argv[1:2] != ["serve"]:  # which lasts
        gc.set_threshold(YOUNG_OBJECTS)
    if sys.argv[1:2] and sys.argv[1] in WITHOUT_MODEL:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded
    try:
        from structgen.cli.commands import app as typer_app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        raise SystemExit(f"The command line needs {error.name}: pip install 'structgen-lm[cli]'") from error
    try:
        typer_app()
    except Exception:
        import traceback

        traceback.print_exc()
        print("structgen: this is a fault of structgen; please report it.", file=sys.stderr)
        sys.exit(FAULT)
    finally:
        gc.freeze()  # Python looks for garbage as it ends: that took a sixth of a short command


if __name__ == "__main__":
    app()
