"""``a | b`` and ``a + b``: their languages are those of the parts, united or one after the other; values come back."""

from __future__ import annotations

import itertools
import random
from functools import cache
from typing import Any, Literal

import numpy as np
import pydantic
import pytest

import structgen
from structgen import SpecialToken, Vocabulary, choice, concat, gbnf, json_lines, json_schema, lark, regex, tag_dispatch
from structgen.core.constraints.combined import ConcatConstraint, UnionConstraint, union
from structgen.core.engines.capture import Capture
from structgen.core.engines.laws import Judge, check_laws, mask_of
from structgen.core.vocabulary.vocabulary import TextVocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, GenerationError, GrammarError
from tests.core.engines.composed.oracle import remembered, vocabulary

pytest.importorskip("lark")

BYTES = TextVocabulary()
PAIR = {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}


class Point(pydantic.BaseModel):
    """A type."""

    a: Literal[1, 2]


KINDS: dict[str, Any] = {
    "schema": json_schema(PAIR),
    "number": json_schema({"enum": [1, 12, 2]}),
    "type": json_schema(Point),
    "lark": lark('start: "[" start* "]" | "a"+'),
    "contextual": lark('start: A ("," A)*\nA: "a" | "aa"', lexer="contextual"),
    "gbnf": gbnf('root ::= "1" root? "2"'),
    "xgrammar": gbnf('root ::= Substring("1", "2", "a")', dialect="xgrammar"),
    "regex": regex("[12]*a?"),
    "choice": choice(["a", "12", "[", ""]),
    "tags": tag_dispatch({("[", "]"): regex("[12]+")}, max_uses=1),
    "lines": json_lines({"enum": [1, 2]}, max_lines=2),
    "text": "12",
}
LETTERS = '12a[], \n{"}:'


@cache
def judged(name: str) -> Judge:
    """What a part's own grammar says of texts."""
    constraint = KINDS[name]
    grammar = (choice([constraint]) if isinstance(constraint, str) else constraint).compile(BYTES)

    def judge(text: bytes) -> tuple[bool, bool]:
        matcher = grammar.matcher()
        return (True, matcher.is_accepting()) if matcher.accept_bytes(text) else (False, False)

    return remembered(judge)


def of_union(one: Judge, other: Judge) -> Judge:
    def judge(text: bytes) -> tuple[bool, bool]:
        (viable, valid), (also_viable, also_valid) = one(text), other(text)
        return viable or also_viable, valid or also_valid

    return judge


def of_concat(one: Judge, other: Judge) -> Judge:
    def judge(text: bytes) -> tuple[bool, bool]:
        rests = [other(text[at:]) for at in range(len(text) + 1) if one(text[:at])[1]]
        return one(text)[0] or any(viable for viable, _ in rests), any(valid for _, valid in rests)

    return judge


PAIRS = list(itertools.product(KINDS, KINDS))


@pytest.mark.first_case
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_languages(one: str, other: str) -> None:
    if one == other == "text":
        pytest.skip("two strings are Python's own")
    rng = random.Random(f"{one} {other}")
    words = vocabulary(LETTERS, rng)
    texts = [b""] + ["".join(rng.choices(LETTERS, k=rng.randint(1, 4))).encode() for _ in range(60)]
    for combined, judge in (
        (KINDS[one] | KINDS[other], of_union(judged(one), judged(other))),
        (KINDS[one] + KINDS[other], of_concat(judged(one), judged(other))),
    ):
        compiled = combined.compile(words)
        check_laws(compiled, remembered(judge), walks=1, steps=5, max_bytes=8, seed=rng.getrandbits(32))
        for text in texts:
            matcher = compiled.matcher()
            assert (matcher.accept_bytes(text) and matcher.is_accepting()) == judge(text)[1], text


@pytest.mark.first_case
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_what_is_written_parses(one: str, other: str) -> None:
    if one == other == "text":
        pytest.skip("two strings are Python's own")
    rng = random.Random(f"{one} {other}")
    parts = [choice([part]) if isinstance(part, str) else part for part in (KINDS[one], KINDS[other])]
    for text in (_written(KINDS[one] | KINDS[other], rng) for _ in range(4)):
        first = next(part for part, name in zip(parts, (one, other), strict=True) if judged(name)(text.encode())[1])
        assert (KINDS[one] | KINDS[other]).parse(text) == first.parse(text)
    combined = KINDS[one] + KINDS[other]
    for text in (_written(combined, rng) for _ in range(4)):
        data = text.encode()
        ends = [at for at in range(len(data) + 1) if judged(one)(data[:at])[1] and judged(other)(data[at:])[1]]
        cut = data[: max(ends)].decode()
        assert combined.parse(text) == (parts[0].parse(cut), parts[1].parse(text[len(cut) :]))
        for at in range(len(text) + 1):
            assert len(combined.parse_partial(text[:at])) in (1, 2)


