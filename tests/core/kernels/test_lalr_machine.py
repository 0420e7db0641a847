"""The kernel's parts that stand by themselves: classes of the characters below the nodes of a vocabulary's trie."""

from __future__ import annotations

import random

import pytest

from structgen.core.engines.lalr.compiled import compile_contextual
from structgen.core.kernels.lalr import machine as k
from structgen.core.kernels.lalr import tables as kt
from structgen.core.vocabulary.vocabulary import Vocabulary

pytest.importorskip("lark")
GRAMMAR = "start: (A | B | C)*\nA: /[a-f]/\nB: /[é-ü]|[0-4]/\nC: /[^a-fé-ü0-4]/"


def test_classes_inside() -> None:
    """A node between characters has the classes of the characters behind it, and CUT if some token is cut there."""
    rng = random.Random(4)
    parts = [b"a", b"Z", b"7", b" ", b"2", "é".encode(), "€".encode(), "😀".encode(), b"\xc3", b"\x80", b"\xff", b"_"]
    tokens = sorted({b"".join(rng.choices(parts, k=rng.randrange(1, 5))) for _ in range(800)})
    vocabulary = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    machine = compile_contextual(GRAMMAR, vocabulary).machine()
    segments = machine.tables.automata.segments
    inside = machine._arrays[kt.inside_at].tolist()
    path, uncut = bytearray(), 0
    for i, (byte, depth) in enumerate(zip(vocabulary.trie.byte.tolist(), vocabulary.trie.depth.tolist(), strict=True)):
        path[depth:] = bytes([byte])
        try:
            bytes(path).decode()
        except UnicodeDecodeError:
            continue
        classes, cut = set(), False
        for token in tokens:
            if token.startswith(bytes(path)):
                try:
                    text = token[depth + 1 :].decode()
                except UnicodeDecodeError:
                    cut = True
                    continue
                classes |= {name for char in text for first, last, name in segments if first <= ord(char) <= last}
        assert bool(inside[i] & k.CUT) == cut
        if not cut:
            uncut += 1
            assert inside[i] == sum(1 << (name % k.CLASS_BITS) for name in classes)
    assert uncut > 50
