"""Generation with a tiny model: any budget, filter, stop string and draft gives a valid output or a typed error."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np

from structgen import Generator, JsonOptions, json_schema
from structgen.errors import (
    ConstraintError,
    GenerationError,
    IncompleteOutputError,
    StructgenError,
    TokenizerError,
    UnsatisfiableTargetError,
)
from structgen.generation.models.tiny import TinyModel
from tests.fakes import CharTokenizer, vocabulary
from tests.fuzz.judge import BeyondJudgeError, Judge, read
from tests.fuzz.schemas import HUGE, Schemas

Case = dict[str, Any]
VOCABULARY = vocabulary(b'{"', b'":', b'", "', b"}}", b"]]", b"true", b"null", b"12", b"ab", b'"}', b", ", b'""', eos=1)
CLOSERS = b'"}],: 01'


def unit(seed: int, tally: Counter[str]) -> list[Case]:
    """Generate under one schema, in some ways that must agree."""
    rng = random.Random(f"generation {seed}")
    schemas = Schemas(rng)
    schema = schemas.root()
    text = json.dumps(schema)
    if any(str(size) in text for size in HUGE):
        return []  # outputs of that size are asked for in `hostile`
    draft: Any = schemas.draft
    options = JsonOptions(dialect=draft, assert_formats=False, key_order=rng.choice(("any", "declared")))
    asked: dict[str, Any] = {
        "temperature": rng.choice((0.0, 0.7, 1.0, 3.0)),
        "top_p": rng.choice((1.0, 0.9, 0.3)),
        "top_k": rng.choice((None, 1, 5)),
        "seed": rng.randrange(1000),
        "max_new_tokens": rng.choice((1, 2, 3, 5, 10, 20, 40, 80)),
        "stop": rng.choice(((), (), "]", ('"', "}"), "a")),
        "schema_in_prompt": False,
    }
    check = _Generations(
        Judge(schema, schemas.draft), rng, tally, {"schema": text, "draft": schemas.draft, "asked": asked}
    )
    try:
        check.constraint = json_schema(schema, options)
        check.constraint.compile(VOCABULARY)
    except (ConstraintError, TokenizerError):  # a TokenizerError: the vocabulary lacks bytes that the schema needs
        return []
    try:
        check.run(asked)
    except Exception as error:
        check.fail(f"untyped {type(error).__name__}", repr(error)[:300])
    return check.failed


class _Generations:
    def __init__(self, judge: Judge, rng: random.Random, tally: Counter[str], case: Case) -> None:
        self.judge, self.rng, self.tally, self.case = judge, rng, tally, case
        self.constraint: Any = None
        self.failed: list[Case] = []
        bias = np.zeros(VOCABULARY.size)
        for byte in CLOSERS:
            bias[byte + 1] = rng.choice((0.0, 1.0, 3.0))
        bias[0] = rng.choice((-2.0, 0.0, 3.0))
        self.model = TinyModel(VOCABULARY.size, seed=rng.randrange(100), order=2, bias=bias)

    def fail(self, kind: str, detail: str) -> None:
        self.failed.append({"kind": kind, "detail": f"{detail} {self.case}"[:1500]})

    def run(self, asked: dict[str, Any]) -> None:
        """With and without a draft, in a stream and in a batch."""
        plain = self.one(asked, None)
        for draft in self.rng.sample(("ngram", "auto", "model"), 1):
            given = TinyModel(VOCABULARY.size, seed=self.rng.randrange(3), order=2) if draft == "model" else draft
            other = self.one(asked, given)
            if asked["temperature"] == 0 and other != plain:
                self.fail("draft differs", f"{draft}: {other!r}, without: {plain!r}")
        if plain is not None and self.rng.random() < 0.3:
            generator = Generator(self.model, CharTokenizer(eos=1), vocabulary=VOCABULARY)
            events = list(generator.stream("p", self.constraint, **asked))
            if "".join(event.delta for event in events) != events[-1].text or events[-1].text != plain:
                self.fail("stream differs", repr(events[-1].text))

    def one(self, asked: dict[str, Any], draft: Any) -> str | None:
        """The text of one generation; None: a typed error."""
        generator = Generator(self.model, CharTokenizer(eos=1), vocabulary=VOCABULARY, draft=draft)
        self.tally["generations"] += 1
        try:
            result = generator.generate("p", self.constraint, **asked)
        except (IncompleteOutputError, UnsatisfiableTargetError) as error:
            self.tally[f"generations: {type(error).__name__}"] += 1
            return None
        except GenerationError as error:
            self.fail("GenerationError", str(error)[:300])
            return None
        except StructgenError as error:
            self.fail(type(error).__name__, str(error)[:300])
            return None
        self.tally["texts"] += 1
        if len(result.token_ids) > asked["max_new_tokens"]:
            self.fail("over budget", f"{len(result.token_ids)} tokens")
        try:
            if not self.judge.valid(read(result.text)):
                self.fail("writes invalid", result.text)
        except ValueError:
            if not asked["stop"]:
                self.fail("no JSON", result.text)
        except BeyondJudgeError:
            pass
        return result.text
