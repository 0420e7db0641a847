"""The kernel's parts that stand by themselves: kinds of bytes below nodes, automata as edges, interned states."""

from __future__ import annotations

import random

import numpy as np

from structgen.core.engines.cfg.analysis import analyse
from structgen.core.engines.cfg.compiled import compile_grammar
from structgen.core.engines.cfg.machine import CfgAutomata
from structgen.core.engines.cfg.token_index import lexicon
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.kernels.cfg import machine as k
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary


def form(rules: list[tuple[int, tuple[int, ...]]], *patterns: str, ignored: tuple[int, ...] = ()) -> ContextFreeGrammar:
    return ContextFreeGrammar(
        tuple(Terminal(p, full_match_dfa(p)) for p in patterns),
        tuple("abc"[: 1 + max(lhs for lhs, _ in rules)]),
        tuple(Rule(lhs, rhs) for lhs, rhs in rules),
        0,
        ignored,
    )


def test_kinds_below() -> None:
    """A node's kinds are those of what follows it; INVALID wherever that is not whole characters."""
    rng = random.Random(4)
    parts = [b"a", b"Z", b"7", b" ", b"\n", "é".encode(), "€".encode(), "😀".encode(), b"\xc3", b"\x80", b"\xff", b"_"]
    tokens = sorted({b"".join(rng.choices(parts, k=rng.randrange(1, 5))) for _ in range(800)})
    words = lexicon(Vocabulary([*tokens, b""], eos_token_ids=len(tokens)))
    path = bytearray()
    for i, node in enumerate(words.nodes.tolist()):
        depth = node >> 8 & k.DEPTH_MASK
        path[depth:] = bytes([node & 255])
        below = int(words.below[i])
        rests = [t[depth + 1 :] for t in tokens if t.startswith(bytes(path)) and len(t) > depth + 1]
        try:
            bytes(path).decode()
            whole = True
        except UnicodeDecodeError:
            whole = False
        assert whole or below >> k.INVALID & 1
        if not below >> k.INVALID & 1:
            texts = [rest.decode(errors="ignore") for rest in rests]  # may be cut at the end
            assert bool(below >> k.NON_ASCII & 1) == any(byte >= 128 for rest in rests for byte in rest)
            assert bool(below >> 0 & 1) == any("7" in text for text in texts)
            assert bool(below >> 4 & 1) == any("Z" in text for text in texts)


def test_order_of_tokens() -> None:
    """A node's subtree is a run of the order of tokens, tokens of the same bytes included."""
    tokens = [b"b", b"ab", b"a", b"ab", b"abc", b"b", b"ab"]
    words = lexicon(Vocabulary([*tokens, b""], eos_token_ids=len(tokens)))
    path = bytearray()
    for i, node in enumerate(words.nodes.tolist()):
        path[node >> 8 & k.DEPTH_MASK :] = bytes([node & 255])
        end = i + (node >> 19 & k.SIZE_MASK)
        found = words.order[words.before[i] : words.before[end]].tolist()
        assert sorted(found) == [t for t, token in enumerate(tokens) if token.startswith(bytes(path))]


def test_automata_as_edges() -> None:
    grammar = form([(0, (~0, ~1, ~2))], "[a-f0-9]+(é|x)", '"[^"\\\\]*"', "if")
    automata = CfgAutomata(grammar, analyse(grammar))
    for first, t in automata.first:
        dfa = grammar.terminals[t].dfa
        table = np.full((len(dfa), 256), -1)
        for state in range(len(dfa)):
            for e in range(automata.edges[first + state], automata.edges[first + state + 1]):
                low, high, target = automata.edge[3 * e : 3 * e + 3].tolist()
                table[state, low : high + 1] = target - first
        assert np.array_equal(table, dfa.transitions)
        assert automata.accepts[first : first + len(dfa)].tolist() == dfa.accepting.tolist()


def test_equal_contexts_are_equal_integers() -> None:
    """However a text came about, what can follow decides the configuration."""
    grammar = compile_grammar(
        form([(0, (0, ~0, 0)), (0, (~1,)), (0, (~2, 0, ~3))], "\\+", "[a-z]+", "\\(", "\\)", " +", ignored=(4,)),
        Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=256),
    )

    def configuration(*pieces: bytes) -> int:
        matcher = grammar.matcher()
        for piece in pieces:
            assert matcher.accept_bytes(piece)
        return matcher._state

    once = configuration(b"a+b")
    assert once == configuration(b"a", b"+", b"b") == configuration(b"xyz + a + (b) + b") == configuration(b"(a)+b")
    assert once != configuration(b"(a+b") == configuration(b"((a) + b + b")
    assert configuration(b"(((a") != configuration(b"((a")
