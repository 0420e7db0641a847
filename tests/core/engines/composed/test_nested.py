"""Composed grammars inside composed grammars: every law against the inlined grammar, and masks that are remembered."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from structgen.core.compilers import compile_choice, compile_lark, compile_regex
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.byte_sets import EVERY_BYTE, byte_set
from structgen.core.engines.composed import composition, masks
from structgen.core.engines.composed import grammar as grammars
from structgen.core.engines.composed.grammar import embed
from structgen.core.engines.composed.tag_dispatch import compile_tag_dispatch
from structgen.core.engines.json.compiled import compile_json_schema
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.dfa import empty
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError
from structgen.options import JsonOptions
from tests.core.engines.composed.oracle import check_walks, inlined, remembered, vocabulary
from tests.many import cases

COMPACT = JsonOptions(whitespace="compact")
LETTERS = 'ab1[],"<'
Part: TypeAlias = "tuple[Any, str] | tuple[ContextFreeGrammar, dict[int, Any]]"
"""What is embedded: a schema or expression with the expression of the same language, or a grammar with its parts."""

LEAVES: list[tuple[Any, str]] = [
    ({"type": "array", "items": {"const": 1}, "maxItems": 2}, r"\[(1(,1)?)?\]"),
    ({"type": "array", "items": {"type": "array", "items": {"const": 1}, "maxItems": 1}}, r"\[(\[1?\](,\[1?\])*)?\]"),
    ({"type": "string", "pattern": "^[ab]*$"}, '"[ab]*"'),
    ({"type": "integer", "minimum": 1, "maximum": 11}, "1|1[01]|[2-9]"),
    ("(ab)+", "(ab)+"),
    ("a*b?", "a*b?"),
    ("[^1]*", "[^1]*"),
]


def random_part(rng: random.Random, depth: int) -> Part:
    """A leaf, or a grammar of two texts and one or two embedded parts, one of them as deep as asked."""
    if not depth:
        return rng.choice(LEAVES)
    patterns = rng.sample(["a", "1", "<", "[ab]+", ",", "[^a]", "b[<1]"], 2)
    terminals = [Terminal(f"T{i}", full_match_dfa(pattern), pattern) for i, pattern in enumerate(patterns)]
    terminals += [Terminal("X", empty()), Terminal("Y", empty())]
    rules = [Rule(0, (~2,))] if rng.random() < 0.3 else [Rule(0, (~rng.randrange(2), ~2))]
    for _ in range(rng.randint(0, 3)):
        rules.append(Rule(0, tuple(rng.choice([~0, ~1, ~2, ~3, 0]) for _ in range(rng.randint(1, 3)))))
    source = ContextFreeGrammar(tuple(terminals), ("s",), tuple(rules), 0)
    return source, {2: random_part(rng, depth - 1), 3: random_part(rng, rng.randrange(depth))}


def compiled(part: Part, words: Vocabulary) -> Grammar:
    content, parts = part
    if isinstance(content, ContextFreeGrammar):
        assert isinstance(parts, dict)
        return embed(content, {t: compiled(inner, words) for t, inner in parts.items()})
    return (
        compile_regex(content, words, "ecma")
        if isinstance(content, str)
        else compile_json_schema(content, words, COMPACT)
    )


def flat(source: ContextFreeGrammar, parts: Mapping[int, Any]) -> tuple[ContextFreeGrammar, dict[int, str]]:
    """The grammar with its parts' rules put in place, and the expressions of the leaves."""
    terminals, names, rules = list(source.terminals), list(source.nonterminals), list(source.rules)
    leaves: dict[int, str] = {}
    starts: dict[int, int] = {}
    for t, (content, inner) in parts.items():
        if not isinstance(content, ContextFreeGrammar):
            leaves[t] = inner
            continue
        below, more = flat(content, inner)
        first, first_terminal = len(names), len(terminals)
        for rule in below.rules:
            rhs = tuple(s + first if s >= 0 else ~(~s + first_terminal) for s in rule.rhs)
            rules.append(Rule(rule.lhs + first, rhs))
        terminals += below.terminals
        names += [f"{name}{first}" for name in below.nonterminals]
        leaves.update({leaf + first_terminal: pattern for leaf, pattern in more.items()})
        starts[~t] = first + below.start
    rules = [Rule(r.lhs, tuple(starts.get(s, s) for s in r.rhs)) for r in rules]
    return ContextFreeGrammar(tuple(terminals), tuple(names), tuple(rules), source.start), leaves


