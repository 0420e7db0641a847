"""Mask rows that every vocabulary has, made once and kept in the cache folder: whitespace, slices, short text."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import packed, unpacked
from structgen.core.engines.json.masks.token_index import Int32, JsonLexicon
from structgen.core.kernels.json import layout
from structgen.core.kernels.objects import sources_hash
from structgen.core.kernels.tokens import calls as t
from structgen.core.kernels.tokens.layout import NEVER, NON_ASCII, WIDE_SPACE
from structgen.core.vocabulary import store

KINDS = np.array([t.kind_of(byte) for byte in range(256)], np.int32)


def _kinds(characters: str) -> int:
    """The kinds that the characters have, as a bit set; "é" stands for all beyond ASCII."""
    kinds = 0
    for character in characters:
        kinds |= 1 << (int(KINDS[ord(character)]) if character.isascii() else NON_ASCII)
    return kinds


_LOWER, _UPPER, _DIGIT = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_ALL, _ASCII = (1 << NEVER) - 1, (1 << NON_ASCII) - 1
_SOLID = _ALL & ~(1 << WIDE_SPACE)
_ALPHANUMERIC = _LOWER + _UPPER + _DIGIT
_WORD = _ALPHANUMERIC + "_"
# Sets of characters that patterns repeat. For a lexical state that keeps to one of them, the tokens within it are one
# row to copy, and the walk visits only what goes beyond.
SLICES = (
    _ALL, _SOLID, _SOLID & ~_kinds(" "), _ALL & ~_kinds("/"), _ALL & ~_kinds(":"), _ALL & ~_kinds("."),
    _ALL & ~_kinds(","), _SOLID & ~_kinds(" /"), _SOLID & ~_kinds(" @"), _ASCII, _ASCII & ~_kinds(" "),
    *map(_kinds, (
        _WORD + " -.,/'()", _WORD + " -", _ALPHANUMERIC + " -.,/", _ALPHANUMERIC + " ", _WORD + "-./:", _WORD + "-.",
        _WORD + "-", _WORD, _ALPHANUMERIC, _LOWER + _UPPER, _LOWER + _DIGIT, _LOWER, _LOWER + _DIGIT + "-", _DIGIT,
    )),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class FixedRows:
    """The first rows of a vocabulary.

    Attributes:
        rows: int32[n, width]: whitespace, slices, text of at most 0, 1, ... code points, all text in a string.
        slices: int32[SLICES], the kinds of characters of each slice, the one of most tokens first.
        sizes: int32[SLICES, longest + 1], how many tokens of a slice have at most so many code points.
    """

    rows: Int32
    slices: Int32
    sizes: Int32


def slice_rows(lexicon: JsonLexicon) -> FixedRows:
    """The rows that need no automaton."""
    kinds = token_characters(lexicon)
    free = kinds & (1 << NEVER) == 0
    inside = [(slice_, free & (kinds & ~np.int64(slice_) == 0)) for slice_ in SLICES]
    inside.sort(key=lambda entry: -int(entry[1].sum()))
    rows = [packed(tokens, lexicon.width) for _, tokens in inside]
    blank = packed(lexicon.kinds & t.BLANK != 0, lexicon.width)
    sizes = [np.cumsum(np.bincount(lexicon.points[tokens], minlength=lexicon.longest_text + 1)) for _, tokens in inside]
    slices = np.array([slice_ for slice_, _ in inside], np.int32)
    return FixedRows(np.stack([blank, *rows]), slices, np.array(sizes, np.int32))


def with_lengths(lexicon: JsonLexicon, made: FixedRows, text: Int32) -> FixedRows:
    """Those that were made, rows of short text, and ``text`` int32[width]: what stays in a string."""
    stay = unpacked(text, lexicon.vocabulary.size)
    short = [packed(stay & (lexicon.points <= n), lexicon.width) for n in range(lexicon.longest_text + 1)]
    return replace(made, rows=np.stack([*made.rows, *short, text]))


def load_fixed_rows(lexicon: JsonLexicon) -> FixedRows | None:
    """The rows from the cache folder; None if they are not there whole."""
    stored = store.load("rows", _key(lexicon))
    if stored is None or stored.keys() != {"rows", "slices", "sizes"}:
        return None
    if any(array.dtype != np.int32 for array in stored.values()):
        return None
    count = layout.ROW_LENGTHS + lexicon.longest_text + 2
    fits = stored["rows"].shape == (count, lexicon.width) and stored["slices"].shape == (layout.SLICES,)
    fits = fits and stored["sizes"].shape == (layout.SLICES, lexicon.longest_text + 1)
    if not fits or sorted(stored["slices"].tolist()) != sorted(SLICES):
        return None
    return FixedRows(**stored)


def save_fixed_rows(lexicon: JsonLexicon, made: FixedRows) -> None:
    """Keep the rows in the cache folder, if it can be written."""
    store.save("rows", _key(lexicon), {"rows": made.rows, "slices": made.slices, "sizes": made.sizes})


def _key(lexicon: JsonLexicon) -> str:
    """What the rows depend on: the vocabulary, how escapes are spelled, and the kernels that know kinds and text."""
    escapes = "any" if lexicon.escapes else "minimal"
    return f"{lexicon.vocabulary.digest}-{escapes}-{sources_hash()[:16]}"


def token_characters(lexicon: JsonLexicon) -> npt.NDArray[np.int64]:
    """int64[V]: the kinds of characters of each token (NEVER where it is empty or not UTF-8 from its first byte on)."""
    kinds = np.full(lexicon.vocabulary.size, 1 << NEVER, np.int64)
    end = int(lexicon.tries[layout.TEXT, 1])
    path = np.zeros(lexicon.max_depth + 2, np.int64)
    t.path_kinds(lexicon.nodes[:end], lexicon.next_same, lexicon.own_kinds[:end], path, kinds)
    return kinds
