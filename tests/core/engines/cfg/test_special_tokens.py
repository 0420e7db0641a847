"""Special tokens as terminals: all token sequences up to a length against derivatives of a random expression."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

from structgen.core.compilers import compile_gbnf, compile_lark
from structgen.core.engines.cfg.compiled import CfgGrammar, compile_grammar
from structgen.core.engines.laws import check_laws, mask_of
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.grammars.lark_reader import read_lark
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, GrammarError

pytest.importorskip("lark")

# Ids 0, 1: ends of sequence; 2 to 5: special tokens without text; 6: one with text; then text; 14: unused.
NAMES = {"<|x|>": 2, "<y>": 3, "[Z]": 4, "<end>": 1, "<t>": 6}
TEXTS = [
    None,
    None,
    None,
    None,
    None,
    None,
    b"ab",
    b"a",
    b"b",
    "é".encode(),
    b"ba",
    b"bb\xc3\xa9a",
    b"a",
    b"\xff",
    None,
]
VOCABULARY = Vocabulary(TEXTS, eos_token_ids=[0, 1], special_token_ids=[2, 3, 4, 5], special_tokens=NAMES)
SPECIAL = {2, 3, 4, 5}

# An expression: ("text", characters), ("token", ids, negated, source), ("then" | "or", parts), ("many", part).
Expression = tuple[Any, ...]
NOTHING: Expression = ("or", ())
EMPTY: Expression = ("then", ())
TOKENS: list[tuple[frozenset[int], bool, str, str]] = [
    (frozenset({2}), False, "<|x|>", "<|x|>"),
    (frozenset({3}), False, "<y>", "<[3]>"),
    (frozenset({4}), False, "<[Z]>", "<[4]>"),
    (frozenset({6}), False, "<t>", "<t>"),
    (frozenset({2, 4, 5}), False, "<[2,4-5]>", "<[4-5,2]>"),
    (frozenset({3}), True, "<[^3]>", "!<y>"),
    (frozenset({2, 3}), True, "<[^2-3]>", "!<[2-3]>"),
    (frozenset(), True, "<[*]>", "<[*]>"),
]


def expression(rng: random.Random, depth: int) -> Expression:
    """A random one; what may be repeated is not empty."""
    kind = rng.choice(["text", "token", "token", "then", "or", "many"]) if depth else rng.choice(["text", "token"])
    if kind == "text":
        return kind, "".join(rng.choices("abé", k=rng.randint(1, 3)))
    if kind == "token":
        return kind, *rng.choice(TOKENS)
    if kind == "many":
        return kind, expression(rng, depth - 1)
    return kind, tuple(expression(rng, depth - 1) for _ in range(rng.randint(2, 3)))


def named(e: Expression) -> frozenset[int]:
    """The ids that stand for themselves."""
    if e[0] == "text":
        return frozenset()
    if e[0] == "token":
        return frozenset(SPECIAL - e[1]) if e[2] else e[1]
    return named(e[1]) if e[0] == "many" else frozenset().union(*map(named, e[1]))


def written(e: Expression, place: int) -> str:
    """The expression in Lark (``place`` 3) or GBNF (4)."""
    if e[0] == "text":
        return f'"{e[1]}"'
    if e[0] == "token":
        return str(e[place])
    if e[0] == "many":
        return f"({written(e[1], place)})*"
    return "(" + (" | " if e[0] == "or" else " ").join(written(part, place) for part in e[1]) + ")"


def nullable(e: Expression) -> bool:
    if e[0] in ("text", "token"):
        return e == ("text", "")
    return e[0] == "many" or (any if e[0] == "or" else all)(map(nullable, e[1]))


@cache
def after(e: Expression, atom: str | int) -> Expression:
    """What may follow a character or a special token (Brzozowski, 1964); NOTHING where it may not stand."""
    if e[0] == "text":
        return (("text", e[1][1:]) if e[1][1:] else EMPTY) if e[1][:1] == atom else NOTHING
    if e[0] == "token":
        fits = atom in e[1] if not e[2] else isinstance(atom, str) or atom not in e[1]
        return EMPTY if fits else NOTHING
    if e[0] == "or":
        options = {after(part, atom) for part in e[1]} - {NOTHING}
        return next(iter(options)) if len(options) == 1 else ("or", tuple(sorted(options, key=repr)))
    first, rest = (e[1], (e,)) if e[0] == "many" else (e[1][0], e[1][1:]) if e[1] else (NOTHING, ())
    found = []
    if (begun := after(first, atom)) != NOTHING:
        found.append(("then", (begun, *rest)) if rest else begun)
    if e[0] == "then" and rest and nullable(first) and (later := after(("then", rest), atom)) != NOTHING:
        found.append(later)
    return found[0] if len(found) == 1 else ("or", tuple(found))


def atoms(token: int, own: frozenset[int]) -> list[str | int] | None:
    """What a token is where some ids stand for themselves; None: nothing that a text has."""
    text = TEXTS[token]
    if token in own:
        return [token]
    return None if text is None or b"\xff" in text else list(text.decode())


def compare(matcher: Matcher, e: Expression, own: frozenset[int], depth: int) -> None:
    """Mask and acceptance of all tokens, and what follows each."""
    mask = mask_of(matcher)
    may_stop = nullable(e)
    assert matcher.is_accepting() == may_stop and mask[0] == mask[1] == may_stop and mask.any()
    for token in range(2, VOCABULARY.size):
        rest, found = e, atoms(token, own)
        for atom in found or ():
            rest = after(rest, atom)
        expected = found is not None and rest != NOTHING
        assert mask[token] == expected, (token, e)
        assert matcher.accept_token(token) == expected
        if expected:
            if depth:
                compare(matcher, rest, own, depth - 1)
            matcher.rollback(1)


@pytest.mark.parametrize("seed", range(60))
def test_all_token_sequences_of_random_grammars(seed: int) -> None:
    rng = random.Random(seed)
    e = ("then", (expression(rng, 3), ("token", *TOKENS[seed % len(TOKENS)])))
    grammars: list[Grammar] = [
        compile_lark(f"start: {written(e, 3)}", VOCABULARY),
        compile_gbnf(f"root ::= {written(e, 4)}", VOCABULARY),
    ]
    for grammar in grammars:
        assert grammar.vocabulary.named == named(e)
        compare(grammar.matcher(), e, named(e), 2)
    check_laws(rng.choice(grammars), walks=2, steps=8, exact=True, seed=seed)


def test_nested_and_ignored() -> None:
    """What no expression says: recursion through special tokens, and ignored ones."""
    grammar = compile_lark('start: "a" | <|x|> start <y>\n%ignore <[Z]>', VOCABULARY)
    check_laws(grammar, walks=4, steps=10, exact=True)
    for tokens, taken in (([2, 4, 2, 7, 3, 4, 3], True), ([2, 2, 7, 3], False), ([7], True), ([4, 7, 4], True)):
        matcher = grammar.matcher()
        assert all(matcher.accept_token(token) for token in tokens) and matcher.is_accepting() == taken
    matcher = grammar.matcher()
    assert matcher.accept_token(2) and not matcher.accept_token(3)


def test_runs_are_one_terminal() -> None:
    """Any characters but one token: not read one by one."""
    for grammar in (
        compile_lark("start: <|x|> <[^3]>* <y>", VOCABULARY),
        compile_lark("start: <|x|> (<[^3]>)+ <y>", VOCABULARY),
        compile_gbnf("root ::= <|x|> !<y>* <y>", VOCABULARY),
        compile_gbnf("root ::= <|x|> inner* <y>\ninner ::= !<y>", VOCABULARY),
    ):
        assert isinstance(grammar, CfgGrammar)
        assert any(terminal.name.endswith("+") for terminal in grammar.source.terminals)


def test_ends_of_sequence_that_are_named_are_parts_of_the_text() -> None:
    grammar = compile_lark('start: "a" <end> ("b" <end>)?', VOCABULARY)
    assert grammar.vocabulary.eos_token_ids == (0,)
    check_laws(grammar, walks=4, steps=6, exact=True)
    matcher = grammar.matcher()
    assert matcher.accept_token(7) and matcher.accept_token(1) and matcher.is_accepting()
    assert not matcher.is_terminated() and matcher.accept_token(8) and not matcher.is_accepting()
    ranges = compile_lark('start: "a" <[0-3]>', VOCABULARY)
    assert ranges.vocabulary.named == {2, 3} and ranges.vocabulary.eos_token_ids == (0, 1)


def test_the_normal_form_alone_is_enough() -> None:
    grammar = compile_grammar(read_lark("start: <y> /[ab]+/").grammar, VOCABULARY)
    assert grammar.matcher().accept_token(3)


def test_vocabularies_without_some_bytes() -> None:
    """What cannot be spelled is taken out; special tokens stay."""
    poor = Vocabulary([None, None, None, b"a"], eos_token_ids=0, special_tokens={"<x>": 1, "<y>": 2})
    grammar = compile_lark('start: <x> "a" <y> | <x> "b" <y> | <[^1]>* <x>', poor)
    check_laws(grammar, walks=4, steps=6, exact=True)
    with pytest.raises(EmptyLanguageError):
        compile_lark('start: <x> "b" <y>', poor)


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ("start: <|y|>", (1, 8), r"no special token '<\|y\|>'; (did you mean|there are) .*<"),
        ('start: "a"\n  | "b" <[2-99]>', (2, 9), "there is no token 99; the vocabulary has 15 ids"),
        ("start: <[4-2]>", (1, 8), "the range 4-2 of token ids must go up"),
        ("start: <[^*]>", (1, 8), "leaves out all"),
        ("start: <[0-1]>", (1, 8), "is no token: ends of sequence are named one by one"),
        ("start: <end> <[0]>", None, "names every end of sequence"),
        ('start: A\nA: "a" <y>', (2, 8), "the terminal A holds the special token <y>, which is no text"),
    ],
)
def test_refusals(source: str, place: tuple[int, int] | None, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        compile_lark(source, VOCABULARY)
    assert place is None or (caught.value.line, caught.value.column) == place


def test_refusals_in_gbnf() -> None:
    with pytest.raises(GrammarError, match=r"no special token '<z>'; did you mean '\[Z\]'") as caught:
        compile_gbnf('root ::= "a"\n  !<z>', VOCABULARY)
    assert (caught.value.line, caught.value.column) == (2, 3)
    with pytest.raises(GrammarError, match="leaves out all"):
        compile_gbnf("root ::= !<[*]>", VOCABULARY)


def test_names_that_no_vocabulary_has() -> None:
    bare = Vocabulary([None, b"a"], eos_token_ids=0)
    with pytest.raises(GrammarError, match=r"nor any other name: make it with Vocabulary\.from_transformers"):
        compile_lark("start: <think>", bare)


def test_the_contextual_lexer_refuses_them_by_name() -> None:
    with pytest.raises(GrammarError, match="the special token <y> is none") as caught:
        compile_lark('start: "<y>" // <y>\n  <y>', VOCABULARY, lexer="contextual")
    assert (caught.value.line, caught.value.column) == (2, 3) and "dynamic" in str(caught.value.hint)


def test_text_that_looks_like_a_token_is_text() -> None:
    """In strings, expressions (over several lines, too) and comments."""
    signs = Vocabulary([None, *(bytes([byte]) for byte in b"<>aby")], eos_token_ids=0)
    for source in (
        'start: "<y>" /<[ab]>/ // <y>\n',
        '# <y>\nstart: "<y" ">" /\n(?P<y> <[ab]> ) # <y>\n/x  # <y>',
    ):
        grammar = compile_lark(source, signs)
        assert not grammar.vocabulary.named and grammar.matcher().accept_bytes(b"<y><a>")


def test_grammars_that_name_none_keep_their_vocabulary() -> None:
    grammar = compile_lark('start: "a"', VOCABULARY)
    assert grammar.vocabulary is VOCABULARY
    with pytest.raises(ConstraintError):
        VOCABULARY.naming([0, 1])


@pytest.mark.parametrize("source", [
    "start: <|x|><y>A", "start: <|x|><y>a\na: A", "start: x{<|x|>}<y>A\nx{y}: y",
], ids=str)  # fmt: skip
def test_tokens_need_no_blanks_around_them(source: str) -> None:
    matcher = compile_lark(source + '\nA: "a"', VOCABULARY).matcher()
    assert all(map(matcher.accept_token, [2, 3, 7])) and matcher.is_accepting()
