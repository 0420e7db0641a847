"""Logits from the context's own memory are the package's own lists, whatever is read; what is not found is not used."""

from __future__ import annotations

import sys
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from structgen.generation.models.llamacpp import logits_memory
from structgen.generation.models.llamacpp.logits_memory import LogitsMemory
from structgen.generation.models.llamacpp.model import load_gguf

pytest.importorskip("cyllama", reason="its logits are looked for")
linux = pytest.mark.skipif(sys.platform != "linux", reason="addresses are read through /proc")


@pytest.fixture
def context(tiny_file: Path) -> Any:
    return load_gguf(tiny_file, package="cyllama", threads=1)[0]._sequences._context


def lists(context: Any, wanted: list[bool]) -> npt.NDArray[np.float32]:
    """What the package gives for the last call."""
    rows = [array("f", context._context.get_logits_ith(place)) for place in np.flatnonzero(wanted).tolist()]
    return np.array(rows, np.float32).reshape(len(rows), -1)


def read(context: Any, rng: np.random.Generator, count: int, position: int) -> None:
    """A call for several sequences, some of whose logits are wanted."""
    wanted = (rng.random(count) < 0.6).tolist()
    wanted[-1] = True
    places = [position + place // 4 for place in range(count)]
    got = context.decode(rng.integers(0, 200, count).tolist(), places, [[place % 4] for place in range(count)], wanted)
    assert np.array_equal(got, lists(context, wanted))


@linux
def test_rows_are_those_of_the_package(context: Any) -> None:
    rng = np.random.default_rng(0)
    position = 0
    for count in (8, 4, 4, 64, 4, 256, 8, 4):  # more than before: llama.cpp takes new memory
        read(context, rng, count, position)
        position += -(-count // 4)
    assert context._memory._field, "it was found"
    assert context._memory.read(1) is not None


@linux
def test_nothing_is_made_of_lists_once_it_is_found(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for call in range(3):
        read(context, rng, 4, call)
    learned: list[int] = []
    monkeypatch.setattr(LogitsMemory, "learn", lambda memory, rows: learned.append(len(rows)))
    for call in range(3, 10):
        context.decode([5], [call], [[0]], [True])
    assert learned == []


def test_without_addresses_lists_serve(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logits_memory, "MEMORY", "/no/such/file")
    rng = np.random.default_rng(0)
    for call in range(6):
        read(context, rng, 4, call)
    assert not context._memory._field


@linux
def test_what_does_not_agree_is_not_trusted(context: Any) -> None:
    memory = LogitsMemory(context._context, context._width)
    rng = np.random.default_rng(0)
    for call in range(6):
        context.decode([call], [call], [[0]], [True])
        memory.learn(rng.normal(size=(1, context._width)).astype(np.float32))
        assert memory.read(1) is None


@linux
def test_the_same_numbers_twice_prove_nothing(context: Any) -> None:
    memory = LogitsMemory(context._context, context._width)
    rows = context.decode([1], [0], [[0]], [True])
    for _ in range(3):
        memory.learn(rows)
    assert memory.read(1) is None
