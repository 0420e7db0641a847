"""Questions about grammars against brute force: trees counted by hand, all short texts, Lark and `re`."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from functools import cache

import pytest

import structgen
from structgen import ambiguity, choice, compare, examples, gbnf, lark, regex
from structgen.core.answers.picking.picks import RandomPicks
from structgen.core.answers.texts.differences import TextSide, is_text_subset
from structgen.core.answers.texts.drawing import TextDrawing
from structgen.errors import ConstraintError, OptionsError, UndecidedError

pytestmark = pytest.mark.filterwarnings("ignore::structgen.GrammarWarning")  # of rules that are never used

Rules = dict[str, list[tuple[str, ...]]]
TERMINALS = {"A": "a", "B": "b", "AS": "a+", "AB": "ab"}


def random_rules(seed: int) -> Rules:
    """Rules without empty texts and without rules of one other rule, so that trees of a text are few."""
    rng = random.Random(f"rules {seed}")
    names = ["start", "x", "y"][: rng.randint(1, 3)]

    def body(*, is_last: bool) -> tuple[str, ...]:
        symbols = [*TERMINALS] if is_last else [*TERMINALS, *names, *names]
        size = rng.randint(1, 3)
        chosen = [rng.choice(symbols) for _ in range(size)]
        return tuple(chosen) if size > 1 or chosen[0] in TERMINALS else (rng.choice([*TERMINALS]),)

    return {name: [*(body(is_last=False) for _ in range(rng.randint(0, 2))), body(is_last=True)] for name in names}


def written(rules: Rules) -> str:
    """The rules in Lark's language."""
    lines = [
        f"{name}: {' | '.join(' '.join(body) for body in dict.fromkeys(bodies))}" for name, bodies in rules.items()
    ]
    return "\n".join([*lines, *(f"{name}: /{pattern}/" for name, pattern in TERMINALS.items())])


class Trees:
    """Trees of a text, counted."""

    def __init__(self, rules: Rules, text: str) -> None:
        self._rules = {name: list(dict.fromkeys(bodies)) for name, bodies in rules.items()}
        self._text = text
        self.of = cache(self._of)
        self.of_body = cache(self._of_body)

    def _of(self, symbol: str, begin: int, end: int) -> int:
        if symbol in TERMINALS:
            return int(begin < end and re.fullmatch(TERMINALS[symbol], self._text[begin:end]) is not None)
        return sum(self.of_body(body, begin, end) for body in self._rules[symbol])

    def _of_body(self, body: tuple[str, ...], begin: int, end: int) -> int:
        if len(body) == 1:
            return self.of(body[0], begin, end)
        return sum(
            self.of_body(body[1:], place, end) * first
            for place in range(begin + 1, end - len(body) + 2)
            if (first := self.of(body[0], begin, place))
        )


def count(rules: Rules, text: str) -> int:
    return Trees(rules, text).of("start", 0, len(text))


def texts(most: int) -> Iterator[str]:
    for size in range(1, most + 1):
        yield from map("".join, itertools.product("ab", repeat=size))


@pytest.mark.parametrize("seed", range(8))
def test_ambiguous_texts_have_two_trees_and_others_one(seed: int) -> None:
    for number in range(seed * 10, (seed + 1) * 10):
        rules = random_rules(number)
        found = ambiguity(lark(written(rules)), max_words=2_000)
        if found:
            assert count(rules, found.text) > 1, (written(rules), found)
            one, other = found.readings
            assert one != other and one.text == other.text and one.text in found.text
        else:
            assert all(count(rules, text) < 2 for text in texts(min(found.characters, 8))), (written(rules), found)


