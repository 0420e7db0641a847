"""Captures of constraints and matchers: what is named, its values, rollbacks; beside Lark's trees and llguidance."""

from __future__ import annotations

import pickle
import random
import re
from typing import Any

import numpy as np
import pytest

import structgen
from structgen import Capture, SpecialToken, gbnf, lark, tag_dispatch
from structgen.core.engines.captures import chart
from structgen.core.engines.captures.capturing import CapturingGrammar, captures_of
from structgen.core.engines.laws import check_laws, mask_of
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import CapturesTooComplexError, GenerationError, OptionsError
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.fakes import CharTokenizer, vocabulary

pytest.importorskip("lark")

WORDS = [b"ab", b"1,", b'":', b'{"', b"a:", b"</", b"<c>", b"  ", b"ba", b"12", b"\xc3", b'"}']
SPECIAL = {"<think>": 270, "</think>": 271}
VOCABULARY = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), *WORDS, None, None, None, None],
    eos_token_ids=268,
    special_token_ids=[269, 270, 271],
    special_tokens=SPECIAL,
)
SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
CALLS = lark(
    f"""
    start: call (";" call)*
    call: NAME ":" args
    args: %json {SCHEMA}
    NAME: /[ab]+/
    """,
    captures={"NAME": "function", "args": "args", "call": "call"},
)
SUMS = lark(
    """
    start: sum
    ?sum: product | sum "+" product
    ?product: atom | product "*" atom
    ?atom: NUMBER | "(" sum ")"
    NUMBER: /[0-9]+/
    %ignore " "
    """,
    captures=["sum", "product", "NUMBER"],
)
AMBIGUOUS = lark("start: (word | pair)*\nword: /[ab]+/\npair: word /[ab1]/ word?", captures=["word", "pair"])
NESTED = gbnf('root ::= "[" (item ("," item)*)? "]"\nitem ::= number | root\nnumber ::= [0-9]{1,3}', captures=["item"])
THINKING = lark(
    "start: thought answer\nthought: <think> <[^271]>* </think>\nanswer: /[ab]+/ | <think>",
    captures=["thought", "answer"],
)
TAGS = tag_dispatch({("<c>", "</c>"): CALLS, "1,": lark("start: word\nword: /[ab]+/", captures=["word"])})
CONSTRAINTS: dict[str, Any] = {
    "calls": CALLS, "sums": SUMS, "ambiguous": AMBIGUOUS, "nested": NESTED, "thinking": THINKING, "tags": TAGS
}  # fmt: skip
ROLLBACKS = 10_000


def texts(found: Any) -> Any:
    """The texts of captures."""
    return {name: [c.text for c in own] if isinstance(own, list) else own and own.text for name, own in found.items()}


# --- what is captured ---
def test_text_value_and_place() -> None:
    found = CALLS.captures('ab:{"a": 12};b:{"a": 3}')
    assert found["function"] == [Capture("ab", "ab", 0, 2), Capture("b", "b", 13, 14)]
    assert found["args"] == [Capture('{"a": 12}', {"a": 12}, 3, 12), Capture('{"a": 3}', {"a": 3}, 15, 23)]
    assert texts(found)["call"] == ['ab:{"a": 12}', 'b:{"a": 3}']


def test_a_part_that_can_repeat_is_a_list_and_another_is_not() -> None:
    found = lark('start: a b? c ("," c)*\na: "a"\nb: "b"\nc: "c"', captures=["a", "b", "c"])
    assert found.captures("ac") == {"a": Capture("a", "a", 0, 1), "b": None, "c": [Capture("c", "c", 1, 2)]}
    assert texts(found.captures("abc,c")) == {"a": "a", "b": "b", "c": ["c", "c"]}
    twice = gbnf('root ::= x | y\nx ::= "a"\ny ::= "b"', captures={"x": "letter", "y": "letter"})
    assert twice.captures("b") == {"letter": Capture("b", "b", 0, 1)}
    both = gbnf('root ::= x y\nx ::= "a"\ny ::= "b"', captures={"x": "letter", "y": "letter"})
    assert texts(both.captures("ab")) == {"letter": ["a", "b"]}


def test_special_tokens_are_shown_by_their_names() -> None:
    matcher = THINKING.compile(VOCABULARY).matcher()
    assert matcher.accept_token(270) and matcher.accept_bytes("é a".encode()) and matcher.accept_token(271)
    assert matcher.accept_bytes(b"ab") and matcher.accept_token(268)
    found = matcher.captures()
    assert found == {
        "thought": Capture("<think>é a</think>", "<think>é a</think>", 0, 18),
        "answer": Capture("ab", "ab", 18, 20),
    }


