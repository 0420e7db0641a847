"""What composed matchers are judged by: the same language as one plain grammar, read by textbook Earley."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache

import numpy as np

from structgen.core.engines.laws import Judge, check_laws, mask_of
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.dfa import Dfa, combine
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.core.engines.cfg.reference import Reference


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


def allowed(matcher: Matcher) -> set[int]:
    """The tokens that the mask has."""
    return set(np.flatnonzero(mask_of(matcher)).tolist())


def check_walks(grammar: Grammar, judge: Judge, rng: random.Random, walks: int = 1, steps: int = 6) -> None:
    """Random walks in short texts: every state is as the judge says."""
    check_laws(grammar, judge, walks=walks, steps=steps, max_bytes=8, seed=rng.getrandbits(32))
