"""Digests of masks: the same from object code, from numba's JIT, and from checked object code.

Compiling by the JIT takes minutes of processor time: ``STRUCTGEN_DIGESTS=1`` asks for that one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GRAMMARS = ("arithmetic", "json", "sql_select", "s_expression", "python_expression")
LALR = ("arithmetic", "json", "sql_select")
SCRIPT = r"""
import hashlib, json, random, sys
from pathlib import Path
import numpy as np
import structgen
from structgen.core.vocabulary.vocabulary import Vocabulary

folder, grammars = Path(sys.argv[1]), json.loads(sys.argv[2])
texts = {name: (folder / "corpus" / f"{name}.txt").read_text(encoding="utf-8").splitlines()[:6] for name, _ in grammars}
rng = random.Random(11)
parts = "".join(text for lines in texts.values() for text in lines)
tokens = {parts[i : i + rng.randrange(2, 8)].encode() for i in (rng.randrange(len(parts)) for _ in range(3000))}
tokens = [bytes([byte]) for byte in range(256)] + sorted(tokens) + [b""]
words = Vocabulary(tokens, eos_token_ids=len(tokens) - 1)
row = np.zeros(-(-words.size // 32), np.int32)
found = {}
for name, lexer in grammars:
    grammar = structgen.compile_lark((folder / f"{name}.lark").read_text(encoding="utf-8"), words, **lexer)
    seen, masks = hashlib.sha256(), 0
    for text in texts[name] * 2:  # once more from what was learned
        matcher, rest = grammar.matcher(), text.encode()
        while rest:
            matcher.fill_next_token_bitmask(row)
            seen.update(row.tobytes())
            masks += 1
            fits = [t for t in range(256, words.size - 1) if rest.startswith(tokens[t])]
            token = max(fits, key=lambda t: len(tokens[t]), default=rest[0])
            if not matcher.accept_token(token):
                break
            rest = rest[len(tokens[token]) :]
        matcher.fill_next_token_bitmask(row)
        seen.update(row.tobytes() + matcher.next_bytes().tobytes())
    assert masks > 20, (name, masks)
    found["/".join([name, *lexer.values()])] = seen.hexdigest()
print(json.dumps(found))
"""


def digests(**environment: str) -> dict[str, str]:
    grammars: list[tuple[str, dict[str, str]]] = [(name, {}) for name in GRAMMARS] + [
        (name, {"lexer": "contextual"}) for name in LALR
    ]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ROOT / "grammars"), json.dumps(grammars)],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "0", "STRUCTGEN_JIT": "0", "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    found: dict[str, str] = json.loads(run.stdout)
    assert len(set(found.values())) >= len(GRAMMARS)
    return found


@pytest.fixture(scope="module")
def from_objects() -> dict[str, str]:
    pytest.importorskip("lark")
    return digests()


@pytest.mark.full
def test_checked_kernels_find_the_same(from_objects: dict[str, str]) -> None:
    """And read and write nothing out of bounds on the way."""
    assert digests(NUMBA_BOUNDSCHECK="1") == from_objects


@pytest.mark.skipif(os.environ.get("STRUCTGEN_DIGESTS", "0") in ("", "0"), reason="compiling by the JIT takes minutes")
def test_the_jit_finds_the_same(from_objects: dict[str, str]) -> None:
    assert digests(STRUCTGEN_JIT="1") == from_objects
