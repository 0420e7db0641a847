"""The package's sources for the tests that read all of them: read and parsed once a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1] / "structgen"
PATHS = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.rglob("*.py"))]


@cache
def text(path: str) -> str:
    """A module's source, by its path below the package's folder."""
    return (ROOT / path).read_text("utf-8")


@cache
def parsed(source: str) -> ast.Module:
    """A source as a tree; others read the same one, so nobody changes it."""
    return ast.parse(source)


def tree(path: str) -> ast.Module:
    """A module's source as a tree: see `parsed`."""
    return parsed(text(path))
