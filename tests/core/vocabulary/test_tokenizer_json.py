"""Hugging Face tokenizers built here with the tokenizers library, which is the oracle: it encodes and decodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from structgen.core.vocabulary.tokenizer_json import byte_alphabet, read_tokenizer_json
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TokenizerError

tokenizers = pytest.importorskip("tokenizers")
AddedToken, Tokenizer = tokenizers.AddedToken, tokenizers.Tokenizer
models, decoders, normalizers = tokenizers.models, tokenizers.decoders, tokenizers.normalizers
pre_tokenizers = tokenizers.pre_tokenizers

TEXTS = [
    '{"name": "Ada", "tags": [1, 2.5e-3, null]}\n',
    "two  spaces,\ttabs\r\nand\n\n\nlines   ",
    "naïve Ünïcödé Ελλάδα 日本語のテキスト हिन्दी עברית",
    "👩‍👩‍👧‍👦 \U0001f3f4\U000e0067 \ufeff \u0000 \x7f",
    "the hello hello <think> then",
]
BYTE_PIECES = [f"<0x{byte:02X}>" for byte in range(256)]


def special(text: str) -> Any:
    return AddedToken(text, special=True, normalized=False)


def byte_level() -> Any:
    """As GPT-2, with an added token that is text and one that is special."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 2, trainer)
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("日本 x", normalized=False)])
    tokenizer.add_special_tokens([special("<pad>")])
    return tokenizer


def byte_fallback_bpe(pieces: list[str]) -> Any:
    vocab = {piece: i for i, piece in enumerate(["<unk>", "<s>", "<eos>", *BYTE_PIECES, *pieces])}
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("l", "l")]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens([special("<unk>"), special("<s>"), special("<eos>")])
    return tokenizer


PIECES = ["▁", "t", "h", "e", "l", "o", "n", "ï", "日", "th", "the", "▁the", "ll"]


def llama() -> Any:
    """As Llama 2 and Mistral: a space in front of the text, dropped again when decoding."""
    tokenizer = byte_fallback_bpe(PIECES)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


def gemma() -> Any:
    """As Gemma: nothing in front, and added tokens of white space."""
    tokenizer = byte_fallback_bpe([*PIECES, "▁▁"])
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("▁▁", normalized=False)])
    return tokenizer


def unigram() -> Any:
    """As T5 and newer SentencePiece models converted: Unigram with Metaspace, here with byte fallback."""
    pieces = ["<unk>", "<eos>", *BYTE_PIECES, *PIECES]
    tokenizer = Tokenizer(models.Unigram([(piece, -float(i)) for i, piece in enumerate(pieces)], 0, True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.add_special_tokens([special("<eos>")])
    return tokenizer


BUILDERS = {"byte_level": (byte_level, ""), "llama": (llama, " "), "gemma": (gemma, ""), "unigram": (unigram, " ")}


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    return Vocabulary.from_transformers(tokenizer, eos_token_ids=tokenizer.token_to_id("<eos>"))


@pytest.mark.parametrize("name", BUILDERS)
def test_tokens_of_a_text_spell_the_text(name: str) -> None:
    build, in_front = BUILDERS[name]
    tokenizer = build()
    vocabulary = vocabulary_of(tokenizer)
    assert vocabulary.missing_bytes == ()
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert vocabulary.decode(ids) == (in_front + text).encode(), text


@pytest.mark.parametrize("name", BUILDERS)
def test_each_token_spells_what_the_decoder_appends(name: str) -> None:
    tokenizer = BUILDERS[name][0]()
    vocabulary = vocabulary_of(tokenizer)
    anchor = tokenizer.token_to_id("t")
    assert vocabulary.tokens[anchor] == b"t"
    for token_id in set(range(vocabulary.size)) - set(vocabulary.special_token_ids):
        decoded = tokenizer.decode([anchor, token_id, anchor], skip_special_tokens=False)
        assert decoded == (b"t" + vocabulary.tokens[token_id] + b"t").decode(errors="replace"), token_id


def test_special_tokens_are_not_text_and_added_tokens_are() -> None:
    tokenizer = byte_level()
    vocabulary = vocabulary_of(tokenizer)
    assert vocabulary.special_token_ids == tuple(sorted(map(tokenizer.token_to_id, ("<eos>", "<pad>"))))
    assert vocabulary.tokens[tokenizer.token_to_id("<think>")] == b"<think>"
    assert vocabulary.tokens[tokenizer.token_to_id("日本 x")] == "日本 x".encode()
    spaces = vocabulary_of(gemma())
    assert spaces.tokens[gemma().token_to_id("▁▁")] == b"  "


def test_the_unknown_token_is_never_text() -> None:
    tokenizer = unigram()  # which does not flag <unk> as special
    assert tokenizer.token_to_id("<unk>") in vocabulary_of(tokenizer).special_token_ids
    plain = Tokenizer(models.BPE({"a": 0, "?": 1}, [], unk_token="?"))
    plain.decoder = decoders.Fuse()
    assert read_tokenizer_json(json.loads(plain.to_str())) == ([b"a", b"?"], {1})


def test_pieces_of_one_spelling_keep_their_ids() -> None:
    vocabulary = vocabulary_of(llama())
    letter = [i for i, token in enumerate(vocabulary.tokens) if token == b"t"]
    assert len(letter) == 2  # the piece and the byte
    assert letter[0] in vocabulary.trie.token and vocabulary.trie.next_same[letter[0]] == letter[1]


def test_holes_between_ids_spell_nothing() -> None:
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 5}, []))
    tokenizer.decoder = decoders.ByteLevel()
    assert read_tokenizer_json(json.loads(tokenizer.to_str()))[0] == [b"a", None, None, None, None, b"b"]


