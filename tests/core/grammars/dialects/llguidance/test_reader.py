"""What the dialect says beyond what llguidance's version here reads, other grammars, special tokens, constraints."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from structgen import choice, json_schema, lark, regex
from structgen.core.compilers import compile_gbnf, compile_lark
from structgen.core.engines.laws import check_laws
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, GrammarError, SchemaError
from structgen.options import JsonOptions
from tests.core.grammars.dialects.llguidance.peers import BYTES, Peer


def accepted(grammar: Grammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def language(source: str, texts: list[str], **options: object) -> set[str]:
    """Which of some texts a grammar has."""
    grammar = compile_lark(source, BYTES, dialect="llguidance", **options)  # type: ignore[arg-type]
    return {text for text in texts if accepted(grammar, text)}


CASES = {
    # grammar: texts of it, other texts
    'start: x ";"\nx[max_chars=2]: /[a-zé]*/': ({";", "a;", "éé;"}, {"abc;", "éaé;"}),
    'start: x "b"\nx[max_chars=3, suffix="!"]: /.*/': ({"!b", "abc!b"}, {"abcd!b", "a!!b"}),
    "start: x\nx[lazy, max_chars=1]: /[ab]*c/": ({"c"}, {"ac"}),
    # a rule that no text has, beside a lazy one: its condition never holds, it never ends, it is only ever empty
    'start: "q" | c::0 B x\nB: /a|ab/\nc::_ : "." %if eq(_,2)\nx[lazy]: /[a-z]*/ "ab"': ({"q"}, {".aab", "aab"}),
    'start: "q" | c B x\nB: /a|ab/\nc: c "."\nx[lazy]: /[a-z]*/ "ab"': ({"q"}, {".aab", "aab"}),
    'start: "q" | c B x\nB: /a|ab/\nc: ""\nx[lazy]: /[a-z]*/ "ab"': ({"q", "aab", "acab"}, {".aab"}),
    'start: x | c\nc: d B\nB: /a|ab/\nd: c\nx[lazy]: /[a-z]*/ "ab"': ({"ab", "cab"}, {"a", "abab"}),
    # what is ignored stands behind %json, where a terminal follows, and not before it
    'start: "a" %json {"type": "boolean"} "b"\n%ignore " "': ({"atrueb", "atrue b"}, {"a trueb", "atrueb "}),
    # docs/syntax.md: "will match only the empty string", "will only match a single digit"
    'start: foo "x"\nfoo[lazy]: /.*/': ({"x"}, {"ax"}),
    'start: foo "x"\nfoo[lazy]: /[0-9]+/': ({"1x"}, {"12x", "x"}),
    # "given a string foo<end>bar<end>, they will all match just the prefix foo<end>", stop and its own text after it
    'start: outer_stop\nouter_stop: with_stop "<end>"\nwith_stop[stop="<end>"]: /.*/': (
        {"foo<end>", "<end>"},
        {"foo", "foo<end><end>", "foo<end>bar<end>"},
    ),
    'start: p\np: with_stop "b"\nwith_stop[stop="<end>"]: /.*/': ({"foo<end>b"}, {"foob", "foo<end>"}),
    'start: x "-->"\nx[stop="--"]: /[a-z-]*/': ({"a-b-->"}, {"a---->", "a--"}),
    # "the regex describes the entire skipped span, which allows bounds in the regex to be enforced"
    '%llguidance { "skip_repetition": "once" }\n%ignore /[ \\t]{1,8}/\nstart: "A" "!"': (
        {"A!", "A !", "A" + " " * 8 + "!"},
        {"A" + " " * 9 + "!", " A!", "A! "},
    ),
    '%ignore /[ \\t]{1,8}/\nstart: "A" "!"': ({"A!", "A" + " " * 9 + "!"}, {" A!", "A! "}),
    # conditions that its documentation has and its parser has not
    'start: aa::5\naa::_ : "x" aa::bit_and(0x4) %if true() | "y" %if and(eq(_,4),not(bit_set(0)))': (
        {"xy", "xxy"},
        {"y", "x"},
    ),
    'start: aa::0\naa::_ : "a" aa::bit_or(6) %if is_zeros([1:3]) | "b" aa::clear_bit(1) %if bit_set(1)\n'
    '  | "c" %if ge(_, 4)': (
        {"abc", "ac"},
        {"c", "ab", "abbc"},
    ),
    "start: a | b\na[lazy]: /ab/\nb: /abc|ac/": ({"ab", "ac"}, {"abc"}),
    "start: x? T\nx[lazy]: /[a-z]*;/\nT: /[a-z;]*/": ({"a;b;c", "", ";"}, set()),
    'start: "[" t | "(" (t | l)\nt: T\nT: /[a-w;]*/\nl[lazy]: /[a-w]*;/': ({"[a;b", "(ab", "(a;"}, {"(a;b"}),
    'start: "{" %lark { start: "a"{2} } "}"': ({"{aa}"}, {"{a}", "aa"}),
}


@pytest.mark.parametrize("source", CASES)
def test_the_documented_meaning(source: str) -> None:
    inside, outside = CASES[source]
    assert language(source, [*inside, *outside]) == inside
    check_laws(compile_lark(source, BYTES, dialect="llguidance"), walks=2, steps=8, exact=True)


def test_unambiguous_repetitions() -> None:
    for low, high in itertools.product((0, 1, 17, 33), (18, 40, None)):
        if high is None or low <= high:
            grammar = compile_lark(f'start: "a"{{{low},{high or ""}}}', BYTES, dialect="llguidance")
            found = {n for n in range(60) if accepted(grammar, "a" * n)}
            assert found == set(range(low, (high or 59) + 1))


def test_rules_of_many_parts_that_may_be_empty() -> None:
    """Against all choices; the first one is cut as it is, the second one since text is ignored."""
    words = [f"{chr(97 + i)};" for i in range(12)]
    expected = {"".join(chosen) for n in range(4) for chosen in itertools.combinations(words, n)}
    source = "start: " + " ".join(f"x{i}?" for i in range(12)) + "\n"
    for attribute in ("", "[lazy]"):
        rules = "".join(f"x{i}{attribute}: /{chr(97 + i)}+;/\n" for i in range(12))
        for ignored in ("", '%ignore " "'):
            texts = [*expected, "b;a;", "a;a;", "bb", " a;", "a; "]
            assert language(source + rules + ignored, texts) == expected
            assert language(source + rules + ignored, ["a; l;"]) == ({"a; l;"} if ignored else set())


# --- other grammars ---
OTHERS = {
    "foo": 'start: X @bar\nX: "x"+ & ~/xx/\n%ignore "-"',
    "bar": 'start: "y" | "(" @foo ")"',
}


def test_grammars_by_name_as_llguidance_reads_them() -> None:
    pytest.importorskip("llguidance")
    peer, rng = Peer(), random.Random(1)
    source = 'start: "a" @foo "b" "c"\n%ignore " "'
    grammar = compile_lark(source, BYTES, dialect="llguidance", grammars=OTHERS)
    texts = ["axyb c", "ax-yb c", "ax(xxx-y)bc", "axxyb c", "a xyb c", "axy-bc", "ax(x(xy))bc", "ax -ybc"]
    texts += ["a" + "".join(rng.choices("xy()- ", k=4)) + "b c" for _ in range(300)]
    for text in texts:
        assert accepted(grammar, text) == peer.accepts(source, text.encode(), OTHERS), text
    assert sum(accepted(grammar, text) for text in texts) >= 3
    check_laws(grammar, walks=3, steps=8, exact=True)


def test_constraints_by_name() -> None:
    source = 'start: @greeting " " @who ("; " @data)*'
    grammars = {
        "greeting": 'start: "Hi" | "Hello"',
        "who": choice(["you", "all"]),
        "data": json_schema({"type": "integer", "maximum": 99}),
    }
    constraint = lark(source, dialect="llguidance", grammars=grammars)
    grammar = constraint.compile(BYTES)
    for text, expected in {"Hi you": True, "Hello all; 12; -7": True, "Hi you; 100": False, "Hey you": False}.items():
        assert accepted(grammar, text) == expected
    assert constraint.compile(BYTES) is grammar, "kept by content"
    again = lark(source, dialect="llguidance", grammars={**grammars, "who": regex("z+")})
    assert again.content_key() != constraint.content_key() and accepted(again.compile(BYTES), "Hi zzz")
    check_laws(grammar, walks=2, steps=8, exact=True)
    compiled = compile_lark(
        'start: "<" @x ">"', BYTES, dialect="llguidance", grammars={"x": compile_gbnf('root ::= "a"*', BYTES)}
    )
    assert accepted(compiled, "<aa>") and accepted(compiled, "<>")


def test_mistakes_in_other_grammars() -> None:
    with pytest.raises(GrammarError, match="'b' is not defined") as caught:
        compile_lark("start: @x", BYTES, dialect="llguidance", grammars={"x": "start: b"})
    assert (caught.value.line, caught.value.column) == (1, 8)
    with pytest.raises(GrammarError) as caught:
        compile_lark("start: @x", BYTES, dialect="llguidance", grammars={"x": "start: ("})
    assert any("@x" in note for note in caught.value.__notes__)


# --- special tokens, JSON, files ---
SPECIAL = Vocabulary(
    [bytes([byte]) for byte in range(256)] + [None] * 4,
    eos_token_ids=256,
    special_token_ids=[257, 258, 259],
    special_tokens={"<think>": 257, "</think>": 258, "<|call|>": 259},
)


def test_special_tokens() -> None:
    source = (
        'start: <think> "\\n" /(.|\\n)*/ </think> answer\n'
        'answer[capture]: "yes" | <|call|> %json {"type": "boolean"} <[257-258]>\n%ignore " "'
    )
    matcher = compile_lark(source, SPECIAL, dialect="llguidance").matcher()
    assert matcher.accept_token(257) and matcher.accept_bytes(b" \n any </think> text") and matcher.accept_token(258)
    assert matcher.accept_bytes(b" ") and matcher.accept_token(259) and matcher.accept_bytes(b"true")
    assert not matcher.accept_bytes(b"yes") and matcher.accept_token(257) and matcher.is_accepting()
    check_laws(compile_lark(source, SPECIAL, dialect="llguidance"), walks=2, steps=8, exact=True)
    with pytest.raises(GrammarError, match="no special token '<thought>'"):
        compile_lark("start: <thought>", SPECIAL, dialect="llguidance")


def test_json_options() -> None:
    source = (
        'start: %json {"type": "array", "items": true}\n'
        '  | "x" %json {"x-structgen": {"whitespace": "single"}, "enum": [[1]]}'
    )
    texts = ["[1,2]", "[1, 2]", "x[1]"]
    compact = JsonOptions(whitespace="compact")
    assert language(source, texts, json_options=compact) == {"[1,2]", "x[1]"}
    for guidance, expected in {
        '{"whitespace_flexible": false}': {"[1,2]"},
        '{"whitespace_flexible": true, "lenient": false}': {"[1,2]", "[1, 2]", "[ 1,2]"},
        '{"item_separator": ",", "coerce_one_of": false}': {"[1,2]", "[1, 2]"},
    }.items():
        source = f'start: %json {{"x-guidance": {guidance}, "type": "array"}}'
        assert language(source, ["[1,2]", "[1, 2]", "[ 1,2]"]) == expected
    with pytest.raises(SchemaError):
        compile_lark('start: %json {"type": "nothing"}', BYTES, dialect="llguidance")


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "grammar.lark"
    path.write_text('start: "a"{2}')
    assert accepted(compile_lark(path, BYTES, dialect="llguidance"), "aa")
    constraint = lark(str(path), dialect="llguidance")
    assert constraint.content_key() is None and accepted(constraint.compile(BYTES), "aa")
    with pytest.raises(ConstraintError, match="cannot read the grammar"):
        compile_lark(tmp_path / "none.lark", BYTES, dialect="llguidance")


def test_another_start() -> None:
    assert language('a: "x"\nb: a a', ["x", "xx"], start="b") == {"xx"}