def test_what_is_ignored_around_a_part_is_not_in_it() -> None:
    found = SUMS.captures(" 1  + ( 2 ) ")
    assert [(c.text, c.start) for c in found["sum"]] == [("1  + ( 2 )", 1), ("1", 1), ("2", 8)]


def test_the_first_alternative_and_the_longest_part() -> None:
    first = lark('start: a | b\na: "x"+\nb: "x"+', captures=["a", "b"])
    assert texts(first.captures("xx")) == {"a": "xx", "b": None}
    longest = lark("start: a b?\na: /x+/\nb: /x+/", captures=["a", "b"])
    assert texts(longest.captures("xx")) == {"a": "xx", "b": None}
    needed = lark("start: a b\na: /x+/\nb: /x+/", captures=["a", "b"])
    assert texts(needed.captures("xxx")) == {"a": "xx", "b": "x"}
    rounds = lark("start: a*\na: /x+y?/", captures=["a"])
    assert texts(rounds.captures("xxyxxx")) == {"a": ["xxy", "xxx"]}
    the_same = gbnf('root ::= a*\na ::= "x"+ "y"?', captures=["a"])
    assert texts(the_same.captures("xxyxxx")) == {"a": ["xxy", "xxx"]}


def test_unfinished_parts_are_told() -> None:
    matcher = CALLS.compile(VOCABULARY).matcher()
    assert matcher.captures() == {"function": [], "args": [], "call": []}
    assert matcher.accept_bytes(b'ab:{"a": 1')
    found = matcher.captures()
    assert found["function"] == [Capture("ab", "ab", 0, 2)]
    assert found["args"] == [Capture('{"a": 1', {}, 3, 10, complete=False)]
    assert matcher.accept_bytes(b"}")
    assert matcher.captures()["args"] == [Capture('{"a": 1}', {"a": 1}, 3, 11)]
    matcher.rollback(2)
    assert texts(matcher.captures()) == {"function": [], "args": [], "call": []}


def test_the_end_completes_what_could_go_on() -> None:
    matcher = SUMS.compile(VOCABULARY).matcher()
    assert matcher.accept_bytes(b"1+2")
    assert [c.complete for c in matcher.captures()["NUMBER"]] == [True, False]
    assert matcher.accept_token(268)
    assert [c.complete for c in matcher.captures()["NUMBER"]] == [True, True]


def test_half_a_character_is_not_shown() -> None:
    grammar = lark("start: word\nword: /[é-ü]+/", captures=["word"]).compile(VOCABULARY)
    matcher = grammar.matcher()
    assert matcher.accept_bytes("éé".encode()[:3])
    assert matcher.captures() == {"word": Capture("é", "é", 0, 1, complete=False)}


def test_ignored_text_that_has_begun() -> None:
    comments = lark("start: word+\nword: /[a-z]+/\nC: /#[^;]*;/\n%ignore C", captures=["word"])
    matcher = comments.compile(VOCABULARY).matcher()
    assert matcher.accept_bytes(b"ab#note")
    assert matcher.captures()["word"] == [Capture("ab", "ab", 0, 2)]
    assert matcher.accept_bytes(b";cd")
    assert texts(matcher.captures()) == {"word": ["ab", "cd"]}


# --- tags ---
def test_parts_of_tagged_text() -> None:
    text = 'x<c>a:{"a": 1};b:{"a": 2}</c>y 1,ab'
    found = TAGS.captures(text)
    assert texts(found) == {
        "function": ["a", "b"], "args": ['{"a": 1}', '{"a": 2}'], "call": ['a:{"a": 1}', 'b:{"a": 2}'], "word": ["ab"]
    }  # fmt: skip
    assert all(text[c.start : c.end] == c.text for own in found.values() for c in own)
    parts = [part for part in TAGS.parse(text) if not isinstance(part, str)]
    assert [c.value for c in parts[0].captures["args"]] == [{"a": 1}, {"a": 2}]
    assert parts[1].captures == {"word": Capture("ab", "ab", 0, 2)}
    unfinished = TAGS.parse_partial(text[:12])[-1]
    assert not isinstance(unfinished, str)
    assert texts(unfinished.captures)["function"] == ["a"] and not unfinished.captures["args"][0].complete


