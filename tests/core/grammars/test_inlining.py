"""Grammars put in place of terminals: the language is that of the definition, text by text."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

from structgen.core.grammars import inlining
from structgen.core.grammars.inlining import inlined, without_ignored
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.dfa import empty, from_strings
from structgen.core.regex.pattern import full_match_dfa
from tests.core.engines.cfg.reference import Reference

LENGTH = 5
TEXTS = ["".join(letters) for n in range(LENGTH + 1) for letters in product("ab ", repeat=n)]


def random_grammar(rng: random.Random, parts: int) -> ContextFreeGrammar:
    """Three terminals and some for parts, one or two nonterminals, and mostly something that is ignored."""
    terminals = [
        Terminal(p, full_match_dfa(p), p)
        for p in rng.sample(["a", "b", " ", "ab", "[ab]+", "b+", "a b?", " *b", "[ab]a"], 3)
    ]
    terminals += [Terminal(f"X{i}", empty()) for i in range(parts)]
    count = rng.randint(1, 2)
    symbols = [*(~t for t in range(3 + parts)), *(~t for t in range(3, 3 + parts)), *range(count)]
    rules = [Rule(rng.randrange(count), tuple(rng.choices(symbols, k=rng.randint(0, 3)))) for _ in range(4)]
    rules += [Rule(0, (~rng.randrange(3 + parts),)), Rule(count - 1, (~0,))]
    ignored = tuple(rng.sample(range(3), rng.choice([0, 1, 1, 2])))
    captures = () if ignored else ((~0, "first"), (0, "start"))
    return ContextFreeGrammar(tuple(terminals), ("s", "t")[:count], tuple(rules), 0, ignored, captures)


def language(grammar: ContextFreeGrammar) -> set[str]:
    """Its texts of up to `LENGTH` letters."""
    reference = Reference(grammar)
    return {text for text in TEXTS if reference.run(text.encode())[1]}


def by_definition(grammar: ContextFreeGrammar, parts: dict[int, set[str]]) -> set[str]:
    """The same of a grammar some of whose terminals are these texts."""
    terminals, rules = list(grammar.terminals), list(grammar.rules)
    names, optional = list(grammar.nonterminals), dict[int, int]()
    for t, texts in parts.items():
        terminals[t] = Terminal("part", from_strings(texts - {""}) if texts - {""} else empty())
        if "" in texts:
            optional[~t] = len(names)
            rules += [Rule(len(names), ()), Rule(len(names), (~t,))]
            names.append("part?")
    own = [
        replace(r, rhs=tuple(optional.get(s, s) for s in r.rhs)) if i < len(grammar.rules) else r
        for i, r in enumerate(rules)
    ]
    return language(
        replace(grammar, terminals=tuple(terminals), nonterminals=tuple(names), rules=tuple(own), captures=())
    )


@pytest.mark.parametrize("seed", range(36))
def test_the_language_is_that_of_the_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    # ignored texts as rules, as one terminal, and as the beginning of some terminals or of all
    monkeypatch.setattr(inlining, "MAX_STATES", [1, 3, 5, 256][seed % 4])
    below = [random_grammar(rng, 0), random_grammar(rng, 0)]
    grammar = random_grammar(rng, 3)
    parts = {3: (below[0], ()), 4: (below[1], ()), 5: (below[0], ())}
    found, first = inlined(grammar, parts)
    assert language(found) == by_definition(grammar, {t: language(part) for t, (part, _) in parts.items()})
    assert not found.ignored or found.ignored == grammar.ignored
    assert language(without_ignored(grammar)) == language(grammar)
    assert first[3] == first[5] != first[4]
    for t, (part, _) in parts.items():
        moved = [found.terminals[first[t] + i].name for i in range(len(part.terminals))]
        assert moved == [terminal.name for terminal in part.terminals]
    captured = [found.terminals[~s].name for s, name in found.captures if name == "first"]
    assert captured == [g.terminals[0].name for g in (grammar, *below) if not g.ignored]
    assert {found.nonterminals[s] for s, name in found.captures if name == "start"} <= {"s"}


@pytest.mark.full
def test_deeper_is_the_same_as_one_after_the_other() -> None:
    rng = random.Random(7)
    for _ in range(10):
        one, two, three = (random_grammar(rng, parts) for parts in (1, 1, 0))
        middle, _ = inlined(two, {3: (three, ())})
        outside_in, first = inlined(one, {3: (two, [3])})
        last = inlined(outside_in, {first[3] + 3: (three, ())})[0]
        assert language(inlined(one, {3: (middle, ())})[0]) == language(last)
