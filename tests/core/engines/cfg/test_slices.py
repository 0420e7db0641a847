"""Slices of a vocabulary against plain Python, and masks that are copied from them against the walk without them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from structgen.core.engines.bitmask import packed, unpacked
from structgen.core.engines.cfg import compiled, slices
from structgen.core.engines.cfg.token_index import CfgLexicon, lexicon
from structgen.core.engines.laws import check_state
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.kernels.cfg import machine as k
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary

PARTS = [
    *(bytes([byte]) for byte in range(128)),
    *map(str.encode, "éß€漢😀\u00a0\u2028"),
    b"\xc3",
    b"\x80",
    b"\xff",
    b"\xed\xa0\x80",
]


def vocabulary(seed: int, count: int = 4000) -> Vocabulary:
    """All bytes, random texts, some cut inside a character, some twice, and ids without text."""
    rng = random.Random(seed)
    words = {b"".join(rng.choices([*PARTS, *[b"a", b"b", b" "] * 60], k=rng.randrange(2, 7))) for _ in range(count)}
    tokens = [bytes([byte]) for byte in range(256)] + sorted(words) + sorted(words)[:40] + [b"", b""]
    return Vocabulary(tokens, eos_token_ids=len(tokens) - 1)


def is_text(token: bytes, excluded: str) -> bool:
    """Whether a token is text without some characters. (Control characters but tab and line ends are one kind.)"""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return False
    rare = {chr(code) for code in range(32)} - set("\t\n\r")
    barred = set(excluded) | (rare if rare & set(excluded) else set())
    return bool(token) and not barred & set(text)


@pytest.mark.parametrize("seed", range(3))
def test_slices_and_residues(seed: int) -> None:
    """A slice is all text without its characters; what is left is the trie of the other tokens."""
    words = vocabulary(seed)
    made, width = slices.make_slices(words), -(-words.size // 32)
    rows = made.rows.reshape(-1, width)
    found = {
        tuple(row): nodes for row, nodes in zip(rows.tolist(), np.split(made.residues, made.ends[1:-1]), strict=True)
    }
    assert [int(unpacked(row).sum()) for row in rows] == sorted((int(unpacked(r).sum()) for r in rows), reverse=True)
    for excluded in slices.EXCLUDED:
        inside = np.array([is_text(token or b"", excluded) for token in words.tokens])
        nodes, path, spelled = found[tuple(packed(inside, width).tolist())], bytearray(), set()
        for i, node in enumerate(nodes.tolist()):
            path[node >> 8 & k.DEPTH_MASK :] = bytes([node & 255])
            if node >> 43:
                assert words.tokens[(node >> 43) - 1] == bytes(path)
                spelled.add(bytes(path))
            end = i + (node >> 19 & k.SIZE_MASK)
            assert i < end <= len(nodes) and all(n >> 8 & k.DEPTH_MASK > len(path) - 1 for n in nodes[i + 1 : end])
        assert spelled == {t for t, is_in in zip(words.tokens, inside, strict=True) if t and not is_in}


@pytest.mark.parametrize("seed", range(3))
def test_remainders(seed: int) -> None:
    """Behind text of a slice, every other token has one remainder, and stands in its trie there and nowhere else."""
    words = vocabulary(seed)
    made, width = slices.make_slices(words), -(-words.size // 32)
    rows = made.rows.reshape(-1, width)
    found = {
        tuple(row): nodes
        for row, nodes in zip(rows.tolist(), np.split(made.remainders, made.remainder_ends[1:-1]), strict=True)
    }
    for excluded in slices.EXCLUDED:
        inside = np.array([is_text(token or b"", excluded) for token in words.tokens])
        spelled: dict[int, bytes] = {}
        path = bytearray()
        for node in found[tuple(packed(inside, width).tolist())].tolist():
            path[node >> 8 & k.DEPTH_MASK :] = bytes([node & 255])
            number = (node >> 43) - 1
            group = number - words.size
            members = made.members[made.groups[group] : made.groups[group + 1]].tolist() if group >= 0 else [number]
            for token in members if number >= 0 else []:
                assert token not in spelled
                spelled[token] = bytes(path)
        tokens = {token: text for token, text in enumerate(words.tokens) if text and not inside[token]}
        assert spelled.keys() == tokens.keys()
        for token, text in tokens.items():
            kept = [text[:end] for end in range(len(text)) if not end or is_text(text[:end], excluded)]
            assert spelled[token] == text[len(kept[-1]) :], (excluded, text)


def test_more_groups_than_nodes_can_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MOST_NUMBERS", 1000)
    made = slices.make_slices(vocabulary(0))
    assert not made.remainders.size and not made.remainder_ends.any() and not made.members.size


def test_empty_vocabulary_of_text() -> None:
    made = slices.make_slices(Vocabulary([b"\xff", b""], eos_token_ids=1))
    assert not made.rows.any() and len(made.kinds) == len(slices.EXCLUDED)


TERMINALS = [
    '"[^"\\\\]*"',
    "/\\*([^*]|\\*+[^*/])*\\*+/",
    "#[^\\n]*",
    "'([^'\\\\\\n]|\\\\.)*'",
    "[^<&]+",
    "[^\\r\\n\\t]+",
    "<[a-z]+>",
]


@pytest.mark.parametrize("seed", range(6))
def test_masks_are_those_without_slices(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mask by mask, of grammars of strings and comments; and each is what `accept_token` does."""
    rng, words = random.Random(seed), vocabulary(seed)
    chosen = rng.sample(TERMINALS, 3)
    grammar = ContextFreeGrammar(
        tuple(Terminal(pattern, full_match_dfa(pattern)) for pattern in chosen),
        ("start",),
        tuple(Rule(0, (*(~t for t in range(n)), *[0] * (n > 1))) for n in range(1, 4)),
        0,
        (),
    )
    with_slices = compiled.compile_grammar(grammar, words)

    def bare(of: Vocabulary) -> CfgLexicon:
        none = np.zeros(0, np.int64)
        ints, zero = np.zeros(0, np.int32), np.zeros(1, np.int64)
        return replace(lexicon(of), slices=slices.Slices(none, ints, none, zero, none, zero, ints, ints))

    monkeypatch.setattr(compiled, "lexicon", bare)
    one, other = with_slices.matcher(), compiled.compile_grammar(grammar, words).matcher()
    for _ in range(12):
        allowed = check_state(one)
        assert np.array_equal(allowed, check_state(other))
        following = np.setdiff1d(np.flatnonzero(allowed), words.eos_token_ids)
        if not len(following):
            break
        token = int(rng.choice(following.tolist()))
        assert one.accept_token(token) and other.accept_token(token)


def test_kept_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    words = vocabulary(9, 300)
    made = slices.load_slices(words)
    monkeypatch.setattr(slices, "make_slices", None)
    kept = slices.load_slices(words)
    for name in slices.Slices.__dataclass_fields__:
        assert np.array_equal(getattr(made, name), getattr(kept, name))
