"""Tokens that can close a free string, grouped by what follows the quote.

Of 200,000 tokens some 435 can close a string, with about a hundred distinct remainders. For a string without pattern it
does not matter what such a token has before the quote, so one walk over the remainders serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from structgen.core.vocabulary.trie import Trie, build_trie
from structgen.core.vocabulary.vocabulary import Vocabulary

_ESCAPES = {0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 0x62: 0x08, 0x66: 0x0C, 0x6E: 0x0A, 0x72: 0x0D, 0x74: 0x09}
_STRUCTURAL = frozenset(b' \t\n\r,:{}[]"0123456789+-.eEaflnrstu')
# A remainder with this many quotes may itself hold a key, which might repeat the one just closed.
HARD_QUOTES = 2


@dataclass(frozen=True, eq=False)
class Remainders:
    """Groups of tokens by remainder.

    Attributes:
        trie: the remainders; its tokens are group numbers. Group 0, the empty remainder, is not in it.
        groups: int32[G + 1], where each group begins in ``members``.
        members: int32[M, 4]: token, code points before the quote, place and length of the decoded bytes before it.
        decoded: uint8, those bytes.
        hard: tokens left out because what follows can depend on what came before.
    """

    trie: Trie
    groups: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]
    decoded: npt.NDArray[np.uint8]
    hard: tuple[int, ...]

    def hard_tokens(self, size: int) -> npt.NDArray[np.bool_]:
        """bool[size]: the hard tokens."""
        keep = np.zeros(size, bool)
        keep[list(self.hard)] = True
        return keep


def find_remainders(vocabulary: Vocabulary, candidates: list[int], escapes: bool) -> Remainders:
    """Group the ``candidates`` (tokens with a quote) that can close a string which stands between characters.

    ``escapes``: whether every legal escape may be used, or only those of characters that must be escaped.
    """
    remainders: dict[bytes, list[tuple[int, bytes]]] = {b"": []}
    hard = []
    for token in candidates:
        text = vocabulary.tokens[token]
        content = read_string(text, escapes)
        if content is None:
            continue
        decoded, end = content
        remainder = text[end + 1 :]
        if not plausible(remainder):
            continue
        if remainder.count(b'"') >= HARD_QUOTES:
            hard.append(token)
        else:
            remainders.setdefault(remainder, []).append((token, decoded))
    names = list(remainders)
    lengths = np.cumsum([0, *map(len, names)], dtype=np.int32)
    trie = build_trie(names, np.frombuffer(b"".join(names) or b"\0", np.uint8).copy(), lengths)
    members, buffer = [], bytearray()
    groups = [0]
    for name in names:
        for token, decoded in remainders[name]:
            members.append((token, len(decoded.decode()), len(buffer), len(decoded)))
            buffer += decoded
        groups.append(len(members))
    return Remainders(
        trie,
        np.array(groups, np.int32),
        np.array(members, np.int32).reshape(-1, 4),
        np.frombuffer(bytes(buffer) or b"\0", np.uint8).copy(),
        tuple(hard),
    )


def read_string(text: bytes, escapes: bool) -> tuple[bytes, int] | None:
    """The decoded content up to the first unescaped quote, and where that stands; None if it is not string content."""
    decoded = bytearray()
    offset = 0
    while offset < len(text):
        byte = text[offset]
        if byte == 0x22:
            try:
                decoded.decode()
            except UnicodeDecodeError:
                return None
            return bytes(decoded), offset
        if byte < 0x20:
            return None
        if byte != 0x5C:
            decoded.append(byte)
            offset += 1
            continue
        escape = read_escape(text, offset, escapes)
        if escape is None or _is_open(decoded):
            return None
        decoded += escape[0]
        offset = escape[1]
    return None


def read_escape(text: bytes, offset: int, escapes: bool) -> tuple[bytes, int] | None:
    """The UTF-8 of the escape that begins at ``offset``, and where it ends; None if it is not whole or not allowed."""
    if offset + 1 >= len(text):
        return None
    kind = text[offset + 1]
    if kind in _ESCAPES:
        return (bytes([_ESCAPES[kind]]), offset + 2) if escapes or kind != 0x2F else None
    unit = hexadecimal(text, offset)
    if unit is None or 0xDC00 <= unit <= 0xDFFF:
        return None
    if 0xD800 <= unit <= 0xDBFF:
        low = hexadecimal(text, offset + 6)
        if low is None or not 0xDC00 <= low <= 0xDFFF or not escapes:
            return None
        return chr(0x10000 + ((unit - 0xD800) << 10) + low - 0xDC00).encode(), offset + 12
    if not escapes and not (unit < 0x20 or unit in (0x22, 0x5C)):
        return None
    return chr(unit).encode(), offset + 6


def hexadecimal(text: bytes, offset: int) -> int | None:
    """The four digits of ``\\uXXXX`` at ``offset``."""
    digits = text[offset + 2 : offset + 6]
    if (
        text[offset : offset + 2] != b"\\u"
        or len(digits) < 4
        or not all(d in b"0123456789abcdefABCDEF" for d in digits)
    ):
        return None
    return int(digits, 16)


def _is_open(decoded: bytearray) -> bool:
    """Whether a UTF-8 sequence is unfinished."""
    try:
        decoded.decode()
    except UnicodeDecodeError:
        return True
    return False


def plausible(remainder: bytes) -> bool:
    """Whether bytes may follow a closing quote, by the character alone up to the next quote. A superset."""
    return all(byte in _STRUCTURAL for byte in remainder.split(b'"')[0])
