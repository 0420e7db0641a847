"""What composed matchers are judged by: the same language as one plain grammar, read by textbook Earley."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from structgen.automata.dfa import Dfa, combine
from structgen.automata.pattern import full_match_dfa
from structgen.engines.bitmask import allocate_token_bitmask
from structgen.engines.protocols import Matcher
from structgen.grammar.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.vocabulary.vocabulary import Vocabulary
from tests.engines.cfg.reference import Reference

Judge = Callable[[bytes], tuple[bool, bool]]
"""Whether some completion of a text is in the language, and whether the text is."""


def inlined(source: ContextFreeGrammar, patterns: Mapping[int, str]) -> Reference:
    """The reference for a grammar whose embedded terminals match these (ECMA) expressions as a whole."""
    terminals, rules = list(source.terminals), list(source.rules)
    names = list(source.nonterminals)
    of: dict[int, int] = {}
    for t, pattern in patterns.items():
        dfa = full_match_dfa(pattern)
        terminals[t] = Terminal(f"E{t}", _not_empty(dfa), pattern)
        of[~t] = len(names)
        names.append(f"e{t}")
        rules.append(Rule(of[~t], (~t,)))
        if dfa.accepting[0]:
            rules.append(Rule(of[~t], ()))
    own = [rule if i >= len(source.rules) else _renamed(rule, of) for i, rule in enumerate(rules)]
    return Reference(ContextFreeGrammar(tuple(terminals), tuple(names), tuple(own), source.start, source.ignored))


def remembered(judge: Judge) -> Judge:
    """The same, asked once a text, and never beyond a text that has no completion."""

    @cache
    def of(text: bytes) -> tuple[bool, bool]:
        return judge(text) if not text or of(text[:-1])[0] else (False, False)

    return of


def _renamed(rule: Rule, names: Mapping[int, int]) -> Rule:
    return Rule(rule.lhs, tuple(names.get(symbol, symbol) for symbol in rule.rhs))


def _not_empty(dfa: Dfa) -> Dfa:
    return combine([dfa, full_match_dfa("")], lambda labels: labels == 1)


def vocabulary(letters: str, rng: random.Random, longer: int = 24) -> Vocabulary:
    """The letters, random texts of up to five of them, one text twice, padding; two ends of sequence."""
    texts = ["".join(rng.choices(letters, k=rng.randint(2, 5))) for _ in range(longer)]
    tokens = [None, *(letter.encode() for letter in letters), *(text.encode() for text in texts), texts[0].encode()]
    tokens += [bytes([byte]) for byte in "é".encode()]
    return Vocabulary([*tokens, None], eos_token_ids=[0, len(tokens)], size=len(tokens) + 3)


def allowed(matcher: Matcher, size: int) -> set[int]:
    """The tokens that the mask has."""
    bitmask = allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(bitmask)
    return set(np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")).tolist())


def check_state(matcher: Matcher, words: Vocabulary, judge: Judge, text: bytes) -> list[int]:
    """All that holds of a matcher at one place, by the judge; gives the tokens of text that may follow."""
    accepting = judge(text)[1]
    following = [t for t, token in enumerate(words.tokens) if token and judge(text + token)[0]]
    expected = {*following, *(words.eos_token_ids if accepting else ())}
    assert allowed(matcher, words.size) == expected, text
    probe = matcher.fork()
    for token in range(words.size):
        taken = probe.accept_token(token)
        assert taken == (token in expected), (text, words.tokens[token])
        if taken:
            probe.rollback(1)
    assert allowed(probe, words.size) == expected
    assert matcher.is_accepting() == accepting
    following_bytes = [byte for byte in range(256) if judge(text + bytes([byte]))[0]]
    assert np.flatnonzero(matcher.next_bytes()).tolist() == following_bytes
    assert accepting or following_bytes, "a dead end"
    rest = matcher.shortest_completion()
    assert judge(text + rest)[1] and (rest == b"") == accepting
    forced = matcher.forced_bytes()
    assert bool(forced) == (len(following_bytes) == 1 and not accepting)
    assert rest.startswith(forced) and judge(text + forced)[0]
    return following


def check_walk(matcher: Matcher, words: Vocabulary, judge: Judge, rng: random.Random, steps: int = 6) -> None:
    """A random walk: every state is as the judge says, forks and rollbacks come back to what was."""
    texts = [b""]
    for _ in range(steps):
        following = check_state(matcher, words, judge, texts[-1])
        if not following or len(texts[-1]) > 8:
            break
        before = matcher.fork()
        token = rng.choice(following)
        if rng.random() < 0.8:
            assert matcher.accept_token(token)
        else:
            assert matcher.accept_bytes(words.tokens[token])
        texts.append(texts[-1] + words.tokens[token])
        if rng.random() < 0.3:
            matcher, before = matcher.fork(), matcher
            before.rollback(1)
        check_same(before, words, judge, texts[-2])
    twin = matcher.copy()
    check_same(twin, words, judge, texts[-1])
    while len(texts) > 1:
        back = rng.randint(1, len(texts) - 1)
        matcher.rollback(back)
        del texts[-back:]
        check_same(matcher, words, judge, texts[-1])
    matcher.reset()
    check_same(matcher, words, judge, b"")


def check_same(matcher: Matcher, words: Vocabulary, judge: Judge, text: bytes) -> None:
    """The mask is that of a text."""
    expected = {t for t, token in enumerate(words.tokens) if token and judge(text + token)[0]}
    expected |= set(words.eos_token_ids) if judge(text)[1] else set()
    assert allowed(matcher, words.size) == expected, text
