"""The derivation that captures come from, against a listing of all derivations (`every_derivation`)."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from structgen.core.engines.captures.reader import CaptureReader
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.grammars.python_regex import python_regex_dfa
from tests.core.engines.captures.every_derivation import Derivations, TooManyDerivations, Written, captured

# Terminals: expression, and what begins a text that is not whole or can go on.
TERMINALS = {
    "X": ("x", "(?!)"),
    "Y": ("y", "(?!)"),
    "XS": ("x+", "x+"),
    "XY": ("xy", "x"),
    "W": ("[xy]+", "[xy]+"),
    "S": ("x( x)*", "x( x)* ?"),
}
NAMES = ["start", "a", "b", "c"]


def normal_form(written: Written) -> ContextFreeGrammar:
    names, terminals = list(written.rules), list(written.terminals)
    number = {name: i for i, name in enumerate(names)} | {name: ~i for i, name in enumerate(terminals)}
    rules = [
        Rule(number[name], tuple(number[symbol] for symbol in alternative))
        for name, own in written.rules.items()
        for alternative in own
    ]
    made = [Terminal(name, python_regex_dfa(expression)) for name, expression in written.terminals.items()]
    if written.blank:
        made.append(Terminal("BLANK", python_regex_dfa(" ")))
    return ContextFreeGrammar(
        tuple(made),
        tuple(names),
        tuple(rules),
        0,
        (len(terminals),) if written.blank else (),
        tuple((number[name], name) for name in (*names, *terminals)),
    )


def random_grammar(rng: random.Random) -> Written | None:
    """Any rules, recursive, empty and ambiguous ones; None where some have no text, or are never used."""
    names = NAMES[: rng.randint(1, 4)]
    terminals = rng.sample(sorted(TERMINALS), rng.randint(1, 3))
    rules: dict[str, list[list[str]]] = {}
    for name in names:
        own = [
            [rng.choice((*terminals, *names)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]
            for _ in range(rng.randint(1, 3))
        ]
        rules[name] = [rhs for i, rhs in enumerate(own) if rhs not in own[:i]]
    productive: set[str] = set(terminals)
    for _ in names:
        productive |= {n for n, own in rules.items() if any(productive.issuperset(rhs) for rhs in own)}
    used = {"start"}
    for _ in names:
        used |= {s for n in used & set(rules) for rhs in rules[n] for s in rhs}
    if not productive.issuperset(names) or not used.issuperset(names):
        return None
    chosen = {name: TERMINALS[name] for name in terminals}
    return Written(
        rules, {n: e for n, (e, _) in chosen.items()}, {n: p for n, (_, p) in chosen.items()}, rng.random() < 0.4
    )


def found(reader: CaptureReader, text: str, *, is_finished: bool) -> Any:
    captures = reader.find(text.encode(), is_finished=is_finished)
    return None if captures is None else [(c.name, c.start, c.end, c.is_complete) for c in captures]


@pytest.mark.parametrize("seed", range(10))
def test_the_derivation_is_the_one_of_the_rule(seed: int) -> None:
    rng = random.Random(seed)
    checked = 0
    while checked < 60:
        written = random_grammar(rng)
        if written is None:
            continue
        reader = CaptureReader(normal_form(written), {})
        for text in ("".join(rng.choice("xxy ") for _ in range(rng.randint(0, 5))) for _ in range(6)):
            for is_finished in (True, False):
                with suppress(TooManyDerivations):
                    best = Derivations(written, text).best(is_finished=is_finished)
                    shown = {*written.rules, *written.terminals}
                    expected = None if best is None else captured(best, shown, len(text))
                    assert found(reader, text, is_finished=is_finished) == expected, (written, text, is_finished)
                    checked += expected is not None
