"""Entry point of the command ``structgen``: says what to install if the command line's packages are missing."""

from __future__ import annotations

import gc
import sys

YOUNG_OBJECTS = 100_000
"""How many are made between two looks for garbage. What is loaded stays, so that looking took a sixth of the start."""


def app() -> None:
    """Run the command line; exits with 0 (done), 1 (invalid or not covered), 2 (bad input or usage)."""
    if sys.argv[1:2] != ["serve"]:  # which lasts
        gc.set_threshold(YOUNG_OBJECTS)
    try:
        from structgen.cli.commands import app as typer_app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        raise SystemExit(f"The command line needs {error.name}: pip install 'structgen-lm[cli]'") from error
    typer_app()


if __name__ == "__main__":
    app()
