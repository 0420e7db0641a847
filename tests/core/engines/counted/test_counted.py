"""Texts with bounds on their characters, against a reading of the text by hand, and by `re`."""

from __future__ import annotations

import ast
import pickle
import random

import pytest

from structgen.core.engines.counted.grammar import CountedTexts
from structgen.core.engines.counted.lengths import CharacterCounts
from structgen.core.engines.laws import Judge, check_laws, mask_of
from structgen.core.grammars.regular import word_dfa
from structgen.core.regex.dfa import universal
from structgen.core.regex.joining import concatenation
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.tool_calls.patterns import Quotes
from structgen.core.tool_calls.spelling import spelled_strings
from structgen.core.tool_calls.values import raw_strings
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, TooComplexError
from tests.many import cases

CLOSING = "</p>"
TOKENS = [
    b"ab",
    b"a<",
    b"</",
    b"</p",
    b"p>",
    b"</p>",
    b"b</p>",
    b">a",
    "ä".encode(),
    "ä<".encode(),
    b"\xe2\x82",
    b"\xac</p>",
]


def vocabulary(tokens: list[bytes]) -> Vocabulary:
    return Vocabulary([*(bytes([byte]) for byte in range(256)), *tokens, None], eos_token_ids=256 + len(tokens))


WORDS = vocabulary(TOKENS)


def closed(least: int, most: int | None) -> CountedTexts:
    """Texts of so many characters without `CLOSING`, and it."""
    texts = concatenation([raw_strings(universal(), CLOSING, 0, 1000), word_dfa(CLOSING)])
    return CountedTexts(
        CharacterCounts(texts), least + len(CLOSING), None if most is None else most + len(CLOSING), WORDS
    )


def judge(least: int, most: int | None) -> Judge:
    """Whether a text can be completed to one of those, and whether it is one: read from left to right."""

    def judged(data: bytes) -> tuple[bool, bool]:
        text, begun = whole(data)
        if text is None:
            return False, False
        end = text.find(CLOSING)
        if end >= 0:
            is_valid = not begun and end + len(CLOSING) == len(text) and least <= end <= (end if most is None else most)
            return is_valid, is_valid
        if most is None or len(text) + begun <= most:  # more of it may come
            return True, False
        endings = [n for n in range(1, len(CLOSING)) if text.endswith(CLOSING[:n]) and not begun]
        return any(least <= len(text) - n <= most for n in endings), False

    return judged


def whole(data: bytes) -> tuple[str | None, bool]:
    """The whole characters of a text, and whether one more has begun; None: it is no UTF-8."""
    for cut in range(4):
        try:
            text = data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            continue
        begun = data[len(data) - cut :]
        return (text, bool(cut)) if not cut or can_go_on(begun) else (None, False)
    return None, False


def can_go_on(begun: bytes) -> bool:
    """Whether bytes begin a character."""
    try:
        begun.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and error.start == 0
    return False


@pytest.mark.parametrize("seed", cases(12, 2))
@pytest.mark.parametrize("least, most", [(0, 0), (0, 3), (2, 5), (0, 40), (30, 70), (9, 9), (3, None)])
def test_laws(least: int, most: int | None, seed: int) -> None:
    grammar = closed(least, most)
    rng = random.Random(f"{least} {most} {seed}")
    limit = least if most is None else most
    prefixes = [b"a" * rng.randint(0, limit), b"a" * max(0, limit - rng.randint(0, 4)) + b"</"[: rng.randint(0, 2)]]
    usable = [prefix for prefix in prefixes if judge(least, most)(prefix)[0]]
    check_laws(grammar, judge(least, most), prefixes=(b"", *usable), walks=2, seed=seed)


def test_a_bound_costs_no_states() -> None:
    """A million characters are as many states as ten, and a mask far from them is a copy."""
    grammar = closed(0, 1_000_000)
    assert grammar.machine is closed(0, 10).machine
    matcher = grammar.matcher()
    before = mask_of(matcher)
    assert matcher.accept_bytes(b"x" * 900_000) and (mask_of(matcher) == before).all()
    assert matcher.accept_bytes(b"x" * 100_000) and matcher.forced_bytes() == CLOSING.encode()


def test_a_completion_of_many_characters() -> None:
    matcher = closed(5_000, 6_000).matcher()
    text = matcher.shortest_completion()
    assert len(text) == 5_000 + len(CLOSING) and matcher.accept_bytes(text) and matcher.is_accepting()


@pytest.mark.parametrize("seed", cases(8, 2))
@pytest.mark.parametrize("mark", ["'", '"'])
def test_escapes_are_one_character(mark: str, seed: int) -> None:
    """Of strings as Python spells them, the characters that are meant are counted."""
    least, most = 2, 6
    texts = concatenation([spelled_strings(universal(), Quotes(mark, escaped=True), 1000), word_dfa(mark)])
    words = vocabulary([b"\\", b"\\n", b"\\x", b"\\x0", b"0a", b"\\'", b'\\"', b"a\\", "ä\\".encode(), b"n'", b'n"'])
    grammar = CountedTexts(CharacterCounts(texts, escaped=True), least + 1, most + 1, words)
    rng = random.Random(f"{mark} {seed}")
    check_laws(
        grammar, prefixes=(b"", b"\\x0", b"abcd\\"), walks=2, steps=8, seed=seed, valid=lambda text: _fits(text, mark)
    )
    written = {"\n": "\\n", "\x07": "\\x07", mark: "\\" + mark, "\\": "\\\\"}
    for _ in range(40):
        value = "".join(rng.choice(["a", "\n", "\x07", mark, "\\", "ä", "😀"]) for _ in range(rng.randint(0, 8)))
        text = "".join(written.get(character, character) for character in value) + mark
        matcher = grammar.matcher()
        is_taken = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        assert is_taken == (least <= len(value) <= most), (value, text)


def _fits(text: bytes, mark: str) -> bool:
    return 2 <= len(ast.literal_eval(mark + text.decode())) <= 6


def test_what_has_no_regular_lengths() -> None:
    """It is left to automata: pairs of characters, and texts that end at some length."""
    for pattern in ("(?:aa)+", "a{100}", "a{90}b*"):
        with pytest.raises(TooComplexError, match="steps"):
            CharacterCounts(full_match_dfa(pattern))
    with pytest.raises(TooComplexError, match="escaped"):
        CharacterCounts(full_match_dfa(r"an*|\\n*"), escaped=True)


def test_no_text_of_so_many_characters() -> None:
    for pattern, least, most in (("a+", 5, 3), ("abc", 4, 9)):
        with pytest.raises(EmptyLanguageError):
            CountedTexts(CharacterCounts(full_match_dfa(pattern)), least, most, WORDS)


def test_a_grammar_can_be_sent() -> None:
    grammar = closed(1, 4)
    twin = pickle.loads(pickle.dumps(grammar))
    for text in (b"", b"a</", b"abcd"):
        one, two = grammar.matcher(), twin.matcher()
        assert one.accept_bytes(text) and two.accept_bytes(text) and (mask_of(one) == mask_of(two)).all()
