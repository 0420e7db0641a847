"""Special tokens by name and id, their stand-ins, and the vocabularies of constraints that name some."""

from __future__ import annotations

import copy
import pickle
import random

import numpy as np
import pytest

from structgen.core.vocabulary.special_tokens import (
    STAND_IN_BYTES,
    SpecialToken,
    pieces,
    stand_in,
    stand_in_length,
    unknown_name,
)
from structgen.core.vocabulary.trie import build_trie, trie_from_arrays
from structgen.core.vocabulary.vocabulary import TextVocabulary, Vocabulary
from structgen.errors import ConstraintError, TokenizerError
from tests.core.vocabulary.test_tokenizer_json import byte_level

NAMES = {"<x>": 1, "<y>": 2, "<t>": 3, "<end>": 5}
VOCABULARY = Vocabulary(
    [None, None, None, b"<t>", b"a", None, b"\xff", b"b\xff", b""],
    eos_token_ids=[0, 5],
    special_token_ids=[1, 2],
    special_tokens=NAMES,
)


@pytest.mark.parametrize("size", [1, 12, 13, 300, 49_152, 200_019, 262_144, (1 << 20) - 2])
def test_stand_ins_are_no_text_and_tell_their_ids(size: int) -> None:
    ids = {0, size - 1, size // 2, *random.Random(size).choices(range(size), k=200)}
    words = {token: stand_in(token, size) for token in ids}
    assert len(set(words.values())) == len(ids) and {len(word) for word in words.values()} == {stand_in_length(size)}
    assert all(STAND_IN_BYTES.issuperset(word) for word in words.values())
    for byte in STAND_IN_BYTES:
        for before, after in ((b"", b""), (b"", b"\x80"), (b"\xc3", b"")):
            with pytest.raises(UnicodeDecodeError):
                (before + bytes([byte]) + after).decode()
    data = b"".join(b"a\xc3\xa9" + words[token] for token in sorted(ids))
    assert list(pieces(data, size)) == [piece for token in sorted(ids) for piece in (b"a\xc3\xa9", token)]
    assert list(pieces(b"a" + stand_in(0, size)[:-1], size)) == [b"a"]


def test_a_named_token_stands_for_itself_and_is_no_text() -> None:
    view = VOCABULARY.naming([1, 3])
    assert view.named == {1, 3} and view.size == VOCABULARY.size and view.eos_token_ids == (0, 5)
    assert view.tokens == (b"", stand_in(1, 9), b"", stand_in(3, 9), b"a", b"", b"", b"", b"")
    assert VOCABULARY.tokens[3] == b"<t>" and not VOCABULARY.named
    assert view.rendered(view.decode([4, 1, 3, 4])) == b"a<x><t>a"
    assert VOCABULARY.rendered(b"a\xff") == b"a\xff"
    assert VOCABULARY.naming([8]).rendered(stand_in(8, 9)) == b"<[8]>"


def test_naming_is_by_content() -> None:
    view = VOCABULARY.naming([1, 3])
    assert VOCABULARY.naming([]) is VOCABULARY and view.naming([3]) is view
    assert VOCABULARY.naming([1]).naming([3]) == view and hash(VOCABULARY.naming([1]).naming([3])) == hash(view)
    assert view not in (VOCABULARY, VOCABULARY.naming([1]))
    renamed = Vocabulary(VOCABULARY.tokens, eos_token_ids=[0, 5], special_token_ids=[1, 2])
    assert renamed.digest == VOCABULARY.digest and renamed != VOCABULARY


def test_ends_that_are_named_end_nothing() -> None:
    assert VOCABULARY.naming([5]).eos_token_ids == (0,)
    with pytest.raises(ConstraintError, match=r"names every end of sequence of the vocabulary \(<\[0\]>, <end>\)"):
        VOCABULARY.naming([0, 5])
    with pytest.raises(ConstraintError, match="there is no token 9; the vocabulary has 9 ids"):
        VOCABULARY.naming([9])


def test_parts_are_read_within() -> None:
    """Where what is named has no text, parts over the vocabulary as it is will do; else they must name it, too."""
    silent, text, end = VOCABULARY.naming([1]), VOCABULARY.naming([1, 3]), VOCABULARY.naming([5])
    assert VOCABULARY.within(silent) is VOCABULARY and VOCABULARY.reads_within(silent)
    assert VOCABULARY.within(text).named == {3} and not VOCABULARY.reads_within(text)
    assert VOCABULARY.within(end).named == {5} and not VOCABULARY.reads_within(end)
    assert VOCABULARY.naming([3]).reads_within(text) and text.reads_within(text) and not text.reads_within(silent)
    other = Vocabulary([None, b"b"], eos_token_ids=0)
    assert not other.reads_within(silent) and not TextVocabulary().reads_within(silent)


def test_ids_by_name() -> None:
    assert VOCABULARY.id_of(SpecialToken("<y>")) == 2 and VOCABULARY.id_of(SpecialToken(7)) == 7
    assert str(SpecialToken("<y>")) == "<y>" and str(SpecialToken(7)) == "<[7]>"
    with pytest.raises(ConstraintError, match="no special token '<z>'; there are <"):
        VOCABULARY.id_of(SpecialToken("<z>"))
    assert unknown_name("think", {"[A]": 1}).endswith("there are [A]")
    for written in ("<|im_strat|>", "im_start", "<im-start>"):
        assert unknown_name(written, {"<|im_end|>": 1, "<|im_start|>": 2}).endswith("did you mean '<|im_start|>'?")
    for wrong in ("", -1, True, None, 1.5):
        with pytest.raises(ConstraintError, match="a special token is a name or an id"):
            SpecialToken(wrong)  # type: ignore[arg-type]
    with pytest.raises(TokenizerError, match="special_tokens holds 9"):
        Vocabulary([None], eos_token_ids=0, special_tokens={"<x>": 9})


def test_names_are_those_of_added_tokens() -> None:
    """Special or not; tokens of the model itself have none."""
    vocabulary = Vocabulary.from_transformers(byte_level(), eos_token_ids=0)
    assert {"<pad>", "<think>", "日本 x"} <= vocabulary.special_tokens.keys()
    assert all(byte_level().token_to_id(name) == token for name, token in vocabulary.special_tokens.items())
    token = vocabulary.special_tokens["<pad>"]
    narrow = Vocabulary.from_transformers(byte_level(), size=token, eos_token_ids=0)
    assert "<pad>" not in narrow.special_tokens


def test_the_vocabulary_of_text_is_like_no_other() -> None:
    plain = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
    assert TextVocabulary() == TextVocabulary() and TextVocabulary() != plain and plain != TextVocabulary()


@pytest.mark.parametrize("seed", range(5))
def test_tries_are_those_of_their_tokens(seed: int) -> None:
    """Made from the trie of the vocabulary that names none; copies and pickles are the same."""
    rng = random.Random(seed)
    tokens = [bytes(rng.choices([0, 97, 0xC3, 0xFE, 0xFF], k=rng.randint(0, 4))) for _ in range(60)]
    plain = Vocabulary([None, *tokens, *tokens[:9]], eos_token_ids=0, special_tokens={"<x>": 3})
    for named in (rng.sample(range(1, 60), 5), rng.sample(range(1, 60), 30)):
        view = plain.naming(named[:2]).naming(named)
        built = build_trie(view.tokens, view.token_bytes, view.token_offsets)
        assert all(np.array_equal(array, built.arrays()[name]) for name, array in view.trie.arrays().items())
        assert trie_from_arrays(view.trie.arrays(), view.size) is not None
        assert pickle.loads(pickle.dumps(view)) == view == copy.deepcopy(view)
