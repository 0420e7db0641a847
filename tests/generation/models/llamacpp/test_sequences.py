"""Rows of llama.cpp: whatever was read, kept, cut back, shared and branched before, logits are those of a fresh
reading, and those of transformers for the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from structgen.errors import ModelError
from structgen.generation.models.llamacpp.model import LlamaCppModel, load_gguf
from structgen.generation.models.llamacpp.sequences import LlamaCppReader
from structgen.generation.models.model_runner import Part
from tests.generation.models.llamacpp.conftest import Loaded
from tests.generation.models.llamacpp.gguf_files import as_transformers, write_mamba

SAME = 0.1  # of 25: sums in another order move keys and values to the next number in half precision
HALF = 0.2  # keys and values in half precision against float32
ACTIONS = st.lists(
    st.tuples(st.sampled_from(("open", "chain", "tree", "crop", "remember", "drop")), st.integers(0, 2**30)),
    min_size=4,
    max_size=30,
)


class Fresh:
    """The logits after a text, each read on its own."""

    def __init__(self, model: LlamaCppModel) -> None:
        self._model = model
        self._known: dict[tuple[int, ...], npt.NDArray[np.float32]] = {}

    def __call__(self, text: list[int]) -> npt.NDArray[np.float32]:
        key = tuple(text)
        if key not in self._known:
            self._known[key] = self._model.prefill([text])[0][0]
        return self._known[key]


@pytest.fixture(scope="session")
def fresh(package: str, tiny_file: Path) -> Fresh:
    return Fresh(load_gguf(tiny_file, package=package, threads=1)[0])


def test_the_model_is_that_of_transformers(tiny: Loaded) -> None:
    torch = pytest.importorskip("torch", reason="transformers is the oracle")
    pytest.importorskip("transformers", reason="it is the oracle")
    model, _ = tiny
    other = as_transformers(model.vocab_size)
    text = [(7 * place + 3) % model.vocab_size for place in range(60)]
    with torch.inference_mode():
        expected = other(torch.tensor([text])).logits[0].numpy()
    first, cache = model.prefill([text[:9], text[:4]])
    cache.select([0])
    got = np.concatenate([first[:1], model.forward([text[9:]], cache)[0]])
    assert np.abs(got - expected[8:]).max() < HALF
    assert (got.argmax(1) == expected[8:].argmax(1)).mean() > 0.95


class Walk:
    """Rows that are written at random, beside what they should hold."""

    def __init__(self, reader: LlamaCppReader, fresh: Fresh, size: int) -> None:
        self.reader, self.fresh, self.size = reader, fresh, size
        self.texts: dict[int, list[int]] = {}

    def tokens(self, rng: np.random.Generator, most: int) -> list[int]:
        return [int(token) for token in rng.integers(0, 4, rng.integers(1, most + 1))]  # few: prefixes meet

    def act(self, action: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        row = int(rng.choice(list(self.texts))) if self.texts else None
        if action == "open" or row is None:
            text = self.tokens(rng, 12)
            known = self.reader.known(text)
            row, held = self.reader.open(text)
            assert held == known < len(text)
            self.texts[row] = text[:held]
            self.read([Part(row, text[held:])])
        elif action == "chain":
            self.chains(rng)
        elif action == "tree":
            self.tree(row, rng)
        elif action == "crop":
            length = int(rng.integers(0, len(self.texts[row]) + 1))
            self.reader.crop(row, length)
            del self.texts[row][length:]
        elif action == "remember":
            self.reader.remember(row)
            text = self.texts[row]
            assert self.reader.known([*text, 0]) == len(text)
        else:
            self.reader.drop(row)
            del self.texts[row]
        assert {row: self.reader.length(row) for row in self.texts} == {r: len(t) for r, t in self.texts.items()}

    def chains(self, rng: np.random.Generator) -> None:
        rows = [row for row in self.texts if rng.random() < 0.7] or list(self.texts)
        self.read([Part(row, self.tokens(rng, 4), None, bool(rng.random() < 0.5)) for row in rows])
        for row in rows:
            if rng.random() < 0.5:
                self.reader.keep(row, range(1))
                del self.texts[row][len(self.texts[row]) - self.read_last[row] + 1 :]

    def read(self, parts: list[Part]) -> None:
        reading = self.reader.read(parts)
        self.read_last = {part.sequence: len(part.tokens) for part in parts}
        assert list(reading.counts) == [len(part.tokens) for part in parts]
        for part, start in zip(parts, reading.starts, strict=True):
            text = self.texts[part.sequence]
            ends = [len(part.tokens)] if part.last_only else range(1, len(part.tokens) + 1)
            for place, end in enumerate(ends):
                self.check(reading.logits[start + place], [*text, *part.tokens[:end]])
            text += part.tokens

    def tree(self, row: int, rng: np.random.Generator) -> None:
        count = int(rng.integers(1, 9))
        parents = [int(rng.integers(-1, node)) for node in range(count)]
        tokens = [int(token) for token in rng.integers(0, self.size, count)]
        other = next((other for other in self.texts if other != row), None)
        beside = [] if other is None else [Part(other, [3])]
        reading = self.reader.read([*beside, Part(row, tokens, parents, last_only=False)])
        if other is not None:
            self.texts[other].append(3)
        paths = list[list[int]]()
        for node, parent in enumerate(parents):
            paths.append([*(paths[parent] if parent >= 0 else []), node])
            path = [tokens[each] for each in paths[-1]]
            self.check(reading.logits[reading.starts[-1] + node], [*self.texts[row], *path])
        kept = paths[int(rng.integers(0, count))] if rng.random() < 0.9 else []
        self.reader.keep(row, kept)
        self.texts[row] += [tokens[node] for node in kept]

    def check(self, logits: npt.NDArray[np.float32], text: list[int]) -> None:
        assert np.abs(logits - self.fresh(text)).max() < SAME


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_any_history_reads_like_a_fresh_one(tiny: Loaded, fresh: Fresh, actions: list[tuple[str, int]]) -> None:
    reader = tiny[0].ragged_reader()
    walk = Walk(reader, fresh, tiny[0].vocab_size)
    try:
        for action, seed in actions:
            walk.act(action, seed)
    finally:
        for row in walk.texts:
            reader.drop(row)
        reader.forget_prefixes()
    assert reader.bytes == 0 and reader.known([1, 2, 3]) == 0


def test_what_rows_share_is_held_once(tiny: Loaded) -> None:
    reader = tiny[0].ragged_reader()
    reader.forget_prefixes()
    text = list(range(40))
    first, _ = reader.open(text)
    reader.read([Part(first, text)])
    reader.remember(first)
    rows = [first, *(reader.open(text)[0] for _ in range(5))]
    assert reader.bytes == 40 * reader.token_bytes
    reader.read([Part(row, [7]) for row in rows])
    assert reader.bytes == 46 * reader.token_bytes
    assert reader.known(text, "another tenant") == 0
    for row in rows:
        reader.drop(row)
    assert reader.bytes == 40 * reader.token_bytes
    reader.forget_prefixes()
    assert reader.bytes == 0


def test_a_full_context_says_so_and_keeps_what_it_has(package: str, tiny_file: Path, fresh: Fresh) -> None:
    model, _ = load_gguf(tiny_file, package=package, threads=1, context_length=256, cache_bytes=256 * 256)
    reader = model.ragged_reader()
    cells = (reader.max_bytes or 0) // reader.token_bytes
    assert cells == 256
    old, _ = reader.open([1])
    reader.read([Part(old, [1, 2] * 50)])
    reader.remember(old)
    row, _ = reader.open([5])
    reader.read([Part(row, [3] * 100)])
    reader.drop(old)
    with pytest.raises(MemoryError, match=r"157 tokens need room, llama\.cpp has room for 156"):
        reader.read([Part(row, [3] * 157)])  # the prefix has left for it
    logits = reader.read([Part(row, [3] * 156)]).logits
    assert np.abs(logits[0] - fresh([3] * 256)).max() < SAME
    reader.drop(row)
    assert reader.bytes == 0


def test_rows_are_as_many_as_there_are_sequences_for(tiny: Loaded) -> None:
    reader = tiny[0].ragged_reader()
    rows = [reader.open([1])[0] for _ in range(reader.max_sequences)]
    with pytest.raises(ModelError, match=r"the most that llama\.cpp has sequences for"):
        reader.open([1])
    wide = [Part(row, [5] * 48, [-1] * 48, False) for row in rows[:3]]
    with pytest.raises(MemoryError, match=r"141 branches, llama\.cpp has 128 sequences"):
        reader.read(wide)
    reader.read(wide[:2])
    for row in rows:
        reader.drop(row)
    assert reader.bytes == 0


def test_caches_crop_select_and_keep(tiny: Loaded, fresh: Fresh) -> None:
    model, _ = tiny
    _, cache = model.prefill([[1, 2, 3], [4, 5]])
    model.forward([[6, 7], [8, 9]], cache)
    cache.crop(4)  # the last token of each
    cache.select([1, 0, 1])
    logits = model.forward([[1], [2], [3]], cache)[:, 0]
    for row, text in zip(logits, ([4, 5, 8, 1], [1, 2, 3, 6, 2], [4, 5, 8, 3]), strict=True):
        assert np.abs(row - fresh(text)).max() < SAME
    tree = model.forward_tree([[1, 2, 3], [4], [5, 6]], [[-1, 0, 0], [-1], [-1, -1]], cache)
    assert np.abs(tree[0, 2] - fresh([4, 5, 8, 1, 1, 3])).max() < SAME
    cache.keep([[0, 2], [], [1]])
    last = model.forward([[9], [9], [9]], cache)[:, 0]
    texts = [4, 5, 8, 1, 1, 3, 9], [1, 2, 3, 6, 2, 9], [4, 5, 8, 3, 6, 9]
    for row, text in zip(last, texts, strict=True):
        assert np.abs(row - fresh(text)).max() < SAME
    del cache
    assert model.ragged_reader().bytes == 0


def test_a_recurrent_model_reads_rows_and_refuses_to_go_back(package: str, tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="gguf writes the file")
    path = tmp_path / "mamba.gguf"
    write_mamba(path)
    model, _ = load_gguf(path, package=package, threads=1)
    reader: Any = model.ragged_reader()
    text = [5, 9, 13, 4, 5, 6]
    alone = model.prefill([text])[0][0]
    row, other = reader.open(text)[0], reader.open(text)[0]
    reader.read([Part(row, text[:4]), Part(other, text[:2])])
    reader.remember(row)
    begun, held = reader.open(text)
    assert held == 4 and reader.known(text[:4]) == 0  # whole prefixes only
    reading = reader.read([Part(row, text[4:]), Part(other, text[2:]), Part(begun, text[4:])])
    assert np.abs(reading.logits - alone).max() < SAME
    with pytest.raises(ModelError, match="cannot be cut back"):
        reader.crop(row, 3)
    with pytest.raises(ModelError, match="reads no drafts; pass draft=None"):
        reader.read([Part(other, [1, 2], [-1, -1], False)])
