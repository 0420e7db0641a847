"""The code blocks of README.md and docs/ run; those fenced as ``python model`` need a language model and only compile.

Blocks of one page share a namespace and run in order, as a reader would type them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[int, str, str]]:
    """(first line, words after ``python``, code) of each Python block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        (text[: match.start(3)].count("\n") + 1, match[2].strip(), match[3])
        for match in FENCE.finditer(text)
        if match[1] == "python"
    ]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("documentation")  # whose classes and functions are looked up in it, as in any module
    monkeypatch.setitem(sys.modules, module.__name__, module)
    namespace: dict[str, Any] = vars(module)
    for line, words, code in blocks(page):
        assert words in ("", "model"), f"{page}:{line}: unknown kind of block: {words}"
        program = compile("\n" * (line - 1) + code, str(ROOT / page), "exec", dont_inherit=True)
        if not words:
            exec(program, namespace)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    assert [target for target in targets if target and not (ROOT / page).parent.joinpath(target).exists()] == []


def test_there_are_examples() -> None:
    """The fence pattern finds them."""
    assert sum(len(blocks(page)) for page in PAGES) >= 15