def test_one_part_at_most_is_no_list() -> None:
    once = tag_dispatch({("<c>", "</c>"): lark("start: word\nword: /[ab]+/", captures=["word"])}, max_uses=1)
    assert texts(once.captures("1<c>ab</c>2")) == {"word": "ab"}
    marks = tag_dispatch({(SpecialToken("<think>"), SpecialToken("</think>")): CALLS})
    assert texts(marks.captures('x<think>a:{"a": 1}</think>'))["function"] == ["a"]


# --- refused ---
@pytest.mark.parametrize(
    ("captures", "message"),
    [
        ("word", "captures are names of rules and terminals"),
        ([1], "captures are names of rules and terminals"),
        ({"word": ""}, "captures are names of rules and terminals"),
        (["wort"], "no such rule or terminal; did you mean 'word'"),
        (["other"], "'other', which 'start' never uses"),
        (["PIECE"], "'PIECE', which no rule uses"),
        (["WS"], r"'WS', which stands between all others"),
    ],
)
def test_what_cannot_be_captured(captures: Any, message: str) -> None:
    source = 'start: word\nword: WORD\nWORD: PIECE+\nPIECE: "a"\nother: "b"\nWS: " "\n%ignore WS'
    with pytest.raises(OptionsError, match=message):
        structgen.compile_lark(source, VOCABULARY, captures=captures)


def test_captures_of_the_contextual_lexer_are_refused() -> None:
    with pytest.raises(OptionsError, match="captures need lexer='dynamic'"):
        structgen.compile_lark('start: "a"', VOCABULARY, lexer="contextual", captures=["start"])


def test_text_of_another_language_has_none() -> None:
    with pytest.raises(GenerationError, match="this is none: 'x'"):
        SUMS.captures("x")


def test_without_captures_nothing_changes() -> None:
    grammar = structgen.compile_gbnf("root ::= a\na ::= [0-9]+", VOCABULARY)
    assert not isinstance(grammar, CapturingGrammar) and captures_of(grammar, b"12") == {}
    assert structgen.json_schema(True).compile(VOCABULARY).matcher().captures() == {}


# --- matchers ---
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_a_capturing_engine_keeps_the_laws(name: str) -> None:
    grammar = CONSTRAINTS[name].compile(VOCABULARY)
    assert isinstance(grammar, CapturingGrammar)
    check_laws(grammar, seed=1, walks=3, steps=8)
    assert np.array_equal(mask_of(grammar.matcher()), mask_of(grammar.grammar.matcher()))


