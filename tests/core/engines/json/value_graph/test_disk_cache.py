"""Value nodes in the cache folder: what comes back is what was put there, and files that are none of ours are none."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import structgen
from structgen import JsonOptions, Vocabulary
from structgen.core.engines.json import compiled
from structgen.core.engines.json.value_graph import disk_cache
from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.json_schema.lowering import lower
from structgen.core.regex import unicode
from structgen.core.vocabulary import store
from tests.many import cases
from tests.schemas_strategy import options, schemas

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
SCHEMA = {
    "type": "object",
    "properties": {
        "when": {"type": "string", "format": "date-time"},
        "code": {"type": "string", "pattern": "^[a-z]{3}[0-9]+$", "maxLength": 9},
        "price": {"type": "number", "minimum": 0, "multipleOf": 0.01},
        "tags": {"type": "array", "contains": {"const": 1}, "items": {"enum": [1, "x", None]}, "uniqueItems": True},
        "next": {"$ref": "#"},
    },
    "patternProperties": {"^x-": {"type": "boolean"}},
    "required": ["code"],
    "dependentRequired": {"price": ["when"]},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own, in which everything is kept."""
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(compiled.KEEP, "1")
    monkeypatch.setattr(compiled, "KEPT_SECONDS", 0.0)
    compiled.keeps_graphs.cache_clear()
    yield tmp_path
    compiled.keeps_graphs.cache_clear()


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob(f"{disk_cache.KIND}/*.npz"))


def walks(one: Any, other: Any, seed: int, walked: int = 20) -> None:
    """The same masks along random texts, and the same ends of them."""
    random = Random(seed)
    for _ in range(walked):
        first, second = one.matcher(), other.matcher()
        for _ in range(60):
            allowed = np.flatnonzero(first.next_bytes()).tolist()
            assert allowed == np.flatnonzero(second.next_bytes()).tolist()
            assert first.completion_bound() == second.completion_bound()
            assert len(first.shortest_completion()) == len(second.shortest_completion())
            if not allowed:
                break
            byte = bytes([random.choice(allowed)])
            assert first.accept_bytes(byte) and second.accept_bytes(byte)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(schemas(), options())
def test_what_comes_back_allows_the_same(schema: Any, options: JsonOptions) -> None:
    try:
        lowered = lower(schema, options)
        graph = ValueGraph(lowered, options)
        root = graph.compile(lowered.root)
    except structgen.ConstraintError:
        return
    saved = {name: np.array(array) for name, array in disk_cache.encode(root, [("/a", "why")]).items()}
    again, ignored = disk_cache.decode(saved)
    saved_again = disk_cache.encode(again, ignored)
    assert ignored == [("/a", "why")] and all(np.array_equal(saved[name], saved_again[name]) for name in saved)
    one, other = (compiled.JsonGrammar(lowered, [], each, BYTES) for each in (root, again))
    walks(one, other, 5, walked=3)


@pytest.mark.full
def test_a_kept_grammar_is_the_same_grammar(folder: Path) -> None:
    for number, spelling in enumerate((JsonOptions(), JsonOptions.exact())):
        new = structgen.compile_json_schema(SCHEMA, BYTES, spelling)
        assert len(files(folder)) == number + 1  # by options, too
        kept = structgen.compile_json_schema(json.loads(json.dumps(SCHEMA)), BYTES, spelling)
        assert isinstance(kept._lowered, compiled.Unlowered)
        walks(new, kept, number)
        assert str(kept.report) == str(new.report) and kept.memory_bytes > 0


@pytest.mark.full
def test_damaged_and_foreign_files_are_misses(folder: Path) -> None:
    new = structgen.compile_json_schema(SCHEMA, BYTES)
    (path,) = files(folder)
    whole, random = path.read_bytes(), Random(7)
    damaged = [b"", whole[: len(whole) // 2], whole[:-1], b"PK\x03\x04" + whole[4:][::-1]]
    for _ in cases(30, 10):
        place = random.randrange(len(whole))
        damaged.append(whole[:place] + bytes([whole[place] ^ 1 << random.randrange(8)]) + whole[place + 1 :])
    for data in damaged:
        path.write_bytes(data)
        walks(new, structgen.compile_json_schema(SCHEMA, BYTES), 1)
    good = disk_cache.encode(new._root, [])
    for name, wrong in (
        ("graph", np.zeros(9, np.uint8)),
        ("graph", np.frombuffer(b'{"nodes": [[0, 1, [5], [], [], []]], "ignored": []}', np.uint8)),
        ("graph", np.frombuffer(b'{"nodes": [], "ignored": []}', np.uint8)),
        ("sizes", np.zeros(1, np.int64)),
        ("tables", np.zeros((3, 2), np.uint16)),
        ("tables", None),
    ):
        foreign = {key: value for key, value in {**good, name: wrong}.items() if value is not None}
        assert store.save(disk_cache.KIND, path.stem, foreign)
        assert disk_cache.load(path.stem) is None
        walks(new, structgen.compile_json_schema(SCHEMA, BYTES), 2)


@pytest.mark.parametrize("wrong", [60_000, 0xFFFF])
def test_automata_of_a_file_are_looked_at(folder: Path, wrong: int) -> None:
    """What would lead a kernel astray, or a text to a dead end, is a miss."""
    new = structgen.compile_json_schema(SCHEMA, BYTES)
    (path,) = files(folder)
    arrays = store.load(disk_cache.KIND, path.stem)
    assert arrays is not None
    tables = arrays["tables"].copy()
    tables[tables != 0xFFFF] = wrong
    assert store.save(disk_cache.KIND, path.stem, {**arrays, "tables": tables})
    assert disk_cache.load(path.stem) is None
    walks(new, structgen.compile_json_schema(SCHEMA, BYTES), 3)


def test_errors_are_the_same(folder: Path) -> None:
    for wrong in ({"type": "strin"}, {"type": "string", "enum": [1]}, {"pattern": "("}, {"$ref": "#/nowhere"}):
        told = []
        for _ in range(2):
            with pytest.raises(structgen.ConstraintError) as raised:
                structgen.compile_json_schema(wrong, BYTES)
            told.append((type(raised.value), str(raised.value)))
        assert told[0] == told[1] and not files(folder)


def test_only_who_asks_for_it_keeps_anything(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "KEPT_SECONDS", 60.0)
    structgen.compile_json_schema(SCHEMA, BYTES)  # compiled sooner than it would be read
    monkeypatch.setattr(compiled, "KEPT_SECONDS", 0.0)
    monkeypatch.delenv(compiled.KEEP)
    compiled.keeps_graphs.cache_clear()
    structgen.compile_json_schema(SCHEMA, BYTES)
    assert not files(folder)


def test_the_oldest_files_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "MAX_FILES", 3)
    for number in range(6):
        structgen.compile_json_schema({"const": number}, BYTES)
    assert len(files(folder)) == 3
    before = files(folder)
    structgen.compile_json_schema({"const": 5}, BYTES)  # one of the newest
    assert files(folder) == before


def test_all_that_compiles_is_part_of_the_key() -> None:
    structgen.json_schema({"type": "string", "pattern": r"^\p{L}+$"}).compile(BYTES)
    loaded = {
        Path(str(module.__file__)).resolve()
        for name, module in list(sys.modules.items())
        if getattr(module, "__file__", None) and name.startswith(("structgen.core.", "structgen.options"))
    }
    files = set(disk_cache.sources().values())
    tables = Path(str(unicode.__file__)).with_name("tables.npz")
    assert {path.resolve() for path in files} >= {*loaded, tables.resolve()}
    assert len(loaded) > 50
