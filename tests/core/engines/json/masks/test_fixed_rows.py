"""Rows that every vocabulary has come from the cache folder as they were made, or are made again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from structgen.core.engines.json.masks import bitmask_rows, fixed_rows
from structgen.core.engines.json.masks.bitmask_rows import MaskRows
from structgen.core.engines.json.masks.token_index import build_lexicon
from structgen.core.kernels.json import layout
from structgen.core.vocabulary import store
from structgen.core.vocabulary.vocabulary import Vocabulary

WORDS = [
    b"a",
    b"ab",
    b"a b",
    b" ",
    b"\n",
    b'"',
    b"\\n",
    b"0",
    b"12",
    "é ".encode(),
    b"\xe2\x80",
    b"abcdef",
    b"{",
    b"true",
]
LEXICON = build_lexicon(Vocabulary([*WORDS, None], eos_token_ids=len(WORDS)), True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    return tmp_path


def content(found: MaskRows) -> list[list[int]]:
    slot = found.pool.slots[2 * found.pool.universal + layout.BODY]
    lines = [found.row(number).tolist() for number in range(found.count)]
    return [*lines, [int(slot)], found.slices.tolist(), found.slice_sizes.ravel().tolist()]


def test_what_is_kept_is_what_was_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = MaskRows(LEXICON)
    assert len(list(folder.glob("*/rows/*.npz"))) == 1

    def refuse(self: MaskRows, state: int, place: int) -> None:
        raise AssertionError("a row is made again")

    monkeypatch.setattr(MaskRows, "compute", refuse)
    assert content(MaskRows(LEXICON)) == content(made)


def test_rows_that_follow_others_begin_as_these_did(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = MaskRows(LEXICON)
    before, size = content(made), made.count
    made.compute(made.pool.universal, layout.ESCAPE)
    monkeypatch.setattr(bitmask_rows, "load_fixed_rows", None)
    following = MaskRows(LEXICON, made)
    assert content(following) == before
    following.compute(following.pool.universal, layout.ESCAPE)
    assert made.row(size).tolist() == following.row(size).tolist()
    following.row(size)[:] = -1  # what is not fixed is its own
    assert made.row(size).tolist() != following.row(size).tolist()


def test_files_that_are_not_whole_are_not_used(folder: Path) -> None:
    before = content(MaskRows(LEXICON))
    (path,) = folder.glob("*/rows/*.npz")
    whole = path.read_bytes()
    stored = store.load("rows", path.stem)
    assert stored is not None
    for damaged in (b"", whole[: len(whole) // 2], whole[:-400] + bytes(400)):
        path.write_bytes(damaged)
        assert fixed_rows.load_fixed_rows(LEXICON) is None and content(MaskRows(LEXICON)) == before
    wrong = [{**stored, "rows": stored["rows"][1:]}, {**stored, "slices": stored["slices"] + 1}]
    wrong += [{**stored, "sizes": stored["sizes"].astype(np.int64)}, {"rows": stored["rows"]}]
    for arrays in wrong:
        store.save("rows", path.stem, arrays)
        assert fixed_rows.load_fixed_rows(LEXICON) is None and content(MaskRows(LEXICON)) == before
