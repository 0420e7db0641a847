"""Suffix arrays against Python's sort; intervals and masks against lists of texts; long random walks over sources."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest

from structgen import Corpus, NameSet, Vocabulary, allocate_token_bitmask
from structgen.core.compilers import compile_names, compile_quotes
from structgen.core.engines.protocols import Grammar
from structgen.core.kernels.sorted.calls import suffix_array
from structgen.core.text_sets.borders import Boundary
from structgen.core.text_sets.folding import FOLDS, Fold, folded
from tests.many import cases

PIECES = [
    b"th",
    b"the ",
    b" a",
    "é".encode(),
    "日本".encode(),
    b"ing",
    b". ",
    b"\xe6\x97",
    b"\xff",
    b"\n\n",
    b"aa",
    b"aaaa",
]
TOKENS = [*(bytes([byte]) for byte in range(256)), *PIECES, None]
MANY_WALKS = pytest.mark.timeout(3600)  # 10,000 of each kind by night: a quarter of an hour and more
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)


@pytest.mark.parametrize("letters", [1, 2, 3, 7])
def test_suffix_arrays(letters: int) -> None:
    rng = random.Random(letters)
    for _ in range(150):
        values = [rng.randrange(letters) for _ in range(rng.randint(0, 60))]
        expected = sorted(range(len(values)), key=lambda i: values[i:])
        assert suffix_array(np.array(values, np.int32), letters - 1).tolist() == expected
        assert suffix_array(np.array(values, np.uint8), letters - 1).tolist() == expected
    repeated = np.array([1, 0, 1] * 700, np.int32)
    listed = repeated.tolist()
    assert suffix_array(repeated, 1).tolist() == sorted(range(len(listed)), key=lambda i: listed[i:])


@pytest.mark.parametrize("seed", range(4))
def test_intervals(seed: int) -> None:
    rng = random.Random(seed)
    names = {"".join(rng.choice("abé") for _ in range(rng.randint(1, 8))) for _ in range(400)}
    ordered = sorted(name.encode() for name in names)
    built = NameSet.build(names)
    for _ in range(200):
        begun = rng.choice(ordered)[: rng.randint(0, 9)] + rng.choice([b"", b"", b"a", b"\xc3"])
        first, end = built.interval(begun)
        assert ordered[first:end] == [name for name in ordered if name.startswith(begun)]


PLAIN = ("ab", "the ing. \n", "aé日😀 .", "\0\n\r\t a", "a")
TO_FOLD = ("ab1 -\n\r\u00ad“’ﬁ\u00a0日", "a-\n ", " \n\ta", "ﬁﬂfil\u00ad")


def source(rng: random.Random, size: int, alphabets: Sequence[str] = PLAIN) -> str:
    """A text of many letters, or of few repeated ones."""
    alphabet = rng.choice(alphabets)
    words = ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 9))) for _ in range(40)]
    return "".join(rng.choice(words) for _ in range(size))[:size] or "a"


def walk(grammar: Grammar, rng: random.Random, tried: int) -> str:
    """A text along random tokens, closed after some; masks are compared with what is accepted for some tokens."""
    matcher = grammar.matcher()
    bitmask = allocate_token_bitmask(1, VOCABULARY.size)
    data = b""
    for _ in range(rng.randint(0, 12)):
        matcher.fill_next_token_bitmask(bitmask)
        bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
        for token in rng.sample(range(VOCABULARY.size - 1), tried):
            probe = matcher.fork()
            assert probe.accept_token(token) == bool(bits[token])
        allowed = np.flatnonzero(bits[: VOCABULARY.size - 1]).tolist()
        assert allowed or matcher.is_accepting()
        if not allowed:
            break
        token = rng.choice(allowed)
        assert matcher.accept_token(token)
        data += TOKENS[token] or b""
    data += matcher.shortest_completion()
    closed = grammar.matcher()
    assert closed.accept_bytes(data) and closed.is_accepting()
    return data.decode()


def walk_all(sizes: list[int], walks: int, seed: int, folds: Sequence[Fold] = ()) -> None:
    """Quotes of sources of these sizes, as many of each: where they are said to stand they do, folded if asked for."""
    rng, alphabets = random.Random(seed), TO_FOLD if folds else PLAIN
    for size in sizes:
        documents = {"one": source(rng, size, alphabets), "two": source(rng, max(size // 7, 1), alphabets)}
        fold = tuple(each for each in folds if rng.random() < 0.8)
        boundary: Boundary = rng.choice(["char", "char", "word", "line"])
        left = [folded(text, fold).text for text in documents.values()]
        if not any(left):  # soft hyphens alone: nothing is left to quote
            continue
        if boundary != "char" and not any(text.strip() for text in left):
            boundary = "char"
        corpus = Corpus.build(documents, boundary, fold=fold)
        grammar = compile_quotes(corpus, VOCABULARY)
        for _ in range(walks):
            text = walk(grammar, rng, 3)
            quote = corpus.quote(text)
            assert quote.places and quote.occurrences
            name, start, end = quote.places[0]
            assert documents[name][start:end] == quote
            within = 2 if "ligatures" in fold else 0  # letters of a sign that a quote may begin or end in
            for name, start, end in quote.places:
                short = folded(documents[name][start:end], fold).text
                cuts = itertools.product(range(within + 1), repeat=2)
                assert any(short[left : len(short) - right] == text for left, right in cuts)


@pytest.mark.parametrize("seed", range(3))
def test_walks_over_sources(seed: int) -> None:
    walk_all([1, 2, 30, 500, 4_000], 12, seed)


@MANY_WALKS
@pytest.mark.full
def test_many_walks_over_many_sources() -> None:
    rng = random.Random(7)
    large = [1_000_000, 10_000_000][: len(cases(2, 0))]
    sizes = [rng.choice([1, 3, 20, 200, 2_000, 20_000]) for _ in cases(198, 15)]
    walk_all(sizes + large, len(cases(50, 5)), 7)


@MANY_WALKS
@pytest.mark.full
def test_many_walks_over_folded_sources() -> None:
    rng = random.Random(9)
    large = [100_000, 1_000_000][: len(cases(2, 0))]
    sizes = [rng.choice([1, 3, 20, 200, 2_000, 20_000]) for _ in cases(198, 15)]
    walk_all(sizes + large, len(cases(50, 5)), 9, FOLDS)


@MANY_WALKS
@pytest.mark.full
def test_many_walks_over_names() -> None:
    rng = random.Random(8)
    for _ in cases(200, 15):
        names = {source(rng, rng.randint(1, 9)) for _ in range(rng.choice([1, 5, 100, 2_000]))}
        grammar = compile_names(NameSet.build(names), VOCABULARY)
        for _ in cases(50, 5):
            assert walk(grammar, rng, 3) in names
