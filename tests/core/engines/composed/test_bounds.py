"""The number of bytes to the end of composed texts: the least of all readings, never less than what is written."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from structgen.core.compilers import compile_json_lines, compile_lark, compile_regex
from structgen.core.engines.composed.grammar import embed
from structgen.core.engines.composed.matcher import ComposedMatcher
from structgen.core.engines.composed.tag_dispatch import compile_tag_dispatch
from structgen.core.engines.json.compiled import compile_json_schema
from structgen.core.engines.protocols import TOO_LONG, Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.dfa import empty
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import CompletionTooLongError, EmptyLanguageError
from structgen.options import JsonOptions
from tests.core.engines.composed.test_nested import compiled, random_part
from tests.core.engines.fixed_texts import FixedTexts, FixedTextsMatcher

pytest.importorskip("lark")
BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "yy"]}}, "required": ["b"]}
NESTED = 'start: "(" start ")" | NUMBER\nNUMBER: /[0-9]+/'


def check_walk(grammar: Grammar, rng: random.Random, steps: int, likely: bytes, *, exact: bool = False) -> None:
    """A random walk with steps back, forks and resets."""
    matcher, length = grammar.matcher(), 0
    for _ in range(steps):
        bound, text = matcher.completion_bound(), matcher.shortest_completion()
        assert len(text) <= bound and (not exact or len(text) == bound)
        assert (bound == 0) == matcher.is_accepting() and matcher.fork().completion_bound() == bound
        following = np.flatnonzero(matcher.next_bytes()).tolist()
        nice = [byte for byte in following if byte in likely]
        if rng.random() < 0.1 and length:
            back = rng.randint(1, length)
            matcher.rollback(back)
            length -= back
        elif following:
            byte = rng.choice(nice if nice and rng.random() < 0.8 else following)
            assert matcher.accept_bytes(bytes([byte]))
            length += 1
        else:
            matcher.reset()
            length = 0


GRAMMARS: dict[str, tuple[Callable[[], Grammar], bytes]] = {
    "tags": (
        lambda: compile_tag_dispatch({("<t>", "</t>"): compile_json_schema(OBJECT, BYTES)}, BYTES),
        b'<t>{"ab/: 1',
    ),
    "tags, needed": (
        lambda: compile_tag_dispatch(
            {"<a>": compile_lark(NESTED, BYTES), ("<b>", ";"): compile_lark(NESTED, BYTES, lexer="contextual")},
            BYTES,
            min_uses=2,
            stop="STOP",
        ),
        b"<ab>(1);STOP",
    ),
    "lines": (lambda: compile_json_lines(OBJECT, BYTES, min_lines=3), b'{"ab": 1x}\n'),
    "json inside": (
        lambda: compile_lark('start: "[" (%json {"type": "integer"} ",")* X "]"\nX: /x+/', BYTES),
        b"[1,x]",
    ),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_walks(name: str) -> None:
    make, likely = GRAMMARS[name]
    grammar = make()
    for seed in range(4):
        check_walk(grammar, random.Random(seed), 60, likely)


@pytest.mark.parametrize("seed", range(25))
def test_random_nested_grammars(seed: int) -> None:
    rng = random.Random(seed)
    try:
        grammar = compiled(random_part(rng, rng.randrange(1, 3)), BYTES)
    except EmptyLanguageError:
        return
    check_walk(grammar, rng, 80, b'ab1[],"<')


def test_context_free_texts_in_each_other_are_exact() -> None:
    inner = compile_lark(NESTED, BYTES)
    grammar = compile_tag_dispatch({("<", ">"): inner, ("{", "}"): compile_regex("a{2,4}", BYTES)}, BYTES, min_uses=1)
    for seed in range(4):
        check_walk(grammar, random.Random(seed), 60, b"<(1)>{a}", exact=True)


@dataclass(frozen=True)
class Reluctant(FixedTexts):
    """Texts that are written where at most ten bytes are missing."""

    def matcher(self) -> FixedTextsMatcher:
        return _Reluctant(self)


class _Reluctant(FixedTextsMatcher):
    def shortest_completion(self) -> bytes:
        rest = super().shortest_completion()
        if len(rest) > 10:
            raise CompletionTooLongError("too long")
        return rest


def outer(*patterns: str) -> ContextFreeGrammar:
    """``X | Y`` behind "<", each with a text of a pattern behind it."""
    terminals = [Terminal("<", full_match_dfa("<")), Terminal("X", empty()), Terminal("Y", empty())]
    terminals += [Terminal(pattern, full_match_dfa(pattern)) for pattern in patterns]
    return ContextFreeGrammar(tuple(terminals), ("s",), (Rule(0, (~0, ~1, ~3)), Rule(0, (~0, ~2, ~4))), 0)


def test_a_reading_that_is_not_written_does_not_hide_another() -> None:
    """A text is written if some reading's is; the number is that of such a reading."""
    short, long = Reluctant((b"ab",), BYTES), Reluctant((b"ac" * 3, b"b"), BYTES)
    assert embed(outer("x", "yy"), {1: short, 2: long}).matcher().completion_bound() == 4
    long = Reluctant((b"abc" * 9, b"b"), BYTES)
    matcher = embed(outer("x", "yy"), {1: short, 2: long}).matcher()
    assert isinstance(matcher, ComposedMatcher)
    assert matcher.accept_bytes(b"<a") and len(matcher._configurations) == 2
    assert matcher.completion_bound() == 2 == len(matcher.shortest_completion())
    assert matcher.accept_bytes(b"bc") and len(matcher._configurations) == 1
    assert matcher.completion_bound() == TOO_LONG
    with pytest.raises(CompletionTooLongError):
        matcher.shortest_completion()


def test_long_texts_of_many_parts() -> None:
    """What a step costs does not depend on how much was read: readings are few, and each has a number."""
    grammar = compile_json_lines(OBJECT, BYTES, options=JsonOptions(whitespace="compact"))
    matcher = grammar.matcher()
    assert isinstance(matcher, ComposedMatcher)
    for _ in range(300):
        assert matcher.accept_bytes(b'{"b":"x"')
        assert matcher.completion_bound() == 1 and len(matcher._configurations) <= 2
        assert matcher.accept_bytes(b"}\n") and matcher.completion_bound() == 0
