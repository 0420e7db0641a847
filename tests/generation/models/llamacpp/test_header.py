"""The head of a GGUF file, judged by the package gguf; whatever is damaged is refused by a typed error."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from structgen.errors import ModelError
from structgen.generation.models.llamacpp.header import read_values, texts_of
from tests.generation.models.llamacpp.gguf_files import write_llama
from tests.many import cases

gguf = pytest.importorskip("gguf", reason="gguf writes the files of these tests, and is the oracle")
SETTINGS = {"structgen.whole": -3, "structgen.part": 0.5}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("head") / "small.gguf"
    write_llama(path, settings=SETTINGS)
    return path


def as_gguf_reads(path: Path) -> dict[str, Any]:
    fields = gguf.GGUFReader(path).fields
    return {key: field.contents() for key, field in fields.items() if not key.startswith("GGUF.")}


def test_values_are_those_that_gguf_reads(small: Path) -> None:
    expected = as_gguf_reads(small)
    assert read_values(small, set(expected)) == expected and SETTINGS.items() <= expected.items()
    assert read_values(small, {"structgen.whole", "none"}) == {"structgen.whole": -3}
    assert texts_of(small, expected, "tokenizer.ggml.merges") == ["a b", "e r", "Ġ t"]


@pytest.mark.full
def test_those_of_the_built_in_model_too(built_in_file: Path) -> None:
    expected = as_gguf_reads(built_in_file)
    assert read_values(built_in_file, set(expected)) == expected


def test_all_types(tmp_path: Path) -> None:
    """Written by hand: the package writes no arrays of some."""
    kinds = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    pairs: dict[str, tuple[int, bytes, Any]] = {
        f"one{kind}": (kind, struct.pack(f"<{code}", 1), 1) for kind, code in kinds.items()
    }
    for kind, code in kinds.items():
        pairs[f"two{kind}"] = (9, struct.pack(f"<IQ2{code}", kind, 2, 0, 1), [0, 1])
    pairs["texts"] = (9, struct.pack("<IQ", 8, 2) + text(b"") + text("é".encode()), ["", "é"])
    pairs["nested"] = (9, struct.pack("<IQIQBIQ", 9, 2, 0, 1, 7, 0, 0), [[7], []])
    path = tmp_path / "all.gguf"
    path.write_bytes(head({key: (kind, data) for key, (kind, data, _) in pairs.items()}))
    assert read_values(path, set(pairs)) == {key: value for key, (_, _, value) in pairs.items()}


def text(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def head(pairs: dict[str, tuple[int, bytes]]) -> bytes:
    body = b"".join(text(key.encode()) + struct.pack("<I", kind) + data for key, (kind, data) in pairs.items())
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + body


def test_a_head_that_is_cut_off_is_refused(small: Path, tmp_path: Path) -> None:
    data, path = small.read_bytes(), tmp_path / "cut.gguf"
    last = data.index("Ġ t".encode())
    rng = random.Random(1)
    for end in [0, 3, 7, 8, 16, 24, *(rng.randrange(last) for _ in cases(2000, 60))]:
        path.write_bytes(data[:end])
        with pytest.raises(ModelError, match=r"no GGUF file|of version|at byte \d+\. Download"):
            read_values(path, {"tokenizer.ggml.merges"})


def test_damage_is_read_as_something_or_refused(small: Path, tmp_path: Path) -> None:
    data, path, rng = small.read_bytes(), tmp_path / "damaged.gguf", random.Random(2)
    last, refused = data.index("Ġ t".encode()), 0
    for _ in cases(5000, 100):
        damaged = bytearray(data[: last + 4096])
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(8, last)] = rng.choice([0, 1, 9, 0x7F, 0xFF])
        path.write_bytes(damaged)
        try:
            read_values(path, {"tokenizer.ggml.merges", "tokenizer.ggml.tokens", "tokenizer.ggml.pre"})
        except ModelError:
            refused += 1
    assert refused


@pytest.mark.parametrize(
    "pairs, what",
    [
        ({"a": (13, b"")}, "a value of type 13"),
        ({"a": (8, struct.pack("<Q", 1 << 62))}, "a value of 4611686018427387904 bytes"),
        ({"a": (8, text(b"\xff"))}, "no UTF-8"),
        ({"a": (9, struct.pack("<IQ", 8, 1 << 60))}, "an array of 1152921504606846976 elements"),
        ({"a": (9, struct.pack("<IQ", 4, 1 << 62))}, "a value of"),
        ({"a": (9, struct.pack("<IQ", 9, 1) * 9 + bytes(99))}, "arrays within arrays"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, pairs: dict[str, tuple[int, bytes]], what: str) -> None:
    path = tmp_path / "wrong.gguf"
    path.write_bytes(head(pairs))
    with pytest.raises(ModelError, match=f"{what}.*at byte"):
        read_values(path, {"a"})


def test_a_key_that_comes_twice_and_what_is_no_list_of_texts(tmp_path: Path) -> None:
    path, once = tmp_path / "twice.gguf", text(b"a") + struct.pack("<IB", 0, 7)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + once + once)
    with pytest.raises(ModelError, match="the key 'a' a second time"):
        read_values(path, {"a"})
    for value, what in ((None, "nothing"), (7, "7"), (["x", 1], r"\['x', 1\]")):
        with pytest.raises(ModelError, match=f"has {what} under a"):
            texts_of(path, {"a": value}, "a")
