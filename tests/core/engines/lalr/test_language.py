"""The language is that of Lark's LALR parser with its contextual lexer, string by string."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from structgen.core.engines.lalr.compiled import LalrGrammar, compile_contextual
from structgen.core.vocabulary.vocabulary import Vocabulary

pytest.importorskip("lark")
from tests.core.engines.lalr.lalr_grammars import GRAMMARS, bundled, judge

BYTES = Vocabulary([*(bytes([b]) for b in range(256)), None], eos_token_ids=256)


def accepts(grammar: LalrGrammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def walk(grammar: LalrGrammar, rng: random.Random, most: int) -> str:
    """A random text by bytes, ended where it may end, else by the shortest completion."""
    matcher, text = grammar.matcher(), bytearray()
    for _ in range(most):
        following = np.flatnonzero(matcher.next_bytes())
        if not len(following) or (matcher.is_accepting() and rng.random() < 0.05):
            break
        ascii_ones = [int(b) for b in following if b < 128] or [int(b) for b in following]
        byte = rng.choice(ascii_ones if rng.random() < 0.95 else [int(b) for b in following])
        assert matcher.accept_bytes(bytes([byte]))
        text.append(byte)
    rest = matcher.shortest_completion()
    assert matcher.accept_bytes(rest), (bytes(text), rest)
    assert matcher.is_accepting(), (bytes(text), rest)
    return (bytes(text) + rest).decode()


def mutated(rng: random.Random, text: str, alphabet: str) -> str:
    characters = list(text)
    for _ in range(rng.randrange(1, 3)):
        place = rng.randrange(len(characters) + 1)
        kind = rng.randrange(3)
        if kind == 0 or not characters:
            characters.insert(place, rng.choice(alphabet))
        elif place < len(characters):
            characters[place : place + 1] = [rng.choice(alphabet)] if kind == 1 else []
    return "".join(characters)


@pytest.mark.first_case
@pytest.mark.parametrize("name", GRAMMARS)
def test_short_strings(name):
    text, alphabet = GRAMMARS[name]
    grammar, right = compile_contextual(text, BYTES), judge(text)
    length = next(n for n in range(12, 0, -1) if len(alphabet) ** n <= 3_000)
    for n in range(length + 1):
        for letters in itertools.product(alphabet, repeat=n):
            string = "".join(letters)
            assert accepts(grammar, string) == right(string), string


@pytest.mark.parametrize("name", GRAMMARS)
def test_random_walks_and_their_mutations(name):
    text, alphabet = GRAMMARS[name]
    grammar, right = compile_contextual(text, BYTES), judge(text)
    rng = random.Random(3)
    for _ in range(25):
        string = walk(grammar, rng, rng.randrange(40))
        assert right(string), string
        for _ in range(4):
            other = mutated(rng, string, alphabet)
            assert accepts(grammar, other) == right(other), other
    assert grammar.matcher().stats == {"undecided": 0}


@pytest.mark.first_case
@pytest.mark.parametrize("name", GRAMMARS)
def test_prefixes_live_exactly_if_some_extension_is_accepted(name):
    text, alphabet = GRAMMARS[name]
    grammar, right = compile_contextual(text, BYTES), judge(text)
    rng = random.Random(4)
    accepted = {walk(grammar, rng, rng.randrange(12)) for _ in range(60)}
    for string in accepted:
        matcher = grammar.matcher()
        for character in string:
            assert matcher.accept_bytes(character.encode()), string
    for _ in range(150):
        string = "".join(rng.choices(alphabet, k=rng.randrange(7)))
        matcher = grammar.matcher()
        if not matcher.accept_bytes(string.encode()):  # then nothing short completes it
            for n in range(3):
                for letters in itertools.product(alphabet, repeat=n):
                    assert not right(string + "".join(letters)), (string, letters)
        else:
            rest = matcher.shortest_completion().decode()
            assert right(string + rest), (string, rest)


LARK_TEXTS = (
    'start: "a" | b\nb: /x/i -> y\n%ignore " "\n',
    'A.2: "x".."z"\n?start: [A] (A | "b")~2..3 "c"*\n',
    "%import common.WS\n%declare X\nstart: WS? X{2}\n",
    "// comment\nt{x}: x x\nstart: t{A}\nA: /\\/a/\n",
)
PYTHON_TEXTS = (
    "x = 1\n",
    "def f(a, *b, c=1, **d) -> int:\n    return a + b[0]\n",
    "class C(D):\n    x: int = 3\n\n    @p\n    def y(self):\n        '''doc'''\n        return [i for i in self]\n",
    "if a:\n  b\nelif c:\n\td\nelse:\n        e\n",
    "with open('f') as f, g:\n    for line in f:\n        print(line, end='')  # comment\n\n# end\n",
    "try:\n    x = yield\nexcept (A, B) as e:\n    raise E from e\nfinally:\n    pass\n",
    "match x:\n    case [1, *rest] if rest: pass\n    case {'a': b}: pass\n    case _: pass\n",
    "async def f():\n    await g(lambda x, *y: x)\n    async with h: pass\n",
    "x = {1: 2, **d}; y = {1, 2}; z = (yield)\n",
    "a = b if c else d or not e and f < g <= h is not i\n",
    'x = f"""a\nb""" + rb\'\\\'\' + "\\""\n',
    "x = 0x1F + 0o17 + 0b11 + 1_000 + 1e-3 + 2j + .5\n",
    "foo(\n  a,  # c\n\n  b)\nx = [\n1,\n]\n",
    "for line in f: yield line\n",
    "global a, b\nassert x, y\ndel z[0]\nimport a.b as c, d\nfrom . import e\n",
)


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("name", "start", "texts", "alphabet"),
    [
        ("lark.lark", "start", LARK_TEXTS, ' \n:|"/ab1A_~()[]%->.,?{}*+\\'),
        ("python.lark", "file_input", PYTHON_TEXTS, " \n\t:=()[]{}#'\"ab1_.,+-*\\ifx"),
    ],
)
def test_bundled_grammars(name, start, texts, alphabet):
    text = bundled(name)
    grammar, right = compile_contextual(text, BYTES, start), judge(text, start)
    rng = random.Random(1)
    for string in texts:
        assert accepts(grammar, string) == right(string), string
        for _ in range(25):
            other = mutated(rng, string, alphabet)
            assert accepts(grammar, other) == right(other), other
    assert sum(map(right, texts)) >= len(texts) - 1
    for _ in range(12):
        string = walk(grammar, rng, rng.randrange(60))
        assert right(string), string
    assert grammar.matcher().stats == {"undecided": 0}


@pytest.mark.parametrize("library", ["common", "unicode"])
def test_terminals_of_lark_s_library(library):
    import re

    names = re.findall(r"^([A-Z]\w*)[ .\d]*:", bundled(f"{library}.lark"), re.MULTILINE)
    rng = random.Random(2)
    samples = [
        "a",
        "Zz9",
        "12",
        "-3.5e7",
        '"a\\"b"',
        "_x1",
        " \t\n",
        "\r\n",
        "// c",
        "/* c */",
        "# c",
        "é",
        "ß²",
        "0x1",
        "٣",
        "ǅ",
        "1E5",
    ]
    for name in names:
        text = f"start: {name}\n%import {library}.{name}\n"
        try:
            right = judge(text)
        except Exception:  # a fragment that may be empty
            continue
        grammar = compile_contextual(text, BYTES)
        for string in [*samples, *(walk(grammar, rng, rng.randrange(12)) for _ in range(4))]:
            assert accepts(grammar, string) == right(string), (name, string)
            other = mutated(rng, string, 'a1"\\ /*é_')
            assert accepts(grammar, other) == right(other), (name, other)
