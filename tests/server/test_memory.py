"""What compiled constraints say that they take, against what Python's allocator says."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import platform
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import structgen
from structgen.core.constraints.cache import COMPILED, CompiledCache, content_key, joined
from structgen.core.engines.json.masks.bitmask_rows import MAX_POOL_BYTES
from structgen.server.compiler import CompileService, _begun
from structgen.server.memory import give_back_regularly
from tests.server.tiny import VOCABULARY


def held(constraint: Any) -> tuple[int, int]:
    """Bytes that a compiled constraint takes once it is begun, and those it says it takes."""
    gc.collect()
    tracemalloc.start()
    try:
        grammar = _begun(constraint._compiled(VOCABULARY) if hasattr(constraint, "_compiled") else _json(constraint))
        gc.collect()
        return tracemalloc.get_traced_memory()[0], grammar.memory_bytes
    finally:
        tracemalloc.stop()


def _json(constraint: Any) -> Any:
    return structgen.compile_json_schema(constraint.schema, VOCABULARY)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::structgen.GrammarWarning")
@pytest.mark.parametrize(
    ("small", "large"),
    [
        (structgen.regex(".{1,301}x"), structgen.regex(".{1,1501}x")),
        (structgen.gbnf('root ::= [a-z]{1,303} "x" root?'), structgen.gbnf('root ::= [a-z]{1,1503} "x" root?')),
        (structgen.lark("start: A+\nA: /.{1,305}x/"), structgen.lark("start: A+\nA: /.{1,1505}x/")),
        (
            structgen.json_schema({"type": "string", "minLength": 307}),
            structgen.json_schema({"type": "string", "minLength": 1_000_007}),
        ),
        (
            structgen.json_schema({"type": "array", "minItems": 31, "items": {"type": "string", "minLength": 301}}),
            structgen.json_schema({"type": "array", "minItems": 999, "items": {"type": "string", "minLength": 1_009}}),
        ),
    ],
    ids=["regex", "gbnf", "lark", "string", "array"],
)
def test_a_large_constraint_counts_as_what_it_takes(small: Any, large: Any) -> None:
    """By the difference of two, so that what every grammar begins with does not count."""
    held(small)  # what is loaded and shared with all others is there then
    (small_held, small_said), (large_held, large_said) = held(small), held(large)
    assert large_held - small_held > 300_000
    assert 0.6 < (large_said - small_said) / (large_held - small_held) < 1.5


@pytest.mark.full
def test_what_is_kept_is_counted_while_it_grows() -> None:
    """The text that completes an output is written when one is asked for: it counts from the next use on, of the
    constraint itself or of others soon after."""
    constraints = [structgen.json_schema({"type": "string", "minLength": 900_000 + number}) for number in range(2)]
    keys = [joined(content_key(constraint), VOCABULARY) for constraint in constraints]
    service = CompileService(VOCABULARY)
    try:
        for constraint in constraints:
            grammar: Any = service.compile(constraint)
            grammar.matcher().shortest_completion()
        service.compile(constraints[0])
        assert COMPILED._grammars._sizes[keys[0]] > 900_000
        service.compile(structgen.choice(["another"]))
        assert COMPILED._grammars._sizes[keys[1]] > 900_000
    finally:
        service.close()


MANY = """
import gc, json, sys
import structgen
from structgen.core.constraints.cache import COMPILED
from structgen.server import compiler
from structgen.server.memory import give_back
from structgen.core.workers import resident_bytes
from tests.server.tiny import VOCABULARY

MAKE = {
    "expressions": lambda n: structgen.regex(".{1,%d}x" % (1200 + n)),
    "patterns": lambda n: structgen.json_schema({"type": "string", "pattern": "^.{1,%d}x$" % (700 + n)}),
    "keys": lambda n: structgen.json_schema({"patternProperties": {"^.{1,%d}x%d" % (100 + n, n): {"type": "integer"}}}),
    "small expressions": lambda n: structgen.regex("a%d[bc]+" % n),
    "small grammars": lambda n: structgen.lark('start: "a%d" A\\nA: /[a-z]+/' % n, lexer="contextual"),
}

