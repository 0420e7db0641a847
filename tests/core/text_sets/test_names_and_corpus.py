"""Sets of names and documents as values: built, saved, opened, changed, asked; files that are damaged."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from structgen import ConstraintError, Corpus, NameSet, OptionsError, Quote, Vocabulary, one_of, substring_of
from structgen.core.text_sets import files

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


def test_names_are_a_set(tmp_path: Path) -> None:
    rng = random.Random(1)
    names = {"".join(rng.choice("aé日b\0") for _ in range(rng.randint(1, 5))) for _ in range(300)}
    built = NameSet.build([*names, *names])
    assert set(built) == names and len(built) == len(names)
    assert list(built) == sorted(names, key=str.encode)
    for text in [*names, "", "c", "aa", "日", 7, "\ud800"]:
        assert (text in built) == (text in names)
    built.save(tmp_path / "x.names")
    opened = NameSet.open(tmp_path / "x.names", verify=True)
    assert opened == built and hash(opened) == hash(built) and set(opened) == names
    assert pickle.loads(pickle.dumps(opened)) == built
    gone = rng.sample(sorted(names), 40)
    assert set(built.changed(add=["new", gone[0]], remove=gone)) == (names - set(gone)) | {"new", gone[0]}
    with pytest.raises(ConstraintError, match=r"not among"):
        built.changed(remove=["never there"])


@pytest.mark.parametrize("seed", range(6))
def test_places_are_those_of_find(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        documents = {f"d{n}": "".join(rng.choice("aabé日😀") for _ in range(rng.randint(1, 60))) for n in range(3)}
        corpus = Corpus.build(documents)
        corpus.save(tmp_path / "x.corpus")
        corpus = rng.choice([corpus, Corpus.open(tmp_path / "x.corpus", verify=True)])
        text = rng.choice(list(documents.values()))
        start = rng.randrange(len(text))
        wanted = rng.choice([text[start : start + rng.randint(1, 4)], "ab", "aa", "日b"])
        places = [
            (name, at, at + len(wanted))
            for name, document in documents.items()
            for at in range(len(document))
            if document.startswith(wanted, at)
        ]
        quote = corpus.quote(wanted, 5)
        assert isinstance(quote, Quote) and quote == wanted == quote.text
        assert quote.occurrences == len(places) and list(quote.places) == places[:5]
        copied = pickle.loads(pickle.dumps(quote))
        assert (copied, copied.places, copied.occurrences) == (quote, quote.places, quote.occurrences)


def test_places_keep_to_borders() -> None:
    corpus = Corpus.build("cat concat cat's", "word")
    assert corpus.quote("cat").places == (("", 0, 3), ("", 11, 14))
    assert corpus.quote("conc").occurrences == 0 and corpus.quote("").occurrences == 0


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no names": (lambda: one_of([]), ConstraintError, "at least one name"),
    "empty name": (lambda: one_of(["a", ""]), ConstraintError, "name 1 is empty"),
    "half a pair": (lambda: one_of(["a", "b\ud800"]), ConstraintError, "name 1 .* at character 1"),
    "no text": (lambda: one_of(["a", 7]), ConstraintError, "name 1 is int 7"),  # type: ignore[list-item]
    "one text": (lambda: one_of("abc"), ConstraintError, "not one text"),
    "a number": (lambda: one_of(7), ConstraintError, "names are texts"),  # type: ignore[arg-type]
    "empty text": (lambda: substring_of(""), ConstraintError, "empty"),
    "empty document": (lambda: substring_of({"a": "x", "b": ""}), ConstraintError, "'b' is empty"),
    "no document": (lambda: substring_of({}), ConstraintError, "at least one document"),
    "half in a document": (lambda: substring_of({"a": "x\udfff"}), ConstraintError, "'a' .* character 1"),
    "bytes": (lambda: substring_of({"a": b"x"}), ConstraintError, "bytes"),  # type: ignore[dict-item]
    "a list": (lambda: substring_of(["x"]), ConstraintError, "documents are"),  # type: ignore[arg-type]
    "blank": (lambda: substring_of(" \n ", boundary="word"), ConstraintError, "blank"),
    "boundary": (lambda: substring_of("x", boundary="page"), OptionsError, "boundary"),  # type: ignore[arg-type]
    "counts": (lambda: substring_of("x", min_chars=3, max_chars=2), OptionsError, "max_chars"),
    "no count": (lambda: substring_of("x", min_chars=1.5), OptionsError, "min_chars"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_data_is_refused(case: str) -> None:
    make, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        make()


def test_damaged_files(tmp_path: Path) -> None:
    """Each is refused when it is opened, or read as some other texts: nothing is read outside of the file."""
    rng = random.Random(5)
    kinds: list[tuple[Any, Callable[[Any], Any]]] = [
        (NameSet.build([f"name {number}" for number in range(200)]), one_of),
        (Corpus.build({"a": "a rose is a rose " * 20, "b": "is it?"}, "word"), substring_of),
    ]
    for texts, constraint in kinds:
        path = tmp_path / "whole"
        texts.save(path)
        data = path.read_bytes()
        for number in range(120):
            damaged = bytearray(data)
            for _ in range(rng.choice([1, 1, 5, 50])):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            if number % 4 == 0:
                del damaged[rng.randrange(len(damaged)) :]
            broken = tmp_path / f"broken{number}"
            broken.write_bytes(damaged)
            try:
                opened = type(texts).open(broken)
            except ConstraintError as error:
                assert str(broken) in str(error)
                continue
            walk(constraint(opened), rng)
            if isinstance(opened, Corpus):
                assert opened.quote("rose is") and opened.texts() and list(islice(opened.some_quotes(1, 9), 5))
            else:
                assert list(opened)
    with pytest.raises(ConstraintError, match="holds 'documents'"):
        NameSet.open(path)
    with pytest.raises(ConstraintError, match="cannot be read"):
        NameSet.open(tmp_path / "absent")
    (tmp_path / "other").write_bytes(b"name\n" * 40)
    with pytest.raises(ConstraintError, match="no file of names"):
        Corpus.open(tmp_path / "other")
    later = bytearray(data)
    later[len(files.MAGIC)] = 9
    (tmp_path / "later").write_bytes(later)
    with pytest.raises(ConstraintError, match="version 9"):
        Corpus.open(tmp_path / "later")


def forged(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """A file whose head was changed, and has the hash of what it is now."""
    begin = len(files.MAGIC) + 24
    length = int.from_bytes(data[begin - 20 : begin - 16], "little")
    head = json.loads(data[begin : begin + length])
    new = json.dumps(change(head) or head).encode()
    pad = bytes(-(begin + len(new)) % 64)
    arrays = data[begin + length + -(begin + length) % 64 :]
    prefix = data[: begin - 20] + len(new).to_bytes(4, "little") + hashlib.blake2b(new, digest_size=16).digest()
    return prefix + new + pad + arrays


FORGED: dict[str, Callable[[Any], Any]] = {
    "a list": lambda head: [head],
    "no arrays": lambda head: head.pop("arrays") and None,
    "objects": lambda head: head["arrays"][0].__setitem__(1, "|O"),
    "not a triple": lambda head: head["arrays"][0].pop() and None,
    "fewer than none": lambda head: head["arrays"][0].__setitem__(2, -5),
    "very many": lambda head: head["arrays"][0].__setitem__(2, 1 << 70),
    "no number": lambda head: head["arrays"][0].__setitem__(2, "9"),
    "no digest": lambda head: head.update(digest=None),
    "no facts": lambda head: head["facts"].clear(),
    "boundary": lambda head: head["facts"].update(boundary=7),
    "fold": lambda head: head["facts"].update(folds=["all"]),
    "ends": lambda head: head["facts"].update(ends=["1", "2"]),
    "falling ends": lambda head: head["facts"].update(ends=head["facts"]["ends"][::-1]),
    "names": lambda head: head["facts"].update(names=[1, 2]),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_heads(case: str, tmp_path: Path) -> None:
    Corpus.build({"a": "ab", "b": "b a rose"}, "word", True).save(tmp_path / "x")
    whole = (tmp_path / "x").read_bytes()
    (tmp_path / "x").write_bytes(forged(whole, lambda head: None))
    assert Corpus.open(tmp_path / "x", verify=True).quote("rose").occurrences == 1
    (tmp_path / "x").write_bytes(forged(whole, FORGED[case]))
    with pytest.raises(ConstraintError, match=re.escape(str(tmp_path / "x"))):
        Corpus.open(tmp_path / "x")


def test_what_happens_to_a_file_that_is_open(tmp_path: Path) -> None:
    """It may be truncated, written into or removed: the texts are those that were opened."""
    names, path = NameSet.build([f"{number:09}" for number in range(4000)]), tmp_path / "x"
    for change in (lambda: os.truncate(path, 40), lambda: path.write_bytes(bytes(90_000)), path.unlink):
        names.save(path)
        opened = NameSet.open(path)
        change()
        assert "000003999" in opened and opened == names and list(opened) == list(names)
        assert one_of(opened).compile(BYTES).matcher().accept_bytes(b"000003999")


def walk(constraint: Any, rng: random.Random) -> None:
    """Some bytes of a text, whatever they may be."""
    try:
        matcher = constraint.compile(BYTES).matcher()
    except ConstraintError:
        return
    for _ in range(12):
        following = matcher.next_bytes().nonzero()[0].tolist()
        if not following:
            return
        matcher.shortest_completion()
        matcher.accept_bytes(bytes([rng.choice(following)]))


def test_a_verified_file_is_the_one_that_was_saved(tmp_path: Path) -> None:
    names = NameSet.build(["abc", "abd"])
    names.save(tmp_path / "x")
    data = bytearray((tmp_path / "x").read_bytes())
    data[data.rindex(b"abcabd")] = ord("q")
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ConstraintError, match="its hash"):
        NameSet.open(tmp_path / "x", verify=True)


def test_constraints_are_equal_by_content() -> None:
    assert one_of(["a", "b"]) == one_of(["b", "a"]) and hash(one_of(["a", "b"])) == hash(one_of(["b", "a"]))
    assert substring_of("abc", max_chars=2) != substring_of("abc")
    assert substring_of("abc").parse("bc").places == (("", 1, 3),)
    assert one_of(["a", "b"]).compile(BYTES) is one_of(["b", "a"]).compile(BYTES)
