"""Slices of a vocabulary: the tokens that are text of some kinds of characters, whatever they spell.

Most of what may be written inside a string or a comment is such text: from a lexer state that any character but a few
leaves as it is, a slice is a row to copy, and only what is left is walked (`core.kernels.cfg.lexer_splits`). Made once
for a vocabulary and kept in the cache folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import packed
from structgen.core.kernels.cfg import machine as k
from structgen.core.kernels.objects import sources_hash
from structgen.core.vocabulary import store
from structgen.core.vocabulary.trie import Trie, build_trie, subtrie
from structgen.core.vocabulary.vocabulary import Vocabulary

_CONTROL = "".join(map(chr, range(32)))
# The characters that end texts in grammars: strings, comments, lines, fields, tags. A slice is all text without them.
EXCLUDED = (
    "", "\n", "\r\n", "\t\r\n",
    '"', '"\\', '"\\\n', '"\\\r\n', '"\\' + _CONTROL, '"\\/' + _CONTROL,
    "'", "'\\", "'\\\n", "'\\\r\n", "`", "`\\",
    "*", "/", "/\\\n", "/\\\r\n", "]", "]\\\n", "<", "<&", "{", "}", "{}", "\"'", "<>", '",\r\n',
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Slices:
    """The slices of a vocabulary, the one of most tokens first.

    Attributes:
        kinds: int64[n], the kinds of characters of each, as bits (`structgen.core.kernels.cfg.kinds`).
        rows: int32[n * width], its tokens.
        residues: int64, the tries of the tokens that are not in it, as `packed_nodes`.
        ends: int64[n + 1], where these end, the first before all.
        rests: int64, the same tokens by what they have after text of the slice: tries of these remainders, whose
            ``token`` is a token or, from the size of the vocabulary on, a group.
        rest_ends: int64[n + 1], where these end.
        groups: int32[g + 1], where the tokens of each group begin.
        members: int32, the tokens of all groups.
    """

    kinds: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    residues: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    remainders: npt.NDArray[np.int64]
    remainder_ends: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]


MOST_NUMBERS = (1 << 20) - 2  # tokens and groups, in a node


def packed_nodes(trie: Trie, numbers: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int64]:
    """int64[N]: ``byte | depth << 8 | subtree size << 19 | (token + 1) << 43``.

    Args:
        trie: of tokens, or of other texts.
        numbers: for other texts, int64[their number + 1]: the token that stands for each; after them -1, for none.
    """
    size = trie.subtree_end - np.arange(len(trie), dtype=np.int64)
    token = trie.token.astype(np.int64) if numbers is None else numbers[trie.token]
    nodes: npt.NDArray[np.int64] = trie.byte | trie.depth.astype(np.int64) << 8 | size << 19 | (token + 1) << 43
    return nodes


def load_slices(vocabulary: Vocabulary) -> Slices:
    """The slices from the cache folder, or made and kept there."""
    key, width = f"{vocabulary.digest}-{sources_hash()[:16]}", -(-vocabulary.size // 32)
    stored = store.load("slices", key)
    if stored is not None and _is_whole(stored, width):
        return Slices(**stored)
    made = make_slices(vocabulary)
    store.save("slices", key, {name: getattr(made, name) for name in Slices.__dataclass_fields__})
    return made


def make_slices(vocabulary: Vocabulary) -> Slices:
    """The slices of a vocabulary; about 0.5 s for 200,000 tokens."""
    header = np.zeros(1, np.int64)
    kinds = np.array([k.run(header.ctypes.data, k.KIND_OF, byte, 0, 0) for byte in range(256)], np.int64)
    tokens, width = token_kinds(vocabulary, kinds), -(-vocabulary.size // 32)
    sets = []
    for excluded in EXCLUDED:
        allowed = (1 << k.INVALID) - 1
        for character in excluded:
            allowed &= ~(1 << int(kinds[ord(character)]))
        sets.append((allowed, tokens & ~np.int64(allowed) == 0))
    sets.sort(key=lambda entry: -int(entry[1].sum()))
    residues = [packed_nodes(subtrie(vocabulary.trie, ~inside)) for _, inside in sets]
    remainders, groups = _remainders(vocabulary, kinds, sets)
    return Slices(
        kinds=np.array([allowed for allowed, _ in sets], np.int64),
        rows=np.concatenate([packed(inside, width) for _, inside in sets]),
        residues=np.concatenate(residues),
        ends=np.cumsum([0, *map(len, residues)], dtype=np.int64),
        remainders=np.concatenate(remainders),
        remainder_ends=np.cumsum([0, *map(len, remainders)], dtype=np.int64),
        groups=np.cumsum([0, *map(len, groups)], dtype=np.int32),
        members=np.array([token for group in groups for token in group], np.int32),
    )


def _remainders(
    vocabulary: Vocabulary, kinds: npt.NDArray[np.int64], sets: list[tuple[int, npt.NDArray[np.bool_]]]
) -> tuple[list[npt.NDArray[np.int64]], list[list[int]]]:
    """For each slice the trie of what other tokens have after text of it; and the groups, numbered from V on.

    The tries are empty if there are more tokens and groups than nodes can name.
    """
    tokens, cut = vocabulary.tokens, _where_cut(vocabulary)
    tries: list[npt.NDArray[np.int64]] = []
    groups: list[list[int]] = []
    for allowed, inside in sets:
        by_remainder: dict[bytes, list[int]] = {}
        barred = bytes(byte for byte in range(128) if not allowed >> int(kinds[byte]) & 1)
        search = re.compile(b"[" + re.escape(barred) + b"]").search if barred else lambda token: None
        for token in np.flatnonzero(~inside).tolist():
            if text := tokens[token]:
                match = search(text)
                start = min(match.start() if match else len(text), cut.get(token, len(text)))
                by_remainder.setdefault(text[start:], []).append(token)
        numbers = []
        for members in by_remainder.values():
            numbers.append(members[0] if len(members) == 1 else vocabulary.size + len(groups))
            if len(members) > 1:
                groups.append(members)
        texts = list(by_remainder)
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        trie = build_trie(texts, np.frombuffer(b"".join(texts), np.uint8), offsets)
        tries.append(packed_nodes(trie, np.array([*numbers, -1], np.int64)))
    if vocabulary.size + len(groups) > MOST_NUMBERS:
        return [np.zeros(0, np.int64) for _ in tries], []
    return tries, groups


def _where_cut(vocabulary: Vocabulary) -> dict[int, int]:
    """Of tokens that are not UTF-8, where the first character that is none begins."""
    cuts = {}
    for token, text in enumerate(vocabulary.tokens):
        if text and not text.isascii():
            try:
                text.decode()
            except UnicodeDecodeError as error:
                cuts[token] = error.start
    return cuts


def token_kinds(vocabulary: Vocabulary, kinds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[V]: the kinds of the characters of each token; INVALID where it is empty or not UTF-8."""
    kinds_of = np.full(vocabulary.size, 1 << k.INVALID, np.int64)
    offsets = vocabulary.token_offsets
    spelled = np.flatnonzero(np.diff(offsets) > 0)
    if not len(spelled):
        return kinds_of
    of_bytes = np.int64(1) << kinds[vocabulary.token_bytes]
    kinds_of[spelled] = np.bitwise_or.reduceat(of_bytes, offsets[spelled])
    for token in np.flatnonzero(kinds_of >> k.NON_ASCII & 1).tolist():
        try:
            (vocabulary.tokens[token] or b"").decode()
        except UnicodeDecodeError:
            kinds_of[token] |= 1 << k.INVALID
    return kinds_of


def _is_whole(stored: dict[str, npt.NDArray[np.generic]], width: int) -> bool:
    """Whether stored arrays are those of slices (content is checksummed; this guards against another layout)."""
    long, short = ("kinds", "residues", "ends", "remainders", "remainder_ends"), ("rows", "groups", "members")
    types: dict[str, type] = {**dict.fromkeys(long, np.int64), **dict.fromkeys(short, np.int32)}
    if {name: array.dtype for name, array in stored.items()} != types:
        return False
    count = len(EXCLUDED)
    shapes = {"kinds": (count,), "rows": (count * width,), "ends": (count + 1,), "remainder_ends": (count + 1,)}
    if any(stored[name].shape != shape for name, shape in shapes.items()) or not stored["groups"].size:
        return False
    ends = {"residues": "ends", "remainders": "remainder_ends", "members": "groups"}
    return all(stored[name].shape == (stored[end][-1],) for name, end in ends.items())
