"""Special tokens as what delimits tagged text, and in grammars inside grammars."""

from __future__ import annotations

import random
from typing import Any

import pytest

import structgen
from structgen import SpecialToken
from structgen.core.compilers import compile_choice, compile_json_schema, compile_lark, compile_tag_dispatch
from structgen.core.engines.composed.tags import Tag
from structgen.core.engines.laws import check_laws
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.special_tokens import LEAD
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, GrammarError
from tests.core.engines.composed.oracle import check_walks, remembered
from tests.core.engines.composed.test_tag_dispatch import Reading, Simulation
from tests.core.engines.special_tokens import private, with_stand_ins

pytest.importorskip("lark")

NAMES = {"<a>": 1, "b>": 2, "[c]": 3, "<d": 4}
A, B, C, D = map(SpecialToken, NAMES)


def words(rng: random.Random) -> Vocabulary:
    """Special tokens 1 to 3 without text, 4 with; ends 0 and 5; letters, random texts, the bytes of é, and FF."""
    texts = ["".join(rng.choices("ab<>[c]", k=rng.randint(2, 4))).encode() for _ in range(20)]
    letters = [letter.encode() for letter in "ab<>[c]d"]
    tokens = [None, None, None, None, b"<d", None, *letters, *texts, b"\xc3", b"\xa9", b"\xff", b"a\xff"]
    return Vocabulary(tokens, eos_token_ids=[0, 5], special_token_ids=[1, 2, 3], special_tokens=NAMES)


class SpecialSimulation(Simulation):
    """Special tokens are private characters, which free text does not hold; nor does it spell what delimits."""

    def __init__(self, tags: list[tuple[Any, Any, list[str]]], stop: Any = None, **options: Any) -> None:
        marks = [*(mark for tag in tags for mark in tag[:2]), stop, options.get("separator")]
        spelled = [str(mark) for mark in marks if isinstance(mark, SpecialToken)]
        options["excludes"] = [*options.get("excludes", []), *spelled]
        if "separator" in options:
            options["separator"] = plain(options["separator"])
        if "triggers" in options:  # special tokens trigger themselves
            options["triggers"] = [*options["triggers"], *(plain(a) for a, _, _ in tags if isinstance(a, SpecialToken))]
        super().__init__([(plain(a), plain(b), texts) for a, b, texts in tags], stop=plain(stop), **options)

    def step(self, reading: Reading, byte: bytes) -> set[Reading]:
        return {after for after in super().step(reading, byte) if after[0] != "free" or self.is_text(after[2])}

    def is_text(self, text: bytes) -> bool:
        return not any("\ue000" <= character < "\uf000" for character in text.decode(errors="ignore"))


def plain(mark: Any) -> Any:
    return private(NAMES[str(mark)]) if isinstance(mark, SpecialToken) else mark


