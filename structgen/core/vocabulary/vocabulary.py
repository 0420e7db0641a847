"""What each token id of a language model spells, in bytes: the only thing that masks need to know of a tokenizer."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structgen.core.vocabulary import store
from structgen.core.vocabulary.special_tokens import LEAD, SpecialToken, pieces, stand_in, unknown_name, written
from structgen.core.vocabulary.trie import Trie, build_trie, subtrie, trie_from_arrays
from structgen.errors import ConstraintError, TokenizerError
from structgen.progress import waiting

# The bytes that occur in UTF-8 (RFC 3629, section 4): all but C0, C1 and F5 to FF.
_UTF8_BYTES = (*range(0xC0), *range(0xC2, 0xF5))
# Two threads that ask for the same trie must not both build it. One lock for all vocabularies: building is rare.
_TRIE_LOCK = threading.Lock()


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Vocabulary:
    """Token ids 0 to ``size`` - 1 and their bytes. Immutable; equal and hashed by content.

    Special ids (control tokens, end of sequence) are never text: they have no bytes, whatever the tokenizer prints
    for them. Text is the concatenation of the bytes of its ids. The arrays are shared and must not be written to.

    Attributes:
        size: width V of the model's logits, padding included.
        tokens: bytes of each id, V of them; ``b""`` for special, unused and empty ids.
        token_bytes: uint8, all of ``tokens`` one after the other.
        token_offsets: int32[V + 1], where each starts in ``token_bytes``.
        eos_token_ids: ids that end a sequence, ascending, at least one.
        special_token_ids: all ids that are not text by decree, ascending; includes ``eos_token_ids``.
        special_tokens: ids of special (and other added) tokens by name, such as ``<think>``: what `SpecialToken` and
            grammars may name.
        named: ids that stand for themselves (see `naming`); none, but for the vocabulary of a grammar that names some.
    """

    size: int
    tokens: tuple[bytes, ...]
    token_bytes: NDArray[np.uint8]
    token_offsets: NDArray[np.int32]
    eos_token_ids: tuple[int, ...]
    special_token_ids: tuple[int, ...]
    special_tokens: Mapping[str, int]
    named: frozenset[int]
    _plain: Vocabulary | None  # of `naming`: the vocabulary that names none

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        *,
        eos_token_ids: int | Iterable[int],
        special_token_ids: Iterable[int] = (),
        special_tokens: Mapping[str, int] | None = None,
        size: int | None = None,
    ) -> None:
        """Make a vocabulary from the bytes of each id.

        Args:
            tokens: bytes of id 0, 1, ...; None or ``b""``: the id spells nothing. Several ids may spell the same.
            eos_token_ids: the id or ids that end a sequence.
            special_token_ids: other ids that are never text.
            special_tokens: names of ids, for constraints that name them. Give those without text no bytes.
            size: width of the logits if it is more than ``len(tokens)`` (padded embedding); the rest spells nothing.

        Raises:
            TokenizerError: a token is not bytes, an id is out of range, no end of sequence, or ``size`` too small.
        """
        if not isinstance(tokens, Sequence) or isinstance(tokens, (str, bytes)):
            raise TokenizerError(f"tokens is {type(tokens).__name__}; expected a list of bytes, that of id 0 first")
        if size is not None and not isinstance(size, Integral):
            raise TokenizerError(f"size is {size!r:.100}; expected the width of the model's logits")
        width = len(tokens) if size is None else size
        if width < len(tokens):
            raise TokenizerError(f"size is {width}, but there are {len(tokens)} tokens; leave out what the model lacks")
        eos = _token_ids(eos_token_ids, width, "eos_token_ids")
        if not eos:
            raise TokenizerError(
                "No end-of-sequence token: eos_token_ids is empty, so no output could ever end. Pass the id that the "
                "model was trained to end with (often in generation_config.eos_token_id)"
            )
        special = sorted({*eos, *_token_ids(special_token_ids, width, "special_token_ids")})
        spelled = [b""] * width
        for token_id, token in enumerate(tokens):
            if token is not None and not isinstance(token, bytes):
                raise TokenizerError(f"Token {token_id} is {type(token).__name__} {token!r}, expected bytes or None")
            spelled[token_id] = token or b""
        for token_id in special:
            spelled[token_id] = b""
        names = dict(special_tokens or {})
        if wrong := [name for name in names if not isinstance(name, str) or not name]:
            raise TokenizerError(f"special_tokens names a token {wrong[0]!r:.100}; expected a text that is not empty")
        _token_ids(names.values(), width, "special_tokens")
        self._set(spelled, eos, special, names, frozenset())
        object.__setattr__(self, "_plain", None)

    def _set(
        self,
        spelled: Sequence[bytes],
        eos: Iterable[int],
        special: Iterable[int],
        names: Mapping[str, int],
        named: frozenset[int],
    ) -> None:
        """Set all attributes from the bytes of each id and what was checked of the rest."""
        offsets = np.zeros(len(spelled) + 1, dtype=np.int32)
        np.cumsum([len(token) for token in spelled], out=offsets[1:])
        for name, value in {
            "size": len(spelled),
            "tokens": tuple(spelled),
            # A copy, because frombuffer is read-only and numba types read-only arrays apart.
            "token_bytes": np.frombuffer(b"".join(spelled), dtype=np.uint8).copy(),
            "token_offsets": offsets,
            "eos_token_ids": tuple(eos),
            "special_token_ids": tuple(special),
            "special_tokens": dict(names),
            "named": named,
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    @waiting("reading the vocabulary")
    def from_transformers(
        cls, tokenizer: Any, size: int | None = None, *, eos_token_ids: int | Iterable[int] | None = None
    ) -> Vocabulary:
        """The vocabulary of a transformers tokenizer (fast, or slow with a SentencePiece model or byte alphabet).

        Bytes are what a token adds to text that is already there. SentencePiece tokenizers drop the first space of a
        whole text when they decode; here ``▁The`` is always ``b" The"``.

        Args:
            tokenizer: a ``PreTrainedTokenizerBase``, or a ``tokenizers.Tokenizer`` (then give ``eos_token_ids``).
            size: width of the model's logits (``model.config.vocab_size``; ``get_output_embeddings().out_features``).
                Wider than the tokenizer: padding. Narrower: ids from ``size`` on are left out, the model has none.
            eos_token_ids: end-of-sequence ids in place of the tokenizer's own; pass
                ``model.generation_config.eos_token_id``, which may name several.

        Raises:
            TokenizerError: the bytes of the tokens cannot be told, or there is no end of sequence.
        """
        from structgen.core.vocabulary.transformers_reader import read_tokenizer

        read = read_tokenizer(tokenizer)
        tokens, special = read.tokens, read.special_token_ids
        if size is not None:
            tokens = tokens[:size]
            special = {token_id for token_id in special if token_id < size}
        names = {name: token_id for name, token_id in read.special_tokens.items() if size is None or token_id < size}
        eos = read.eos_token_ids if eos_token_ids is None else eos_token_ids
        return cls(tokens, eos_token_ids=eos, special_token_ids=special, special_tokens=names, size=size)

    @classmethod
    def from_tiktoken(
        cls, encoding: Any, size: int | None = None, *, eos_token_ids: int | Iterable[int] | None = None
    ) -> Vocabulary:
        """The vocabulary of a ``tiktoken.Encoding``; the end of sequence is ``<|endoftext|>`` unless given.

        Raises:
            TokenizerError: the encoding has no ``<|endoftext|>`` and ``eos_token_ids`` is not given.
        """
        special = {name: encoding.encode_single_token(name) for name in encoding.special_tokens_set}
        if eos_token_ids is None:
            if "<|endoftext|>" not in special:
                raise TokenizerError(f"{encoding!r} has no <|endoftext|>; pass eos_token_ids (special: {special})")
            eos_token_ids = special["<|endoftext|>"]
        tokens: list[bytes | None] = []
        for token_id in range(encoding.n_vocab):
            try:
                tokens.append(encoding.decode_single_token_bytes(token_id))
            except KeyError:  # ids between the ranks and the special tokens may be unused
                tokens.append(None)
        return cls(
            tokens, eos_token_ids=eos_token_ids, special_token_ids=special.values(), special_tokens=special, size=size
        )

    def id_of(self, token: SpecialToken) -> int:
        """The id of a special token.

        Raises:
            ConstraintError: no token has this name (the nearest is named), or the id lies outside the vocabulary.
        """
        if isinstance(token.token, str):
            token_id = self.special_tokens.get(token.token)
            if token_id is None:
                raise ConstraintError(unknown_name(token.token, self.special_tokens))
            return token_id
        if token.token >= self.size:
            raise ConstraintError(f"there is no token {token.token}; the vocabulary has {self.size} ids, from 0 on")
        return token.token

    def naming(self, token_ids: Iterable[int]) -> Vocabulary:
        """The vocabulary of a constraint that names these tokens: in it they stand for themselves, and are no text.

        Its ``tokens`` have a stand-in for each, which is no UTF-8 (`core.vocabulary.special_tokens`). An end of
        sequence that is named is a part of the text in it, and ends nothing. No ids: the vocabulary itself. Few are
        kept for the process.

        Raises:
            ConstraintError: an id outside the vocabulary, or no end of sequence is left.
        """
        named = self.named.union(token_ids)
        if named == self.named:
            return self
        outside = next((token_id for token_id in named if not 0 <= token_id < self.size), None)
        if outside is not None:
            raise ConstraintError(f"there is no token {outside}; the vocabulary has {self.size} ids, from 0 on")
        return _naming(self, named)

    def other_ends(self, named: Collection[int]) -> tuple[int, ...]:
        """The ends of sequence where a constraint names some ids.

        Raises:
            ConstraintError: none is left.
        """
        eos = tuple(token_id for token_id in self.eos_token_ids if token_id not in named)
        if not eos:
            ends = ", ".join(self.names_of(token_id) for token_id in self.eos_token_ids)
            raise ConstraintError(
                f"the constraint names every end of sequence of the vocabulary ({ends}), so that nothing would end it. "
                "The end of an output need not be named; leave it out, or give the vocabulary another end "
                "(eos_token_ids)"
            )
        return eos

    def within(self, other: Vocabulary) -> Vocabulary:
        """This vocabulary for parts of texts over ``other``, which names more tokens: with those of them named that
        would be text here, or an end. The rest no text has anyway; so mostly it is this one.
        """
        added = other.named - self.named
        return self.naming(i for i in added if self.tokens[i] or i in self.eos_token_ids)

    @property
    def text_only(self) -> Vocabulary:
        """A vocabulary with the same tokens of text and ends, for what looks at these alone: mostly the one that names
        none, so that what is found of it is found once."""
        return self if self._plain is None else self._plain.within(self)

    def reads_within(self, other: Vocabulary) -> bool:
        """Whether grammars over this vocabulary can read parts of texts over ``other``; see `within`."""
        if self.size != other.size or not self.named <= other.named:
            return False
        return self.within(other) == self and self.naming(other.named) == other

    def names_of(self, token_id: int) -> str:
        """What shows a special token in text: its name, or ``<[id]>``."""
        return self._names.get(token_id, written(token_id))

    def rendered(self, data: bytes | bytearray) -> bytes | bytearray:
        """Bytes of an output as text: special tokens that were named, by their names; all else as it is."""
        if not self.named or LEAD not in data:
            return data
        return b"".join(
            piece if isinstance(piece, bytes) else self.names_of(piece).encode()
            for piece in pieces(bytes(data), self.size)
        )

    @cached_property
    def _names(self) -> dict[int, str]:
        return {token_id: name for name, token_id in reversed(list(self.special_tokens.items()))}

    @cached_property
    def digest(self) -> str:
        """Content hash, 32 hexadecimal digits: equal for equal tokens, special and end-of-sequence ids, and size."""
        digest = hashlib.blake2b(digest_size=16)
        lists = np.array(self.eos_token_ids, np.int32), np.array(self.special_token_ids, np.int32)
        for array in (self.token_offsets, self.token_bytes, *lists):
            digest.update(len(array).to_bytes(8, "little"))
            digest.update(array.tobytes())
        return digest.hexdigest()

    @property
    def trie(self) -> Trie:
        """The byte trie of all tokens, built once per process and kept in the cache folder between processes."""
        with _TRIE_LOCK:
            return self._trie

    @cached_property
    def _trie(self) -> Trie:
        if self._plain is not None:
            return self._trie_sharing(self._plain._trie)
        stored = store.load("trie", self.digest)
        trie = trie_from_arrays(stored, self.size) if stored is not None else None
        if trie is None:
            trie = build_trie(self.tokens, self.token_bytes, self.token_offsets)
            store.save("trie", self.digest, trie.arrays())
        return trie

    def _trie_sharing(self, plain: Trie) -> Trie:
        """The trie, from that of the vocabulary that names none: stand-ins come last, as only they have their lead."""
        kept = np.array([bool(token) for token in self.tokens])
        ids = np.array(sorted(self.named), np.int32)
        kept[ids] = False
        text = subtrie(plain, kept)
        words = [self.tokens[token_id] for token_id in ids.tolist()]
        offsets = np.zeros(len(words) + 1, np.int32)
        np.cumsum([len(word) for word in words], out=offsets[1:])
        special = build_trie(words, np.frombuffer(b"".join(words), np.uint8).copy(), offsets)
        return Trie(
            byte=np.concatenate([text.byte, special.byte]),
            depth=np.concatenate([text.depth, special.depth]),
            subtree_end=np.concatenate([text.subtree_end, special.subtree_end + np.int32(len(text))]),
            token=np.concatenate([text.token, np.where(special.token >= 0, ids[special.token], np.int32(-1))]),
            next_same=text.next_same,
        )

    @cached_property
    def missing_bytes(self) -> tuple[int, ...]:
        """Bytes of UTF-8 that no token spells by itself, ascending. If there are none, every text can be written."""
        single = {token[0] for token in self.tokens if len(token) == 1}
        return tuple(byte for byte in _UTF8_BYTES if byte not in single)

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """The text of ``token_ids`` in bytes (special ids spell nothing); a character may be cut at either end."""
        return b"".join([self.tokens[token_id] for token_id in token_ids])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Vocabulary) or self.digest != other.digest:
            return False
        return self.named == other.named and self.special_tokens == other.special_tokens

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Vocabulary(size={self.size}, eos_token_ids={self.eos_token_ids}, digest={self.digest!r})"


class TextVocabulary(Vocabulary):
    """The 256 bytes, for reading text in which special tokens are shown by their names: there they are text."""

    def __init__(self) -> None:
        super().__init__([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextVocabulary)

    def __hash__(self) -> int:
        return super().__hash__()


@lru_cache(8)
def _naming(vocabulary: Vocabulary, named: frozenset[int]) -> Vocabulary:
    """See `Vocabulary.naming`. O(bytes of all tokens)."""
    eos = vocabulary.other_ends(named)
    # A token of a byte FF of its own must not begin a stand-in: no text has it either.
    spelled = [
        token if token_id in vocabulary.named or LEAD not in token else b""
        for token_id, token in enumerate(vocabulary.tokens)
    ]
    for token_id in named:
        spelled[token_id] = stand_in(token_id, vocabulary.size)
    view = object.__new__(Vocabulary)
    view._set(spelled, eos, vocabulary.special_token_ids, vocabulary.special_tokens, named)
    object.__setattr__(view, "_plain", vocabulary._plain or vocabulary)
    return view


def _token_ids(token_ids: int | Iterable[int], size: int, name: str) -> list[int]:
    """``token_ids`` as ascending distinct ints, checked to lie in the vocabulary."""
    given = list(token_ids) if isinstance(token_ids, Iterable) and not isinstance(token_ids, bytes) else [token_ids]
    wrong = [each for each in given if not isinstance(each, Integral) or isinstance(each, bool)]
    if wrong:
        raise TokenizerError(f"{name} holds {wrong[0]!r:.100}; expected token ids, which are integers")
    ids = sorted(set(map(int, given)))
    if ids and not 0 <= ids[0] <= ids[-1] < size:
        raise TokenizerError(f"{name} holds {ids[0] if ids[0] < 0 else ids[-1]}, outside the vocabulary of {size} ids")
    return ids


def check_vocabulary(vocabulary: Any) -> None:
    """Refuse what is no vocabulary.

    Raises:
        TokenizerError: what was found, and what was expected.
    """
    if not isinstance(vocabulary, Vocabulary):
        raise TokenizerError(
            f"vocabulary is {vocabulary!r:.100} ({type(vocabulary).__name__}); expected a structgen.Vocabulary, "
            "such as Vocabulary.from_transformers(tokenizer)"
        )
