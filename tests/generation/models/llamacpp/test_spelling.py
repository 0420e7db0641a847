"""Canonical spelling in GGUF vocabularies, judged by llama.cpp: what rows let through is what it makes of the text."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from structgen.core.tokenization.canonical import AT_START, CanonicalSpelling, SpelledSoFar
from structgen.core.tokenization.reading import canonical_spelling
from structgen.core.vocabulary.tokenizer_json import byte_alphabet
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import IncompleteOutputError, TokenizerError
from structgen.generation.generator import Generator
from structgen.generation.models.llamacpp import files
from structgen.generation.models.llamacpp.spelling import PRETOKENIZERS, STRIPS, encoding_of, unsettled
from structgen.generation.models.llamacpp.tokenizer import GgufTokenizer
from structgen.generation.models.tiny import TinyModel
from tests.generation.models.llamacpp.conftest import Loaded
from tests.generation.models.llamacpp.gguf_files import (
    USER_DEFINED,
    sentencepiece,
    with_merges,
    write_llama,
)
from tests.many import cases

PIECES = [
    *("a", "the ", " the", "'l", "'ll", "x\n", "  ", "\n", "12", "1", "é", "日本", "\t", "!", '{"', "👩", "ab", "\0"),
    *("\r\n", "½", "Ⅻ", "٣", "\u3000", "\x85", "\x1c", "\u0300", "\ue000", "ſ", "I'M", "DON'T", " 's", "    return x"),
    *("::", "ab", "a", "<|im", "_end|>", "<t>", "q", "<", "t>", "ü"),
]  # fmt: skip
UNMADE = ("abthe", "Ġtheab", "athe", "xab", "!::", "aab", "éab")
"""Tokens that no merges make: some pretokenizers take pieces that are tokens as they are."""
CONSTRAINTS: dict[str, Any] = {
    "nothing": None,
    "object": {
        "type": "object",
        "properties": {
            "the": {"type": "string", "maxLength": 9},
            "12": {"type": "number"},
            "ll": {"enum": ["the the"]},
        },
        "required": ["the", "ll"],
    },
    "blanks": sg.regex(r"[ \n]{0,4}(the|12)?[ ]{1,3}[a-z!]{1,5}"),
    "words": ["the the", "the  the", "tha", " ab\n\n", "12ab'll", "日本é👩", ""],
}


def made_of(tokenizer: GgufTokenizer) -> tuple[GgufTokenizer, Vocabulary, CanonicalSpelling]:
    vocabulary = Vocabulary.from_transformers(tokenizer)
    return tokenizer, vocabulary, canonical_spelling(tokenizer, vocabulary)


Small = Callable[[str], tuple[GgufTokenizer, Vocabulary, CanonicalSpelling]]


@pytest.fixture(scope="module")
def small(package: str, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A small vocabulary of overlapping merges, cut by a pretokenizer, and added tokens that are text."""
    pytest.importorskip("gguf", reason="gguf writes the files of these tests")
    folder = tmp_path_factory.mktemp("spelling")

    @cache
    def load(pre: str) -> tuple[GgufTokenizer, Vocabulary, CanonicalSpelling]:
        path = folder / f"{pre}.gguf"
        added = {"<t>": USER_DEFINED, "q": USER_DEFINED, "ü": USER_DEFINED}
        write_llama(path, lambda writer: with_merges(writer, overlapping(), pre, added, UNMADE))
        return made_of(GgufTokenizer(files.open_file(path, package=package)))

    return load


def overlapping() -> list[tuple[str, str]]:
    """Merges of random neighbours in random texts, each of what the earlier ones made."""
    spelled, rng = {byte: char for char, byte in byte_alphabet().items()}, random.Random(5)
    merges: dict[tuple[str, str], None] = {}
    for _ in range(400):
        pieces = [spelled[byte] for byte in "".join(rng.choices(PIECES[:-3], k=3)).encode()]
        for known in merges:
            place = 0
            while place + 1 < len(pieces):
                if (pieces[place], pieces[place + 1]) == known:
                    pieces[place : place + 2] = ["".join(known)]
                place += 1
        if len(pieces) > 1:
            place = rng.randrange(len(pieces) - 1)
            merges[pieces[place], pieces[place + 1]] = None
    return list(merges)


def check_texts(made: tuple[GgufTokenizer, Vocabulary, CanonicalSpelling], count: int) -> None:
    """What llama.cpp makes of a text is spelled so; another spelling of it is not."""
    tokenizer, vocabulary, canonical = made
    rng, known = random.Random(7), [token for token, text in enumerate(vocabulary.tokens) if text]
    for _ in range(count):
        tokens = tokenizer.encode("".join(rng.choices(PIECES, k=rng.randrange(8))), add_special_tokens=False)
        for _ in range(rng.randrange(3) if tokens else 0):
            tokens[rng.randrange(len(tokens))] = rng.choice(known)
        try:
            text = vocabulary.decode(tokens).decode()
        except UnicodeDecodeError:
            continue
        if any(low <= ord(char) <= high for char in text for low, high in unsettled()):
            continue
        assert canonical.spells(tokens) is (tokenizer.encode(text, add_special_tokens=False) == tokens), repr(text)


