"""What the process keeps between compiles is bounded: sizes after many compiles, forks and vocabularies."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import structgen
from structgen import JsonOptions, Vocabulary
from structgen.core.bounded_cache import BoundedCache
from structgen.core.constraints import cache as compiled_cache
from structgen.core.constraints import json as constraints_json
from structgen.core.constraints.cache import COMPILED, CompiledCache
from structgen.core.engines.json.masks import bitmask_rows
from structgen.core.engines.json.numbers import automaton as numbers
from structgen.core.engines.json.value_graph import conjunctions, node, shared
from structgen.core.json_schema.formula import language
from structgen.core.regex import dfa_cache
from structgen.core.regex.dfa import from_strings
from structgen.core.regex.pattern import pattern_dfa
from tests.process_caches import forget

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


def schema(number: int) -> dict[str, Any]:
    """A recursive schema that no other is like: keys, patterns, bounds and enumerations of its own."""
    return {
        "type": "object",
        "properties": {
            f"n{number}": {"$ref": "#"},
            f"s{number}": {"type": "string", "pattern": f"^a*b{number}", "maxLength": number + 9},
            "x": {"type": "integer", "minimum": number},
            "a": {"type": "array", "items": {"$ref": "#/properties/x"}, "maxItems": number},
        },
        "patternProperties": {f"^p{number}": {"enum": [number, f"v{number}"]}},
    }


def living() -> int:
    """Formulas in use."""
    gc.collect()
    language.node_count()
    gc.collect()
    return language.node_count()


@pytest.mark.full
def test_formulas_of_schemas_that_are_gone_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recursive keys, too: nothing but bounded tables holds a formula when its grammar is gone."""
    forget()  # what others have left is over these bounds until something new is remembered
    monkeypatch.setattr(shared, "MAX_BYTES", 40 * node.NODE_BYTES)
    monkeypatch.setattr(conjunctions, "MAX_KNOWN", 40)
    counts = []
    for number in range(90):
        structgen.compile_json_schema(schema(number), BYTES)
        assert len(shared.SHARED) <= 40
        assert max(len(conjunctions._known_strings), len(conjunctions._known_numbers)) <= 40
        if number % 30 == 29:
            counts.append(living())
    assert max(counts[1:]) <= counts[0] + 300, counts  # each schema makes a dozen, and scalars of 40 are kept


def test_shared_nodes_are_bounded_over_all_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MAX_BYTES", 10 * node.NODE_BYTES)
    for length in range(1, 40):
        structgen.compile_json_schema({"type": "string"}, BYTES, JsonOptions(max_string_length=length))
        assert len(shared.SHARED) <= 10 and shared.SHARED.memory_bytes <= shared.MAX_BYTES


