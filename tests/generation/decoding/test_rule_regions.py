"""Rules with a temperature and a budget of their own, counted again in the finished texts by ``re``."""

from __future__ import annotations

import random
import re
from itertools import accumulate
from typing import Any

import pytest

import structgen
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.rules import compile_masks
from structgen.core.regions import Region
from structgen.errors import OptionsError
from structgen.generation.results import GenerationResult
from tests.generation.decoding.test_regions import TOKENS, generator
from tests.many import cases

RULES = {
    "nullable": ("[^<>;]*", r"[^<>;]*"),
    "solid": ("[a-z]+", r"[a-z]+"),
    "long": ("[a-z]{4,}", r"[a-z]{4,}"),
    "words": ('"ab" ("," "ab")*', r"ab(?:,ab)*"),
}
DIALECTS = ("llguidance", "lark", "gbnf", "xgrammar")


def constraint(dialect: str, one: str, two: str, regions: dict[str, Region], *, inside: bool) -> tuple[Any, bool]:
    """Two rules between marks; and whether the grammar itself says how they are written."""
    terms = {
        name: "[" + ", ".join(f"{term}={value}" for term, value in region.keyword().items()) + "]"
        for name, region in regions.items()
        if inside and dialect in ("llguidance", "xgrammar")
    }
    if dialect in ("gbnf", "xgrammar"):
        text = (
            f'root ::= "<" one ">" two ";"\none{terms.get("one", "")} ::= {RULES[one][0]}\n'
            f"two{terms.get('two', '')} ::= {RULES[two][0]}"
        )
        return structgen.gbnf(text, dialect="xgrammar" if dialect == "xgrammar" else "llama.cpp"), bool(terms)
    bodies = {name: body if body.startswith('"') else f"/{body}/" for name, (body, _) in RULES.items()}
    if dialect == "lark":  # terminals are not empty
        bodies["nullable"] = "/[^<>;]+/?"
    text = (
        f'start: "<" one ">" two ";"\none{terms.get("one", "")}: {bodies[one]}\n'
        f"two{terms.get('two', '')}: {bodies[two]}"
    )
    return structgen.lark(text, dialect=dialect), bool(terms)  # type: ignore[arg-type]


def token_counts(result: GenerationResult[Any], pattern: str) -> dict[str, int]:
    """How many tokens hold a byte of each group."""
    texts = [TOKENS[token] or b"" for token in result.token_ids]
    found = re.fullmatch(pattern.encode(), b"".join(texts), re.DOTALL)
    assert found is not None, result.text
    ends = list(accumulate(map(len, texts)))
    return {
        name: sum(
            end > found.start(name) and end - len(text) < found.end(name) for end, text in zip(ends, texts, strict=True)
        )
        for name in ("one", "two")
    }


@pytest.mark.parametrize("seed", cases(10_000, 60))
def test_no_rule_has_more_tokens_than_its_limit_but_those_that_are_counted(seed: int) -> None:
    rng = random.Random(seed)
    one, two = rng.choice(list(RULES)), rng.choice(list(RULES))
    regions = {
        name: Region(rng.choice([None, 0.0, 2.0]), rng.choice([1, 2, 5, 12]))
        for name in rng.sample(["one", "two"], rng.randint(1, 2))
    }
    dialect = rng.choice(DIALECTS)
    grammar, is_said = constraint(dialect, one, two, regions, inside=rng.random() < 0.5)
    try:
        result = generator(seed).generate(
            "x", grammar, regions=None if is_said else regions, temperature=rng.choice([0.0, 1.0]), seed=seed,
            schema_in_prompt=False, max_new_tokens=rng.choice([20, 120]), draft=rng.choice([None, "ngram"]),
        )  # fmt: skip
    except structgen.IncompleteOutputError:
        return
    counts = token_counts(result, f"<(?P<one>{RULES[one][1]})>(?P<two>{RULES[two][1]});")
    exceeded = [name for name, region in regions.items() if counts[name] > (region.max_tokens or 0)]
    assert len(exceeded) == result.stats.exceeded_regions, (counts, regions, result.text)


NESTED = {
    "a rule in a rule": ('start: "<" one ";"\none{one}: "(" two ")" /[a-z]*/\ntwo{two}: /[a-z]+/',
                         r"<(?P<one>\((?P<two>[a-z]+)\)[a-z]*);"),
    "a rule in itself": ('start: "<" one ";" two\none{one}: "(" one ")" | /[a-z]+/\ntwo{two}: /[0-9]*/ "."',
                         r"<(?P<one>\(*[a-z]+\)*);(?P<two>[0-9]*\.)"),
}  # fmt: skip


@pytest.mark.parametrize("shape", NESTED)
@pytest.mark.parametrize("seed", cases(2000, 10))
def test_the_outermost_use_of_a_rule_and_those_inside_of_others_have_limits(shape: str, seed: int) -> None:
    rng = random.Random(seed)
    (source, pattern), limits = NESTED[shape], {name: rng.randint(1, 9) for name in ("one", "two")}
    for name, limit in limits.items():
        source = source.replace(f"{{{name}}}", f"[max_tokens={limit}]")
    grammar = structgen.lark(source, dialect="llguidance")
    try:
        result = generator(seed).generate("x", grammar, temperature=1.0, seed=seed, max_new_tokens=60)
    except structgen.IncompleteOutputError:
        return
    counts = token_counts(result, pattern)
    assert sum(counts[name] > limit for name, limit in limits.items()) == result.stats.exceeded_regions


