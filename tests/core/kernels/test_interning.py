"""Interned records: hashes modulo 2**64, places in the hash table; and that no kernel's hash overflows."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from structgen.core.engines.cfg.compiled import compile_grammar
from structgen.core.kernels.cfg import layout as cfg
from structgen.core.kernels.heap_layout import H_HASH, HASH_PRIME, LENGTH_BITS, LENGTH_MASK, R_HASH, R_HEAD
from structgen.core.kernels.lalr import layout as lalr
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.core.engines.cfg.lark_grammars import JSON, normal_form

KERNELS = Path(cfg.__file__).parents[1]
VOCABULARY = Vocabulary([bytes([byte]) for byte in range(256)] + [b'"a', b'": ', b"12", b"}]", b""], eos_token_ids=260)
TEXTS = (b'{"a": [1, 2, {"b": null}], "c": "\\u00e9"}', b"[[[[]]], -12.5e7, true]", b'"plain"')
KEYS = {
    cfg.ITEMS: cfg.ITEMS_KEY, cfg.CONT: cfg.CONT_KEY, cfg.GROUP: cfg.GROUP_KEY, cfg.LEX: cfg.LEX_KEY,
    cfg.CLASSES: cfg.CLASSES_KEY, cfg.GOTO: cfg.GOTO_KEY, cfg.MEMO: cfg.MEMO_KEY, cfg.CONFIGS: cfg.CONFIGS_KEY,
    cfg.INCOMING: cfg.INCOMING_VALUE + 1,
}  # fmt: skip
"""Where the keys of the grammar machine's records begin."""


def signed(x: int) -> int:
    """A number modulo 2**64 as int64."""
    x &= (1 << 64) - 1
    return x - (1 << 64) if x >> 63 else x


def hash_of(kind: int, key: list[int]) -> int:
    x = kind << LENGTH_BITS | len(key)
    for word in key:
        x = signed((x ^ word) * HASH_PRIME)
        x ^= x >> 31
    return x


def read(grammar: Any) -> Any:
    """The machine of a grammar that has read texts and made masks."""
    for text in TEXTS:
        matcher = grammar.matcher()
        for byte in text:
            matcher.next_bytes()
            assert matcher.accept_token(byte)
    return matcher._machine


def check(machine: Any, keys: dict[int, int]) -> set[int]:
    """Check every record of a machine; their kinds."""
    heap, table = machine.heap.tolist(), machine._arrays[H_HASH].tolist()
    mask, kinds, wide = len(table) - 1, set(), 0
    for r in filter(None, table):
        kind, n = heap[r + R_HEAD] >> LENGTH_BITS, heap[r + R_HEAD] & LENGTH_MASK
        x = hash_of(kind, heap[r + keys[kind] : r + keys[kind] + n])
        assert heap[r + R_HASH] == x
        slot = (x ^ x >> 17) & mask
        while table[slot] != r:  # nothing free lies between the first slot of a hash and its record
            assert table[slot] != 0
            slot = (slot + 1) & mask
        kinds.add(kind)
        wide += n > 0
    assert wide > 20  # one step of the hash overflows 64 bits nearly always, if the word is an id
    return kinds


def test_records_of_the_grammar_machine() -> None:
    """Those too that are written in place: the continuations of a group."""
    machine = read(compile_grammar(normal_form(JSON), VOCABULARY))
    assert check(machine, KEYS) >= {cfg.ITEMS, cfg.CONT, cfg.LEX, cfg.CLASSES, cfg.GOTO, cfg.CONFIGS}
    left = compile_grammar(normal_form('start: start start | "a" | "(" start ")" |'), VOCABULARY).matcher()
    for byte in b"a(a(aa)a)" * 12:
        left.next_bytes()
        assert left.accept_token(byte)
    assert cfg.GROUP in check(left._machine, KEYS)


