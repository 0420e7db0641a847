"""Random grammars in GBNF and Lark: captures change no language, and captured text is text of the rule."""

from __future__ import annotations

import random
from typing import Any

import pytest

import structgen
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, GrammarError
from tests.fuzz.random_grammars import Rules, derived, mutated, random_rules, recognise, to_gbnf, to_lark

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


def used(rules: Rules, start: str) -> list[str]:
    """The rules that a rule uses, itself included."""

    def references(node: Any) -> list[str]:
        if node[0] == "ref":
            return [node[1]]
        return [name for child in node[1:] if isinstance(child, list) for name in references(child)]

    found = [start]
    for name in found:
        found += [other for other in dict.fromkeys(references(rules[name])) if other not in found]
    return found


def accepts(grammar: Any, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


@pytest.mark.filterwarnings("ignore::structgen.GrammarWarning")
@pytest.mark.parametrize("seed", range(40))
def test_gbnf(seed: int) -> None:
    rng = random.Random(seed)
    rules = random_rules(rng, "root")
    source, names = to_gbnf(rules), used(rules, "root")
    try:
        plain = structgen.compile_gbnf(source, BYTES)
    except GrammarError:  # no text
        return
    constraint = structgen.gbnf(source, captures=names)
    grammar = constraint.compile(BYTES)
    known = {text for _ in range(8) if (text := derived(rules, "root", rng)) is not None and len(text) < 25}
    for text in known | {mutated(rng, text, "ab1,(") for text in known}:
        is_valid = recognise(rules, "root", text)
        assert accepts(grammar, text) == accepts(plain, text) == is_valid
        if not is_valid:
            with pytest.raises(GenerationError):
                constraint.captures(text)
            continue
        found = constraint.captures(text)
        check(found, text, lambda name, part: recognise(rules, name, part))
        whole = found["root"][0] if isinstance(found["root"], list) else found["root"]
        assert whole.text == text and list(found) == sorted(names)
        matcher = grammar.matcher()
        for at in range(len(text)):
            assert matcher.accept_bytes(text[at].encode())
            check(matcher.captures(), text[: at + 1], lambda name, part: recognise(rules, name, part))


def check(found: Any, text: str, is_of_rule: Any) -> None:
    """Captures stand where they say; those that are complete are texts of their rule."""
    for name, own in found.items():
        listed = own if isinstance(own, list) else [] if own is None else [own]
        assert [c.start for c in listed] == sorted(c.start for c in listed)
        for capture in listed:
            assert text[capture.start : capture.end] == capture.text == capture.value
            assert not capture.complete or is_of_rule(name, capture.text), (name, capture)


@pytest.mark.filterwarnings("ignore::structgen.GrammarWarning")
@pytest.mark.parametrize("seed", range(25))
def test_lark(seed: int) -> None:
    pytest.importorskip("lark")
    rng = random.Random(seed)
    rules = random_rules(rng, "start")
    source, names = to_lark(rules, rng), used(rules, "start")
    try:
        plain = structgen.compile_lark(source, BYTES)
        constraint = structgen.lark(source, captures=names)
        grammar = constraint.compile(BYTES)
        of_rule = {name: structgen.compile_lark(source, BYTES, start=name) for name in names}
    except GrammarError:
        return
    known = {text for _ in range(8) if (text := derived(rules, "start", rng)) is not None and len(text) < 25}
    for text in known | {mutated(rng, text, "ab1, ") for text in known}:
        assert accepts(grammar, text) == accepts(plain, text)
        matcher = grammar.matcher()
        for at in range(len(text)):
            if not matcher.accept_bytes(text[at].encode()):
                break
            check(matcher.captures(), text[: at + 1], lambda name, part: accepts(of_rule[name], part))
        if accepts(plain, text):
            check(constraint.captures(text), text, lambda name, part: accepts(of_rule[name], part))
