"""Compiled forms are shared by constraints that say the same, and by no others."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import structgen
from structgen.core.bounded_cache import Same
from structgen.core.constraints.cache import LEAST_BYTES, CompiledCache, content_key, joined
from structgen.options import JsonOptions
from tests.concurrency import together

BYTES = structgen.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
INTEGER = {"type": "integer"}


def makers() -> list[Any]:
    """Constraints no two of which are compiled to the same."""
    schemas: list[Any] = [
        INTEGER,
        {"const": 1},
        {"const": True},
        {"const": "1"},
        {"const": Decimal("0.1000000000000000000000000000001")},
        {"const": {"Decimal": "0.1000000000000000000000000000001"}},
        {"properties": {"a": {}, "b": {}}},
        {"properties": {"b": {}, "a": {}}},
    ]
    parts = [
        *map(structgen.json_schema, schemas),
        *(structgen.json_schema(INTEGER, JsonOptions(**each)) for each in ({"whitespace": 0}, {"key_order": "any"})),
        *(structgen.regex("a"), structgen.regex("a", "ecma"), structgen.choice(["a"]), structgen.gbnf('root ::= "a"')),
        *(structgen.lark('start: "a"'), structgen.lark('start: "a"', json_options=JsonOptions(whitespace="compact"))),
    ]
    tagged = [structgen.tag_dispatch({("<n>", ""): part}) for part in parts]
    tagged += [
        structgen.tag_dispatch({("<n>", ">"): INTEGER}),
        structgen.tag_dispatch({("<n>", ""): INTEGER}, min_uses=1),
        structgen.tag_dispatch({("<n>", ""): INTEGER}, max_uses=1),
        structgen.tag_dispatch({("<n>", ""): INTEGER}, stop="."),
        structgen.tag_dispatch({("<n>", ""): INTEGER, ("<m>", ""): INTEGER}),
        structgen.tag_dispatch({("<n>", ""): INTEGER}, triggers=["<"]),
        structgen.tag_dispatch({("<n>", ""): INTEGER}, excludes=["a"]),
        structgen.tag_dispatch({("<n>", ""): INTEGER}, free_text="none"),
        structgen.tag_dispatch({("<n>", ""): INTEGER}, free_text="none", separator=","),
        structgen.tag_dispatch([("<n>", INTEGER), ("<n>", {"const": 1})]),
        structgen.tag_dispatch({("<n>", ""): tagged[0]}),
        structgen.tag_dispatch({("<n>", ""): structgen.tag_dispatch({("<m>", ""): tagged[0]})}),
        structgen.tag_dispatch({("<n>", ""): structgen.lark('start: %json {"type": "integer"}')}),
        structgen.tag_dispatch({("<n>", ""): structgen.json_lines(INTEGER)}),
    ]
    lines = [structgen.json_lines(schema) for schema in schemas]
    lines += [
        structgen.json_lines(INTEGER, min_lines=1),
        structgen.json_lines(INTEGER, max_lines=3),
        structgen.json_lines(INTEGER, JsonOptions(whitespace="compact")),
    ]
    a, b = structgen.regex("a"), structgen.regex("b")
    combined = [a | b, b | a, a + b, b + a, a + b + "c", a + (b | "c"), "c" + a, a | "c", structgen.concat(a)]
    return [*parts, *tagged, *lines, *combined, structgen.gbnf('root ::= "a"', dialect="xgrammar")]


def test_keys_are_equal_for_equal_constraints_only() -> None:
    ones, others = makers(), makers()
    for (at, one), (place, other) in itertools.product(enumerate(ones), enumerate(others)):
        assert (content_key(one) == content_key(other)) == (at == place), (one, other)
        assert at != place or hash(content_key(one)) == hash(content_key(other))


@pytest.mark.parametrize("number", range(len(makers())))
def test_copies_share_a_compiled_grammar(number: int) -> None:
    one = makers()[number]
    compiled = one.compile(BYTES)
    for other in (makers()[number], pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert other.compile(BYTES) is compiled


def test_types_share_what_their_schemas_are_compiled_to() -> None:
    typed = structgen.json_schema(list[int])
    plain = structgen.json_schema(typed.schema, typed.options)
    assert typed != plain and content_key(typed) == content_key(plain)
    one, other = (structgen.tag_dispatch({"<n>": each}) for each in (typed, plain))
    assert one.compile(BYTES) is other.compile(BYTES)
    assert one.parse("<n>[1]") == other.parse("<n>[1]")


def test_what_may_change_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "g.gbnf"
    file.write_text('root ::= "a"')
    tagged = structgen.tag_dispatch({"<n>": structgen.gbnf(file)})
    assert content_key(tagged) is None and joined(1, None) is None
    assert tagged.compile(BYTES).matcher().accept_bytes(b"<n>a")
    file.write_text('root ::= "b"')
    assert not tagged.compile(BYTES).matcher().accept_bytes(b"<n>a")


def test_the_cache_is_bounded() -> None:
    class Compiled:
        memory_bytes = 10
        is_outdated = False
        vocabulary = BYTES

    cache = CompiledCache(max_bytes=5 * LEAST_BYTES)
    kept = [cache.get(number, Compiled) for number in range(20)]
    assert len(cache) == 5 and cache.get(19, Compiled) is kept[19]
    assert cache.get(None, Compiled) is not cache.get(None, Compiled) and len(cache) == 5


def test_what_several_threads_ask_for_is_built_once() -> None:
    class Compiled:
        memory_bytes = 10
        is_outdated = False
        vocabulary = BYTES

    cache, built, found, ready = CompiledCache(), list[Compiled](), list[Any](), threading.Barrier(4)

    def build() -> Compiled:
        time.sleep(0.1)
        built.append(Compiled())
        return built[-1]

    def ask(number: int) -> None:
        ready.wait()
        found.append(cache.get("key", build))

    together(ask)
    assert len(built) == 1 and found == built * 4


def test_an_error_goes_to_all_that_wait_and_an_interrupt_to_none() -> None:
    cache, told, ready = CompiledCache(), list[str](), threading.Barrier(3)
    errors: list[BaseException] = [KeyboardInterrupt("stop"), structgen.ConstraintError("bad")]

    def build() -> Any:
        time.sleep(0.1)
        raise errors.pop(0)

    def ask(number: int) -> None:
        ready.wait()
        try:
            cache.get("key", build)
        except BaseException as error:
            told.append(str(error))

    together(ask, 3)
    assert sorted(told) == ["bad", "bad", "stop"] and not errors
    with pytest.raises(IndexError):
        cache.get("key", build)


def test_a_key_keeps_its_object() -> None:
    keys = [Same([]) for _ in range(100)]  # lists that nobody else holds: no two may have one id
    assert len(set(keys)) == 100 and keys[0] == keys[0]


def test_keys_that_hold_one_key_twice_cost_nothing_to_compare() -> None:
    one, other = joined("tags", 1), joined("tags", 1)
    for _ in range(200):  # 2^200 parts, were they written out
        one, other = joined(one, one), joined(other, other)
    assert one == other and hash(one) == hash(other) and one != joined(one, other)
