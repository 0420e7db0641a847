"""Seconds that captures of long texts take: ``python benchmarks/captures.py [BYTES ...]``."""

from __future__ import annotations

import json
import random
import sys
import time
from contextlib import suppress
from typing import Any

from structgen import gbnf, lark
from structgen.errors import CapturesTooComplexError, GenerationError

JSON = r"""
root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (pair ("," ws pair)*)? "}" ws
pair ::= string ":" ws value
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\] | "\\" ["\\/bfnrt])* "\"" ws
number ::= "-"? [0-9]+ ("." [0-9]+)? ws
ws ::= [ \t\n]*
"""
SUM = """
start: sum
sum: product | sum "+" product
product: atom | product "*" atom
atom: /[0-9]+/ | "(" sum ")"
%ignore " "
"""
CASES: list[tuple[str, Any, str]] = [
    ("JSON by rules", gbnf(JSON, captures=["string", "pair"]), ""),
    (
        "list, left recursion",
        lark('start: list\nlist: list "," item | item\nitem: /[a-z]+/', captures=["item"]),
        "abc,",
    ),
    (
        "list, right recursion",
        lark('start: list\nlist: item "," list | item\nitem: /[a-z]+/', captures=["item"]),
        "abc,",
    ),
    ("words", lark('start: WORD+\nWORD: /[a-z,]+/\n%ignore " "', captures=["WORD"]), "abc, "),
    ("sums", lark(SUM, captures=["atom"]), "1 + 2 * (3 + 4) + "),
    (
        "text and calls",
        lark('start: (text | "<" name ">")*\ntext: /[^<]+/\nname: /[a-z]+/', captures=["text"]),
        "ab <c> ",
    ),
    ("one text", lark("start: text*\ntext: /[^<]+/", captures=["text"]), "some text "),
    ("ambiguous", lark('start: e\ne: e "+" e | /[0-9]/', captures=["e"]), "1+"),
]


def document(size: int) -> str:
    """Random JSON of about so many bytes."""
    rng = random.Random(0)

    def value(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice([1, 2.5, "hello world", True])
        return (
            [value(depth - 1) for _ in range(5)] if rng.random() < 0.5 else {f"k{i}": value(depth - 1) for i in "abc"}
        )

    found: list[Any] = []
    while len(json.dumps(found)) < size:
        found.append(value(4))
    return json.dumps(found)


def main(sizes: list[int]) -> None:
    """Print a line for each case and size."""
    for name, constraint, piece in CASES:
        for size in sizes:
            text = _text(name, piece, size)
            with suppress(GenerationError):
                constraint.captures(text[:1])  # compile
            start = time.perf_counter()
            try:
                result = f"{sum(len(own) for own in constraint.captures(text).values()):,} captures"
            except CapturesTooComplexError as error:
                result = f"refused: {error.budget}"
            print(f"{name:24} {len(text):8,} bytes {time.perf_counter() - start:8.3f} s  {result}", flush=True)


def _text(name: str, piece: str, size: int) -> str:
    if not piece:
        return document(size)
    text = piece * (size // len(piece))
    return text + "1" if name in ("sums", "ambiguous") else text.removesuffix(",")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [1_000, 10_000])
