"""The tokenizer in a GGUF file: its bytes are those of transformers' for the same model and of llama.cpp's own
decoder; texts go there and back."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TokenizerError
from structgen.generation.models.llamacpp import files
from structgen.generation.models.llamacpp.tokenizer import GgufTokenizer
from tests.generation.models.llamacpp.conftest import Loaded
from tests.generation.models.llamacpp.gguf_files import byte_level, sentencepiece, write_llama

# Without numbers that are no digits (superscripts, fractions, numerals): the tokenizer's own rule takes them one by
# one, as llama.cpp does; transformers, which makes a tokenizer of the GGUF file, leaves them with their neighbours.
# Code points that are not assigned are apart in llama.cpp's tables of categories, too, and not in transformers'.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "No", "Nl", "Cn"]), max_size=40)


@pytest.fixture(scope="module")
def transformers_tokenizer(built_in_file: Path) -> Any:
    for package in ("transformers", "gguf", "accelerate", "torch"):
        pytest.importorskip(package, reason="transformers is the oracle")
    from structgen.generation.loading import load_tokenizer

    return load_tokenizer(backend="transformers")


def test_the_vocabulary_is_that_of_transformers(built_in: Loaded, transformers_tokenizer: Any) -> None:
    model, tokenizer = built_in
    own = Vocabulary.from_transformers(tokenizer, model.vocab_size)
    other = Vocabulary.from_transformers(transformers_tokenizer, model.vocab_size)
    # llama.cpp takes <reponame> for an end of generation, as it does <|endoftext|>.
    assert set(own.eos_token_ids) >= set(other.eos_token_ids)
    assert own.special_token_ids == other.special_token_ids
    assert own.tokens == other.tokens
    assert own.special_tokens == other.special_tokens


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
@example(text="/\x1d/")
@example(text='"\x06:')
def test_texts_have_the_tokens_of_transformers(built_in: Loaded, transformers_tokenizer: Any, text: str) -> None:
    tokenizer = built_in[1]
    ids = tokenizer.encode(text, add_special_tokens=False)
    expected = transformers_tokenizer.encode(text, add_special_tokens=False)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    lost = set(text.encode()) & set(vocabulary.missing_bytes)  # some planes of Unicode are lost by every reader
    # One package reads what is between NULs apart. transformers drops lost bytes before it merges and llama.cpp after,
    # so that only transformers merges their neighbours.
    if "\0" not in text and not lost:
        assert ids == expected
    if not set(ids) & set(vocabulary.special_token_ids):
        spelled = b"".join(vocabulary.tokens[token] or b"" for token in ids)
        assert spelled == bytes(byte for byte in text.encode() if byte not in lost)
    back = tokenizer.decode(ids)
    assert back == transformers_tokenizer.decode(ids)
    assert back == text or lost


def test_special_tokens_in_texts_are_these(built_in: Loaded, transformers_tokenizer: Any) -> None:
    text = "<|im_start|>user\nhi<|im_end|>\n"
    ids = built_in[1].encode(text, add_special_tokens=False)
    assert ids == transformers_tokenizer.encode(text, add_special_tokens=False)
    assert built_in[1].decode(ids) == text
    assert built_in[1].decode(ids, skip_special_tokens=True) == "user\nhi\n"


@pytest.mark.parametrize("writes", [byte_level, sentencepiece, lambda writer: sentencepiece(writer, "t5")])
def test_bytes_are_those_of_llama_cpp(tmp_path: Path, package: str, writes: Any) -> None:
    """Its own decoder is the oracle; only one package gives what it says in bytes."""
    library = pytest.importorskip("llama_cpp.llama_cpp", reason="llama_token_to_piece is the oracle")
    pytest.importorskip("gguf", reason="gguf writes the file")
    texts = write_llama(tmp_path / "model.gguf", writes)
    tokenizer = GgufTokenizer(files.open_file(tmp_path / "model.gguf", vocabulary_only=True, package=package))
    contents = tokenizer.contents()
    oracle: Any = files.open_file(tmp_path / "model.gguf", vocabulary_only=True, package="llama_cpp")
    vocab = library.llama_model_get_vocab(oracle.handle)
    buffer = ctypes.create_string_buffer(64)
    assert len(contents.tokens) == len(texts)
    for token, data in enumerate(contents.tokens):
        count = library.llama_token_to_piece(vocab, token, buffer, 64, 0, False)
        assert (data or b"") == buffer.raw[:count], texts[token]
    assert "<tool>" in contents.special_tokens
    assert contents.special_token_ids >= contents.eos_token_ids


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
def test_tiny_vocabularies_spell_every_text(tiny: Loaded, text: str) -> None:
    tokenizer = tiny[1]
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


@pytest.mark.parametrize("kind, what", [("bert", "WordPiece"), ("rwkv", "RWKV"), ("new", "does not know")])
def test_other_kinds_are_refused_by_name(tiny: Loaded, kind: str, what: str) -> None:
    class Other:
        vocab = tiny[0]._file.vocab

        def metadata(self, key: str) -> str | None:
            return kind if key == "tokenizer.ggml.model" else None

    file: Any = Other()
    with pytest.raises(TokenizerError, match=f"kind '{kind}' .*{what}"):
        Vocabulary.from_transformers(GgufTokenizer(file))
