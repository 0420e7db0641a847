"""With ``NUMBA_BOUNDSCHECK=1`` every access of the grammar and LALR machines is checked against a length it has.

A process of its own, since kernels are checked or not for good when they are loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = r'''
import importlib, json, sys
import numpy as np
import structgen
from structgen.core.kernels.heap_layout import FIRST_PLACE, H_CAP, H_HASH
from structgen.core.kernels.tables import KernelTable
from structgen.core.vocabulary.vocabulary import Vocabulary

which, source = sys.argv[1:]
k, declared = (
    importlib.import_module(f"structgen.core.kernels.{'cfg' if which == 'cfg' else 'lalr'}.{name}")
    for name in ("machine", "tables")
)
tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b", a", b"[[", "é".encode(), "éa".encode()]
tokens += [bytes([a, b, c]) for a in b"abcdefghijkl" for b in b"abcdefghijkl" for c in b"abcdefghijkl,"] + [b""]
words = Vocabulary(tokens, eos_token_ids=len(tokens) - 1)
row = np.zeros(-(-words.size // 32), np.int32)
options = {"lexer": "contextual"} if which != "cfg" else {}
if which == "unproved":
    from structgen.core.engines.lalr import compiled

    compiled.prove = lambda tables: None

def matcher():
    return structgen.compile_lark(source, words, **options).matcher()

def use(matcher):
    """Run the operations; whether one raised IndexError."""
    try:
        for byte in '[ab, [é, "x y"], y]'.encode():
            matcher.fill_next_token_bitmask(row)
            matcher.next_bytes()
            assert matcher.accept_token(byte)
        for _ in range(9):
            matcher.fill_next_token_bitmask(row)
        matcher.is_accepting()
        matcher._machine.call(k.CLASSES_INSIDE, 0) if which != "cfg" else None
    except IndexError:
        return True
    return False

def raises(run, *arguments):
    try:
        run(*arguments)
    except IndexError:
        return True
    return False

assert not use(matcher())
places = {table: name for name, table in vars(declared).items() if isinstance(table, KernelTable)}
tables = [place for place in matcher()._machine._arrays if place >= FIRST_PLACE]
missed = []
for place in tables:
    shortened = matcher()
    shortened._machine.heap[place + 1] = 0
    if not use(shortened):
        missed.append(places[place])
plain = matcher()
machine, beyond = plain._machine, len(plain._machine.heap)
ids = [
    raises(k.run, machine.root, operation, x, row.ctypes.data, 0)
    for operation in (k.FILL, k.ENDS, k.NEXT_BYTES) for x in (beyond, beyond - 1, 1 << 39)
]
tokens = [raises(k.run, machine.root, k.ACCEPT, machine.start, token, 0) for token in (words.size, 1 << 40, -2)]
machine.heap[k.H_WIDTH] = 1
print(json.dumps({"tables": len(tables), "missed": sorted(missed), "ids": ids, "tokens": tokens, "bit": use(plain)}))
'''
SOURCE = """
start: item
item: "[" [item ("," item)*] "]" | NAME | STRING | call
call: call "." NAME | item "!"
NAME: /[a-zé]+/
STRING: /"[^"]*"/
%ignore " "
"""
LALR_SOURCE = """
start: item
item: "[" [item ("," item)*] "]" | NAME | STRING | "if" item
NAME: /[a-zé]+/
STRING: /"[^"]*"/
%ignore " "
"""
# What grows when it is too short, so nothing lies beyond its end: buffers, the mask heap, the list of unknown states.
GROWING = {"cfg": {"a_at", "b_at", "c_at", "e_at", "mask_at"}, "lalr": {"unknown_at"}, "unproved": {"unknown_at"}}
# What is looked at only where proofs do not say whether a stack is live, or only where they do; of no slices none fits
# (`engines/cfg/test_slices.py` reads them).
UNREAD = {
    "lalr": {"clean_at", "is_prepared"},
    "unproved": {"open_at"},
    "cfg": {"slice_kinds", "slice_end", "residue_at", "group_from", "group_at"},
}


@pytest.mark.full  # `make test` builds no kernels with checks
@pytest.mark.parametrize(
    ("which", "source"),
    [("cfg", SOURCE), ("lalr", LALR_SOURCE), ("unproved", LALR_SOURCE)],
    ids=["cfg", "lalr", "unproved"],
)
def test_every_table_is_checked(which: str, source: str) -> None:
    """A table that is said to have no elements raises IndexError when it is used, as do ids and tokens that are none,
    and bits beyond a row."""
    pytest.importorskip("lark")
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, which, source],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert found["tables"] > 30
    assert set(found["missed"]) == GROWING[which] | UNREAD.get(which, set())
    assert all(found["ids"]) and all(found["tokens"]) and found["bit"]
