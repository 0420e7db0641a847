"""JavaScript's own regular expressions, run by Node, as an oracle."""

from __future__ import annotations

import json
import shutil
import subprocess

SCRIPT = """
const cases = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(cases.map(([pattern, texts]) => {
  for (const flags of ['u', '']) {
    try { const regex = new RegExp(pattern, flags); return texts.map(text => regex.test(text)); } catch (error) {}
  }
  return null;
})));
"""


def node() -> str | None:
    """The Node program, None if there is none."""
    return shutil.which("node")


def search_all(cases: list[tuple[str, list[str]]]) -> list[list[bool] | None]:
    """For each (pattern, texts) whether it is found in each text (``u`` first, then Annex B); None: not legal."""
    program = node()
    assert program is not None
    done = subprocess.run(
        [program, "-e", SCRIPT], input=json.dumps(cases), capture_output=True, text=True, check=True, timeout=60
    )
    results: list[list[bool] | None] = json.loads(done.stdout)
    return results