AMBIGUOUS = {
    "two with no sign between": 'one two\none{one}: /[a-z]*/\ntwo{two}: /[a-z]*/ ";"',
    "what may be either": 'one | two\none{one}: "a" /[a-z]*/ ";"\ntwo{two}: /[a-z]*;/',
}


@pytest.mark.parametrize("shape", AMBIGUOUS)
@pytest.mark.parametrize("seed", cases(2000, 10))
def test_where_a_text_can_be_read_in_several_ways_limits_hold_in_each(shape: str, seed: int) -> None:
    rng = random.Random(seed)
    body, limits = AMBIGUOUS[shape], {name: rng.randint(1, 9) for name in ("one", "two")}
    for name, limit in limits.items():
        body = body.replace(f"{{{name}}}", f"[max_tokens={limit}]")
    grammar = structgen.lark(f"start: {body}", dialect="llguidance")
    try:
        result = generator(seed).generate("x", grammar, temperature=1.0, seed=seed, max_new_tokens=60)
    except structgen.IncompleteOutputError:
        return
    texts = [TOKENS[token] or b"" for token in result.token_ids]
    ends, size = list(accumulate(map(len, texts))), len(result.text)
    parts = [("one", 0, cut) for cut in range(size)] + [("two", cut, size) for cut in range(size)]
    if shape == "what may be either":
        parts = [("two", 0, size)] + [("one", 0, size)] * result.text.startswith("a")
    for name, start, stop in parts:
        count = sum(end > start and end - len(text) < stop for end, text in zip(ends, texts, strict=True))
        assert count <= limits[name] or result.stats.exceeded_regions, (name, start, stop, limits, result.text)


@pytest.mark.parametrize("seed", cases(500, 20))
def test_what_is_read_is_the_same_after_going_back_and_in_forks(seed: int) -> None:
    rng = random.Random(seed)
    source = rng.choice([f"start: {body}" for body in AMBIGUOUS.values()] + [source for source, _ in NESTED.values()])
    for name in ("one", "two"):
        source = source.replace(f"{{{name}}}", "[max_tokens=3]")
    grammar = structgen.lark(source, dialect="llguidance").compile(generator(1).vocabulary)
    matcher, tokens = grammar.matcher(), list[int]()
    for _ in range(40):
        if tokens and rng.random() < 0.3:
            steps = rng.randint(1, len(tokens))
            matcher.rollback(steps)
            del tokens[-steps:]
        else:
            token = rng.choice([*b"<(a)b;", TOKENS.index(b"ab")])
            tokens += [token] * matcher.accept_token(token)
        again, fork = grammar.matcher(), matcher.fork() if rng.random() < 0.5 else matcher.copy()
        assert all(map(again.accept_token, tokens))
        assert stands(again) == stands(matcher) == stands(fork)


def stands(matcher: Any) -> set[tuple[Any, ...]]:
    return {
        (tuple((part.region, part.size) for part in each.regions), each.next.tobytes())
        for each in matcher.partial_parses()
    }


def test_who_draws_tokens_elsewhere_refuses_regions() -> None:
    one = generator(1)
    written = structgen.lark("start: why\nwhy[max_tokens=3]: /[a-z]+/", dialect="llguidance")
    schema = as_constraint({"type": "string", "x-structgen": {"max_tokens": 3}})
    for each in (written, schema):
        with pytest.raises(structgen.ConstraintError, match="max_tokens or temperature of a part"):
            compile_masks(each, one.vocabulary)
    assert compile_masks(structgen.regex("a+"), one.vocabulary)
    with pytest.raises(structgen.ConstraintError, match="cannot be kept here"):
        one.rank("x", written, 2)
    with pytest.raises(OptionsError, match="after thinking"):
        one.generate("x", structgen.think({"type": "string", "x-structgen": {"max_tokens": 3}}))


def test_rules_that_cannot_have_regions() -> None:
    grammar = structgen.lark('start: "a" why\nwhy: /[a-z]+/')
    for name in ("wy", "other"):
        with pytest.raises(OptionsError, match="regions names"):
            generator(1).generate("x", grammar, regions={name: Region(max_tokens=3)})
    with pytest.raises(OptionsError, match="JSON"):
        generator(1).generate("x", grammar, regions={"/why": Region(max_tokens=3)})
    with pytest.raises(OptionsError, match="JSON Pointer"):
        generator(1).generate("x", {"type": "object"}, regions={"why": Region(max_tokens=3)})


def test_what_a_monitor_is_asked_about_is_no_region() -> None:
    class Names:
        triggers: tuple[str, ...] = ()
        names = structgen.NameSet.build(["a", "b"])

        def suggest(self, text: str) -> list[str]:
            return ["a"]

    source = structgen.lark('start: "x" why\nwhy: NAME\n%declare NAME', terminals={"NAME": Names()})
    with pytest.raises(structgen.ConstraintError, match="why holds a terminal with a monitor"):
        generator(1).generate("x", source, regions={"why": Region(max_tokens=3)})
