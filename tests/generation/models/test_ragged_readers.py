"""Readers of rows over a tiny model: every logit is that of the row's whole text, bit for bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from structgen.generation.models.model_runner import Part
from structgen.generation.models.padded_rows import PaddedReader
from structgen.generation.models.runner_factory import ragged_reader
from structgen.generation.models.tiny import TinyModel, TinyReader


def path(parents: Any, node: int) -> list[int]:
    return [] if node < 0 else [*path(parents, parents[node]), node]


def own(text: list[int]) -> Any:
    return TinyModel(30, order=3).prefill([text])[0][0]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("trees", [False, True])
def test_rows_are_their_texts(padded: bool, trees: bool) -> None:
    """Rows of random ages, parts of random sizes; padded rows are read with all that were opened with them."""
    rng, model = random.Random(trees), TinyModel(30, order=3)
    reader: Any = PaddedReader(model) if padded else TinyReader(model)
    texts: dict[int, list[int]] = {}
    for _ in range(60):
        parts = []
        while len(texts) < 4:
            prompt = [rng.randrange(3) for _ in range(rng.randrange(1, 6))]
            row, held = reader.open(prompt)
            assert padded or held == reader.known(prompt)
            texts[row] = prompt[:held]
            parts.append(Part(row, prompt[held:]))
        new = {part.sequence for part in parts}
        for row in texts.keys() - new if padded else rng.sample(sorted(texts.keys() - new), len(texts) - len(new)):
            tokens = [rng.randrange(30) for _ in range(rng.randrange(1, 6))]
            parents = [rng.randrange(-1, node) if node else -1 for node in range(len(tokens))]
            parts.append(Part(row, tokens, parents if trees else None, last_only=not trees and rng.random() < 0.5))
        reading = reader.read(parts)
        for part, start, count in zip(parts, reading.starts, reading.counts, strict=True):
            assert count == len(part.tokens)
            ways = part.parents or range(-1, count - 1)
            for place, node in enumerate([count - 1] if part.last_only else range(count)):
                text = texts[part.sequence] + [part.tokens[index] for index in path(ways, node)]
                assert np.array_equal(reading.logits[start + place], own(text))
            kept = path(ways, rng.randrange(count) if part.parents else count - 1)
            if part.parents:
                reader.keep(part.sequence, kept)
            texts[part.sequence] += [part.tokens[index] for index in kept]
        for gone in rng.sample(sorted(texts), rng.randrange(3)):
            reader.remember(gone)
            reader.drop(gone)
            del texts[gone]
    for row in texts:
        reader.drop(row)
    reader.forget_prefixes()
    assert reader.bytes == 0


def test_without_trees_a_group_reads_what_all_have() -> None:
    class Chains:
        """No more than a ``LanguageModel`` has to have."""

        def __init__(self) -> None:
            model = TinyModel(30, order=3)
            self.vocab_size, self.context_length = 30, None
            self.prefill, self.forward = model.prefill, model.forward

    reader = ragged_reader(Chains())
    rows = [reader.open([1, 2])[0], reader.open([3])[0]]
    assert not reader.reads_apart
    reader.read([Part(rows[0], [1, 2]), Part(rows[1], [3])])
    reading = reader.read([Part(rows[0], [4, 5, 6]), Part(rows[1], [7])])
    assert list(reading.counts) == [1, 1]
    assert np.array_equal(reading.logits[reading.starts[1]], own([3, 7]))
    reading = reader.read([Part(rows[0], [5, 6]), Part(rows[1], [8, 9], last_only=False)])
    assert np.array_equal(reading.logits[reading.starts[0]], own([1, 2, 4, 5, 6]))
    assert np.array_equal(reading.logits[reading.starts[1]], own([3, 7, 8]))


def test_padded_rows_in_pieces() -> None:
    """Texts that are read in pieces are groups of their own; those read whole beside them share one."""
    rng, reader = random.Random(0), PaddedReader(TinyModel(30, order=3))
    texts = [[rng.randrange(30) for _ in range(length)] for length in (40, 3, 25, 5, 1)]
    rows = [reader.open(text)[0] for text in texts]
    held = [0] * len(rows)
    for step in range(60):
        parts, places = [], []
        for place, text in enumerate(texts):
            left = len(text) - held[place]
            count = left if len(text) <= 5 else min(left, rng.randrange(8))
            tokens = text[held[place] : held[place] + count] if left else [rng.randrange(30)]
            if tokens:
                parts.append(Part(rows[place], tokens))
                places.append(place)
        reading = reader.read(parts)
        for part, place, start, count in zip(parts, places, reading.starts, reading.counts, strict=True):
            texts[place] += part.tokens if held[place] == len(texts[place]) else []
            held[place] += count
            assert np.array_equal(reading.logits[start], own(texts[place][: held[place]])), (step, place)
    groups = {id(reader._groups[row]) for row in rows}
    assert len(groups) == 3 and reader._groups[rows[1]].sequences == [rows[1], rows[3], rows[4]]
    for row in rows:
        reader.drop(row)
    left = reader.open([1] * 9)[0]
    reader.read([Part(left, [1] * 4)])
    reader.drop(left)
    assert not reader._groups and not reader._left


def test_prefixes_stay_with_their_salt() -> None:
    reader = ragged_reader(TinyModel(30))
    row, _ = reader.open([1, 2, 3, 4], "a")
    reader.read([Part(row, [1, 2, 3, 4])])
    reader.remember(row, "a")
    assert reader.open([1, 2, 3, 9], "a")[1] == 3
    assert reader.open([1, 2, 3, 4], "a")[1] == 3, "the last token is read for its logits"
    assert reader.open([1, 2, 3, 4], "b")[1] == 0
