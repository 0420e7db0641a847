"""Vocabularies: random tokens of all shapes, under schemas, expressions and grammars whose masks are compared whole."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from structgen import JsonOptions, Vocabulary, compile_gbnf, compile_json_schema, compile_regex
from structgen.errors import StructgenError
from tests.fuzz.json_checks import ALPHABET
from tests.fuzz.schemas import Schemas
from tests.fuzz.vocabularies import PIECES
from tests.fuzz.walks import Walk, Wrong

Case = dict[str, Any]
GRAMMARS = ['root ::= "[" (root ("," root)*)? "]" | [0-9]+ | "é" root', 'root ::= ("a" | "ab" | "😀")* "b"']
PATTERNS = [r"(?:a|ab|\d)*", r"é+[^a]?", r"(?s:.{2,5})", r"\w+ \w+"]


def random_vocabulary(rng: random.Random) -> Vocabulary:
    """Pieces that do or do not cover all bytes; repeated, cut within characters, without text, padded."""
    size = rng.choice((1, 5, 50, 300))
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256) if rng.random() < 0.97]
    tokens += [b"".join(rng.choices(PIECES, k=rng.randint(1, 5))) for _ in range(size)]
    tokens += [rng.randbytes(rng.randint(1, 4)) for _ in range(size // 5)]
    tokens += [rng.choice(PIECES) * rng.choice((2, 8, 40)) for _ in range(size // 10)]
    tokens += [None] * rng.randint(1, 6)
    rng.shuffle(tokens)
    ends = rng.sample(range(len(tokens)), rng.randint(1, 3))
    special = rng.sample(range(len(tokens)), rng.randint(0, 3))
    padded = len(tokens) + rng.choice((0, 1, 31, 64))
    return Vocabulary(tokens, eos_token_ids=ends, special_token_ids=special, size=padded)


def unit(seed: int, tally: Counter[str]) -> list[Case]:
    """Check one vocabulary under a few constraints."""
    rng = random.Random(f"vocabulary {seed}")
    vocabulary = random_vocabulary(rng)
    tally["vocabularies"] += 1
    failed: list[Case] = []
    for name in ("schema", "schema", "expression", "grammar"):
        try:
            grammar: Any
            if name == "schema":
                schemas = Schemas(rng)
                options = JsonOptions.exact(dialect=schemas.draft, assert_formats=False)
                grammar = compile_json_schema(schemas.root(), vocabulary, options)
            elif name == "expression":
                grammar = compile_regex(rng.choice(PATTERNS), vocabulary)
            else:
                grammar = compile_gbnf(rng.choice(GRAMMARS), vocabulary)
        except StructgenError:
            continue
        walk = _AnyTokens(grammar, rng, lambda text: None, ALPHABET)
        try:
            walk.run(12, 0.3)
        except Wrong as wrong:
            failed.append({"kind": wrong.kind, "detail": f"{name}: {wrong}"[:300]})
        tally["texts"] += walk.texts
    return failed


class _AnyTokens(Walk):
    """A walk over a vocabulary that may lack bytes: where no token is left, the text could not go on."""

    def _choose(self, allowed: Any) -> int | None:
        if not allowed.any() and self.vocabulary.missing_bytes:
            return None
        return super()._choose(allowed)
