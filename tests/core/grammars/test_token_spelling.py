"""What only longer tokens spell: masks against all token sequences of the texts of small languages."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import numpy as np
import pytest

from structgen.core.compilers import compile_choice, compile_gbnf, compile_lark, compile_regex, compile_tag_dispatch
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.cfg.compiled import CfgGrammar
from structgen.core.engines.laws import check_laws
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.grammars import token_spelling
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, GrammarWarning

Sequence = tuple[str, ...]
Body = list[list[str | int]]


def vocabulary(*texts: str) -> Vocabulary:
    return Vocabulary([*(text.encode() for text in texts), None], eos_token_ids=len(texts))


def mask(matcher: Matcher) -> set[str]:
    words = matcher.grammar.vocabulary
    bitmask = allocate_token_bitmask(1, words.size)
    matcher.fill_next_token_bitmask(bitmask)
    bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
    return {words.tokens[token].decode() for token in np.flatnonzero(bits)}


def spellings(text: str, tokens: list[str]) -> list[Sequence]:
    """All token sequences of a text."""
    found: list[list[Sequence]] = [[()]]
    for end in range(1, len(text) + 1):
        found.append(
            [
                (*before, token)
                for token in tokens
                if text[:end].endswith(token) and len(token) <= end
                for before in found[end - len(token)]
            ]
        )
    return found[-1]


def check(grammar: Grammar, language: set[str], tokens: list[str], rng: random.Random, *, whole: int = 10**9) -> None:
    """Every token sequence that begins one of the language's has the mask that these say ("": the end).

    Of a language that is endless, ``whole`` says up to how many characters a text is looked at.
    """
    following: dict[Sequence, set[str]] = {}
    for text in language:
        for sequence in spellings(text, tokens):
            for n, token in enumerate((*sequence, "")):
                following.setdefault(sequence[:n], set()).add(token)
    assert () in following
    looked = [prefix for prefix in following if len("".join(prefix)) <= whole]
    for prefix in rng.sample(looked, min(60, len(looked))):
        matcher = grammar.matcher()
        for token in prefix:
            assert matcher.accept_token(tokens.index(token)), (prefix, token)
        assert mask(matcher) == following[prefix], prefix
        assert matcher.is_accepting() == ("" in following[prefix])
        if isinstance(grammar, CfgGrammar) and grammar.mark >= 0:
            rest = matcher.shortest_completion().decode()
            assert "".join(prefix) + rest in language and spellings(rest, tokens), (prefix, rest)
        for n, token in enumerate(tokens):
            if token not in following[prefix]:
                assert not matcher.accept_token(n), (prefix, token)


def test_the_reported_case() -> None:
    tokens = ["A1", "L1", "A"]
    for grammar in (
        compile_regex("A1L1A", vocabulary(*tokens)),
        compile_choice(["A1L1A"], vocabulary(*tokens)),
        compile_gbnf('root ::= "A" x "L" x "A"\nx ::= "1"', vocabulary(*tokens)),
        compile_lark('start: A "1" "L1" A\nA: "A"', vocabulary(*tokens)),
    ):
        check(grammar, {"A1L1A"}, tokens, random.Random(0))


ALPHABET = ["a", "b", "1", ",", "é"]


def random_vocabulary(rng: random.Random) -> list[str]:
    singles = rng.sample(ALPHABET, rng.randint(1, 4))
    longer = ["".join(rng.choices(ALPHABET, k=rng.randint(2, 3))) for _ in range(rng.randint(2, 7))]
    return list(dict.fromkeys([*singles, *longer]))


def random_rules(rng: random.Random) -> tuple[list[Body], set[str]]:
    """Rules that use later ones only, and their language."""
    count = rng.randint(1, 4)
    bodies: list[Body] = []
    for number in range(count):
        symbols: list[str | int] = ["a", "b", "1", ",", "é", "a1", "1,", *range(number + 1, count)]
        bodies.append([rng.choices(symbols, k=rng.randint(1, 3)) for _ in range(rng.randint(1, 3))])
    languages: list[set[str]] = [set() for _ in bodies]
    for number in reversed(range(count)):
        for body in bodies[number]:
            parts = [{symbol} if isinstance(symbol, str) else languages[symbol] for symbol in body]
            languages[number] |= {"".join(found) for found in itertools.product(*parts)}
    return bodies, languages[0]


def written(bodies: list[Body], define: str) -> str:
    lines = []
    for number, bodies_of in enumerate(bodies):
        texts = [" ".join(f'"{s}"' if isinstance(s, str) else f"x{s}" for s in body) for body in bodies_of]
        lines.append(f"x{number}{define} {' | '.join(texts)}")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(150))
def test_masks_are_all_that_tokens_spell(seed: int) -> None:
    rng = random.Random(f"spelled {seed}")
    tokens = random_vocabulary(rng)
    bodies, language = random_rules(rng)
    spelled = {text for text in language if spellings(text, tokens)}
    makes: list[Callable[[], Grammar]] = [
        lambda: compile_regex("|".join(sorted(language, key=hash)), vocabulary(*tokens)),
        lambda: compile_choice(language, vocabulary(*tokens)),
        lambda: compile_gbnf(written(bodies, " ::="), vocabulary(*tokens), "x0"),
        lambda: compile_lark(written(bodies, ":"), vocabulary(*tokens), "x0"),
    ]
    for make in makes:
        if not spelled:
            with pytest.raises(EmptyLanguageError):
                make()
        else:
            check(make(), spelled, tokens, rng)


@pytest.mark.parametrize(
    ("tokens", "source", "texts"),
    [
        (["(", "(x", "1)", "x1", ")"], 'root ::= "(" root ")" | "x1"', ["(" * n + "x1" + ")" * n for n in range(9)]),
        (["a1", "1,", "a", "1,1"], 'root ::= "a" root | "1" y\ny ::= "," y?', None),
        (["ab", "ba", "a"], 'root ::= "a" root "b" | "ab"', ["a" * n + "b" * n for n in range(1, 9)]),
    ],
)
def test_recursive_rules(tokens: list[str], source: str, texts: list[str] | None) -> None:
    if texts is None:
        texts = ["a" * n + "1" + "," * m for n in range(8) for m in range(1, 8)]
    spelled = {text for text in texts if spellings(text, tokens)}
    check(compile_gbnf(source, vocabulary(*tokens)), spelled, tokens, random.Random(1), whole=5)


def test_ignored_texts_are_spelled_with_the_others() -> None:
    tokens = ["a ", " b", "b", "a", "b "]
    grammar = compile_lark('start: "a" "b" "a"\n%ignore " "', vocabulary(*tokens))
    texts = {
        " " * i + "a" + " " * j + "b" + " " * k + "a" + " " * n for i, j, k, n in itertools.product(range(5), repeat=4)
    }
    check(grammar, {text for text in texts if spellings(text, tokens)}, tokens, random.Random(2))


@pytest.mark.parametrize("pattern", ["(a1|,b)+1?,", "[ab]*1[ab,]{0,2}", '"(a1|,b)*"'])
def test_laws(pattern: str) -> None:
    words = vocabulary("a", "b", '"', "a1", "1,", ",b", ',"', "1b", "1,1")
    grammar = compile_regex(pattern, words)
    assert grammar.mark >= 0 and not grammar.narrowed
    for seed in range(6):
        check_laws(grammar, seed=seed)


def test_special_tokens_stand_beside() -> None:
    tokens = [b"a", b"a1", b"1b", b"b"]
    words = Vocabulary([*tokens, None, None], eos_token_ids=5, special_token_ids=[4], special_tokens={"<|x|>": 4})
    grammar = compile_lark('start: "a" ("1" <|x|> "b" | <|x|> "1b")', words)
    assert isinstance(grammar, CfgGrammar) and grammar.mark >= 0
    for ids in ([1, 4, 3, 5], [0, 4, 2, 5]):
        matcher = grammar.matcher()
        assert all(matcher.accept_token(token) for token in ids) and matcher.is_terminated()
    check_laws(grammar)


def test_captures_are_found() -> None:
    words = vocabulary("a", "a1", "1b", "b")
    grammar = compile_lark('start: "a" x\nx: "1" "b"', words, captures=["x"])
    matcher = grammar.matcher()
    assert matcher.accept_token(1) and matcher.accept_token(3)
    assert matcher.captures()["x"].text == "1b"


def test_grammars_in_grammars_are_spelled_together() -> None:
    words = vocabulary("a", "a1", "1b", "b", "1")
    lacking = vocabulary("a", "a1", "1b", "b")
    for vocabulary_ in (words, lacking):
        part = compile_gbnf('root ::= "a" | "a1b"', vocabulary_)
        tagged = compile_tag_dispatch({"b": part}, vocabulary_, min_uses=1, max_uses=1, free_text="none")
        matcher = tagged.matcher()
        assert matcher.accept_token(3) and mask(matcher) == {"a", "a1"}
        assert matcher.accept_token(1) and mask(matcher) == {"b"}


def test_the_contextual_lexer_says_what_it_leaves_out() -> None:
    words = vocabulary("a", "b", "1b", "c")
    with pytest.warns(GrammarWarning, match=r"0x31 \('1'\)"):
        grammar = compile_lark('start: "a" "1b" | "b"', words, lexer="contextual")
    assert mask(grammar.matcher()) == {"b"}
    assert mask(compile_lark('start: "a" "1b" | "b"', words).matcher()) == {"a", "b"}


def test_what_is_too_large_is_narrowed_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    words = vocabulary("a", "b", "a1", "b1b")
    exact = compile_regex("(a1)*b|b1b", words)
    monkeypatch.setattr(token_spelling, "BOUNDS", token_spelling.BOUNDS._replace(table_states=1))
    with pytest.warns(GrammarWarning, match=r"narrowed .* no token spells alone 0x31 \('1'\)"):
        narrow = compile_regex("(a1)*b|b1b", words)
    assert narrow.narrowed and not exact.narrowed
    assert mask(narrow.matcher()) == {"b", "b1b"}
    assert mask(exact.matcher()) == {"a1", "b", "b1b"}