def _written(constraint: Any, rng: random.Random) -> str:
    """A text of a random walk, made whole."""
    matcher, data = constraint.compile(BYTES).matcher(), b""
    for _ in range(rng.randint(0, 8)):
        allowed = [token for token in np.flatnonzero(mask_of(matcher)).tolist() if token < 128]
        if not allowed:
            break
        byte = rng.choice([byte for byte in allowed if chr(byte) in LETTERS] or allowed)
        assert matcher.accept_token(byte)
        data += bytes([byte])
    return (data + matcher.shortest_completion()).decode()


def test_values() -> None:
    answer = "Answer: " + regex("[0-9]+") + "." + (json_schema(Point) | "none")
    assert answer.parse("Answer: 12.none") == ("Answer: ", "12", ".", "none")
    assert answer.parse('Answer: 12.{"a": 2}') == ("Answer: ", "12", ".", Point(a=2))
    assert (regex("a*") + regex("a*b?") + regex("b*")).parse("aabb") == ("aa", "b", "b")
    assert (regex("a*") + regex("ab")).parse("aab") == ("a", "ab")  # as long as the rest allows
    assert (regex("[0-9]+") | json_schema({"type": "integer"})).parse("12") == "12"
    assert (json_schema({"type": "integer"}) | regex("[0-9]+")).parse("12") == 12
    assert (json_schema({"type": "integer"}) | regex("[0-9]+")).parse("012") == "012"
    for wrong in ("", "Answer: ", "Answer: 12.no"):
        with pytest.raises(GenerationError, match="one after the other"):
            answer.parse(wrong)
    with pytest.raises(GenerationError, match="none of the united"):
        (regex("a") | "b").parse("c")


def test_unfinished_values() -> None:
    answer = "Answer: " + regex("[0-9]+") + "." + json_schema(PAIR)
    assert answer.parse_partial("") == ("",)
    assert answer.parse_partial("Ans") == ("Ans",)
    assert answer.parse_partial("Answer: ") == ("Answer: ",)
    assert answer.parse_partial("Answer: 12") == ("Answer: ", "12")
    assert answer.parse_partial("Answer: 12.[1, 2") == ("Answer: ", "12", ".", [1])
    assert (regex("a*") + regex("ab")).parse_partial("aa") == ("aa",)
    assert (regex("a*") + regex("ab")).parse_partial("aab") == ("a", "ab")
    assert (json_schema(PAIR) | "[a]").parse_partial("[1, 2") == [1]
    assert (json_schema(PAIR) | "[a]").parse_partial("[a") == "[a"
    assert (json_schema(PAIR) | "[a]").parse_partial("x") is None


def test_of_several_they_are_flat() -> None:
    a, b, c = regex("a"), regex("b"), regex("c")
    assert (a + b + c) == a + (b + c) == concat(a, b, c) == concat(a + b, c)
    assert (a | b | c) == a | (b | c) == union(a, b, c)
    assert len((a + (b | c) + "d" + "e").parts) == 4 and len((a + b | c).parts) == 2
    assert ("x" + a).parse("xa") == ("x", "a") and ("x" | a).parse("x") == "x"
    assert isinstance(concat("a"), ConcatConstraint) and isinstance(union("a"), UnionConstraint)


def test_long_sums_and_many_choices() -> None:
    many = concat(*(regex("[ab]?") for _ in range(200)))
    assert "".join(many.parse("ab" * 50)) == "ab" * 50
    with pytest.raises(GenerationError):
        many.parse("a" * 201)
    choices = union(*(f"<{number}>" + json_schema({"const": number}) for number in range(100)))
    assert choices.parse("<42>42") == ("<42>", 42)
    assert choices.compile(BYTES).matcher().accept_bytes(b"<42>42")


def test_operands() -> None:
    for wrong in (None, 1, {"type": "integer"}, int, Point):
        for combine in (lambda x: regex("a") | x, lambda x: x | regex("a"), lambda x: regex("a") + x):
            with pytest.raises(TypeError):
                combine(wrong)
        with pytest.raises(ConstraintError, match="is no constraint"):
            union("a", wrong)  # type: ignore[arg-type]
    for make in (union, concat):
        with pytest.raises(ConstraintError, match="at least one"):
            make()
        with pytest.raises(ConstraintError, match="surrogate"):
            make("\ud800")
    with pytest.raises(EmptyLanguageError):
        ("a" + regex("(?!)a")).compile(BYTES)