CASES: list[dict[str, Any]] = [
    {"tags": [(A, "", ["b", "ab"])]},
    {"tags": [(A, B, ["", "a", "b>"]), ("b<", "", ["a"])], "least": 1, "most": 2},
    {"tags": [(A, A, ["b"])], "stop": C},
    {"tags": [("<b", C, ["a", "[c"]), (D, ">", ["b"])], "most": 2},
    {"tags": [(A, "", ["b"]), (B, "", ["a", ""])], "least": 1, "most": 3, "free_text": "none", "stop": C},
    {"tags": [(C, D, ["a", "ab"])], "least": 1, "most": 1, "free_text": "before"},
    {"tags": [(A, B, ["a"]), (A, C, ["a", "b"]), ("bab", B, ["<"])], "triggers": ["ba"], "excludes": ["bb", "[c"]},
    {"tags": [(A, B, ["a", "b"]), ("b[", C, ["a"])], "free_text": "instead", "separator": D, "stop": B},
    {"tags": [(A, B, ["b", "ab"])], "free_text": "after", "least": 1, "stop": C},
    {"tags": [("", B, ["a"])], "free_text": "none", "separator": A},
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_tagged_text_against_the_simulation(case: dict[str, Any], seed: int) -> None:
    rng = random.Random(seed)
    given = words(rng)
    options = {{"least": "min_uses", "most": "max_uses"}.get(name, name): value for name, value in case.items()}
    view = given.naming([4]) if "<d" in repr(case) else given
    tags = [((begin, end), compile_choice(texts, view)) for begin, end, texts in options.pop("tags")]
    grammar = compile_tag_dispatch(tags, given, **options)
    judge = remembered(with_stand_ins(SpecialSimulation(**case).run, grammar.vocabulary))
    check_walks(grammar, judge, rng, walks=3, steps=8)


def test_free_text_does_not_spell_what_delimits() -> None:
    vocabulary = words(random.Random(1))
    grammar = compile_tag_dispatch({(A, B): compile_choice(["a"], vocabulary)}, vocabulary, stop=C)
    matcher = grammar.matcher()
    assert not matcher.accept_bytes(b"a<a>") and not matcher.accept_bytes(b"b>") and not matcher.accept_bytes(b"[c]")
    assert matcher.accept_bytes(b"[c<a") and matcher.accept_token(1)
    assert not matcher.accept_token(2) and matcher.accept_bytes(b"a") and not matcher.accept_bytes(b"b>")
    assert matcher.accept_token(2) and not matcher.is_accepting() and not matcher.accept_token(0)
    assert matcher.accept_token(3) and matcher.is_accepting() and matcher.accept_token(0)


def test_ids_and_names_are_the_same_tokens() -> None:
    vocabulary = words(random.Random(2))
    by_name = compile_tag_dispatch({(A, B): compile_choice(["a"], vocabulary)}, vocabulary)
    by_id = compile_tag_dispatch({(SpecialToken(1), SpecialToken(2)): compile_choice(["a"], vocabulary)}, vocabulary)
    for grammar in (by_name, by_id):
        matcher = grammar.matcher()
        assert (
            not matcher.accept_bytes(b"<a>") and matcher.accept_token(1) and matcher.shortest_completion()[:1] == b"a"
        )


@pytest.mark.parametrize(
    "source",
    [
        'start: <a> %json {"type": "integer"} <[2]>',
        'start: "a" (<a> %json {"enum": ["<d", 1]} | <d> "b")*',
        'start: %json {"type": "string", "maxLength": 3} <[*]> "a"',
        'start: <[^1]>* <a> %json {"const": "\\u0061"}',
    ],
)
def test_json_between_special_tokens(source: str) -> None:
    tokens = [None, None, None, None, b"<d", None, *(bytes([byte]) for byte in range(256)), b'"<', b'1"', b'a"b', b'"}']
    vocabulary = Vocabulary(
        tokens, eos_token_ids=[0, 5], special_token_ids=[1, 2, 3], special_tokens=NAMES | {"<d>": 4}
    )
    check_laws(compile_lark(source, vocabulary), walks=3, steps=8, likely=b'"<1a')


def test_grammars_inside_that_name_tokens() -> None:
    """The grammar around learns of them; a nested tag dispatch, JSON and Lark in one."""
    vocabulary = words(random.Random(3))
    inner = compile_tag_dispatch({(B, "."): compile_choice(["a"], vocabulary)}, vocabulary, max_uses=1, stop=C)
    grammar = compile_tag_dispatch({"[": inner, (A, A): compile_lark("start: <[2-3]>+", vocabulary)}, vocabulary)
    assert grammar.vocabulary.named == {1, 2, 3}
    check_laws(grammar, walks=4, steps=8, prefixes=[b"", b"["])


def test_parts_must_agree_on_what_is_text() -> None:
    vocabulary = words(random.Random(4))
    part = compile_choice(["a<d"], vocabulary)
    with pytest.raises(ConstraintError, match=r"takes as text.* <d\. Compile it for vocabulary\.naming\(\[4\]\)"):
        compile_tag_dispatch({(D, B): part}, vocabulary)
    other = Vocabulary([*vocabulary.tokens[:-1], b"z"], eos_token_ids=[0, 5])
    with pytest.raises(ConstraintError, match="another vocabulary"):
        compile_tag_dispatch({(A, B): compile_choice(["a"], other)}, vocabulary)
    ending = words(random.Random(4))
    with pytest.raises(ConstraintError, match=r"as the end.* <\[5\]>"):
        compile_tag_dispatch({(A, SpecialToken(5)): compile_choice(["a"], ending)}, ending)


@pytest.mark.parametrize(
    ("tags", "stop", "message"),
    [
        ({SpecialToken("<b>"): 0}, None, "no special token '<b>'; did you mean 'b>'"),
        ({SpecialToken(99): 0}, None, "there is no token 99"),
        ({A: 0, "<a": 0}, None, "'<a' is in '<a>'"),
        ({A: 0}, SpecialToken(1), "'<a>' is in '<a>'"),
        ({(A, 3): 0}, None, "a tag is a trigger or"),
        ({A: 0}, 3, "are a string or a SpecialToken"),
    ],
)
def test_refusals(tags: Any, stop: Any, message: str) -> None:
    vocabulary = words(random.Random(5))
    part = compile_choice(["a"], vocabulary)
    with pytest.raises(ConstraintError, match=message.replace("[", r"\[")):
        compile_tag_dispatch(dict.fromkeys(tags, part), vocabulary, stop=stop)


def test_a_byte_ff_of_the_vocabulary_begins_no_special_token() -> None:
    vocabulary = words(random.Random(6))
    grammar = compile_lark("start: <a> /[a-z]+/ <[2]>", vocabulary)
    assert not any(LEAD in token for i, token in enumerate(grammar.vocabulary.tokens) if i not in (1, 2))
    check_laws(grammar, walks=3, steps=6)


def test_values_of_tagged_text() -> None:
    """Text shows special tokens by their names, and is taken apart by them; parts may name some themselves."""
    schema = {"type": "integer"}
    value = structgen.tag_dispatch({(A, B): schema, "JSON:": structgen.lark("start: <[c]> /x+/ <d>")}, max_uses=2)
    text = "so <a>12b> JSON:[c]xx<d"
    parts = value.parse(text.replace("<d", "<d>"))
    assert [part if isinstance(part, str) else (part.trigger, part.value) for part in parts] == [
        "so ",
        ("<a>", 12),
        " ",
        ("JSON:", "[c]xx<d>"),
    ]
    begun = value.parse_partial("so <a>12")[1]
    assert isinstance(begun, structgen.TagPart) and begun.trigger == "<a>"
    assert "<a>...b>" in value.instruction()
    by_id = structgen.tag_dispatch({A: structgen.lark("start: <[3]>")})
    with pytest.raises(GrammarError, match=r"that of <\[3\]> is not known; write the name"):
        by_id.compile(words(random.Random(8)))
    with pytest.raises(ConstraintError, match="has no name to find it by"):
        structgen.tag_dispatch({SpecialToken(3): schema})


def test_ends_of_sequence_can_delimit() -> None:
    """An end that a constraint names ends nothing in it; parts are compiled so."""
    tokens = [bytes([byte]) for byte in range(256)] + [None, None, None]
    vocabulary = Vocabulary(tokens, eos_token_ids=[256, 257], special_tokens={"<|call|>": 257, "<|tool|>": 258})
    call, tool = SpecialToken("<|call|>"), SpecialToken("<|tool|>")
    value = structgen.tag_dispatch({(tool, call): {"type": "integer"}}, min_uses=1, max_uses=1, free_text="before")
    grammar = value.compile(vocabulary)
    assert grammar.vocabulary.eos_token_ids == (256,) and value.compile(vocabulary) is grammar
    check_laws(grammar, walks=3, steps=8)
    matcher = grammar.matcher()
    assert not matcher.accept_token(257) and matcher.accept_token(258) and matcher.accept_bytes(b"7")
    assert matcher.accept_token(257) and matcher.is_accepting() and not matcher.is_terminated()
    part = compile_json_schema({"type": "integer"}, vocabulary)
    with pytest.raises(ConstraintError, match="as the end"):
        compile_tag_dispatch({(tool, call): part}, vocabulary)


@pytest.mark.parametrize("names", [[], [4]])
def test_the_contextual_lexer_between_special_tokens(names: list[int]) -> None:
    """Lark's LALR parser reads text, and special tokens stand around it."""
    vocabulary = words(random.Random(7)).naming(names)
    part = compile_lark('start: "[" NAME ("<" NAME)* "]"\nNAME: /[ab]+/', vocabulary, lexer="contextual")
    tags: dict[Tag, Grammar] = {(A, C): part, (D, B) if names else B: part}
    grammar = compile_tag_dispatch(tags, vocabulary, max_uses=2)
    check_laws(grammar, walks=4, steps=8, likely=b"[ab]<\xff")
