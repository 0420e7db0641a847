"""The public surface: ``structgen.__all__`` is sorted and whole, and importing structgen stays light."""

from __future__ import annotations

import subprocess
import sys

import pytest

import structgen

HEAVY = ("torch", "transformers", "lark", "interegular", "tiktoken", "typer", "rich", "starlette", "gguf")


def rank(name: str) -> tuple[int, str]:
    """The order that ruff asks of ``__all__`` (RUF022): constants, classes, functions; each by name."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_all_is_sorted_without_duplicates() -> None:
    assert structgen.__all__ == sorted(set(structgen.__all__), key=rank)


@pytest.mark.parametrize("name", getattr(structgen, "__all__", []))
def test_exported_names_exist_and_say_what_they_are(name: str) -> None:
    exported = getattr(structgen, name)
    assert name.startswith("__") or getattr(exported, "__doc__", None), f"{name} has no docstring"


def test_nothing_public_is_left_out() -> None:
    """A class or function in the package's namespace is exported or has a leading underscore."""
    public = {name for name, value in vars(structgen).items() if callable(value) and not name.startswith("_")}
    assert public <= set(structgen.__all__)


def test_import_loads_no_heavy_module() -> None:
    program = f"import sys, structgen; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.split() == []
