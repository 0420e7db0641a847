"""Kernels about characters against plain Python: kinds, loops of automata, flags of tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from structgen.automata.pattern import pattern_dfa
from structgen.kernels.tokens import calls as c
from structgen.vocabulary.trie import build_trie

Int32 = npt.NDArray[np.int32]

# Kinds by number: characters that automata tend to treat alike.
GROUPS = [
    "0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ", "_", "-", ".", "/", ":", " ",
    "@", "+", ",", "%#", "?&=", "()", "[]", "{}", "<>", "'", "!;", "$", "*", "^|", "`~",
]  # fmt: skip
NEVER = [*range(0x20), 0x22, 0x5C, 0x7F]


def kind(byte: int) -> int:
    if byte >= 0x80:
        return 26
    return 27 if byte in NEVER else next(i for i, group in enumerate(GROUPS) if chr(byte) in group)


def test_every_byte_has_its_kind() -> None:
    assert [c.kind_of(byte) for byte in range(256)] == [kind(byte) for byte in range(256)]


# --- automata -------------------------------------------------------------------------------------------------------
def sequences() -> list[Int32]:
    """The UTF-8 of all scalar values beyond ASCII by length: int32[bytes, characters]."""
    found = []
    for first, last in ((0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF)):
        text = "".join(chr(point) for point in range(first, last + 1) if not 0xD800 <= point <= 0xDFFF)
        length = 2 if last < 0x800 else 3 if last < 0x10000 else 4
        found.append(np.frombuffer(text.encode(), np.uint8).reshape(-1, length).T.astype(np.int32))
    return found


ALL_SEQUENCES = sequences()


def loops(table: Int32, state: int) -> int:
    """Kinds all of whose characters lead from ``state`` back to it, by walking every character."""
    dead = len(table)
    total = np.vstack([np.where(table < 0, dead, table), np.full((1, 256), dead)])
    bits = 0
    for number, group in enumerate(GROUPS):
        if all(table[state, ord(character)] == state for character in group):
            bits |= 1 << number
    for columns in ALL_SEQUENCES:
        places = np.full(columns.shape[1], state)
        for column in columns:
            places = total[places, column]
        if (places != state).any():
            return bits
    return bits | 1 << 26


def tables() -> list[Int32]:
    patterns = ["", "^[a-z0-9_]*$", "^[^/]+$", "^[^é]*$", "^[^😀]*$", "^[\\u0800-\\u{10FFFF}]*$", "^a{3}"]
    found = [pattern_dfa(pattern).transitions for pattern in patterns]
    random = np.random.default_rng(0)
    found += [random.integers(-1, 4, (4, 256), dtype=np.int32) for _ in range(4)]
    every = np.zeros((1, 256), np.int32)  # not UTF-8: each byte leads back
    return [*found, every]


@pytest.mark.parametrize("table", tables(), ids=lambda table: f"{len(table)} states")
def test_add_rows(table: Int32) -> None:
    count, base = len(table), 3
    pool, flags, looping = (np.zeros(size, np.int32) for size in (256 * (base + count), base + count, base + count))
    flags[base] = 1
    c.add_rows(np.ascontiguousarray(table), base, pool, flags, looping)
    rows = pool.reshape(-1, 256)
    assert (rows[base:] == np.where(table < 0, -1, table + base)).all() and not rows[:base].any()
    inside = (table[:, 0x80:0xC0] >= 0).any(axis=1)
    assert ((flags[base:] & c.PARTIAL_FLAG != 0) == inside).all() and flags[base] & 1
    expected = [loops(table, state) for state in range(count)]
    if len(table) > 1 or table[0, 0xC2] < 0:
        assert looping[base:].tolist() == expected


# --- tokens ---------------------------------------------------------------------------------------------------------
def random_tokens(count: int = 400) -> list[bytes]:
    random = np.random.default_rng(1)
    pieces = [
        b'"', b"\\", b"\\u00e9", b"{", b"}", b"[", b"]", b":", b",", b" ", b"\n", b"\t", b"true", b"null", b"0", b"12",
        b"-", b".", b"e", b"E", b"+", b"a", b"Z", "é".encode(), "€".encode(), "😀".encode(), b"\xe2", b"\x82", b"\xff",
        b"\xed\xa0", b"\xf0\x9f", b"\x00", b"\x7f", b"_", b"/",
    ]  # fmt: skip
    drawn = [b"".join(random.choice(np.array(pieces, object), random.integers(1, 5))) for _ in range(count)]
    return [b"", *pieces, *drawn, b"12", b"e", b"eE"]


TOKENS = random_tokens()


def joined(tokens: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], Int32]:
    offsets = np.cumsum([0, *map(len, tokens)], dtype=np.int32)
    return np.frombuffer(b"".join(tokens), np.uint8).copy(), offsets


# Outside strings: punctuation, digits, letters of true, false, null; strings, the last perhaps unfinished.
CONTENT = rb'(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*'
OUTSIDE = rb"[ \n\r\t0-9+\-.eE,:\[\]{}aflnrstu]"
STRUCTURE = re.compile(rb"(?:" + OUTSIDE + rb'|"' + CONTENT + rb'")*(?:"' + CONTENT + rb"\\?)?", re.DOTALL)


def flags_of(token: bytes) -> int:
    flags = c.QUOTE * (b'"' in token) | c.BACKSLASH * (b"\\" in token)
    if token:
        flags |= c.CONTROL_FIRST * (token[0] < 0x20)
        flags |= c.BLANK * (not token.strip(b" \n\r\t"))
        flags |= c.DIGITS * (not token.strip(b"0123456789-+.eE") and bool(token.strip(b"eE")))
        flags |= c.STRUCTURE * bool(STRUCTURE.fullmatch(token))
    return flags


def test_token_kinds() -> None:
    kinds, points = np.zeros(len(TOKENS), np.int32), np.zeros(len(TOKENS), np.int32)
    c.token_kinds(*joined(TOKENS), kinds, points)
    wrong = [token for token, flags in zip(TOKENS, kinds, strict=True) if flags != flags_of(token)]
    assert wrong == []
    assert points.tolist() == [sum(byte & 0xC0 != 0x80 for byte in token) for token in TOKENS]


# Whatever a character lacks, some of these complete it (the second byte's range depends on the first).
ENDS = [bytes(end) for length in range(4) for end in product([0x80, 0x90, 0xA0], repeat=length)]


def is_utf8_prefix(data: bytes) -> bool:
    for end in ENDS:
        try:
            (data + end).decode()
            return True
        except UnicodeDecodeError:
            pass
    return False


def nodes_of(tokens: list[bytes]) -> tuple[Int32, Int32, int]:
    trie = build_trie(tokens, *joined(tokens))
    columns = [trie.byte.astype(np.int32), trie.depth, trie.subtree_end, trie.token]
    return np.ascontiguousarray(np.stack(columns, axis=1), np.int32), trie.next_same, trie.max_depth


def test_subtree_kinds() -> None:
    nodes, _, depth = nodes_of(TOKENS)
    kinds = np.zeros(len(nodes), np.int32)
    c.subtree_kinds(nodes, np.zeros(depth + 2, np.int32), kinds)
    texts: list[bytes] = []
    for byte, level, _, _ in nodes.tolist():
        parent = next((text for text in reversed(texts) if len(text) == level), b"") if level else b""
        texts.append(parent + bytes([byte]))
    for i, text in enumerate(texts):
        expected = 0 if is_utf8_prefix(text) else 1 << 27
        for other in texts[i + 1 : nodes[i, 2]]:  # below, without the node's own byte
            expected |= 1 << kind(other[-1]) | (0 if is_utf8_prefix(other) else 1 << 27)
        assert kinds[i] == expected, text


def test_path_kinds() -> None:
    nodes, next_same, depth = nodes_of(TOKENS)
    kinds = np.full(len(TOKENS), -1, np.int64)
    c.path_kinds(nodes, next_same, np.zeros((depth + 2, 2), np.int64), kinds)
    for token, found in zip(TOKENS, kinds.tolist(), strict=True):
        expected = 0
        for byte in token:
            expected |= 1 << kind(byte)
        if token:  # tokens that are not in the trie are left as they are
            assert found == (expected if is_utf8_prefix(token) else 1 << 27), token
        else:
            assert found == -1