def check_walks(made: tuple[GgufTokenizer, Vocabulary, CanonicalSpelling], count: int) -> None:
    """Wherever a text may end, llama.cpp makes the same tokens of it."""
    tokenizer, vocabulary, canonical = made
    rng, ended = random.Random(5), 0
    for _ in range(count):
        place, written = AT_START, list[int]()
        for _ in range(8):
            allowed = np.flatnonzero(np.unpackbits(canonical.row(place).view(np.uint8), bitorder="little"))
            texts = [int(token) for token in allowed if vocabulary.tokens[token]]
            if not texts:  # such as after ``'l``, which is a token and never a pretoken's beginning
                break
            token = rng.choice(texts)
            after = canonical.after(place, token)
            assert after is not None
            place, written = after, [*written, token]
            if canonical.may_end(place):
                ended += 1
                assert tokenizer.encode(vocabulary.decode(written).decode(), add_special_tokens=False) == written
    assert ended > count


@pytest.mark.parametrize("pre", PRETOKENIZERS)
def test_small_vocabularies_are_spelled_as_llama_cpp_does(small: Small, pre: str) -> None:
    check_texts(small(pre), len(cases(20_000, 500)))
    check_walks(small(pre), len(cases(2000, 40)))


@pytest.mark.full
def test_the_built_in_vocabulary_is_spelled_as_llama_cpp_does(built_in: Loaded) -> None:
    made = made_of(built_in[1])
    assert made[1].missing_bytes  # some bytes have no token
    check_texts(made, len(cases(20_000, 500)))
    check_walks(made, len(cases(2000, 30)))


@pytest.mark.full
@pytest.mark.parametrize("pre", {each: name for name, each in reversed(PRETOKENIZERS.items())}.values())
def test_characters_are_cut_as_llama_cpp_does(package: str, tmp_path: Path, pre: str) -> None:
    """Each character behind a letter, and behind a sign: a merge of the two shows whether there is a border."""
    pytest.importorskip("gguf", reason="gguf writes the file")
    spelled = {byte: char for char, byte in byte_alphabet().items()}
    merges = [(first, spelled[byte]) for first in "a!" for byte in range(0x80, 0x100)]
    write_llama(tmp_path / "all.gguf", lambda writer: with_merges(writer, merges, pre, {}))
    tokenizer, vocabulary, canonical = made_of(GgufTokenizer(files.open_file(tmp_path / "all.gguf", package=package)))
    known = [point for point in range(0x80, 0x110000) if not 0xD800 <= point < 0xE000]
    known = sorted({*known} - {point for low, high in unsettled() for point in range(low, high + 1)})
    assert len(known) > 250_000
    for start in range(0, len(known), 50):
        for first in "a!":
            text = "".join(f"{first}{chr(point)}\n\n" for point in known[start : start + 50])
            place: SpelledSoFar | None = AT_START
            for token in tokenizer.encode(text, add_special_tokens=False):
                place = None if place is None else canonical.after(place, token)
            assert place is not None and canonical.may_end(place), hex(known[start])
    unknown = [token for token, text in enumerate(vocabulary.tokens) if text == chr(unsettled()[0][0]).encode()[:1]]
    assert unknown and not canonical.spells(tokenizer.encode(chr(unsettled()[0][0]), add_special_tokens=False))


@pytest.mark.first_case
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_outputs_encode_to_themselves(built_in: Loaded, kind: str) -> None:
    tokenizer, vocabulary, _ = made_of(built_in[1])
    made = Generator(TinyModel(vocabulary.size, seed=1), tokenizer, vocabulary=vocabulary)
    rng = random.Random(11)
    for seed in cases(100, 3):
        options: Any = {"temperature": 1.0, "seed": seed, "max_new_tokens": rng.choice([16, 24, 40])}
        try:
            result = made.generate("the", CONSTRAINTS[kind], spelling="canonical", schema_in_prompt=False, **options)
        except IncompleteOutputError as error:
            assert "Even the shortest" in str(error) and kind == "object"
            continue
        text = vocabulary.decode(result.token_ids).decode()
        assert tokenizer.encode(text, add_special_tokens=False) == list(result.token_ids), text


def test_what_is_not_followed_is_refused_by_name(package: str, tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="gguf writes the files")
    path = tmp_path / "model.gguf"
    viking = partial(with_merges, merges=[("a", "b")], pre="viking", added={})
    for writes, what in ((viking, "pretokenizer 'viking'"), (sentencepiece, "kind 'llama'")):
        write_llama(path, writes)
        with pytest.raises(TokenizerError, match=what):
            made_of(GgufTokenizer(files.open_file(path, package=package)))
    merges = [("a", "b"), ("ab", "zz")]
    write_llama(path, lambda writer: with_merges(writer, merges, "smollm", {"<t>": USER_DEFINED}))
    file = files.open_file(path, package=package)
    texts, attributes = file.vocab.texts(), file.vocab.attributes().tolist()
    for bit, name in STRIPS.items():
        with pytest.raises(TokenizerError, match=f"'<t>' has {name}"):
            encoding_of(file, texts, [*attributes[:-1], attributes[-1] | bit])
    unused = [2 if text == "abzz" else each for text, each in zip(texts, attributes, strict=True)]
    with pytest.raises(TokenizerError, match=r"no two tokens: '(zz|abzz)'"):
        encoding_of(file, texts, unused)