@pytest.mark.first_case
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_captures_are_those_of_the_text_after_any_rollback(name: str) -> None:
    """In sum 10,000 rollbacks, each compared with a matcher that reads the text that is left."""
    grammar = CONSTRAINTS[name].compile(VOCABULARY)
    rng = random.Random(name)
    matcher, steps = grammar.matcher(), list[int]()
    seen = set()
    for _ in range(ROLLBACKS // len(CONSTRAINTS) + 1):
        walk(rng, matcher, steps)
        if rng.random() < 0.2:
            matcher = matcher.fork()
        back = rng.randint(1, min(len(steps), rng.choice((1, 3, 12))))
        matcher.rollback(back)
        del steps[-back:]
        fresh = grammar.matcher()
        assert all(fresh.accept_token(token) for token in steps)
        found = matcher.captures()
        assert found == fresh.captures()
        seen.add(repr(texts(found)))
    assert len(seen) > 40


def walk(rng: random.Random, matcher: Any, steps: list[int]) -> None:
    """Some random tokens; texts are kept short."""
    if len(steps) > 14:
        matcher.rollback(len(steps) - 4)
        del steps[4:]
    for _ in range(rng.randint(1, 4)):
        allowed = np.flatnonzero(mask_of(matcher)).tolist()
        if not allowed:
            break
        likely = [token for token in allowed if token >= 256 or chr(token) in 'ab1(+*):;,"{}<> 2[]']
        steps.append(rng.choice(likely or allowed))
        assert matcher.accept_token(steps[-1])
    if not steps:
        assert matcher.accept_bytes(b"")


# --- others ---
TREES = [
    ('start: pair ("," pair)*\npair: NAME "=" value\nvalue: NUMBER | "[" value* "]"\nNAME: /[a-z]+/\nNUMBER: /[0-9]/',
     ["pair", "value"], ["a=1,bc=[12[3]],d=[]", "x=[[[]]]"]),
    ('start: e\ne: e "+" t | t\nt: t "*" f | f\nf: "(" e ")" | N\nN: /[0-9]/\n%ignore " "',
     ["e", "t", "f"], ["1+2*(3+4)", " (1) * 2 +3", "((1))"]),
    ('start: s\ns: "if" c "then" s "fi" | c\nc: /[a-d]/', ["s", "c"], ["ifathenifbthencfifi", "a"]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "rules", "samples"), TREES)
def test_unambiguous_texts_have_the_parts_of_larks_tree(source: str, rules: list[str], samples: list[str]) -> None:
    from lark import Lark

    parser = Lark(source, parser="earley", propagate_positions=True, maybe_placeholders=False, keep_all_tokens=True)
    constraint = lark(source, captures=rules)
    for text in samples:
        tree = parser.parse(text)
        for rule in rules:
            nodes = [n for n in tree.iter_subtrees_topdown() if n.data == rule]
            expected = sorted((n.meta.start_pos, n.meta.end_pos) for n in nodes)
            found = constraint.captures(text)[rule]
            assert isinstance(found, list)
            assert sorted((c.start, c.end) for c in found) == expected, (text, rule)


PEER = [
    ('start: a b\na[capture="a"]: /[x]+/\nb[capture="b"]: /[yz]+/', ["xxyz", "xz"]),
    ('start: item ("," item)*\nitem[capture="item"]: /[x]+/', ["x,xx,x", "x"]),
    (
        'start: "<" name ">" rest\nname[capture="name"]: /[xyz]+/\nrest[capture="rest"]: "(" /[x]/ ")"',
        ["<xy>(x)"],
    ),
    (
        'start: a b\na[capture="a", suffix="!"]: /[xyz]*/\nb[capture="b", stop_capture="end", stop="."]: /.*/',
        ["xy!z.", "!."],
    ),
    ('start: a+\na: "<" n ">"\nn[capture="n"]: /[xy]+/\n%ignore /[ ]+/', ["<x> < xy >", "<y><x>"]),
    (
        'start: "(" ( a | b ) ")"\na[capture="a"]: /[x]+/\nb[capture="b"]: %json {"enum": [12, "z"]}',
        ["(12)", '("z")', "(xx)"],
    ),
    ('start: list\nlist: "(" list* ")" | leaf\nleaf[capture="leaf"]: /[xyz]/', ["(x(yz)())", "(())"]),
]


@pytest.mark.parametrize(("source", "samples"), PEER)
def test_the_same_captures_as_llguidance(source: str, samples: list[str]) -> None:
    llguidance = pytest.importorskip("llguidance")
    tokens = [b"<eos>", *(bytes([byte]) for byte in range(32, 127))]

    class Tokenizer:
        eos_token_id, bos_token_id, special_token_ids = 0, None, (0,)

        def __init__(self) -> None:
            self.tokens = tokens

        def __call__(self, text: Any) -> list[int]:
            return [byte - 31 for byte in (text.encode() if isinstance(text, str) else text)]

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()), n_vocab=len(tokens))
    names = sorted(re.findall(r'capture="(\w+)"', source))
    constraint = lark(source, dialect="llguidance")
    for text in samples:
        matcher = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_lark(source))
        assert all(matcher.consume_token(byte - 31) for byte in text.encode())
        if not matcher.is_stopped():
            assert matcher.consume_token(0)
        expected: dict[str, list[str]] = {name: [] for name in names}
        for name, data in matcher.get_captures():
            expected[name].append(bytes(data).decode().strip())  # there, what is ignored before a part is in it
        for name, own in texts(constraint.captures(text)).items():
            assert (own if isinstance(own, list) else [] if own is None else [own]) == expected[name], (text, name)


# --- long texts ---
LONG = {
    "lists to the left": ('start: list\nlist: list "," item | item\nitem: /[a-z]+/', "abc,"),
    "lists to the right": ('start: list\nlist: item "," list | item\nitem: /[a-z]+/', "abc,"),
    "words": ("start: item+\nitem: /[a-z,]+/\n%ignore /[ ]+/", "abc, "),
    "text": ('start: (TEXT | "<" item ">")+\nTEXT: /[^<]+/\nitem: /[a-z]+/', "free text <b>, "),
    "nesting": ('start: item\nitem: "(" item ")," | /[a-z]+,/', "("),
}


