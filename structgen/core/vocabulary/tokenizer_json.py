"""The bytes of each token of a Hugging Face ``tokenizer.json``.

What a token spells is what the file's ``decoder`` makes of its piece when text precedes it. The decoders here are those
that work piece by piece, so that the bytes of a text are the bytes of its tokens one after the other:

- ``ByteLevel``: GPT-2's alphabet, one printable character for each byte. A piece with a character outside it is text
  as it stands, as in the tokenizers library.
- ``Metaspace``, ``Replace``, ``ByteFallback``, ``Fuse``, ``Strip``: SentencePiece. ``▁`` is a space, ``<0xHH>`` a byte.
  That the first space of a whole text is dropped says nothing of text that goes on, and is left out.

Everything else (WordPiece's ``##``, ``</w>``, CTC, no decoder: tokens joined by spaces) is refused, and so are
normalizers that lose letter case or accents: such a model cannot read or write what a constraint may ask for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from structgen.errors import TokenizerError

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ADVICE = "Give the bytes of each id yourself: Vocabulary(tokens, eos_token_ids=...)"


def read_tokenizer_json(document: Mapping[str, Any]) -> tuple[list[bytes | None], set[int]]:
    """The bytes of ids 0, 1, ... (None: no such id, or unknown) and the ids that are special.

    Added tokens that are not special are text, spelled by the decoder as all others.

    Raises:
        TokenizerError: the model, decoder or normalizer is not one of those above.
    """
    model = document["model"]
    _check_model(model)
    _check_normalizer(document.get("normalizer"))
    spell = _speller(document.get("decoder"), byte_fallback=bool(model.get("byte_fallback")))
    pieces = _pieces(model)
    special = set(_unknown_ids(model, pieces))
    for added in document.get("added_tokens") or ():
        pieces[added["id"]] = added["content"]
        if added["special"]:
            special.add(added["id"])
    tokens: list[bytes | None] = [None] * (max(pieces, default=-1) + 1)
    for token_id, piece in pieces.items():
        tokens[token_id] = spell(piece)
    return tokens, special


def added_tokens(document: Mapping[str, Any]) -> dict[str, int]:
    """Ids of added tokens, special or not, by name."""
    return {added["content"]: added["id"] for added in document.get("added_tokens") or ()}


def byte_alphabet() -> dict[str, int]:
    """The byte that each character of GPT-2's alphabet stands for: printable Latin-1 as it is, the rest U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def spell_sentencepiece(piece: str) -> bytes:
    """The bytes of a SentencePiece piece that is text: UTF-8, with a space for each ``▁`` (U+2581)."""
    return piece.replace("\u2581", " ").encode()


def byte_of_piece(piece: str) -> int | None:
    """The byte that ``<0xHH>`` names; None for any other piece."""
    match = _BYTE_PIECE.fullmatch(piece)
    return int(match[1], 16) if match else None


def _check_model(model: Mapping[str, Any]) -> None:
    kind = model.get("type")
    if kind not in ("BPE", "Unigram"):
        raise TokenizerError(
            f"Tokenizer model {kind!r} does not keep all bytes of a text; expected BPE or Unigram. {_ADVICE}"
        )
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(affix):
            raise TokenizerError(
                f"The BPE model marks words with {affix} {model[affix]!r}, so what a token spells depends on its "
                f"neighbours. {_ADVICE}"
            )


def _check_normalizer(normalizer: Mapping[str, Any] | None) -> None:
    """Unicode normal forms and changes of white space pass: they alter what is read, not what a token spells."""
    for step in _steps(normalizer, "normalizers"):
        lossy = step["type"] in ("Lowercase", "StripAccents") or (
            step["type"] == "BertNormalizer" and (step.get("lowercase") or step.get("strip_accents"))
        )
        if lossy:
            raise TokenizerError(
                f"The normalizer {step['type']} loses letter case or accents, so this model cannot read or write what "
                "a constraint may ask for. Use a model with a cased tokenizer"
            )


def _steps(component: Mapping[str, Any] | None, members: str) -> Iterator[Mapping[str, Any]]:
    """A component of the pipeline as the list of its steps, sequences taken apart."""
    if component is None:
        return
    if component["type"] == "Sequence":
        for member in component[members]:
            yield from _steps(member, members)
    else:
        yield component


def _speller(decoder: Mapping[str, Any] | None, *, byte_fallback: bool) -> Callable[[str], bytes]:
    """The function from piece to bytes that ``decoder`` is, for pieces that are not the first of a text."""
    steps = list(_steps(decoder, "decoders"))
    if not steps:
        raise TokenizerError(f"The tokenizer has no decoder, so its tokens are joined by spaces. {_ADVICE}")
    byte_level = any(step["type"] == "ByteLevel" for step in steps)
    replacements: list[tuple[str, str]] = []
    fused = False
    for step in steps:
        match step["type"]:
            case "ByteLevel":
                pass
            case "ByteFallback":
                byte_fallback = True
            case "Fuse":
                fused = True
            case "Metaspace":
                replacements.append((step["replacement"], " "))
            case "Replace" if len(step["pattern"].get("String", "")) == 1:  # longer ones could match across tokens
                replacements.append((step["pattern"]["String"], step["content"]))
            case "Strip" if fused and not step["stop"]:
                pass  # drops spaces at the start of the whole text only
            case _:
                raise TokenizerError(f"Decoder step {dict(step)} does not work token by token. {_ADVICE}")
    if not byte_level:
        return _sentencepiece_speller(replacements, byte_fallback)
    if replacements or byte_fallback:
        raise TokenizerError(f"The decoder mixes ByteLevel with steps of SentencePiece: {steps}. {_ADVICE}")
    return byte_level_speller()


def _sentencepiece_speller(replacements: list[tuple[str, str]], byte_fallback: bool) -> Callable[[str], bytes]:
    def spell(piece: str) -> bytes:
        byte = byte_of_piece(piece) if byte_fallback else None
        if byte is not None:
            return bytes([byte])
        for old, new in replacements:
            piece = piece.replace(old, new)
        return piece.encode()

    return spell


def byte_level_speller() -> Callable[[str], bytes]:
    """The function from a piece in GPT-2's alphabet to its bytes; other pieces are text as they stand."""
    alphabet = byte_alphabet()

    def spell(piece: str) -> bytes:
        try:
            return bytes([alphabet[character] for character in piece])
        except KeyError:
            return piece.encode()

    return spell


def _pieces(model: Mapping[str, Any]) -> dict[int, str]:
    """The piece of each id: BPE maps piece to id, Unigram lists (piece, score)."""
    vocab = model["vocab"]
    if isinstance(vocab, Mapping):
        return {token_id: piece for piece, token_id in vocab.items()}
    return {token_id: piece for token_id, (piece, _) in enumerate(vocab)}


def _unknown_ids(model: Mapping[str, Any], pieces: Mapping[int, str]) -> list[int]:
    """Ids that stand for text outside the vocabulary: they spell nothing that can be known."""
    if model.get("unk_id") is not None:
        return [model["unk_id"]]
    unknown = model.get("unk_token")
    return [] if unknown is None else [token_id for token_id, piece in pieces.items() if piece == unknown]