def test_empty_texts() -> None:
    for constraint in ("" + regex("a?"), concat(""), union("", "a"), "" | json_schema(PAIR)):
        assert constraint.compile(BYTES).matcher().is_accepting()
    assert ("" + regex("a?")).parse("") == ("", "")


def test_compiled_forms_are_shared_by_equals_only() -> None:
    a, b = regex("a"), regex("b")
    compiled = (a + b).compile(BYTES)
    assert (regex("a") + regex("b")).compile(BYTES) is compiled
    keys = [each.content_key() for each in (a + b, b + a, a | b, b | a, a + b + "c", a + (b | "c"), a | "b", a + "b")]
    assert len(set(keys)) == len(keys)


def test_instructions() -> None:
    told = ("Answer: " + regex("[0-9]+") | choice(["yes", "no"])).instruction()
    for expected in (
        "one of these ways",
        "1. Answer with these parts",
        "1. Write exactly",
        "[0-9]+",
        "2. Answer with exactly",
    ):
        assert expected in told


def test_captures() -> None:
    """Of all parts, under their names."""
    x, y = (gbnf(f"root ::= {name}\n{name}[capture] ::= [a-c]+", dialect="xgrammar") for name in "xy")
    both = "<" + x + ">" + (y | json_schema(PAIR))
    for text, expected in (("<ab>c", {"x": "ab", "y": "c"}), ("<ab>[1, 2]", {"x": "ab"})):
        found = both.captures(text)
        assert {name: one.text for name, one in found.items() if isinstance(one, Capture)} == expected
    assert json_schema(PAIR).captures("[1]") == {}
    matcher = both.compile(BYTES).matcher()
    assert matcher.accept_bytes(b"<ab>c") and matcher.captures()["y"].start == 4


def test_tool_calls() -> None:
    parameters = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}
    call = structgen.tool_call(
        "hermes", [{"name": "f", "parameters": parameters}], tool_choice="required", free_text="none"
    )
    either = "No: " + regex("[a-z]+") | call + "!"
    text = '<tool_call>\n{"name": "f", "arguments": {"n": 2}}\n</tool_call>'
    assert either.parse(f"{text}!") == (call.parse(text), "!")
    assert either.parse("No: why") == ("No: ", "why")
    for whole in (f"{text}!", "No: why"):
        matcher = either.compile(BYTES).matcher()
        assert matcher.accept_bytes(whole.encode()) and matcher.is_accepting()
    assert not either.compile(BYTES).matcher().accept_bytes(text.replace("2", "3").encode())
    tokens = [*(bytes([byte]) for byte in range(256)), b"<tool", b'{"n', b"}}\n", b"</tool_call>!", b"No: a", None]
    words = Vocabulary(tokens, eos_token_ids=len(tokens) - 1)
    check_laws(either.compile(words), walks=2, steps=8, prefixes=(b"", text[:20].encode(), text.encode()))


NAMED = Vocabulary(
    [bytes([byte]) for byte in range(256)] + [None, None, None],
    eos_token_ids=256,
    special_token_ids=[257, 258],
    special_tokens={"<think>": 257, "<|call|>": 258},
)


def test_special_tokens() -> None:
    thought = lark("start: <think> /[a-z]+/")
    call = tag_dispatch({SpecialToken("<|call|>"): {"enum": [1, 2]}}, min_uses=1)
    both = thought + "!" + call
    matcher = both.compile(NAMED).matcher()
    assert matcher.accept_token(257) and matcher.accept_bytes(b"abc! see ") and matcher.accept_token(258)
    assert matcher.accept_bytes(b"2") and matcher.is_accepting()
    assert both.parse("<think>abc! see <|call|>2")[:2] == ("<think>abc", "!")
    either = (thought | call).compile(NAMED).matcher()
    assert either.accept_bytes(b"x") and either.accept_token(258)
    assert not (thought | "!").compile(NAMED).matcher().accept_bytes(b"<think>abc")
    with pytest.raises(GrammarError, match="by their names"):
        (lark("start: <[257]>") + "a").compile(NAMED)


def test_a_generator_takes_them() -> None:
    assert isinstance(structgen.regex("a") | "b", structgen.Constraint)
    assert isinstance("b" + structgen.regex("a"), structgen.Constraint)