@pytest.mark.parametrize("name", LONG)
def test_long_texts(name: str) -> None:
    """Ten kilobytes: steps grow about as the text does, and nothing is nested too deeply."""
    source, piece = LONG[name]
    constraint = lark(source, captures=["item"])
    count = 10_000 // len(piece)
    text = "(" * (count // 3) + "a," + ")," * (count // 3) if name == "nesting" else piece * count + "abc"
    if name.startswith("text"):
        text += "<b>"
    found = constraint.captures(text)["item"]
    assert isinstance(found, list) and len(found) > 500


def test_what_is_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "MAX_STEPS", 500_000)
    constraint = lark('start: s\ns: s s | "x" | s s s', captures=["s"])
    assert len(constraint.captures("x" * 40)["s"] or []) >= 79
    with pytest.raises(CapturesTooComplexError, match="budget"):
        constraint.captures("x" * 20_000)


def test_captures_are_looked_for_when_asked_for_and_can_be_sent() -> None:
    part = TAGS.parse("1,ab")[0]
    assert not isinstance(part, str)
    assert pickle.loads(pickle.dumps(part)).captures == part.captures == {"word": Capture("ab", "ab", 0, 2)}


# --- outputs ---
LETTERS = vocabulary(b"ab", b";a", b'{"', eos=1)


def generator() -> Generator:
    return Generator(TinyModel(LETTERS.size), CharTokenizer(eos=1), vocabulary=LETTERS)


@pytest.mark.parametrize("draft", [None, "ngram"])
def test_results_have_captures(draft: Any) -> None:
    for seed in range(4):
        result = generator().generate("p", CALLS, temperature=1.0, seed=seed, max_new_tokens=60, draft=draft)
        assert result.captures == CALLS.captures(result.text)
        assert [args["a"] for args in (c.value for c in result.captures["args"])]
        assert pickle.loads(pickle.dumps(result)).captures == result.captures
    assert generator().generate("p", structgen.choice(["ab"])).captures == {}
    assert generator().generate("p", max_new_tokens=3).captures == {}


def test_events_have_the_captures_so_far() -> None:
    events = list(generator().stream("p", CALLS, temperature=1.0, seed=1, max_new_tokens=60))
    for event in events[:-1]:
        matcher = CALLS.compile(LETTERS).matcher()
        assert matcher.accept_bytes(event.text.encode())
        assert event.captures == matcher.captures()
    result = events[-1].result
    assert result is not None and events[-1].captures == result.captures == CALLS.captures(result.text)
    assert any(not capture.complete for event in events for capture in event.captures["call"])


def test_a_stop_string_is_cut_off() -> None:
    constraint = lark('start: word ("," word)*\nword: /[ab]+/', captures=["word"])
    for seed in range(6):
        result = generator().generate("p", constraint, temperature=1.0, seed=seed, max_new_tokens=12, stop=[","])
        assert texts(result.captures) == {"word": [result.text]} and "," not in result.text


def test_captures_of_xgrammars_ebnf() -> None:
    source = 'root ::= (pair ",")*\npair[capture] ::= key "=" value\nkey[capture="name"] ::= [a-z]+\nvalue ::= [0-9]+'
    found = gbnf(source, dialect="xgrammar").captures("a=1,bc=22,")
    assert texts(found) == {"name": ["a", "bc"], "pair": ["a=1", "bc=22"]}


def test_captures_of_united_constraints() -> None:
    assert texts((CALLS | NESTED).captures("[1]")) == {"args": [], "call": [], "function": [], "item": ["1"]}
    assert texts((NESTED + " and " + NESTED).captures("[1] and [2,3]")) == {"item": ["1", "2", "3"]}


def test_captures_inside_grammars_inside_grammars() -> None:
    ignoring = tag_dispatch({("<c>", "</c>"): SUMS})
    found = ignoring.captures("1+<c> 3 + 4 </c>")
    assert [(c.text, c.start) for c in found["NUMBER"]] == [("3", 6), ("4", 10)]
    around = tag_dispatch({("[", "]"): ignoring})
    assert texts(around.captures("x[<c>1</c>]y[<c>2+(3)</c>]"))["NUMBER"] == ["1", "2", "3"]
    matcher = around.compile(VOCABULARY).matcher()
    assert matcher.accept_bytes(b"x[<c>12")
    assert matcher.captures()["NUMBER"] == [Capture("12", "12", 5, 7, complete=False)]
    inner = 'start: "<" %lark {\nstart: word+\nword[capture]: /[a-z]+/\n%ignore " "\n} ">"'
    assert texts(lark(inner, dialect="llguidance").captures("<ab cd>"))["word"] == ["ab", "cd"]