@pytest.mark.full
def test_the_oldest_of_many_schemas_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled grammars are kept by content, up to a sum of bytes that they themselves tell, and no longer."""
    forget()  # number automata that others have used count for more
    monkeypatch.setattr(
        bitmask_rows, "_CURRENT", type(bitmask_rows._CURRENT)()
    )  # others' rows may be about to be outgrown
    cache = CompiledCache(max_bytes=4 << 20)
    monkeypatch.setattr(constraints_json, "COMPILED", cache)
    made, sizes = [], []
    for number in range(120):
        grammar = structgen.json_schema(schema(number)).compile(BYTES)
        assert structgen.json_schema(schema(number)).compile(BYTES) is grammar  # the second time is a look-up
        made.append(weakref.ref(grammar))
        sizes.append(grammar.memory_bytes)
        assert cache.bytes <= 4 << 20
        del grammar
    gc.collect()
    living = [reference() is not None for reference in made]
    assert living == sorted(living) and 20 < sum(living) < 110  # the newest, as many as there is room for
    assert sum(sizes[-sum(living) :]) <= 4 << 20 < sum(sizes[-sum(living) - 1 :])


def test_rows_of_few_vocabularies_are_kept() -> None:
    for number in range(2 * bitmask_rows.MAX_VOCABULARIES):
        tokens = [*(bytes([byte]) for byte in range(256)), f"token {number}".encode(), None]
        structgen.compile_json_schema(True, Vocabulary(tokens, eos_token_ids=257))
    assert len(bitmask_rows._CURRENT) == bitmask_rows.MAX_VOCABULARIES


def test_constraints_with_equal_parts_are_compiled_once() -> None:
    before = len(COMPILED)
    for _ in range(20):
        number = structgen.json_schema({"type": "number", "title": "growth"})
        structgen.tag_dispatch({("<n>", "</n>"): number}).compile(BYTES)
        structgen.json_lines(number).compile(BYTES)
    assert len(COMPILED) <= before + 3  # the schema, the dispatch, the lines
    one, other = (structgen.tag_dispatch({("<n>", ""): structgen.regex("a")}, min_uses=n) for n in (0, 1))
    assert one.compile(BYTES) is not other.compile(BYTES)


def test_parts_that_have_no_hash_are_told_apart_by_identity() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def compile(self, vocabulary: Vocabulary) -> Any:
            return structgen.compile_regex("a", vocabulary)

        def parse(self, text: str) -> str:
            return text

        parse_partial = parse

        def instruction(self) -> None:
            return None

    one, other = (structgen.tag_dispatch({("<n>", ""): Unhashable()}) for _ in range(2))
    assert one.compile(BYTES) is one.compile(BYTES)
    assert other.compile(BYTES).matcher().accept_bytes(b"x<n>a")


def memory(matcher: Any) -> int:
    return len(matcher._arena) + len(matcher._trail) + len(matcher._text)


def test_forks_leave_nothing_behind() -> None:
    """A matcher that is forked, tried and rolled back again and again stays as large as it was; so do its forks."""
    matcher = structgen.compile_json_schema(True, BYTES).matcher()
    assert matcher.accept_bytes(b'{"a": [1, {"b": ')
    keeps = matcher.fork()
    before = memory(matcher)
    for _ in range(300):
        fork = matcher.fork()
        for each in (matcher, fork, keeps):
            assert each.accept_bytes(b'[[[{"c": [1, [2, {"d": 3}]]}]], 4, ')
            each.rollback()
    assert memory(matcher) <= 2 * before + 512 and memory(keeps) <= 2 * before + 512
    deep = keeps.fork()
    assert matcher.accept_bytes(b"1}]}") and matcher.is_accepting()
    assert deep.accept_bytes(b"[2]}]}") and deep.is_accepting()
    deep.rollback()
    assert deep.accept_bytes(b"{}}]}") and not keeps.is_accepting()


def test_automata_are_kept_by_their_bytes() -> None:
    cache: BoundedCache[Any, Any] = BoundedCache(100_000, dfa_cache.automaton_bytes)
    for number in range(50):
        cache.put(number, from_strings([f"{number:012}"]))
    assert cache.memory_bytes <= 100_000 and len(cache) == 100_000 // (cache.memory_bytes // len(cache))
    assert cache.get(49) is not None and cache.get(0) is None
    cache.get(49 - len(cache) + 1)  # used: the next to go is another
    oldest = 49 - len(cache) + 1
    cache.put("more", from_strings(["more text 12"]))
    assert cache.get(oldest) is not None and cache.get(oldest + 1) is None
    assert pattern_dfa("^kept$") is pattern_dfa("^kept$")
    kept: BoundedCache[Any, Any] = pattern_dfa.cache  # type: ignore[attr-defined]
    assert 0 < kept.memory_bytes <= dfa_cache.MAX_BYTES
    small, large = pattern_dfa("^kept$"), pattern_dfa("^.{1,300}x$")
    assert dfa_cache.automaton_bytes(large) > dfa_cache.LARGE and pattern_dfa("^.{1,300}x$") is large
    dfa_cache.forget_large_automata()
    assert pattern_dfa("^.{1,300}x$") is not large and pattern_dfa("^kept$") is small


def masks(number: int) -> list[bytes]:
    """The masks along a text of a schema."""
    bitmask = structgen.allocate_token_bitmask(1, BYTES.size)
    matcher = structgen.compile_json_schema(schema(number), BYTES).matcher()
    found = []
    for byte in f'{{"s{number}": "aab{number}", "x": {number + 12345}'.encode():
        matcher.fill_next_token_bitmask(bitmask)
        found.append(bitmask.tobytes())
        assert matcher.accept_token(byte)
    return found


@pytest.mark.full
def test_all_that_is_kept_of_many_schemas_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever keeps something stays within its bytes, outgrown rows go at once, and masks are what they were."""
    limit = 100_000
    forget()
    automata: BoundedCache[Any, Any] = pattern_dfa.cache  # type: ignore[attr-defined]
    monkeypatch.setattr(bitmask_rows, "_CURRENT", type(bitmask_rows._CURRENT)())
    monkeypatch.setattr(bitmask_rows, "MAX_POOL_BYTES", 10 << 20)
    monkeypatch.setattr(shared, "MAX_BYTES", limit)
    monkeypatch.setattr(conjunctions, "MAX_KNOWN_BYTES", limit)
    monkeypatch.setattr(numbers.NUMBERS, "max_bytes", limit)
    monkeypatch.setattr(automata, "max_bytes", limit)
    before = masks(0)
    first = weakref.ref(next(iter(bitmask_rows._CURRENT.values())))
    gc.disable()  # what is outgrown must not wait for it
    try:
        for number in range(1, 120):
            assert len(masks(number)) > 15
            known = max(conjunctions._known_strings.memory_bytes, conjunctions._known_numbers.memory_bytes)
            assert max(shared.SHARED.memory_bytes, known, automata.memory_bytes) <= 1.5 * limit
            assert sum(kept.memory_bytes for kept in bitmask_rows._CURRENT.values()) <= 11 << 20
        assert first() is None
    finally:
        gc.enable()
    for spec in range(2 * numbers.RECOUNTED):
        numbers.automaton(numbers.NumberSpec(Fraction(spec, 8)))
    assert numbers.NUMBERS.memory_bytes <= limit + numbers.RECOUNTED * 2 * numbers.LEAST_BYTES
    assert masks(0) == before


