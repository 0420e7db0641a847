"""Slices of a vocabulary: the tokens that are text of some kinds of characters, whatever they spell.

Most of what may be written inside a string or a comment is such text: from a lexer state that any character but a few
leaves as it is, a slice is a row to copy, and only what is left is walked (`structgen.kernels.cfg.units`). Made once
for a vocabulary and kept in the cache folder.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from structgen.engines.bit_rows import packed
from structgen.kernels.cfg import machine as k
from structgen.kernels.objects import sources_hash
from structgen.vocabulary import store
from structgen.vocabulary.trie import Trie, subtrie
from structgen.vocabulary.vocabulary import Vocabulary

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
        kinds: int64[n], the kinds of characters of each, as bits (`structgen.kernels.cfg.kinds`).
        rows: int32[n * width], its tokens.
        residues: int64, the tries of the tokens that are not in it, as `packed_nodes`.
        ends: int64[n + 1], where these end, the first before all.
    """

    kinds: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    residues: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


def packed_nodes(trie: Trie) -> npt.NDArray[np.int64]:
    """int64[N]: ``byte | depth << 8 | subtree size << 19 | (token + 1) << 43``."""
    size = trie.subtree_end - np.arange(len(trie), dtype=np.int64)
    nodes: npt.NDArray[np.int64] = (
        trie.byte | trie.depth.astype(np.int64) << 8 | size << 19 | (trie.token.astype(np.int64) + 1) << 43
    )
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
    """The slices of a vocabulary; about 0.3 s for 200,000 tokens."""
    place = np.zeros(1, np.int64)
    kinds = np.array([k.run(place.ctypes.data, k.KIND_OF, byte, 0, 0) for byte in range(256)], np.int64)
    tokens, width = token_kinds(vocabulary, kinds), -(-vocabulary.size // 32)
    found = []
    for excluded in EXCLUDED:
        allowed = (1 << k.INVALID) - 1
        for character in excluded:
            allowed &= ~(1 << int(kinds[ord(character)]))
        found.append((allowed, tokens & ~np.int64(allowed) == 0))
    found.sort(key=lambda entry: -int(entry[1].sum()))
    residues = [packed_nodes(subtrie(vocabulary.trie, ~inside)) for _, inside in found]
    return Slices(
        kinds=np.array([allowed for allowed, _ in found], np.int64),
        rows=np.concatenate([packed(inside, width) for _, inside in found]),
        residues=np.concatenate(residues),
        ends=np.cumsum([0, *map(len, residues)], dtype=np.int64),
    )


def token_kinds(vocabulary: Vocabulary, kinds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[V]: the kinds of the characters of each token; INVALID where it is empty or not UTF-8."""
    found = np.full(vocabulary.size, 1 << k.INVALID, np.int64)
    offsets = vocabulary.token_offsets
    spelled = np.flatnonzero(np.diff(offsets) > 0)
    if not len(spelled):
        return found
    of_bytes = np.int64(1) << kinds[vocabulary.token_bytes]
    found[spelled] = np.bitwise_or.reduceat(of_bytes, offsets[spelled])
    for token in np.flatnonzero(found >> k.NON_ASCII & 1).tolist():
        try:
            (vocabulary.tokens[token] or b"").decode()
        except UnicodeDecodeError:
            found[token] |= 1 << k.INVALID
    return found


def _is_whole(stored: dict[str, npt.NDArray[np.generic]], width: int) -> bool:
    """Whether stored arrays are those of slices (content is checksummed; this guards against another layout)."""
    types = {"kinds": np.int64, "rows": np.int32, "residues": np.int64, "ends": np.int64}
    if {name: array.dtype for name, array in stored.items()} != types:
        return False
    count = len(EXCLUDED)
    shapes = {"kinds": (count,), "rows": (count * width,), "ends": (count + 1,)}
    if any(stored[name].shape != shape for name, shape in shapes.items()):
        return False
    return stored["residues"].shape == (stored["ends"][-1],)
