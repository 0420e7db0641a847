"""The grammars that ship, compiled over single bytes, with their corpora, and Lark's parsers as judges of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import lark
import numpy as np
from lark.indenter import PythonIndenter

from structgen import GrammarWarning, Vocabulary, compile_lark

FOLDER = Path(__file__).parents[2] / "grammars"
BYTES = Vocabulary([bytes([b]) for b in range(256)] + [None], eos_token_ids=256)
INDENTED = sorted(path.stem for path in FOLDER.glob("*.lark") if "%declare" in path.read_text())
NAMES = sorted(path.stem for path in FOLDER.glob("*.lark") if path.stem not in INDENTED)
JUDGES = {  # structgen's lexers, and the parsers of Lark that take the same texts
    "dynamic": {"parser": "earley", "lexer": "dynamic_complete", "ambiguity": "forest"},
    "contextual": {"parser": "lalr", "lexer": "contextual"},
}
CONTROL = {0x2400 + code: code for code in range(32)}


def corpus(name: str, kind: str = "") -> list[str]:
    """The texts of a corpus; control characters stand there as their pictures (U+2400 to U+241F)."""
    lines = (FOLDER / "corpus" / f"{name}{kind}.txt").read_text().split("\n")
    return [line.translate(CONTROL) for line in lines[:-1]]


@cache
def grammar(name: str, lexer: str) -> Any:
    """A shipped grammar as structgen compiles it."""
    with warnings.catch_warnings(action="ignore", category=GrammarWarning):  # of what looks beyond itself
        return compile_lark(FOLDER / f"{name}.lark", BYTES, lexer=lexer)


@cache
def judge(name: str, lexer: str) -> lark.Lark:
    """A shipped grammar as Lark reads it."""
    options: Any = JUDGES[lexer] | ({"postlex": PythonIndenter()} if name in INDENTED else {})
    return lark.Lark((FOLDER / f"{name}.lark").read_text(), import_paths=[str(FOLDER)], **options)


def accepts(compiled: Any, text: str) -> bool:
    """Whether a matcher takes the text, byte by byte, as a whole."""
    matcher = compiled.matcher()
    return all(matcher.accept_bytes(bytes([byte])) for byte in text.encode()) and bool(matcher.is_accepting())


def parses(parser: lark.Lark, text: str) -> bool:
    """Whether Lark takes the text."""
    try:
        parser.parse(text)
    except (lark.exceptions.LarkError, AssertionError):  # (PythonIndenter asserts that brackets are paired)
        return False
    return True


def mutants(texts: list[str], count: int, seed: str) -> Iterator[str]:
    """Texts with a few characters taken out, doubled, or put in from others."""
    random = Random(seed)
    signs = sorted(set("".join(texts)))
    for _ in range(count):
        text = random.choice(texts)
        for _ in range(random.randint(1, 2)):
            start = random.randrange(len(text) + 1)
            text = text[:start] + random.choice(["", *random.choices(signs, k=2)]) + text[start + random.randrange(3) :]
        yield text


def walk(compiled: Any, seed: int, length: int = 25) -> str:
    """A text by random bytes that the matcher allows, printable ones rather, and then the shortest way to an end."""
    random, matcher, text = Random(seed), compiled.matcher(), b""
    for _ in range(length):
        following = np.flatnonzero(matcher.next_bytes()).tolist()
        plain = [byte for byte in following if 32 < byte < 127]
        if not following:
            break
        byte = bytes([random.choice(plain if plain and random.random() < 0.8 else following)])
        assert matcher.accept_bytes(byte)
        text += byte
    return str(text + matcher.shortest_completion(), "utf-8")
