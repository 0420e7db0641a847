"""Threads: matchers of one grammar in several threads do what they do alone; so does compiling."""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from structgen import JsonOptions, compile_gbnf, compile_json_schema, compile_lark, compile_regex
from structgen.errors import StructgenError
from tests.fuzz.json_checks import ALPHABET
from tests.fuzz.schemas import Schemas
from tests.fuzz.vocabularies import vocabulary
from tests.fuzz.walks import Walk, Wrong

Case = dict[str, Any]
THREADS = 4
LALR = 'start: "[" [item ("," item)*] "]"\nitem: NUMBER | NAME | start\nNUMBER: /[0-9]+/\nNAME: /[a-z]+/\n%ignore " "'


def unit(seed: int, tally: Counter[str]) -> list[Case]:
    """A few constraints, each walked by several threads at once."""
    rng = random.Random(f"threads {seed}")
    schemas = [Schemas(rng) for _ in range(4)]
    texts = [(s.draft, json.dumps(s.root())) for s in schemas]

    def compiled(number: int) -> Any:
        try:
            if number < 4:
                draft, text = texts[number]
                options = JsonOptions.exact(dialect=draft, assert_formats=False)
                return compile_json_schema(json.loads(text), vocabulary(1 + number % 3), options)
            if number == 4:
                return compile_regex(r"(?:a|bc)+\d{1,3}", vocabulary(2))
            if number == 5:
                return compile_gbnf('root ::= "(" root ")" | [ab]+ | ""', vocabulary(2))
            return compile_lark(LALR, vocabulary(3), lexer="contextual")
        except StructgenError:
            return None

    failed: list[Case] = []
    with ThreadPoolExecutor(THREADS) as pool:
        for number, grammars in enumerate(zip(*(pool.map(compiled, range(7)) for _ in range(2)), strict=True)):
            if None in grammars:
                continue
            alone = [_walked(compiled(number), seed) for seed in range(6)]
            together = list(pool.map(lambda seed, g=grammars[0]: _walked(g, seed), range(6)))
            tally["texts"] += 12
            if alone != together:
                failed.append(
                    {"kind": "threads differ", "detail": f"{number} {texts[number % 4]} {alone} {together}"[:600]}
                )
    return failed


def _walked(grammar: Any, seed: int) -> str:
    """A walk, or what went wrong (which is another area's matter, if it is the same alone)."""
    walk = Walk(grammar, random.Random(seed), lambda text: None, ALPHABET)
    try:
        return repr(walk.run(25, 0.1))
    except Wrong as wrong:
        return f"{wrong.kind} {walk.text!r}"
