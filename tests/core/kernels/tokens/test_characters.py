"""Kernels about characters against plain Python: kinds of characters, flags of tokens, what nodes of tries hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.tokens import calls as c
from structgen.core.vocabulary.trie import build_trie

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
    return 28 if byte in NEVER else next(i for i, group in enumerate(GROUPS) if chr(byte) in group)


def test_every_byte_has_its_kind() -> None:
    assert [c.kind_of(byte) for byte in range(256)] == [kind(byte) for byte in range(256)]


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


def texts_of(nodes: Int32) -> list[bytes]:
    """The bytes up to each node."""
    texts: list[bytes] = []
    for byte, level, _, _ in nodes.tolist():
        parent = next((text for text in reversed(texts) if len(text) == level), b"") if level else b""
        texts.append(parent + bytes([byte]))
    return texts


# White space of ECMA-262 beyond ASCII, by Python's table of Unicode: category Zs, the line ends, the byte order mark.
WIDE_SPACES = {chr(p) for p in range(0x80, 0x110000) if unicodedata.category(chr(p)) in ("Zs", "Zl", "Zp")} | {"\ufeff"}


def node_kind(text: bytes) -> int:
    """The kind of the character that ends ``text``."""
    if not is_utf8_prefix(text):
        return c.BROKEN
    try:
        last = text.decode()[-1]
    except UnicodeDecodeError:
        return c.NON_ASCII
    return c.WIDE_SPACE if last in WIDE_SPACES else kind(last.encode()[-1])


def own_kinds(nodes: Int32, depth: int) -> npt.NDArray[np.uint8]:
    found = np.zeros(len(nodes), np.uint8)
    c.node_kinds(nodes, np.zeros((depth + 2, 2), np.int64), found)
    return found


def test_node_kinds() -> None:
    spaces = [f"a{ch}b".encode() for ch in sorted(WIDE_SPACES)]
    others = [chr(p).encode() for p in (0x9F, 0xA1, 0x167F, 0x200B, 0x2027, 0x202A, 0x2060, 0xFEFE, 0xFF00, 0x1F600)]
    nodes, _, depth = nodes_of([*TOKENS, *spaces, *others])
    assert own_kinds(nodes, depth).tolist() == [node_kind(text) for text in texts_of(nodes)]


def test_subtree_kinds_and_rises() -> None:
    nodes, _, depth = nodes_of([*TOKENS, "\u00a0\u2009 \u3000".encode()])
    kinds, rises = np.zeros(len(nodes), np.int32), np.zeros(len(nodes), np.int32)
    c.subtree_kinds(nodes, own_kinds(nodes, depth), kinds)
    c.subtree_rises(nodes, np.zeros(depth + 2, np.int32), rises)
    texts = texts_of(nodes)
    for i, text in enumerate(texts):
        expected, rise = 0 if is_utf8_prefix(text) else 1 << c.NEVER, 0
        for other in texts[i + 1 : nodes[i, 2]]:  # below, without the node's own character
            expected |= 1 << min(node_kind(other), c.NEVER)
            rise = max(rise, sum(byte & 0xC0 != 0x80 for byte in other[len(text) :]))
        assert (kinds[i], rises[i]) == (expected, rise), text


def test_path_kinds() -> None:
    nodes, next_same, depth = nodes_of(TOKENS)
    kinds = np.full(len(TOKENS), -1, np.int64)
    c.path_kinds(nodes, next_same, own_kinds(nodes, depth), np.zeros(depth + 2, np.int64), kinds)
    for token, found in zip(TOKENS, kinds.tolist(), strict=True):
        expected = 0
        for place in range(len(token)):
            expected |= 1 << node_kind(token[: place + 1])
        if token:  # tokens that are not in the trie are left as they are
            assert found == (expected if is_utf8_prefix(token) else 1 << c.NEVER), token
        else:
            assert found == -1
