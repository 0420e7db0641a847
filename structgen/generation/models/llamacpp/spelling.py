"""How llama.cpp spells texts with the byte pair encoding in a GGUF file.

It first cuts out names of tokens, then cuts what is between them by the expressions of a *pretokenizer* that the file
names (``tokenizer.ggml.pre``), and merges bytes within the pieces. Its expressions are in its source, some as code of
their own; those here were compared with what it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from structgen.core.regex.charset import CharSet, complement
from structgen.core.regex.unicode.properties import property_set
from structgen.core.tokenization.canonical import BytePairEncoding
from structgen.core.tokenization.reading import DIGIT, GPT2, apart_from_others, byte_pairs, split_pattern
from structgen.core.vocabulary.tokenizer_json import byte_level_speller
from structgen.errors import TokenizerError
from structgen.generation.models.llamacpp.binding import CONTROL, NORMAL, UNKNOWN, USER_DEFINED, ModelFile
from structgen.generation.models.llamacpp.header import read_values, texts_of

MODEL, PRE, MERGES = "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.merges"
STRIPS = {128: "lstrip", 256: "rstrip", 512: "single_word"}  # enum llama_token_attr
_ADVICE = "Leave spelling out, or use a model whose tokenizer is known"


class Pretokenizer(NamedTuple):
    """What llama.cpp does before it merges.

    Attributes:
        patterns: expressions, each of which cuts the pieces of the one before it.
        takes_whole: whether a piece that is a token is that token, whatever merging makes of it.
    """

    patterns: tuple[str, ...]
    takes_whole: bool = False


_LLAMA3 = (
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace("{1,3}", "")
PRETOKENIZERS = {
    **dict.fromkeys(
        ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"),
        Pretokenizer((DIGIT, GPT2)),
    ),
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "jais", "gigachat"), Pretokenizer((GPT2,))),
    **dict.fromkeys(("llama-bpe", "llama3", "falcon3"), Pretokenizer((_LLAMA3,), takes_whole=True)),
    **dict.fromkeys(("dbrx", "smaug-bpe"), Pretokenizer((_LLAMA3,))),
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen"), Pretokenizer((_QWEN2,))),
}
"""By the names in files. Whoever adds one adds it to the tests, where llama.cpp is the oracle, and nowhere else."""


def encoding_of(file: ModelFile, texts: Sequence[str], attributes: Sequence[int]) -> BytePairEncoding:
    """What ``CanonicalSpelling`` follows.

    Args:
        file: as loaded; ``texts``, ``attributes``: of its ids.

    Raises:
        TokenizerError: it is no byte pair encoding, or a part of it is not known here, by its name.
        ModelError: the file's head is damaged.
    """
    kind, name = file.metadata(MODEL), file.metadata(PRE)
    if kind != "gpt2":
        raise TokenizerError(f"The model file has a tokenizer of kind {kind!r}, no byte-level BPE (gpt2). {_ADVICE}")
    pretokenizer = PRETOKENIZERS.get(name or "")
    if pretokenizer is None:
        raise TokenizerError(
            f"The model file's texts are cut by the pretokenizer {name!r:.60}, which is not followed; known: "
            f"{', '.join(PRETOKENIZERS)}. {_ADVICE}"
        )
    spell = byte_level_speller()
    normal = {text: token for token, text in enumerate(texts) if attributes[token] & NORMAL}
    users = {text: token for token, text in enumerate(texts) if attributes[token] & USER_DEFINED}
    added = _added(texts, attributes)
    spelled = frozenset(token for token in added.values() if not attributes[token] & (CONTROL | UNKNOWN))
    if file.vocab.cuts_at_nul:
        token = next((token for text, token in normal.items() if spell(text) == b"\0"), None)
        if token is not None:
            added[b"\0"] = token
            spelled |= {token}
    return byte_pairs(
        {token: spell(text) for text, token in normal.items()},
        [
            tuple(pair.split(" "))
            for pair in dict.fromkeys(texts_of(file.path, read_values(file.path, {MERGES}), MERGES))
        ],  # the first one counts
        normal | users,  # names are cut out before: what a merge takes of them is never there
        [apart_from_others(split_pattern(pattern)) for pattern in pretokenizer.patterns],
        takes_whole=pretokenizer.takes_whole,
        added=added,
        spelled=spelled,
        unknown=unsettled(),
    )


@cache
def unsettled() -> CharSet:
    """Characters that came to Unicode after version 14: whether they are letters depends on the year of llama.cpp."""
    settled = property_set("idn", "Known")
    assert settled is not None
    return complement(settled)


def _added(texts: Sequence[str], attributes: Sequence[int]) -> dict[bytes, int]:
    """Names that are cut out of texts.

    Raises:
        TokenizerError: one takes up the white space around it, or is found in some places only.
    """
    added = {}
    for token, text in enumerate(texts):
        if text and attributes[token] & (CONTROL | USER_DEFINED | UNKNOWN):
            for bit, name in STRIPS.items():
                if attributes[token] & bit:
                    raise TokenizerError(f"The token {text!r:.60} has {name}, which is not followed. {_ADVICE}")
            added[text.encode()] = token
    return added