APART = -1  # of MAX_INLINED: contents stay matchers of their own, as those of other engines do


@pytest.mark.parametrize("most", [APART, grammars.MAX_INLINED], ids=["apart", "in place"])
@pytest.mark.parametrize("seed", range(20))
def test_random_nests(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(grammars, "MAX_INLINED", most)
    monkeypatch.setattr(masks, "MANY", 0 if seed % 2 else masks.MANY)
    monkeypatch.setattr(composition, "WIDE", -1 if seed % 3 == 0 else composition.WIDE)
    words = vocabulary(LETTERS, rng, longer=30)
    part = random_part(rng, rng.randint(2, 3))
    assert isinstance(part[0], ContextFreeGrammar)
    source, leaves = flat(part[0], part[1])  # type: ignore[arg-type]
    judge = remembered(inlined(source, leaves).run)
    try:
        grammar = compiled(part, words)
    except EmptyLanguageError:
        assert not judge(b"")[0]
        return
    check_walks(grammar, judge, rng, walks=3)


@pytest.mark.full
@pytest.mark.parametrize("seed", cases(20, 9))
def test_put_in_place_or_apart(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same language, where each grammar ignores something of its own."""
    rng = random.Random(seed)
    words = vocabulary(LETTERS, rng, longer=30)

    def with_ignored(part: Part) -> Part:
        content, parts = part
        if not isinstance(content, ContextFreeGrammar):
            return part
        assert isinstance(parts, dict)
        ignored = tuple(rng.sample(range(2), rng.randint(0, 1)))
        return replace(content, ignored=ignored), {t: with_ignored(inner) for t, inner in parts.items()}

    part = with_ignored(random_part(rng, rng.randint(1, 3)))
    try:
        grammar = compiled(part, words)
    except EmptyLanguageError:
        return
    monkeypatch.setattr(grammars, "MAX_INLINED", APART)
    apart = compiled(part, words)

    behind = {b"": apart.matcher()}  # texts that can be completed

    def run(text: bytes) -> tuple[bool, bool]:
        if text not in behind and (before := behind.get(text[:-1])) is not None and before.accept_bytes(text[-1:]):
            behind[text] = before.fork()
            before.rollback()
        return text in behind, text in behind and behind[text].is_accepting()

    check_walks(grammar, remembered(run), rng, walks=3)


def test_what_is_put_in_place_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    words = vocabulary("abc", random.Random(1))
    part, big = compile_regex("ab", words), compile_choice(["a", "bc", "c"], words)
    rules = ContextFreeGrammar(
        (Terminal("X", empty()), Terminal("Y", empty()), Terminal("Z", empty())), ("s",), (Rule(0, (~0, ~1, ~2)),), 0
    )
    whole = embed(rules, {0: part, 1: big, 2: part})
    form = whole.normal_form()
    assert form is not None and form[1] == {}  # a context-free grammar
    monkeypatch.setattr(grammars, "MAX_INLINED", 80)
    some = embed(rules, {0: part, 1: big, 2: part})
    form = some.normal_form()
    assert form is not None and list(form[1].values()) == [big]
    assert all(grammar.matcher().accept_bytes(b"abbcab") for grammar in (whole, some))


def test_what_is_remembered_outlives_no_rollback() -> None:
    """Frames written after a rollback take the places of others; masks of these must not come back."""
    rng = random.Random(5)
    words = vocabulary('[]{}",:ab1<', rng, longer=80)
    schema = {
        "type": "array",
        "items": {"type": ["array", "string"], "items": {"const": 1}, "maxItems": 1},
        "maxItems": 2,
    }
    pattern = r'\[((\[1?\]|"[^"\\]*")(,(\[1?\]|"[^"\\]*"))?)?\]'
    inner: Part = (
        ContextFreeGrammar(
            (Terminal("A", full_match_dfa("a")), Terminal("X", empty())), ("s",), (Rule(0, (~0, ~1)),), 0
        ),
        {
            1: (
                {
                    **schema,
                    "items": {
                        "anyOf": [
                            {"type": "array", "items": {"const": 1}, "maxItems": 1},
                            {"type": "string", "pattern": r'^[^"\\]*$'},
                        ]
                    },
                },
                pattern,
            )
        },
    )
    outer = ContextFreeGrammar(
        (Terminal("B", full_match_dfa("b")), Terminal("X", empty())), ("s",), (Rule(0, (~1,)), Rule(0, (~1, 0))), 0
    )
    part: Part = (outer, {1: inner})
    judge = remembered(inlined(*flat(outer, part[1])).run)  # type: ignore[arg-type]
    matcher = compiled(part, words).matcher()
    for text in (b'a[[1],"', b'a["a",[', b"a[[],[1", b'a["<",""]a[[]', b'a[[1]]a["'):
        assert matcher.accept_bytes(text[:3]) and matcher.accept_bytes(text[3:])
        got = allowed_now(matcher, words)
        assert got == {t for t, token in enumerate(words.tokens) if token and judge(text + token)[0]}, text
        matcher.rollback(2)


def allowed_now(matcher: Any, words: Vocabulary) -> set[int]:
    bitmask = allocate_token_bitmask(1, words.size)
    matcher.fill_next_token_bitmask(bitmask)
    return {t for t in range(words.size) if bitmask[0, t >> 5] >> (t & 31) & 1}


def test_a_state_seen_before_costs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """In strings and numbers of JSON, two grammars deep, equal states are looked up."""
    words = Vocabulary([bytes([byte]) for byte in range(256)] + [b'"})', b") x", b'"}) x', None], eos_token_ids=259)
    call = compile_lark('start: NAME "(" %json {"type": "object"} ")"\nNAME: /[a-z]+/\n', words)
    grammar = compile_tag_dispatch({"<<": compile_tag_dispatch({"<": call}, words, max_uses=1, stop="!")}, words)
    searches: list[int] = []
    find = masks._find

    def counted(*given: Any) -> Any:
        searches.append(1)
        return find(*given)

    monkeypatch.setattr(masks, "_find", counted)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b'<< <call({"a": "')
    counts = []
    for byte in b"some words of a text":
        before = len(searches)
        allowed_now(matcher, words)
        counts.append(len(searches) - before)
        assert matcher.accept_token(byte)
    assert counts[0] > 0 and not any(counts[2:]), counts


def test_last_bytes_of_composed_texts() -> None:
    words = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
    call = compile_lark('start: NAME "(" %json {"type": "object"} ")"\nNAME: /[a-z]+/\n', words)
    bare = compile_lark('start: NAME %json {"type": "object"} ","?\nNAME: /[a-z]+/\n', words)
    assert call.last_bytes() == byte_set(b")") and bare.last_bytes() == byte_set(b"},")
    dispatch = compile_tag_dispatch({"<": call}, words, free_text="none", min_uses=1)
    assert dispatch.last_bytes() == byte_set(b")")
    free = compile_tag_dispatch({"<": call}, words).last_bytes()
    assert free & byte_set(range(128)) == byte_set(range(128)) - byte_set(b"<") and free != EVERY_BYTE
