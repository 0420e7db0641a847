"""Names and quotes against sets of strings and ``str.find``: masks, ends, completions, limits, borders."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import pytest

from structgen import Corpus, EmptyLanguageError, NameSet, Vocabulary, compile_choice
from structgen.core.compilers import compile_names, compile_quotes
from structgen.core.engines.laws import Judge, check_laws
from structgen.core.engines.protocols import Grammar
from structgen.core.engines.sorted.grammar import SortedGrammar

WORDS = [
    b"ab",
    b"aab",
    b"ba",
    "é".encode(),
    b" a",
    b"b ",
    b"a\n",
    "日".encode(),
    b"\xe6\x97",
    b"\xff",
    b"b.",
    b"",
    None,
]
TOKENS = [bytes([byte]) for byte in range(256)] + WORDS
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)
ALPHABETS = ["ab", "ab ", "aé日", "ab. \n", "a\0b", "aa😀é "]


def judge_of(texts: Iterable[str]) -> Judge:
    """What is viable and valid, of all texts there are."""
    valid = {text.encode() for text in texts}
    viable = {text[:end] for text in valid for end in range(len(text) + 1)}
    return lambda text: (text in viable, text in valid)


def quotes_of(documents: Iterable[str], boundary: str, least: int, most: int | None) -> set[str]:
    """All quotes, by the definition of borders in Python's own expressions."""
    quotes: set[str] = set()
    for document in documents:
        starts, ends = borders_of(document, boundary)
        for start in starts:
            quotes.update(document[start:end] for end in ends if end > start)
    return {quote for quote in quotes if least <= len(quote) and (most is None or len(quote) <= most)}


def borders_of(document: str, boundary: str) -> tuple[list[int], list[int]]:
    """Where quotes may begin and end."""
    if boundary == "word":
        chunks = [match.span() for match in re.finditer(r"\w+|\s+|[^\w\s]+", document)]
        return [a for a, _ in chunks if not document[a].isspace()], [b for _, b in chunks]
    if boundary == "line":
        lines = [match.span() for match in re.finditer(r"[^\r\n]+", document)]
        return [a for a, _ in lines], sorted({b for _, b in lines} | {len(document)})
    return list(range(len(document))), list(range(1, len(document) + 1))


def text_of(rng: random.Random, most: int) -> str:
    alphabet = rng.choice(ALPHABETS)
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, most)))


@pytest.mark.parametrize("seed", range(12))
def test_names(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        names = {text_of(rng, 6) for _ in range(rng.randint(1, 12))}
        grammar = compile_names(NameSet.build(names), VOCABULARY)
        assert isinstance(grammar, SortedGrammar)
        check_laws(grammar, judge_of(names), texts=[name.encode() for name in names], seed=seed, exact=True)


@pytest.mark.parametrize("boundary", ["char", "word", "line"])
@pytest.mark.parametrize("seed", range(12))
def test_quotes(boundary: str, seed: int) -> None:
    rng = random.Random(f"{seed}{boundary}")
    for _ in range(3):
        documents = {str(number): text_of(rng, 20) for number in range(rng.randint(1, 4))}
        least, most = rng.choice([(1, None), (2, None), (1, 3), (3, 5), (4, None), (2, 2)])
        quotes = quotes_of(documents.values(), boundary, least, most)
        try:
            grammar = compile_quotes(Corpus.build(documents, boundary), VOCABULARY, least, most)  # type: ignore[arg-type]
        except Exception as error:  # nothing can be quoted
            assert not quotes, error
            continue
        texts = [quote.encode() for quote in sorted(quotes)[:20]]
        check_laws(grammar, judge_of(quotes), texts=texts, walks=2, seed=seed, exact=True)


def test_a_vocabulary_that_lacks_bytes() -> None:
    tokens = [bytes([byte]) for byte in range(97, 101)] + ["é".encode(), b"bz", None]
    vocabulary = Vocabulary(tokens, eos_token_ids=6)
    many = [f"{'abcd'[i % 4] * (i % 9 + 1)}{'z' * (i % 2)}" for i in range(1_200)]
    spelled = compile_choice([*many, "bz"], vocabulary)
    assert {bytes(text) for text in all_texts(spelled)} >= {b"a", b"bz", b"cc"}
    grammar = compile_quotes(Corpus.build("abzcd"), vocabulary)
    check_laws(grammar, judge_of(quotes_of(["ab", "cd"], "char", 1, None)))
    with pytest.raises(EmptyLanguageError):
        compile_quotes(Corpus.build("xyz"), vocabulary)
    word = compile_quotes(Corpus.build("abz cd", boundary="word"), vocabulary)
    check_laws(word, judge_of(["cd"]))


def all_texts(grammar: Grammar) -> list[bytes]:
    """The texts of a small language, token by token."""
    matcher, stack = grammar.matcher(), [b""]
    texts: list[bytes] = []
    while stack and len(texts) < 500:
        text = stack.pop()
        walker = matcher.copy()
        walker.accept_bytes(text)
        if walker.is_accepting():
            texts.append(text)
        stack += [text + bytes([byte]) for byte in walker.next_bytes().nonzero()[0].tolist()]
    return texts


def test_choices_of_many_are_sorted_tables() -> None:
    options = [f"option {number}" for number in range(1_000)] + ["", "option"]
    grammar = compile_choice(options, VOCABULARY)
    assert isinstance(grammar, SortedGrammar)
    check_laws(grammar, judge_of(options), walks=2, tokens=range(240, len(TOKENS)))


def test_limits_that_leave_nothing() -> None:
    corpus = Corpus.build({"one": "abc", "two": "de"})
    with pytest.raises(EmptyLanguageError, match="4"):
        compile_quotes(corpus, VOCABULARY, 4)
    with pytest.raises(EmptyLanguageError):
        compile_quotes(Corpus.build("abcdef", "word"), VOCABULARY, 1, 5)