@pytest.mark.full
def test_byte_alphabet_is_that_of_the_tokenizers_library() -> None:
    assert set(byte_alphabet()) == set(pre_tokenizers.ByteLevel.alphabet())
    every = bytes(range(128)).decode() + "".join(map(chr, range(128, 0x800)))
    ((mapped, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(every)
    assert bytes(byte_alphabet()[character] for character in mapped) == every.encode()


def bpe(**arguments: Any) -> Any:
    tokenizer = Tokenizer(models.BPE({"a": 0, "##": 1}, [], **arguments))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def with_parts(**parts: Any) -> Any:
    tokenizer = bpe()
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return tokenizer


Sequence = decoders.Sequence
REFUSED = [
    (lambda: Tokenizer(models.WordPiece({"a": 0, "[UNK]": 1}, unk_token="[UNK]")), "model 'WordPiece'"),
    (lambda: Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")), "model 'WordLevel'"),
    (lambda: bpe(end_of_word_suffix="</w>"), "end_of_word_suffix '</w>'"),
    (lambda: bpe(continuing_subword_prefix="##"), "continuing_subword_prefix '##'"),
    (lambda: Tokenizer(models.BPE({"a": 0}, [])), "no decoder"),
    (lambda: with_parts(decoder=decoders.WordPiece()), "Decoder step .*WordPiece"),
    (lambda: with_parts(decoder=decoders.BPEDecoder()), "Decoder step .*BPEDecoder"),
    (lambda: with_parts(decoder=decoders.CTC()), "Decoder step .*CTC"),
    (lambda: with_parts(decoder=decoders.Replace(tokenizers.Regex("a+"), "b")), "Decoder step .*Replace"),
    (lambda: with_parts(decoder=decoders.Replace("ab", "c")), "Decoder step .*Replace"),
    (lambda: with_parts(decoder=decoders.Strip(" ", 1, 0)), "Decoder step .*Strip"),
    (lambda: with_parts(decoder=Sequence([decoders.Fuse(), decoders.Strip(" ", 0, 1)])), "Decoder step .*Strip"),
    (lambda: with_parts(decoder=Sequence([decoders.ByteLevel(), decoders.Replace("a", "b")])), "mixes ByteLevel"),
    (lambda: with_parts(normalizer=normalizers.Lowercase()), "normalizer Lowercase loses letter case"),
    (lambda: with_parts(normalizer=normalizers.Sequence([normalizers.StripAccents()])), "normalizer StripAccents"),
    (lambda: with_parts(normalizer=normalizers.BertNormalizer(lowercase=True)), "normalizer BertNormalizer"),
    (lambda: with_parts(normalizer=normalizers.Replace("A", "a")), "The normalizer loses letter case"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_tokenizers_that_cannot_be_read_are_refused(build: Any, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        Vocabulary.from_transformers(build(), eos_token_ids=0)


@pytest.mark.parametrize("normalizer", [normalizers.NFC(), normalizers.NFKC(), normalizers.Replace("  ", " ")])
def test_normalizers_that_keep_letters_are_accepted(normalizer: Any) -> None:
    assert Vocabulary.from_transformers(with_parts(normalizer=normalizer), eos_token_ids=1).tokens == (b"a", b"")