def test_few_vocabularies_are_kept_with_their_grammars() -> None:
    """Whatever the engine: a grammar counts its own arrays only, and holds the tokens and the rows of a vocabulary."""
    made: list[weakref.ref[Vocabulary]] = []
    constraints: list[Any] = [
        structgen.json_schema({"enum": ["a", 1]}),
        structgen.regex("[ab]*"),
        structgen.choice(["a"]),
    ]
    for number in range(3 * compiled_cache.MAX_VOCABULARIES):
        tokens = [*(bytes([byte]) for byte in range(256)), f"kept {number}".encode(), None]
        vocabulary = Vocabulary(tokens, eos_token_ids=257)
        made.append(weakref.ref(vocabulary))
        for constraint in constraints:
            constraint.compile(vocabulary)
    assert constraints[0].compile(vocabulary) is constraints[0].compile(vocabulary)
    del vocabulary
    gc.collect()
    living = [number for number, reference in enumerate(made) if reference() is not None]
    assert living == list(range(len(made)))[-compiled_cache.MAX_VOCABULARIES :]


def test_rows_of_all_vocabularies_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitmask_rows, "_CURRENT", type(bitmask_rows._CURRENT)())
    monkeypatch.setattr(bitmask_rows, "MAX_BYTES", 20 << 20)  # each has eight for masks at least
    for number in range(5):
        tokens = [*(bytes([byte]) for byte in range(256)), f"word {number}".encode(), None]
        structgen.compile_json_schema(True, Vocabulary(tokens, eos_token_ids=257))
        assert sum(kept.memory_bytes for kept in bitmask_rows._CURRENT.values()) <= 20 << 20
    assert len(bitmask_rows._CURRENT) == 2


@pytest.mark.full
def test_grammars_on_outgrown_rows_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one that is used all the time: it would keep all that its first neighbours needed."""
    monkeypatch.setattr(bitmask_rows, "_CURRENT", type(bitmask_rows._CURRENT)())
    monkeypatch.setattr(bitmask_rows, "MAX_POOL_BYTES", 9 << 20)
    monkeypatch.setattr(compiled_cache, "SEARCHED", 4)
    cache = CompiledCache()
    made: list[weakref.ref[bitmask_rows.MaskRows]] = []
    for number in range(150):
        cache.get(number, lambda number=number: structgen.compile_json_schema(schema(number), BYTES))  # type: ignore[misc]
        (current,) = bitmask_rows._CURRENT.values()
        if not made or made[-1]() is not current:
            made.append(weakref.ref(current))
        del current
        cache.get(0, lambda: structgen.compile_json_schema(schema(0), BYTES))
    gc.collect()
    living = sum(reference() is not None for reference in made)
    assert len(made) > 4 > living, (len(made), living)
    assert cache.peek(149) is not None and cache.peek(1) is None


def traced(make: Callable[[], Any]) -> tuple[Any, int]:
    """What is made, and the bytes that Python and numpy have allocated for it."""
    gc.collect()
    tracemalloc.start(1)
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = make()
        gc.collect()
        return made, tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.full
def test_sizes_are_told_about_right() -> None:
    specs = [numbers.NumberSpec(Fraction(number), multiples=frozenset({Fraction(3)})) for number in range(40)]

    def walked() -> list[Any]:
        made = [numbers.NumberAutomaton(spec) for spec in specs]
        for automaton in made:
            for state in range(12):
                automaton.row(state)
        return made

    made, size = traced(walked)
    assert 0.7 < sum(automaton.memory_bytes for automaton in made) / size < 1.4

    def compiled(first: int) -> list[Any]:
        made = [structgen.compile_json_schema(schema(number), BYTES) for number in range(first, first + 60)]
        forget()
        living()
        return made

    pool = compiled(500)[0].rows.pool  # what all have in common
    pooled = pool.memory_bytes
    grammars, size = traced(lambda: compiled(600))
    assert all(grammar.rows.pool is pool for grammar in grammars)
    size += pool.memory_bytes - pooled  # whose pages are the system's: no allocator counts them
    assert 0.6 < sum(grammar.memory_bytes for grammar in grammars) / size < 1.5
