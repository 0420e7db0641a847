"""Random grammars, ambiguous and cyclic ones included, against the textbook recogniser; masks against acceptance."""

from __future__ import annotations

import itertools
import os
import random

import pytest

from structgen.core.engines.cfg.compiled import compile_grammar
from structgen.core.engines.laws import check_state
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError
from tests.core.engines.cfg.reference import Reference

PATTERNS = ["a", "b", "ab", "a+", "(ab)+", "b?c", "c", "[ab]c*", "aa|b", "a{2}b"]
IGNORED = ["-", "-+", "c-?"]
ROUNDS = int(os.environ.get("STRUCTGEN_RANDOM_GRAMMARS", "60"))
WORDS = ["".join(w) for n in (1, 2, 3, 4) for w in itertools.product("abc-", repeat=n)]
VOCABULARY = Vocabulary([*(word.encode() for word in WORDS), b""], eos_token_ids=len(WORDS))


def random_grammar(rng: random.Random) -> ContextFreeGrammar:
    nonterminals, patterns = rng.randrange(1, 5), rng.sample(PATTERNS, rng.randrange(1, 4))
    ignored = [rng.choice(IGNORED)] if rng.random() < 0.3 else []
    rules = set()
    for lhs in range(nonterminals):
        for _ in range(rng.randrange(1, 4)):
            length = rng.choice([0, 1, 1, 2, 2, 3])
            symbols = [
                rng.randrange(nonterminals) if rng.random() < 0.55 else ~rng.randrange(len(patterns))
                for _ in range(length)
            ]
            rules.add((lhs, tuple(symbols)))
    return ContextFreeGrammar(
        tuple(Terminal(p, full_match_dfa(p)) for p in patterns + ignored),
        tuple(f"n{i}" for i in range(nonterminals)),
        tuple(Rule(lhs, rhs) for lhs, rhs in sorted(rules)),
        0,
        tuple(range(len(patterns), len(patterns) + len(ignored))),
    )


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_grammar(seed: int) -> None:
    rng = random.Random(seed)
    form = random_grammar(rng)
    reference = Reference(form)
    try:
        grammar = compile_grammar(form, VOCABULARY)
    except EmptyLanguageError:
        assert not any(lhs == form.start for lhs, _ in reference.rules)
        return
    live = [""]
    for string in live:
        if len(live) > 60 or len(string) > 7:
            break
        matcher = grammar.matcher()
        assert matcher.accept_bytes(string.encode())
        check_state(matcher, text=string.encode())
        rest = matcher.shortest_completion()
        assert reference.run(string.encode() + rest) == (True, True), string
        for letter in "abc-":
            after = matcher.copy()
            alive = after.accept_bytes(letter.encode())
            text = string + letter
            assert (alive, alive and after.is_accepting()) == reference.run(text.encode()), text
            if alive:
                live.append(text)