@pytest.mark.parametrize("seed", range(8))
def test_differences_are_those_of_all_short_texts(seed: int) -> None:
    for number in range(seed * 4, (seed + 1) * 4):
        rules, others = random_rules(number), random_rules(number + 1)
        if number % 2:  # one rule more
            others = {**rules, "start": [*rules["start"], ("B", "B")]}
        sides = TextSide(lark(written(rules))), TextSide(lark(written(others)))
        for (one, of_one), (other, of_other) in itertools.permutations(zip(sides, (rules, others), strict=True)):
            answer = is_text_subset(one, other, max_texts=500)
            differing = (text for text in texts(7) if count(of_one, text) and not count(of_other, text))
            shortest = next(differing, None)
            if answer.contained is False:
                assert answer.text is not None and count(of_one, answer.text) and not count(of_other, answer.text)
                assert answer.method == "drawn" or shortest is None or len(shortest) == len(answer.text)
            elif answer.contained or answer.reason:
                assert shortest is None or len(shortest) > 5, (written(rules), written(others), shortest)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_texts_are_texts_and_reach_every_rule(seed: int) -> None:
    for number in range(seed * 8, (seed + 1) * 8):
        rules = random_rules(number)
        side = TextSide(lark(written(rules)))
        drawing = TextDrawing(side.plain, RandomPicks(seed), 20)
        drawn = [drawing.text() for _ in range(30)]
        assert all(count(rules, text) for text in drawn), written(rules)
        assert not drawing._unmet
        (minimal,) = examples(lark(written(rules)), style="minimal")
        assert not any(count(rules, text) for text in texts(len(minimal.text) - 1))


EXPRESSION = 'start: sum\nsum: sum "+" sum | NUMBER\nNUMBER: /[0-9]+/\n%ignore " "\n'


def test_readings_are_shown() -> None:
    found = ambiguity(lark(EXPRESSION))
    assert (found.kind, found.rule, found.text) == ("structure", "sum", "0 + 0 + 0")
    assert sorted(map(str, found.readings)) == [
        "(sum (sum (sum 0) + (sum 0)) + (sum 0))", "(sum (sum 0) + (sum (sum 0) + (sum 0)))",
    ]  # fmt: skip
    words = ambiguity(lark('start: NAME | "if"\nNAME: /[a-z]+/'))
    assert (words.kind, words.text, words.is_proved) == ("lexer", "if", True)
    assert "NAME:'if'" in str(words) and "IF:'if'" in str(words)


def test_what_is_not_ambiguous() -> None:
    left = lark('start: start "+" NUMBER | NUMBER\nNUMBER: /[0-9]/\n%ignore " "\n')
    found = ambiguity(left)
    assert not found and found.is_proved and found.characters >= 4 and "not ambiguous" in str(found)
    looked = ambiguity(gbnf('root ::= "a" root "a" | "a"'))  # not LALR(1), and not ambiguous
    assert not looked and not looked.is_proved and looked.terminals > 10
    assert ambiguity(lark('start: "a" start | "a"', lexer="contextual")).is_proved


def test_expressions_are_compared_exactly() -> None:
    answer = compare(regex("[ab]*"), regex("(a|b){0,3}"))
    assert answer.verdict == "narrower" and answer.old_only is not None and answer.old_only.text == "aaaa"
    assert answer.old_only.keywords == []
    assert compare(regex("a|b"), choice(["b", "a"])).verdict == "equal"
    assert structgen.is_subset(lark('start: "(" start ")" | "x"'), regex("[()x]+"))  # of a grammar, too
    with pytest.raises(UndecidedError, match="drawn"):
        structgen.is_subset(lark(EXPRESSION), lark(EXPRESSION.replace("[0-9]+", "[0-9][0-9]*")))
    with pytest.raises(ConstraintError, match="a grammar, an expression or a choice"):
        compare(regex("a"), {"const": "a"})


def test_a_contextual_lexer_reads_less() -> None:
    grammar = 'start: A B | A "c"\nA: /a+/\nB: /ab/'
    narrow, wide = lark(grammar, lexer="contextual"), lark(grammar)
    answer = compare(wide, narrow)
    assert answer.old_only is not None and answer.old_only.text == "aab"  # the lexer takes both for A
    assert {one.text[-1] for one in examples(narrow, 5)} == {"c"}


def test_bad_input() -> None:
    with pytest.raises(OptionsError, match="invalid examples"):
        examples(regex("a"), style="invalid")
    with pytest.raises(ConstraintError, match="without rules"):
        ambiguity(lark("start: %json {}"))
