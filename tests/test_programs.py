"""Programs of the documentation, of examples/, and such as users write, in processes of their own: how they end."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.programs import ROOT, exit_codes
from tests.test_docs import blocks

for package in ("cyllama", "gguf", "jinja2"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

PAGES = ["README.md", "docs/generation.md", "docs/tools.md", "docs/how_to/records_from_text.md"]
EXAMPLES = ["record_from_text", "tool_loop", "many_callers", "streaming_partial"]
X_STRUCTGEN = {
    "a_class_and_a_function": (
        "import structgen\nclass Point:\n    x: int\n    def __init__(self, x: int) -> None: self.x = x\n"
        "def area(of: Point) -> int: return of.x\n"
        "print(structgen.generate_json('One', {'type': 'boolean'}), area(Point(2)))\n"
    ),
    "two_models": (
        "import structgen\nkept = [structgen.Generator(), structgen.Generator()]\nkept.append(kept)\n"
        "print([each.generate('Hi', max_new_tokens=4).text for each in kept[:2]])\n"
    ),
    "an_unfinished_stream": (
        "import structgen\nstream = structgen.Generator().stream('Hi', max_new_tokens=50)\nprint(next(stream))\n"
    ),
    "a_thread_that_goes_on": (
        "import threading, time, structgen\ngenerator = structgen.Generator()\n"
        "def write() -> None:\n    while True: generator.generate('Hi', max_new_tokens=400)\n"
        "threading.Thread(target=write, daemon=True).start()\ntime.sleep(1)\n"
    ),
    "an_exit_code": "import sys, structgen\ngenerator = structgen.Generator()\nsys.exit(3)\n",
}


@pytest.mark.full
def test_they_end_by_themselves(tmp_path: Path) -> None:
    programs = {page.replace("/", "_"): "\n".join(block.code for block in blocks(page)) for page in PAGES}
    programs |= {name: (ROOT / "examples" / f"{name}.py").read_text() for name in EXAMPLES}
    found = exit_codes(programs | X_STRUCTGEN, tmp_path)
    wrong = {name: result for name, result in found.items() if result[0] != (3 if name == "an_exit_code" else 0)}
    assert wrong == {}
