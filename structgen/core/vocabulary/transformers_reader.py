"""The bytes of each token of a transformers tokenizer, whichever of its kinds it is.

Kinds are told apart by what the object offers, so that transformers need not be imported: a fast tokenizer carries a
``tokenizer.json`` (``backend_tokenizer``), a slow one a SentencePiece model (``sp_model``) or GPT-2's byte alphabet
(``byte_decoder``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from structgen.core.vocabulary.tokenizer_json import (
    added_tokens,
    byte_of_piece,
    read_tokenizer_json,
    spell_sentencepiece,
)
from structgen.errors import TokenizerError


@dataclass(frozen=True, slots=True)
class TokenizerContents:
    """What a tokenizer says of its ids: bytes (None: nothing known), special ids, ends, ids of added tokens by name."""

    tokens: list[bytes | None]
    special_token_ids: set[int]
    eos_token_ids: set[int]
    special_tokens: dict[str, int]


def read_tokenizer(tokenizer: Any) -> TokenizerContents:
    """Read a ``PreTrainedTokenizerBase``, a ``tokenizers.Tokenizer``, or a tokenizer that tells its ``contents()``.

    Special are the ids that the tokenizer flags as special, its named special tokens and the unknown token. End of
    sequence is ``eos_token_id``, with ``generation_config.eos_token_id`` if the tokenizer carries one.

    Raises:
        TokenizerError: the kind is unknown, or its tokens have no bytes of their own.
    """
    if hasattr(tokenizer, "contents"):
        contents: TokenizerContents = tokenizer.contents()
        return contents
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    names = {token.content: token_id for token_id, token in getattr(tokenizer, "added_tokens_decoder", {}).items()}
    if hasattr(backend, "to_str"):
        document = json.loads(backend.to_str())
        tokens, special = _read_fast(backend, document)
        names |= added_tokens(document)
    elif hasattr(tokenizer, "sp_model"):
        tokens, special = _read_sentencepiece(tokenizer)
    elif hasattr(tokenizer, "byte_decoder"):
        tokens, special = _read_byte_alphabet(tokenizer)
    else:
        raise TokenizerError(
            f"{type(tokenizer).__name__} is no tokenizer that structgen can read: expected a fast tokenizer, or a slow "
            "one with a SentencePiece model or a byte alphabet. Load the fast one (AutoTokenizer does by default), or "
            "give the bytes of each id yourself: Vocabulary(tokens, eos_token_ids=...)"
        )
    eos = _id_set(getattr(tokenizer, "eos_token_id", None))
    eos |= _id_set(getattr(getattr(tokenizer, "generation_config", None), "eos_token_id", None))
    special |= _id_set(getattr(tokenizer, "all_special_ids", None))
    return TokenizerContents(tokens, special, eos, names)


def _id_set(ids: int | Iterable[int] | None) -> set[int]:
    if ids is None:
        return set()
    return {ids} if isinstance(ids, int) else set(ids)


def _read_fast(backend: Any, document: Mapping[str, Any]) -> tuple[list[bytes | None], set[int]]:
    tokens, special = read_tokenizer_json(document)
    normalizer = getattr(backend, "normalizer", None)
    # A precompiled character map does not say what it does; ask it.
    if normalizer is not None and "A" not in normalizer.normalize_str("A"):
        raise TokenizerError(
            "The normalizer loses letter case, so this model cannot read or write what a constraint may ask for. "
            "Use a model with a cased tokenizer"
        )
    return tokens, special


def _read_sentencepiece(tokenizer: Any) -> tuple[list[bytes | None], set[int]]:
    """A slow tokenizer's ids may differ from its SentencePiece model's (fairseq models shift them): go by piece."""
    model = tokenizer.sp_model
    special: set[int] = set()

    def spell(token_id: int, piece: str) -> bytes | None:
        index = model.piece_to_id(piece)
        if model.is_unknown(index) or model.is_control(index):
            special.add(token_id)
            return None
        if model.is_unused(index):
            return None
        byte = byte_of_piece(piece) if model.is_byte(index) else None
        return spell_sentencepiece(piece) if byte is None else bytes([byte])

    return _read_slow(tokenizer, spell, special)


def _read_byte_alphabet(tokenizer: Any) -> tuple[list[bytes | None], set[int]]:
    alphabet = tokenizer.byte_decoder

    def spell(token_id: int, piece: str) -> bytes:
        try:
            return bytes([alphabet[character] for character in piece])
        except KeyError as error:
            raise TokenizerError(
                f"Token {token_id} {piece!r} holds {error.args[0]!r}, which is not in the tokenizer's byte alphabet. "
                "Give the bytes of each id yourself: Vocabulary(tokens, eos_token_ids=...)"
            ) from error

    return _read_slow(tokenizer, spell, set())


def _read_slow(
    tokenizer: Any, spell: Callable[[int, str], bytes | None], special: set[int]
) -> tuple[list[bytes | None], set[int]]:
    """The pieces of ids 0, 1, ... by ``spell``; added tokens are text as they stand unless flagged special."""
    added = dict(getattr(tokenizer, "added_tokens_decoder", {}))
    special |= {token_id for token_id, token in added.items() if token.special}
    size = max(tokenizer.vocab_size, len(tokenizer), max(added, default=-1) + 1)
    tokens: list[bytes | None] = [None] * size
    for token_id in range(size):
        if token_id in added:
            tokens[token_id] = added[token_id].content.encode()
            continue
        try:
            piece = tokenizer.convert_ids_to_tokens(token_id)
        except IndexError:  # a hole between the model's pieces and the added tokens
            continue
        tokens[token_id] = None if piece is None else spell(token_id, piece)
    return tokens, special
