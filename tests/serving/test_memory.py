"""What compiled constraints say that they take, against what Python's allocator says."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest

import structgen
from structgen.constraints.cache import COMPILED, content_key, joined
from structgen.serving.compiler import CompileService, _begun
from tests.serving.tiny import VOCABULARY


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


def test_what_is_kept_is_counted_once_it_is_begun() -> None:
    constraint = structgen.json_schema({"type": "string", "minLength": 900_001})
    service = CompileService(VOCABULARY)
    try:
        service.compile(constraint)
    finally:
        service.close()
    assert COMPILED._sizes[joined(content_key(constraint), VOCABULARY)] > 900_000