if __name__ == "__main__":
    make, count, most = MAKE[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    COMPILED._grammars.max_bytes = most
    service = compiler.CompileService(VOCABULARY)
    for number in range(5):
        service.compile(make(10_000 + number if "small" in sys.argv[1] else number))
    COMPILED.clear()
    gc.collect()
    give_back()
    start = resident_bytes(__import__("os").getpid())
    grown = []
    for number in range(10, 10 + count):
        service.compile(make(number))
        grown.append(resident_bytes(__import__("os").getpid()) - start)
    said = COMPILED.bytes
    COMPILED.clear()
    gc.collect()
    service.compile(structgen.choice(["the last"]))
    gc.collect()
    give_back()
    left = resident_bytes(__import__("os").getpid()) - start
    service.close()
    print(json.dumps([start, max(grown), said, left]))
"""


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell")
@pytest.mark.parametrize(
    ("kind", "count", "most"),
    [
        ("expressions", 12, 1 << 40),
        ("patterns", 8, 1 << 40),
        ("keys", 16, 1 << 40),
        ("small expressions", 120, 1 << 40),
        ("small grammars", 120, 1 << 40),
        ("patterns", 16, 64 << 20),
    ],
)
def test_what_many_take_is_said_and_given_back(kind: str, count: int, most: int, tmp_path: Path) -> None:
    """By the system's count, in a process of its own: at least 0.8 of what it grows by, within 15 % of the start behind
    them, and with a bound not much over it meanwhile."""
    program = tmp_path / "many.py"
    program.write_text(MANY)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, str(program), kind, str(count), str(most)],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    start, grown, said, left = json.loads(done.stdout)
    if most == 1 << 40:
        assert grown > 8 << 20 and said > 0.8 * grown
    else:
        assert grown < most + (80 << 20)  # one that comes in, and the pool that they share
    assert left < max(0.15 * start, MAX_POOL_BYTES)  # of automata, for those that come later: a server is larger


def test_what_nobody_asks_for_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """In time, and what is used is not; of what is gone, no time is kept."""
    cache, now = CompiledCache(), 0.0
    monkeypatch.setattr("structgen.core.constraints.cache.time.monotonic", lambda: now)
    for number in range(200):
        cache.get(number, lambda: structgen.choice(["a"]).compile(VOCABULARY))
    now = 200.0
    assert cache.kept(7) is not None
    now = 301.0
    cache.forget_unused(300.0)
    assert len(cache) == 1 and cache.peek(7) is not None and len(cache._used) == 1
    now = 501.0
    cache.forget_unused(300.0)
    assert len(cache) == 0 and cache.bytes == 0


def test_a_server_forgets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it does nothing else."""
    monkeypatch.setattr("structgen.server.memory.UNUSED_SECONDS", 0.0)
    structgen.choice(["nobody asks for it"]).compile(VOCABULARY)

    async def scenario() -> None:
        task = asyncio.ensure_future(give_back_regularly(lambda: False, 0.01))
        for _ in range(500):
            if not len(COMPILED):
                break
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(scenario())
    assert not len(COMPILED)


def test_garbage_is_looked_for_once_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while something is, and not again and again."""
    looked, works = list[str](), [True, True, False, False, False]
    monkeypatch.setattr("structgen.server.memory.gc.collect", lambda: looked.append("garbage"))
    monkeypatch.setattr("structgen.server.memory.give_back", lambda: looked.append("given back"))

    async def scenario() -> None:
        over = asyncio.Event()

        def has_worked() -> bool:
            if len(works) == 1:
                over.set()
            return works.pop(0) if works else False

        task = asyncio.ensure_future(give_back_regularly(has_worked, 0.001))
        await asyncio.wait_for(over.wait(), 30)
        task.cancel()

    COMPILED.clear()
    asyncio.run(scenario())
    assert looked == ["given back", "given back", "garbage", "given back"]


SHARED = """
import os, threading
from structgen.core.workers import resident_bytes
from structgen.server.memory import share_arenas

share_arenas()
begun = threading.Barrier(12)

def work() -> None:
    begun.wait(60)
    for _ in range(20):
        held = [(bytes(700_000), bytes(1_000)) for _ in range(5)]
        kept.append(held[0][1])

kept = []
largest = bytes(31 << 20)
del largest  # what is smaller is kept from now on
start = resident_bytes(os.getpid())
threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print((resident_bytes(os.getpid()) - start) >> 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_threads_share_what_is_free(tmp_path: Path) -> None:
    """Twelve threads take and free some megabytes each, before anything is given back: with arenas of their own, 80."""
    program = tmp_path / "shared.py"
    program.write_text(SHARED)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    environment.pop("MALLOC_ARENA_MAX", None)
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, check=True)
    assert int(done.stdout) <= 40, done.stdout