def test_records_of_the_lalr_machine() -> None:
    pytest.importorskip("lark")
    from structgen.core.engines.lalr.compiled import compile_contextual

    machine = read(compile_contextual(JSON, VOCABULARY))
    keys = {
        lalr.NODE: lalr.PAIR_KEY, lalr.INDENT: lalr.PAIR_KEY, lalr.PARSER: lalr.PARSER_KEY, lalr.FEED: lalr.FEED_KEY,
        lalr.LEX: lalr.LEX_CLEAN + 2 * machine.bit_words, lalr.CONFIG: lalr.CONFIG_KEY,
        lalr.CLASS: lalr.CLASS_FITS + machine.bit_words, lalr.ABOVE: lalr.ABOVE_VALUE + 1,
    }  # fmt: skip
    assert check(machine, keys) >= {lalr.NODE, lalr.PARSER, lalr.LEX, lalr.CONFIG, lalr.FEED, lalr.CLASS, lalr.ABOVE}


# --- no hash is computed by arithmetic that LLVM takes for free of overflow ---
WRAPPED = {"wrapped_add", "wrapped_mul"}


def is_hashed(node: ast.AST, hashes: set[str]) -> bool:
    """Whether an expression is a hash: a name of one, a constant of hashes, or made of one by other bit operations."""
    if isinstance(node, ast.Name):
        return node.id in hashes or node.id.startswith("HASH_")
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and (node.func.id in WRAPPED or node.func.id in hashes)
    if isinstance(node, ast.BinOp):
        is_cut = isinstance(node.op, ast.BitAnd)  # a slot, not a hash
        return not is_cut and (is_hashed(node.left, hashes) or is_hashed(node.right, hashes))
    return False


def overflowing(source: str) -> Iterator[str]:
    """Sums, differences, products and left shifts of hashes that are not marked as wrapping, in words."""
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        hashes = {"hash_of"}
        for _ in range(3):  # a hash of a hash of a hash
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and is_hashed(node.value, hashes):
                    hashes |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        for node in ast.walk(function):
            if (
                isinstance(node, ast.BinOp)
                and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.LShift)
                and (is_hashed(node.left, hashes) or is_hashed(node.right, hashes))
            ):
                yield f"{function.name}, line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize(
    "path", sorted(KERNELS.rglob("*.py")), ids=lambda path: path.relative_to(KERNELS).with_suffix("").as_posix()
)
def test_hashes_wrap(path: Path) -> None:
    """Numba marks signed arithmetic as never overflowing, and LLVM makes use of that."""
    assert not list(overflowing(path.read_text(encoding="utf-8")))


def test_plain_arithmetic_is_seen() -> None:
    plain = "def f(x, n):\n    for i in range(n):\n        x = (x ^ i) * HASH_PRIME\n        x ^= x >> 31\n    return x"
    assert list(overflowing(plain))
    assert list(overflowing("def f(h, a):\n    x = wrapped_mul(h, 3)\n    y = x ^ 5\n    return y + a"))
    assert not list(overflowing("def f(h, mask):\n    x = wrapped_mul(h, 3)\n    slot = x & mask\n    return slot + 1"))


LOWERED = """
import sys, types
package = types.ModuleType("structgen")  # whose import would need kernels
package.__path__ = [sys.argv[1]]
sys.modules["structgen"] = package
from numba import njit
from numba.types import int64
from structgen.core.kernels.interning import HASH_PRIME, hash_of

def hashed(kind, key, n):
    return hash_of(kind, key, n)

def plain(x, word, n):
    for _ in range(n):
        x = (x ^ word) * HASH_PRIME
    return x

for function in hashed, plain:
    text = njit(int64(int64, int64, int64))(function).inspect_llvm((int64, int64, int64))
    products = [line for line in text.splitlines() if " mul " in line]
    print(len(products), sum(" nsw " in line for line in products))
"""


def test_the_hash_of_records_is_not_marked() -> None:
    """What LLVM gets: no multiplication that may be taken for one without overflow, as a plain one is."""
    run = subprocess.run(
        [sys.executable, "-c", LOWERED, str(KERNELS.parents[1])],
        env={**os.environ, "NUMBA_OPT": "0", "NUMBA_BOUNDSCHECK": "0"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (products, marked), plain = (tuple(map(int, line.split())) for line in run.stdout.splitlines())
    assert products > 0 and marked == 0
    assert plain == (1, 1)
