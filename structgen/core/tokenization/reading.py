"""The byte pair encoding of a tokenizer, read from what it offers; whatever cannot be followed exactly is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Protocol, runtime_checkable

from structgen.core.bounded_cache import BoundedCache, Same
from structgen.core.grammars.rust_regex import AskedClasses, parse_fancy_regex
from structgen.core.regex import charset
from structgen.core.regex.charset import CharSet, complement, corrected
from structgen.core.regex.ecma_ast import Alternate, Chars, Concat, Node, Repeat
from structgen.core.tokenization.canonical import BytePairEncoding, CanonicalSpelling
from structgen.core.tokenization.merges import Merges
from structgen.core.vocabulary.tokenizer_json import byte_level_speller
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import PatternError, TokenizerError

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGIT = r"\p{N}"
_ADVICE = "Leave spelling out, or use a model whose tokenizer has byte-level BPE"
SAMPLES = (
    '{"name": "Ada Lovelace", "tags": ["a1", "b-2"], "born": 1815, "score": -2.50e-3, "ok": true}\n',
    "  two spaces,\ttabs\r\nand\n\n\n   lines   \n \n",
    "I'll say it's what they've DON'T'd, we'Re 'sure' 'lot; x'l x'r ''s",
    "naïve Ünïcödé Ελλάδα 日本語のテキスト हिन्दी עברית Ⅻ ½ ٣٤ ǅ ſ K",
    "👩‍👩‍👧‍👦 \U0001f3f4\U000e0067 \u00a0\u3000\u2028x \x85 \x00\x7f",
    "def f(x):\n    return x ** 2  # comment 1234567 12 3\n\n\nfoo_bar::BazQux()->a[0]!=!!...\n/\n//",
    "SELECT * FROM a WHERE b>=10;\r\n\r\n   -- end   ",
)
"""Texts in which steps of pretokenisers differ: a tokenizer is taken only if all of them come out as it spells them."""


@runtime_checkable
class SaysEncoding(Protocol):
    """A tokenizer that says itself how it encodes."""

    def byte_pair_encoding(self) -> BytePairEncoding:
        """See ``BytePairEncoding``.

        Raises:
            TokenizerError: it is none, or a part of it is not known here.
        """
        ...


def canonical_spelling(tokenizer: Any, vocabulary: Vocabulary) -> CanonicalSpelling:
    """How a tokenizer spells texts, token by token. Built once for each of the last few tokenizers; O(V) and seconds.

    Args:
        tokenizer: of transformers (fast), a ``tokenizers.Tokenizer``, a ``tiktoken.Encoding``, or one that says its
            ``byte_pair_encoding()``.
        vocabulary: over the same ids.

    Raises:
        TokenizerError: it is no byte-level BPE, or does something that is not followed here, by its name.
    """
    key = Same(tokenizer)
    with _LOCKS.put(key, threading.Lock()):  # requests that come together wait for the one that builds
        return _built(key, vocabulary)


_LOCKS: BoundedCache[Same, threading.Lock] = BoundedCache(16)


@lru_cache(4)
def _built(key: Same, vocabulary: Vocabulary) -> CanonicalSpelling:
    encoding, encode = _read(key.value)
    spelling = CanonicalSpelling(encoding, vocabulary.size, _textless(vocabulary))
    for sample in SAMPLES:
        text = "".join(char for char in sample if not _is_unknown(char, encoding, vocabulary))
        if not spelling.spells(encode(text)):
            raise TokenizerError(
                f"The tokenizer {type(key.value).__name__} spells {text!r:.60} unlike its merges and "
                f"its expression say. {_ADVICE}"
            )
    return spelling


def _is_unknown(char: str, encoding: BytePairEncoding, vocabulary: Vocabulary) -> bool:
    """Whether a character is never written: it has bytes without tokens, or where it is cut is not known."""
    return not {*char.encode()}.isdisjoint(vocabulary.missing_bytes) or any(
        low <= ord(char) <= high for low, high in encoding.unknown
    )


def _textless(vocabulary: Vocabulary) -> list[int]:
    """Ids before which a text ends."""
    ends = [token for token in range(vocabulary.size) if not vocabulary.tokens[token]]
    return sorted({*ends, *vocabulary.eos_token_ids})


def _read(tokenizer: Any) -> tuple[BytePairEncoding, Callable[[str], Sequence[int]]]:
    if isinstance(tokenizer, SaysEncoding):
        return tokenizer.byte_pair_encoding(), lambda text: _plain(tokenizer, text)
    ranks = getattr(tokenizer, "_mergeable_ranks", None)  # tiktoken says it nowhere else
    if ranks is not None:
        return _of_tiktoken(tokenizer, ranks), tokenizer.encode_ordinary
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise TokenizerError(f"{type(tokenizer).__name__} does not say how it merges bytes. {_ADVICE}")
    document = json.loads(backend.to_str())
    return of_document(document), lambda text: backend.encode(text, add_special_tokens=False).ids


def _plain(tokenizer: Any, text: str) -> Sequence[int]:
    result: Sequence[int] = tokenizer.encode(text, add_special_tokens=False)
    return result


def _of_tiktoken(encoding: Any, ranks: Mapping[bytes, int]) -> BytePairEncoding:
    tokens = [b""] * (max(ranks.values()) + 1)
    for token, rank in ranks.items():
        tokens[rank] = token
    return BytePairEncoding(
        tokens,
        Merges.of_ranks(ranks),
        (split_pattern(encoding._pat_str, _asked(_matched_by_tiktoken)),),
        takes_whole=True,
    )


def of_document(document: Mapping[str, Any]) -> BytePairEncoding:
    """Of a Hugging Face ``tokenizer.json``.

    Raises:
        TokenizerError: it is no byte-level BPE, or a part of it is not known here.
    """
    model = document["model"]
    if model.get("type") != "BPE":
        raise TokenizerError(f"The tokenizer is {model.get('type')}, which has no canonical spelling here. {_ADVICE}")
    for name in ("byte_fallback", "dropout", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk"):
        if model.get(name):
            raise TokenizerError(f"The tokenizer's BPE has {name}={model[name]!r}, which is not followed. {_ADVICE}")
    if document.get("normalizer") is not None:
        raise TokenizerError(
            f"The tokenizer changes texts before it reads them (normalizer {document['normalizer'].get('type')}), so "
            f"not every text is encoded as it is. {_ADVICE}"
        )
    cut = document.get("pre_tokenizer")
    patterns = [pattern for pattern in _patterns(cut) if pattern is not None]
    if not _is_byte_level(cut):
        raise TokenizerError(f"The tokenizer's BPE is not byte-level (pre_tokenizer {_named(cut)}). {_ADVICE}")
    spell = byte_level_speller()
    added = [entry for entry in document.get("added_tokens") or () if entry["content"]]
    return byte_pairs(
        {token: spell(piece) for piece, token in model["vocab"].items()},
        [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in model["merges"]],
        model["vocab"],
        patterns or [split_pattern(r"[\s\S]+")],
        takes_whole=bool(model.get("ignore_merges")),
        added={entry["content"].encode(): entry["id"] for entry in added},
        spelled=_texts_of(added),
    )


def byte_pairs(
    texts: Mapping[int, bytes],
    pairs: Sequence[tuple[str, ...]],
    ids: Mapping[str, int],
    patterns: Sequence[Node],
    *,
    takes_whole: bool,
    added: Mapping[bytes, int],
    spelled: frozenset[int],
    unknown: CharSet = (),
) -> BytePairEncoding:
    """An encoding from merges of pieces, the first of the lowest rank.

    Args:
        texts: bytes of each id; of those that were ``added`` they are left out.
        pairs: what is merged, as pieces; ``ids``: the id of each piece.
        takes_whole, added, spelled, unknown: see ``BytePairEncoding``.

    Raises:
        TokenizerError: a merge of a piece that has no id.
    """
    tokens = [b""] * (max([*texts, *added.values()]) + 1)
    for token, text in texts.items():
        tokens[token] = text
    for token in added.values():
        tokens[token] = b""
    try:
        ranked = {(ids[one], ids[two]): (ids[one + two], rank) for rank, (one, two) in enumerate(pairs)}
    except (KeyError, ValueError) as error:
        raise TokenizerError(f"A merge of the tokenizer is of no two tokens: {error}. {_ADVICE}") from None
    merges = Merges.of_pairs([(*pair, *made) for pair, made in ranked.items()])
    return BytePairEncoding(tokens, merges, tuple(patterns), takes_whole, added, spelled, unknown)


def split_pattern(pattern: str, asked: AskedClasses | None = None) -> Node:
    """An expression that a tokenizer searches for. ``asked``: see ``parse_rust_search``.

    Raises:
        TokenizerError: it is not legal, or not followed here.
    """
    try:
        return parse_fancy_regex(pattern, asked)
    except PatternError as error:
        raise TokenizerError(f"The expression {pattern!r:.200} that the tokenizer cuts texts by: {error}") from error


@cache
def _asked(matched: Callable[[str, str], int]) -> AskedClasses:
    """A library's answers, as ``parse_rust_search`` asks, by how many characters of a text it matches: half a second
    for a class, and nothing when asked again."""

    @lru_cache(256)
    def asked(atom: str, expected: CharSet) -> CharSet:
        return corrected(expected, lambda text: matched(atom, text) == len(text), lambda text: matched(atom, text) > 0)

    return asked


def _matched_by_split(atom: str, text: str) -> int:
    return sum(len(piece) for piece, _ in _split_by(atom).pre_tokenize_str(text))


@lru_cache(16)
def _split_by(atom: str) -> Any:
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Split(Regex(f"(?:{atom})+"), "removed", invert=True)


def _matched_by_digits(atom: str, text: str) -> int:
    from tokenizers import pre_tokenizers

    pieces = pre_tokenizers.Digits(individual_digits=False).pre_tokenize_str("x" + text)
    return sum(len(piece) for piece, _ in pieces[1::2])


def _matched_by_tiktoken(atom: str, text: str) -> int:
    encoding = _searched_by(atom)
    return len(encoding.decode(encoding.encode_ordinary(text)))


@lru_cache(16)
def _searched_by(atom: str) -> Any:
    from tiktoken import Encoding

    ranks = {bytes([byte]): byte for byte in range(256)}
    return Encoding("searched", pat_str=f"(?:{atom})+", mergeable_ranks=ranks, special_tokens={})


def _patterns(step: Mapping[str, Any] | None) -> Iterator[Node | None]:
    """The expressions of a pre_tokenizer, one after the other; None for steps that cut nothing.

    Raises:
        TokenizerError: a step that is not known.
    """
    if step is None:
        return
    asked = _asked(_matched_by_split)
    match dict(step):
        case {"type": "Sequence", "pretokenizers": members}:
            for member in members:
                yield from _patterns(member)
        case {"type": "ByteLevel", "add_prefix_space": False, **options}:
            yield split_pattern(GPT2, asked) if options.get("use_regex", True) else None
        case {"type": "Digits", "individual_digits": apart}:
            (digits,) = (node for node in [split_pattern(DIGIT, _asked(_matched_by_digits))] if isinstance(node, Chars))
            yield apart_from_others(digits if apart else Repeat(digits, 1, None))
        case {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}:
            yield apart_from_others(split_pattern(pattern, asked))
        case {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": True}:
            yield split_pattern(pattern, asked)
        case {"type": "Split", "pattern": {"String": text}, "behavior": "Isolated", "invert": False} if len(text) == 1:
            yield apart_from_others(Chars(charset.single(ord(text))))
        case _:
            raise TokenizerError(f"The tokenizer cuts texts by {_named(step)}, which is not followed. {_ADVICE}")


def apart_from_others(node: Node) -> Node:
    """What an expression of one class of characters leaves out, as pieces between its matches."""
    body = node.body if isinstance(node, Repeat) else node
    if not isinstance(body, Chars) or (isinstance(node, Repeat) and node[1:] != (1, None)):
        return node
    return Alternate((node, Concat((Repeat(Chars(complement(body.charset)), 1, None),))))


def _is_byte_level(step: Mapping[str, Any] | None) -> bool:
    if step is None:
        return False
    return step["type"] == "ByteLevel" or any(map(_is_byte_level, step.get("pretokenizers") or ()))


def _named(step: Mapping[str, Any] | None) -> str:
    return "None" if step is None else f"{dict(step)}"[:200]


def _texts_of(added: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    """Added tokens that are text.

    Raises:
        TokenizerError: one of them takes up the white space around it, or is found in some places only.
    """
    texts = [entry for entry in added if not entry["special"]]
    for entry in texts:
        for name in ("lstrip", "rstrip", "single_word"):
            if entry.get(name):
                raise TokenizerError(
                    f"The added token {entry['content']!r} has {name}, which is not followed. {_ADVICE}"
                )
    return frozenset(entry["id"] for entry in texts)
