"""The parse table and its lexers, against those that Lark makes: equal but for the numbers of states."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen.core.engines.lalr.automaton import LalrAutomaton, RuleConflict, lalr_automaton
from structgen.core.engines.lalr.tables import read_tables
from structgen.errors import GrammarError

pytest.importorskip("lark")
import lark
from lark.indenter import PythonIndenter
from lark.load_grammar import load_grammar

from tests.core.engines.lalr.lalr_grammars import GRAMMARS, bundled

CASES = {
    **{name: (text, "start") for name, (text, _) in GRAMMARS.items()},
    "python": (bundled("python.lark"), "file_input"),
}


class NlIndenter(PythonIndenter):
    """What takes ``_NL`` for newlines."""

    NL_type = "_NL"


def judge(text: str, start: str = "start") -> Any:
    """Lark's parser."""
    postlex = None
    if "%declare _INDENT" in text:
        postlex = PythonIndenter() if "_NEWLINE" in text else NlIndenter()
    return lark.Lark(text, parser="lalr", lexer="contextual", start=start, postlex=postlex)


def automaton(rules: list[Any], start: str) -> tuple[LalrAutomaton, dict[str, int]]:
    """Ours, of Lark's rules, and the numbers of symbols."""
    origins = {name: i for i, name in enumerate(dict.fromkeys(rule.origin.name for rule in rules))}
    names = dict.fromkeys(s.name for rule in rules for s in rule.expansion if s.is_term)
    symbols = {**{name: ~i for i, name in enumerate([*names, "$END"])}, **origins}
    numbered = [(origins[r.origin.name], tuple(symbols[s.name] for s in r.expansion)) for r in rules]
    priority = [rule.options.priority or 0 for rule in rules]
    made = lalr_automaton(numbered, origins[start], len(names) + 1, len(origins), priority.__getitem__)
    return made, symbols


def check(parser: Any, rules: list[Any], start: str) -> None:
    """Walk both automata side by side."""
    theirs = parser.parser.parser._parse_table
    ours, symbols = automaton(rules, start)
    places = {rule: i for i, rule in enumerate(rules)}
    pairs = {0: theirs.start_states[start]}
    work = [0]
    for state in work:
        row = theirs.states[pairs[state]]
        count = 0
        for name, (kind, to) in row.items():
            number = symbols[name]
            found = int(ours.goto[state, number] if number >= 0 else ours.action[state, ~number])
            count += 1
            if str(kind) == "Reduce":
                assert found == (places[to] + 1) << 1 | 1
                continue
            target = found if number >= 0 else (found >> 1) - 1
            assert target >= 0 and (number >= 0 or not found & 1)
            if target not in pairs:
                work.append(target)
            assert pairs.setdefault(target, to) == to
        assert count == int((ours.action[state] > 0).sum() + (ours.goto[state] >= 0).sum())
    assert len(pairs) == len(theirs.states) == len(ours.action)
    assert pairs[ours.end] == theirs.end_states[start]
    check_items(ours, rules, symbols)


def check_items(ours: LalrAutomaton, rules: list[Any], symbols: dict[str, int]) -> None:
    """What is behind the dot can be read, and leads to a state with the dot behind it."""
    for state, items in enumerate(ours.items):
        for rule, dot in items:
            expansion = rules[rule].expansion
            if dot < len(expansion):
                number = symbols[expansion[dot].name]
                target = ours.goto[state, number] if number >= 0 else (ours.action[state, ~number] >> 1) - 1
                assert (rule, dot + 1) in ours.items[int(target)]


@pytest.mark.parametrize("name", CASES)
def test_the_table_is_larks(name: str) -> None:
    text, start = CASES[name]
    parser = judge(text, start)
    check(parser, parser.rules, start)


def random_grammar(rng: random.Random) -> str:
    """Few symbols, so that there are rules without text, loops and conflicts."""
    lines = []
    for name in ("start", "b", "c", "d"):
        options = {
            " ".join(rng.choices(["b", "c", "d", "start", '"x"', '"y"', '"z"'], k=rng.randrange(4))) for _ in "abc"
        }
        lines.append(f"{name}{rng.choice(['', '', '.2'])}: " + " | ".join(sorted(options)))
    return "\n".join(lines)


def is_read_round(rules: list[Any], start: str) -> bool:
    """Whether rules without text lead from a state to itself: what Lark then allows differs from run to run."""
    without_text: set[str] = set()
    for _ in rules:
        without_text |= {r.origin.name for r in rules if all(s.name in without_text for s in r.expansion)}
    ours, symbols = automaton(rules, start)
    below = {state: set(row[[symbols[name] for name in without_text]].tolist()) for state, row in enumerate(ours.goto)}
    while leaves := {state for state, targets in below.items() if not targets & below.keys()}:
        below = {state: targets for state, targets in below.items() if state not in leaves}
    return bool(below)


@pytest.mark.parametrize("seed", range(4))
def test_tables_of_random_grammars(seed: int) -> None:
    rng, tables, refused = random.Random(seed), 0, 0
    while tables < 60:
        text = random_grammar(rng)
        try:
            parser = judge(text)
        except lark.exceptions.GrammarError as error:
            if "Reduce/Reduce" in str(error):
                refused += 1
                rules = load_grammar(text, "", [], False)[0].compile(["start"], set())[1]
                with pytest.raises(RuleConflict):
                    automaton(rules, "start")
            continue
        if not is_read_round(parser.rules, "start"):
            check(parser, parser.rules, "start")
            tables += 1
    assert refused > 20


@pytest.mark.parametrize("name", CASES)
def test_lexers_are_larks(name: str) -> None:
    """The terminals that each lexer tries, in order."""
    text, start = CASES[name]
    parser = judge(text, start)
    lexer = parser.parser.lexer.lexer if parser.options.postlex else parser.parser.lexer
    expected = {tuple(t.name for t in own.scanner.terminals) for own in lexer.lexers.values()}
    tables = read_tables(text, start)
    assert {tuple(tables.terminals[t] for t in own) for own in tables.lexers} == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('start: a | b\na: "x"\nb: "x"', "Reduce/Reduce collision in \\$END between"),
        ("start: A B\nA: /x?/\nB: /y/", "A: it may have no text"),
        ("start: A | B\nA: /(?P<g>x)/\nB: /(?P<g>y)/", "another group has the name 'g'"),
        ('begin: "x"', "no rule 'start'"),
    ],
)
def test_what_lark_refuses(text: str, message: str) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        judge(text).parse("x")
    assert not isinstance(caught.value, lark.exceptions.UnexpectedInput)
    with pytest.raises(GrammarError, match=message):
        read_tables(text)


def test_an_expression_that_backtracks_for_ever() -> None:
    """Lark asks ``re`` which words are texts of it."""
    tables = read_tables(f'start: A | "{"a" * 40}"\nA: /(a|aa)+b/')
    assert tables.automata.words == {0: []} or all(not words for words in tables.automata.words.values())
