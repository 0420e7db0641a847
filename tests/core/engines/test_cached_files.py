"""Whatever happens to the bytes of the cache folder, masks are right: fresh compilations judge, in a folder of their
own."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

import structgen
from structgen import Vocabulary
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.cfg import token_index
from structgen.core.engines.json import compiled
from structgen.core.engines.json.masks import bitmask_rows
from structgen.core.vocabulary import store

KINDS = {"trie", "lexicon", "rows", "slices", "values"}
SCHEMA = {
    "type": "object",
    "properties": {"code": {"type": "string", "pattern": "^[a-z]{2}[0-9]+$"}, "n": {"type": "number"}, "s": {}},
    "required": ["code"],
}
GRAMMAR = 'root ::= (word " "?)* "\\""\nword ::= [a-z]+ | "{" [^\\x00-\\x1f"]* "}"\n'
TEXTS = {
    "json": [b'{"code": "ab12", "n": -1.5, "s": ["\\n x", {"a": null}]}', b'{"code": "ab1", "s": "\xc3\xa9/,.:"'],
    "gbnf": [b'ab c{x y/\xc3\xa9}"', b"abcab ab"],
}
Masks = list[list[int]]


def words(seed: int) -> list[bytes]:
    random = Random(seed)
    alphabet = [b"a", b"b", b"1", b" ", b'"', b"\\", b"{", b"}", b",", b":", b"/", b".", "é".encode(), b"\xc3", b"-"]
    tokens = {bytes([byte]) for byte in range(256)}
    while len(tokens) < 700:
        tokens.add(b"".join(random.choices(alphabet, k=random.randint(2, 5))))
    return sorted(tokens)


def masks(seed: int) -> Masks:
    """What is allowed along the texts, as a process that begins now finds it."""
    forget()
    vocabulary = Vocabulary([*words(seed), None], eos_token_ids=len(words(seed)))
    grammars = {
        "json": structgen.compile_json_schema(SCHEMA, vocabulary),
        "gbnf": structgen.compile_gbnf(GRAMMAR, vocabulary),
    }
    found = []
    bitmask = allocate_token_bitmask(1, vocabulary.size)
    for name, grammar in grammars.items():
        for text in TEXTS[name]:
            matcher = grammar.matcher()
            for byte in text:
                matcher.fill_next_token_bitmask(bitmask)
                found.append(bitmask.ravel().tolist())
                assert matcher.accept_bytes(bytes([byte]))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own, in which everything is kept."""
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(compiled.KEEP, "1")
    monkeypatch.setattr(compiled, "KEPT_SECONDS", 0.0)
    compiled.keeps_graphs.cache_clear()
    yield tmp_path / "cache"
    compiled.keeps_graphs.cache_clear()
    forget()


def forget() -> None:
    """What this process keeps of vocabularies."""
    token_index.lexicon.cache_clear()
    bitmask_rows._CURRENT.clear()
    bitmask_rows._LEFT.clear()
    bitmask_rows._lexicon.cache_clear()


def bytes_damaged(whole: bytes, random: Random) -> bytes:
    """A file in which something happened to the bytes."""
    place = random.randrange(len(whole))
    length = random.choice((1, 2, 8, 64, 4096))
    middle = whole[place : place + length]
    return random.choice(
        (
            lambda: whole[:place],
            lambda: whole[:place] + bytes([whole[place] ^ 1 << random.randrange(8)]) + whole[place + 1 :],
            lambda: whole[:place] + random.randbytes(len(middle)) + whole[place + len(middle) :],
            lambda: whole[:place] + bytes(len(middle)) + whole[place + len(middle) :],
            lambda: whole[:place] + whole[place + length :],
            lambda: whole[:place] + middle + whole[place:],
            lambda: whole + random.randbytes(length),
            lambda: b"",
        )
    )()


def arrays_damaged(whole: bytes, random: Random) -> bytes:
    """A file of well-formed arrays of the same types and shapes, of which some hold other numbers."""
    with np.load(io.BytesIO(whole[:-32])) as stored:
        arrays = {name: stored[name] for name in stored.files}
    name = random.choice([name for name in sorted(arrays) if arrays[name].size])
    flat = arrays[name].reshape(-1)
    for _ in range(random.choice((1, 5, 1000))):
        place = random.randrange(len(flat))
        flat[place] = random.choice(
            (0, 1, flat[place] ^ 1, flat[random.randrange(len(flat))], np.iinfo(flat.dtype).max)
        )
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue() + (whole[-32:] if random.random() < 0.5 else b"")


@pytest.mark.full
def test_masks_are_right_whatever_happens_to_the_files(folder: Path, tmp_path: Path) -> None:
    right, right_of_others = masks(1), masks(2)
    files = sorted(folder.rglob("*.npz"))
    assert {path.parent.name for path in files} == KINDS
    shutil.copytree(folder, tmp_path / "good")
    for number in range(60):
        random = Random(number)
        for path in files:
            whole = path.read_bytes()
            alike = [other for other in files if other.parent == path.parent and other != path]
            if alike and random.random() < 0.1:
                path.write_bytes(random.choice(alike).read_bytes())  # well formed, of another vocabulary
            elif random.random() < 0.5:
                path.write_bytes((bytes_damaged if random.random() < 0.5 else arrays_damaged)(whole, random))
        assert masks(1) == right, number
        assert masks(2) == right_of_others, number
        for path in files:  # what was damaged was made anew
            assert store.load(path.parent.name, path.stem) is not None, path
        shutil.copytree(tmp_path / "good", folder, dirs_exist_ok=True)


def test_masks_are_right_where_nothing_may_be_read(folder: Path) -> None:
    right = masks(1)
    for path in folder.rglob("*.npz"):
        path.write_bytes(b"a stranger's")
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="not this user's alone"):
        assert masks(1) == right
    assert all(path.read_bytes() == b"a stranger's" for path in folder.rglob("*.npz"))
