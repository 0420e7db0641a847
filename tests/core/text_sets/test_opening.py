"""Sources that an operator opens, from files of each kind and from folders; sent between processes by their hash."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from structgen import ConstraintError, Corpus, NameSet
from structgen.core.json_schema.keywords_data import with_sources, written_out
from structgen.core.text_sets.opening import SharedTexts, opened_sources
from structgen.core.text_sets.sorted_texts import SHARED


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    NameSet.build(["Oslo", "Rome"]).save(tmp_path / "cities.names")
    Corpus.build("the roof leaks", "word").save(tmp_path / "case.corpus")
    (tmp_path / "letter.txt").write_text("Dear “Sir”", encoding="utf-8")
    (tmp_path / "list.json").write_text('["a", "b"]')
    (tmp_path / ".hidden").write_text("no source")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("one")
    return tmp_path


def test_files_and_folders(folder: Path) -> None:
    opened = opened_sources([str(folder), f"two={folder / 'more'}", f"again={folder / 'letter.txt'}"])
    assert set(opened) == {"cities", "case", "letter", "list", "two", "again"}
    assert opened["cities"] == NameSet.build(["Rome", "Oslo"]) and opened["case"].quote("roof").occurrences == 1
    assert opened["letter"] == opened["again"] == "Dear “Sir”" and opened["two"] == {"a.txt": "one"}
    assert opened["list"] == ["a", "b"]


WRONG: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "no name": (lambda folder: [f"={folder}"], "expected name=FILE"),
    "no folder": (lambda folder: [str(folder / "letter.txt")], "expected name=FILE"),
    "no file": (lambda folder: [f"a={folder / 'absent'}"], "cannot be read: No such file"),
    "twice": (lambda folder: [str(folder), f"case={folder / 'list.json'}"], "two of this name"),
    "the prompt": (lambda folder: [f"prompt={folder / 'list.json'}"], "stands for what the prompt says"),
    "an empty folder": (lambda folder: [str(folder / "empty")], "has no files"),
    "numbers": (lambda folder: [f"a={folder / 'empty' / 'n.json'}"], "is JSON of"),
    "no JSON": (lambda folder: [f"a={folder / 'empty' / 'x.json'}"], "is no JSON"),
    "no UTF-8": (lambda folder: [f"a={folder / 'empty' / 'latin.txt'}"], "is not UTF-8"),
    "damaged": (lambda folder: [f"a={folder / 'empty' / 'cut.names'}"], "truncated"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_opened(case: str, folder: Path) -> None:
    given, message = WRONG[case]
    (folder / "empty").mkdir()
    arguments = given(folder)
    if case != "an empty folder":
        (folder / "empty" / "n.json").write_text("[1]")
        (folder / "empty" / "x.json").write_text("[")
        (folder / "empty" / "latin.txt").write_bytes(b"\xe9t\xe9")
        (folder / "empty" / "cut.names").write_bytes((folder / "cities.names").read_bytes()[:-3])
    with pytest.raises(ConstraintError, match=message):
        opened_sources(arguments)


def test_byte_order_marks_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes('\ufeff["a"]'.encode())
    (tmp_path / "b.txt").write_bytes("\ufeffab".encode())
    assert opened_sources([str(tmp_path)]) == {"a": ["a"], "b": "ab"}


def test_shared_texts_are_sent_by_their_hash() -> None:
    names = NameSet.build(f"shared {number}" for number in range(2000))
    whole = pickle.dumps(SharedTexts({"names": names}))
    assert len(pickle.dumps(names)) < 200 and pickle.loads(pickle.dumps(names)) is names
    del SHARED[names.digest]  # as in another process, which reads it
    restored = pickle.loads(whole)
    assert SHARED.pop(names.digest) == names and restored is not None


def test_a_schema_holds_what_it_names_once() -> None:
    """However often a schema names a source: it is as short as before, and can be written out."""
    text = "the roof leaks " * 1000
    schema: Any = {"anyOf": [{"x-structgen": {"quoteOf": "letter"}}] * 500}
    filled = with_sources(schema, {"letter": text})
    assert len(json.dumps(filled)) < 100 * 500
    assert written_out(filled)["anyOf"][499] == {"x-structgen": {"quoteOf": {"documents": {"": text}}}}
