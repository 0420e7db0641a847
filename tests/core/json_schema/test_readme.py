"""The Python blocks of the folder's README print what the text after them says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parents[3] / "structgen/core/json_schema/README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\s+^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_blocks_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    assert len(blocks) == 4
    namespace: dict[str, Any] = {}
    for code, printed in blocks:
        exec(compile(code, str(README), "exec"), namespace)
        assert capsys.readouterr().out == printed
    files = set(re.findall(r"`(?:\w+/)?(\w+\.py)`", README.read_text(encoding="utf-8")))
    assert files <= {path.name for path in README.parent.rglob("*.py")}
