"""What masks need to know of a vocabulary, apart from any grammar: tries of the tokens that can stand where in JSON.

A mask is not one walk over all tokens. Inside a string nearly all tokens stay inside, and which ones depends on the
lexical state only: a row, computed once (`masks.rows`). What remains is the few tokens that cross a boundary.
Here the vocabulary is split accordingly, once for each way of spelling escapes, and kept in the cache folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.json.masks.remainders import find_remainders
from structgen.core.kernels.json import layout
from structgen.core.kernels.objects import sources_hash
from structgen.core.kernels.tokens import calls as t
from structgen.core.vocabulary import store
from structgen.core.vocabulary.trie import Trie, subtrie
from structgen.core.vocabulary.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class JsonLexicon:
    """Tries and remainder groups of one vocabulary under one way of spelling escapes.

    Attributes:
        nodes, tries, next_same, groups, members, decoded, own_kinds, classes, rises: as `core.kernels.json` reads
            them.
        points: int32[V], code points that each token of text stands for, one still to come after an unfinished escape
            included; 0 for tokens that cannot be in a string.
        kinds: int32[V], flags of `structgen.core.kernels.tokens.layout`.
    """

    vocabulary: Vocabulary
    escapes: bool
    nodes: Int32
    tries: npt.NDArray[np.int64]
    next_same: Int32
    groups: Int32
    members: Int32
    decoded: npt.NDArray[np.uint8]
    own_kinds: npt.NDArray[np.uint8]
    classes: Int32
    rises: Int32
    points: Int32
    kinds: Int32

    @cached_property
    def longest_text(self) -> int:
        """No token of text stands for as many code points."""
        return int(self.points.max(initial=0)) + 1

    @cached_property
    def longest_written(self) -> int:
        """No token has as many code points, as it is written."""
        begun = np.concatenate([[0], np.cumsum(self.vocabulary.token_bytes & 0xC0 != 0x80)])
        return int(np.diff(begun[self.vocabulary.token_offsets]).max(initial=0)) + 1

    @cached_property
    def common_digits(self) -> int:
        """Most texts of so many digits are tokens, and of fewer too; of more, few are. At least 1."""
        numbers = np.flatnonzero(self.kinds & t.DIGITS)
        lengths = Counter(len(token) for token in map(self.vocabulary.tokens.__getitem__, numbers) if token.isdigit())
        digits = 1
        while 2 * lengths[digits + 1] > 10 ** (digits + 1):
            digits += 1
        return digits

    @cached_property
    def order(self) -> tuple[Int32, Int32]:
        """The tokens in the order of their nodes, those with the same bytes after each other, and how many of them lie
        before each node (and after the last). Of remainders, groups in the place of tokens."""
        ends = self.nodes[:, layout.NODE_TOKEN]
        places = np.flatnonzero(ends >= 0)
        tokens, counts = ends[places], (ends >= 0).astype(np.int32)
        pairs = [(places, tokens)]
        first, end = self.tries[layout.REMAINDERS]
        spelled = (places < first) | (places >= end)
        more = self.next_same[tokens[spelled]]
        places = places[spelled]
        while (more >= 0).any():
            places, tokens = places[more >= 0], more[more >= 0]
            counts[places] += 1
            pairs.append((places, tokens))
            more = self.next_same[tokens]
        starts = np.zeros(len(ends) + 1, np.int32)
        np.cumsum(counts, out=starts[1:])
        places, tokens = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        return (tokens[np.argsort(places, kind="stable")] if len(pairs) > 1 else tokens), starts

    @cached_property
    def plain_nodes(self) -> npt.NDArray[np.int64]:
        """See `structgen.core.kernels.json.layout`."""
        nodes = self.nodes[: self.tries[layout.TEXT, 1]]
        byte = nodes[:, layout.NODE_BYTE]
        packed = nodes[:, layout.NODE_END].astype(np.int64) << layout.PLAIN_END
        packed |= nodes[:, layout.NODE_DEPTH].astype(np.int64) << layout.PLAIN_DEPTH
        packed |= byte
        packed[(byte < 0x20) | (byte == 0x22) | (byte == 0x5C)] |= np.iinfo(np.int64).min
        return packed

    @cached_property
    def max_depth(self) -> int:
        """Longest token in bytes."""
        return int(self.nodes[:, layout.NODE_DEPTH].max(initial=0)) + 1

    @cached_property
    def width(self) -> int:
        """int32 words of a mask row."""
        return -(-self.vocabulary.size // 32)


def build_lexicon(vocabulary: Vocabulary, escapes: bool) -> JsonLexicon:
    """Split a vocabulary. About 0.3 s for 200,000 tokens."""
    kinds = np.zeros(vocabulary.size, np.int32)
    points = np.zeros(vocabulary.size, np.int32)
    t.token_kinds(vocabulary.token_bytes, vocabulary.token_offsets, kinds, points)
    lengths = np.diff(vocabulary.token_offsets)
    text = (lengths > 0) & (kinds & t.CONTROL_FIRST == 0)
    quoted = text & (kinds & t.QUOTE != 0)
    blank, digits = kinds & t.BLANK != 0, kinds & t.DIGITS != 0
    structure = (kinds & t.STRUCTURE != 0) & ~blank & ~digits
    remainders = find_remainders(vocabulary, np.flatnonzero(quoted).tolist(), escapes)
    whole = vocabulary.trie
    parts: list[Trie] = [subtrie(whole, keep) for keep in (text, quoted, structure, blank, digits)]
    parts.append(remainders.trie)
    parts.append(subtrie(whole, remainders.hard_tokens(vocabulary.size)))
    nodes, tries = join(parts)
    classes, rises = np.zeros(len(nodes), np.int32), np.zeros(len(nodes), np.int32)
    own_kinds = np.zeros(len(nodes), np.uint8)
    depth = max((part.max_depth for part in parts), default=0)
    for lo, hi in tries.tolist():
        t.node_kinds(nodes[lo:hi], np.zeros((depth + 2, 2), np.int64), own_kinds[lo:hi])
        t.subtree_kinds(nodes[lo:hi], own_kinds[lo:hi], classes[lo:hi])
        t.subtree_rises(nodes[lo:hi], np.zeros(depth + 2, np.int32), rises[lo:hi])
    for token in np.flatnonzero(text & (kinds & t.BACKSLASH != 0)).tolist():
        points[token] = escaped_points(vocabulary.tokens[token])
    return JsonLexicon(
        vocabulary=vocabulary,
        escapes=escapes,
        nodes=nodes,
        tries=tries,
        next_same=whole.next_same,
        groups=remainders.groups,
        members=remainders.members,
        decoded=remainders.decoded,
        own_kinds=own_kinds,
        classes=classes,
        rises=rises,
        points=np.where(text, points, 0).astype(np.int32),
        kinds=kinds,
    )


_SAVED = {
    "nodes": (np.int32, 2), "tries": (np.int64, 2), "groups": (np.int32, 1), "members": (np.int32, 2),
    "decoded": (np.uint8, 1), "own_kinds": (np.uint8, 1), "classes": (np.int32, 1),
    "rises": (np.int32, 1), "points": (np.int32, 1), "kinds": (np.int32, 1),
}  # fmt: skip


def load_lexicon(vocabulary: Vocabulary, escapes: bool) -> JsonLexicon:
    """The lexicon from the cache folder, or built and saved there."""
    key = f"{vocabulary.digest}-{'any' if escapes else 'minimal'}-{sources_hash()[:16]}"  # kernels know the kinds
    stored = store.load("lexicon", key)
    if stored is not None and _is_whole(stored, vocabulary.size):
        return JsonLexicon(vocabulary=vocabulary, escapes=escapes, next_same=vocabulary.trie.next_same, **stored)
    lexicon = build_lexicon(vocabulary, escapes)
    store.save("lexicon", key, {name: getattr(lexicon, name) for name in _SAVED})
    return lexicon


def _is_whole(stored: Mapping[str, npt.NDArray[Any]], size: int) -> bool:
    """Whether stored arrays are those of a lexicon (content is checksummed; this guards against another layout)."""
    if set(stored) != set(_SAVED):
        return False
    if any(stored[name].dtype != dtype or stored[name].ndim != ndim for name, (dtype, ndim) in _SAVED.items()):
        return False
    return (
        stored["tries"].shape == (layout.TRIES, 2)
        and stored["nodes"].shape == (len(stored["classes"]), 4)
        and len(stored["own_kinds"]) == len(stored["rises"]) == len(stored["classes"])
        and len(stored["points"]) == len(stored["kinds"]) == size
    )


def escaped_points(text: bytes) -> int:
    """Code points that string content stands for, one that an unfinished escape begins included."""
    points = offset = 0
    while offset < len(text):
        if text[offset] != 0x5C:
            points += (text[offset] & 0xC0) != 0x80
            offset += 1
            continue
        points += 1
        pair = text[offset + 1 : offset + 3] == b"ud" or text[offset + 1 : offset + 3] == b"uD"
        high = pair and text[offset + 3 : offset + 4] in (b"8", b"9", b"a", b"b", b"A", b"B", b"")
        offset += (12 if high else 6) if text[offset + 1 : offset + 2] == b"u" else 2
    return points


def join(parts: Sequence[Trie]) -> tuple[Int32, npt.NDArray[np.int64]]:
    """The tries one after the other as int32[N, 4] (byte, depth, subtree end, token), and where each lies."""
    tries = np.zeros((len(parts), 2), np.int64)
    rows = []
    base = 0
    for index, part in enumerate(parts):
        tries[index] = base, base + len(part)
        rows.append(np.stack([part.byte.astype(np.int32), part.depth, part.subtree_end + base, part.token], axis=1))
        base += len(part)
    return np.ascontiguousarray(np.concatenate(rows), np.int32), tries
